/* SPDX-License-Identifier: Apache-2.0 */
/* The log as it stands at one moment, record after record. The moment is taken under the writers' lock
 * (shared: readers do not keep each other out), so that the head, the files and their lengths belong
 * together; afterwards the files only grow beyond what was seen.
 *
 * Waits: lock_within in moment; a writer; LIMIT_LOCK_MS; an error that names it
 *        pread in *; a file of the log; none (the kernel's own); an error */
#include "audit/walk.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool any_day(int dir)
{
    struct audit_files files = {0};
    struct err ignored = ERR_INIT;
    bool any = audit_files_open(dir, &files, &ignored) < 0 || files.count > 0;
    audit_files_done(&files);
    return any;
}

/* Somebody who takes the key away makes a log that nobody can check, not one that is not there. */
static int open_seal(struct audit_walk *w, int top, struct err *err)
{
    int r = state_folder(top, AUDIT_SEAL_DIR, false, &w->seal, err);
    if (r == 0)
        r = audit_key_load(w->seal, false, &w->key, err);
    if (r == ERR_SYS && err->sys_errno == ENOENT && any_day(w->dir))
        return err_set(err, ERR_STATE,
                       "the log has records, but its key, seal/key in the state folder, is gone: "
                       "nothing can be checked");
    return r;
}

static int open_all(struct audit_walk *w, const char *state, struct err *err)
{
    char path[STATE_PATH_MAX];
    FD_AUTO top = -1;
    int r = 0;
    if (!state) {
        r = state_path(path, sizeof path, err);
        state = path;
    }
    if (r == 0)
        r = state_open(state, false, &top, err);
    if (r == 0)
        r = state_folder(top, AUDIT_LOG_DIR, false, &w->dir, err);
    if (r == 0)
        r = open_seal(w, top, err);
    if (r == 0)
        r = state_file(w->seal, "head", O_RDONLY, &w->head_fd, err);
    /* without a head the records can be read, and verify says what is gone */
    return r == ERR_SYS && err->sys_errno == ENOENT && w->dir >= 0 && w->seal >= 0 &&
                   any_day(w->dir)
               ? 0
               : r;
}

static int look(struct audit_walk *w, struct audit_files *files, struct err *err)
{
    memset(w->sets, 0, sizeof w->sets);
    if (w->head_fd >= 0 && pread(w->head_fd, w->sets, sizeof w->sets, 0) < 0)
        return err_sys(err, "read the audit's head");
    int r = audit_anchor_load(w->seal, &w->key, &w->anchor, err);
    w->anchor_bad = r == ERR_FORMAT;
    if (r < 0 && !w->anchor_bad)
        return r;
    return audit_files_open(w->dir, files, err);
}

static int moment(struct audit_walk *w, struct audit_files *files, struct err *err)
{
    if (w->head_fd < 0) /* no head, no lock: and no writer that could be waited for */
        return look(w, files, err);
    int r =
        lock_within(w->head_fd, F_RDLCK, AUDIT_LOCK_APPEND, LIMIT_LOCK_MS, "the audit's lock", err);
    if (r < 0)
        return r;
    r = look(w, files, err);
    lock_release(w->head_fd, AUDIT_LOCK_APPEND);
    return r;
}

/* What retention has taken already, but a crash left in the folder. */
static void skip_removed(struct audit_walk *w)
{
    for (size_t i = 0; i < w->files.count; i++)
        if (w->files.items[i].first && w->files.items[i].first <= w->anchor.seq)
            w->files.items[i].done = true;
}

int audit_walk_new(const char *state, struct audit_walk **ret, struct err *err)
{
    struct audit_walk *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(err, ERR_MEMORY, "no memory to read the log");
    w->dir = w->seal = w->head_fd = -1;
    int r = open_all(w, state, err);
    if (r == 0)
        r = moment(w, &w->files, err);
    if (r < 0) {
        audit_walk_free(w);
        return r;
    }
    w->seq = w->anchor.seq + 1;
    memcpy(w->prev, w->anchor.hash, AUDIT_HASH);
    skip_removed(w);
    *ret = w;
    return 0;
}

