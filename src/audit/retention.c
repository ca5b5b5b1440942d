/* SPDX-License-Identifier: Apache-2.0 */
/* Old days go, and what is left must still verify: before a file is removed, the number and the hash of
 * its last record are signed and put aside (the anchor), and the chain begins there from then on.
 * A crash between anchor and removal leaves files that the anchor says are gone; they go the next time.
 *
 * A clock that jumps ahead must not empty the log: after a gap that is longer than the retention itself,
 * nothing is removed on the first day that sees it.
 *
 * Waits: fsync in remove_files; the disk, once a day; none (the kernel's own); others are refused by name
 *        pread in *; a file of the log; none (the kernel's own); an error */
#include "audit/inside.h"

#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GAP_LEAST 30 /* days */

/* Files without a record come last: they are nobody's to count. */
static int by_first(const void *a, const void *b)
{
    const struct audit_file *x = a, *y = b;
    uint64_t first = x->first - 1, second = y->first - 1;
    return (first > second) - (first < second);
}

/* The last record of a file, which must be signed: otherwise nothing is built on it, and the file stays. */
static bool last_record(struct audit *a, const struct audit_file *file, struct audit_anchor *ret)
{
    static const size_t most = AUDIT_RECORD_MAX;
    size_t n = file->size < most ? (size_t)file->size : most;
    char *text = n ? malloc(n) : NULL;
    struct audit_line l;
    bool good = false;
    if (text && pread(file->fd, text, n, (off_t)(file->size - n)) == (ssize_t)n &&
        text[n - 1] == '\n') {
        const char *before = n > 1 ? memrchr(text, '\n', n - 1) : NULL;
        const char *line = before ? before + 1 : text;
        good = !audit_line_parse(line, (size_t)(text + n - 1 - line), &l) &&
               !audit_line_check(line, &l, &a->key);
    }
    if (good) {
        ret->seq = l.seq;
        memcpy(ret->hash, l.hash, AUDIT_HASH);
    }
    free(text);
    return good;
}

/* How many files from the front are older than CUTOFF. A file's age is the youngest name from it on: one that was begun
 * while the clock stood in the future is as old as the one after it. The one that is written stays. */
static size_t count_old(const struct audit *a, const struct audit_files *files, uint32_t cutoff)
{
    size_t old = 0;
    for (; old < files->count; old++) {
        uint32_t age = UINT32_MAX;
        for (size_t i = old; i < files->count; i++)
            if (files->items[i].first && files->items[i].day < age)
                age = files->items[i].day;
        if (files->items[old].day == a->head.day || files->items[old].first == 0 || age >= cutoff)
            break;
    }
    return old;
}

static int remove_files(struct audit *a, const struct audit_files *files, size_t count,
                        struct err *err)
{
    char name[AUDIT_NAME_MAX];
    for (size_t i = 0; i < count; i++) {
        audit_day_name(files->items[i].day, name);
        if (unlinkat(a->dir, name, 0) < 0)
            return err_sys(err, "remove %s", name);
        audit_index_name(files->items[i].day, name);
        unlinkat(a->seal, name, 0); /* says nothing without its day */
    }
    return fsync(a->dir) < 0 ? err_sys(err, "remove old days") : 0;
}

/* Made ahead for runs that might have ended on that day, and no record came. */
static void remove_unused(struct audit *a, const struct audit_files *files)
{
    char name[AUDIT_NAME_MAX];
    const uint32_t today = audit_day_of(a->now);
    for (size_t i = 0; i < files->count; i++) {
        const struct audit_file *f = &files->items[i];
        if (f->size || f->day >= today || f->day == a->head.day)
            continue;
        audit_day_name(f->day, name);
        unlinkat(a->dir, name, 0);
    }
}

static int tell(struct audit *a, size_t count, const struct audit_anchor *anchor,
                const struct err *why, struct err *err)
{
    char hash[2 * AUDIT_HASH + 1];
    audit_hex(anchor->hash, AUDIT_HASH, hash);
    const struct audit_arg args[] = {
        {.name = "files", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)count},
        {.name = "through", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)anchor->seq},
        {.name = "hash", .text = hash},
        {.name = "days", .kind = AUDIT_ARG_NUMBER, .number = a->config.retention_days},
    };
    const struct audit_outcome o = {.status = why->code ? "error" : "ok",
                                    .reason = why->code ? why->msg : NULL};
    const struct audit_facts facts = {
        .tool = "audit", .args = args, .nargs = sizeof args / sizeof *args, .outcome = &o};
    return audit_append_own(a, AUDIT_RETENTION, &facts, err);
}

static int retain(struct audit *a, uint32_t cutoff, size_t *ret_count, struct audit_anchor *anchor,
                  struct err *err)
{
    struct audit_files files = {0};
    int r = audit_anchor_load(a->seal, &a->key, anchor, err);
    if (r == 0)
        r = audit_files_open(a->dir, &files, err);
    if (r < 0)
        return r;
    if (files.count)
        qsort(files.items, files.count, sizeof *files.items, by_first);
    remove_unused(a, &files);
    size_t count = count_old(a, &files, cutoff);
    struct audit_anchor next = *anchor;
    if (count && !last_record(a, &files.items[count - 1], &next))
        r = err_set(err, ERR_FORMAT,
                    "an old day does not end in a record of ours; nothing is removed: see `cordon "
                    "audit verify`");
    if (r == 0 && count && next.seq > anchor->seq)
        r = audit_anchor_store(a->seal, &a->key, &next, err);
    if (r == 0 && count)
        r = remove_files(a, &files, count, err);
    if (r == 0 && count) {
        *anchor = next;
        *ret_count = count;
    }
    audit_files_done(&files);
    return r;
}

void audit_retain(struct audit *a)
{
    struct err why = ERR_INIT, err = ERR_INIT;
    uint32_t today = audit_day_of(a->now), before = a->head.retained;
    unsigned gap = a->config.retention_days > GAP_LEAST ? a->config.retention_days : GAP_LEAST;
    struct audit_anchor anchor = {0};
    size_t count = 0;
    if (before == today)
        return;
    a->head.retained = today; /* stored with the next record */
    if (a->config.retention_days == 0 || before == 0 || audit_day_minus(today, gap) > before)
        return;
    audit_code_expire(a, a->now - a->config.retention_days * AUDIT_DAY_MS);
    int r = retain(a, audit_day_minus(today, a->config.retention_days), &count, &anchor, &why);
    if ((r < 0 || count) && tell(a, count, &anchor, &why, &err) < 0)
        a->head.retained = before; /* tried again with the next record */
}