void audit_walk_free(struct audit_walk *w)
{
    if (!w)
        return;
    audit_lines_done(&w->lines);
    audit_parts_done(&w->parts);
    audit_files_done(&w->files);
    fd_close(w->head_fd);
    fd_close(w->seal);
    fd_close(w->dir);
    explicit_bzero(&w->key, sizeof w->key);
    free(w);
}

/* The first record in sight becomes the one that the others follow on. */
static void begin_at(struct audit_walk *w, struct audit_file *file, uint64_t offset)
{
    for (size_t i = 0; i < w->files.count; i++)
        if (w->files.items[i].first < file->first)
            w->files.items[i].done = true;
    w->seq = file->first;
    w->from = offset;
    w->loose = true;
}

static struct audit_file *oldest_left(struct audit_walk *w, uint64_t least)
{
    struct audit_file *found = NULL;
    for (size_t i = 0; i < w->files.count; i++) {
        struct audit_file *f = &w->files.items[i];
        if (!f->done && f->first && f->day >= least && (!found || f->first < found->first))
            found = f;
    }
    return found;
}

void audit_walk_since(struct audit_walk *w, uint64_t ms)
{
    /* a run of a week may write its end where it wrote its begin */
    uint32_t least = audit_day_minus(audit_day_of(ms), 8);
    struct audit_file *file, *old = NULL, *very_first = oldest_left(w, 0);
    while ((file = oldest_left(w, least))) {
        uint64_t from = audit_index_since(w->seal, file, ms);
        if (from < file->size) {
            if (from || file != very_first)
                begin_at(w, file, from);
            return;
        }
        file->done = true;
        old = file;
    }
    if (old) { /* nothing is that young; what is appended later follows on the end */
        old->done = false;
        begin_at(w, old, old->size);
    }
}

void audit_walk_find(struct audit_walk *w, const char *id)
{
    w->by_parts = audit_index_find(w->seal, &w->files, id, &w->parts);
}

/* The offset behind the newline that has COUNT lines after it; lowers COUNT by what it found. */
static uint64_t from_the_end(const struct audit_file *f, uint64_t *count)
{
    char chunk[65536];
    uint64_t at = f->size;
    bool first = true;
    while (at > 0) {
        size_t n = at < sizeof chunk ? (size_t)at : sizeof chunk;
        if (pread(f->fd, chunk, n, (off_t)(at - n)) != (ssize_t)n)
            return 0;
        for (size_t i = n; i-- > 0;) {
            if (chunk[i] != '\n' || (first && at - n + i + 1 == f->size))
                continue;
            if (--*count == 0)
                return at - n + i + 1;
        }
        first = false;
        at -= n;
    }
    if (*count)
        --*count; /* the first line of the file has no newline before it */
    return 0;
}

bool audit_walk_last(struct audit_walk *w, uint64_t count)
{
    uint64_t before = UINT64_MAX;
    bool none = count == 0;
    while (count || none) { /* file by file, backwards */
        struct audit_file *last = NULL;
        for (size_t i = 0; i < w->files.count; i++) {
            struct audit_file *f = &w->files.items[i];
            if (!f->done && f->first && f->first < before && (!last || f->first > last->first))
                last = f;
        }
        if (!last)
            return true; /* all of it */
        if (none) {
            begin_at(w, last, last->size);
            return false;
        }
        before = last->first;
        w->from = from_the_end(last, &count);
        if (count == 0) {
            uint64_t offset = w->from;
            w->from = 0;
            bool all = offset == 0 && oldest_left(w, 0) == last;
            if (!all)
                begin_at(w, last, offset);
            return all;
        }
    }
    return true;
}

static const char *judge(struct audit_walk *w, const struct audit_step *s,
                         const struct audit_line *l)
{
    static _Thread_local char text[160];
    if (l->seq != w->seq && !w->loose) {
        if (l->seq > w->seq)
            snprintf(text, sizeof text, "record %llu is missing: number %llu stands in its place",
                     (unsigned long long)w->seq, (unsigned long long)l->seq);
        else
            snprintf(text, sizeof text, "a record with number %llu stands where %llu belongs",
                     (unsigned long long)l->seq, (unsigned long long)w->seq);
        return text;
    }
    const char *why = audit_line_check(s->text, l, &w->key);
    if (why)
        return why;
    if (!w->loose && memcmp(l->prev, w->prev, AUDIT_HASH) != 0)
        return "it does not follow on the record before it";
    return NULL;
}

/* What lies between two parts was not looked at: each begins anew. */
static int next_part(struct audit_walk *w)
{
    audit_lines_done(&w->lines);
    if (w->part == w->parts.count)
        return 0;
    const struct audit_part *p = &w->parts.items[w->part++];
    for (size_t i = 0; i < w->files.count; i++)
        if (&w->files.items[i] == p->file)
            w->file = &w->files.items[i];
    audit_lines_init(&w->lines, w->file->fd, p->from, p->stop);
    w->line = p->from ? 0 : 1;
    w->loose = true;
    w->nfiles++;
    return 1;
}

static int next_file(struct audit_walk *w)
{
    if (w->by_parts)
        return next_part(w);
    audit_lines_done(&w->lines);
    w->file = audit_files_take(&w->files, w->seq);
    if (!w->file)
        return 0;
    audit_lines_init(&w->lines, w->file->fd, w->from, w->file->size);
    w->line = w->from ? 0 : 1; /* 0: begun in the middle, so nobody knows */
    w->from = 0;
    w->nfiles++;
    return 1;
}

int audit_walk_next(struct audit_walk *w, struct audit_step *ret, struct err *err)
{
    struct audit_line l;
    uint64_t at;
    *ret = (struct audit_step){.kind = AUDIT_KINDS};
    for (;;) {
        if (!w->file && !next_file(w))
            return 0;
        int r = audit_lines_next(&w->lines, &ret->text, &ret->len, &at);
        if (r == -2)
            return err_sys(err, "read the log");
        if (r == 0) {
            w->at_day = w->file->day;
            w->at = w->lines.stop;
            w->file = NULL;
            continue;
        }
        ret->line = w->line ? w->line++ : 0;
        w->line_at = at;
        ret->seq = w->seq;
        audit_day_name(w->file->day, ret->file);
        if (r == -1) {
            w->torn = ret->len;
            w->torn_file = w->file;
            w->at_day = w->file->day;
            w->at = w->lines.stop - ret->len;
            w->file = NULL;
            ret->len = ret->len < AUDIT_RECORD_MAX ? ret->len : AUDIT_RECORD_MAX;
            ret->wrong = "the line is torn: it has no end";
            return 1;
        }
        ret->wrong = audit_line_parse(ret->text, ret->len, &l);
        if (ret->wrong)
            return 1;
        ret->wrong = judge(w, ret, &l);
        ret->kind = l.kind;
        ret->ts = l.ts;
        if (!ret->wrong || l.seq >= w->seq) { /* go on from what is there */
            if (!ret->wrong)
                ret->seq = l.seq;
            w->seq = l.seq + 1;
            memcpy(w->prev, l.hash, AUDIT_HASH);
            w->loose = false;
        }
        return 1;
    }
}

int audit_walk_again(struct audit_walk *w, struct err *err)
{
    struct audit_files files = {0};
    int r = moment(w, &files, err);
    if (r < 0)
        return r;
    /* the file that was read last is read on; those before it are done */
    for (size_t i = 0; i < files.count; i++) {
        struct audit_file *f = &files.items[i];
        f->done = f->first && f->first < w->seq;
        if (f->day == w->at_day && f->size > w->at) {
            w->from = w->at;
            f->first = w->seq;
            f->done = false;
        } else if (f->day == w->at_day) {
            f->done = true;
        }
    }
    audit_lines_done(&w->lines);
    audit_files_done(&w->files);
    w->files = files;
    w->file = w->torn_file = NULL;
    w->torn = 0;
    return 0;
}
