/* SPDX-License-Identifier: Apache-2.0 */
/* What to believe when the log and the head do not agree. Under the lock, so no writer is at work.
 *
 * The log is ahead: a writer was killed after its append, or the power went before the head was on
 * disk. Lines that continue the chain and carry our signature are records; nobody else could have
 * written them. What follows and is no record was torn off in the middle: it was never acknowledged,
 * so it is cut, and a `repair` record says so. Whole lines of somebody else's are left where they are,
 * as evidence, and make a `tampered` record.
 *
 * The log is behind: records are missing that the head has signed. After kill -9 the kernel still has
 * every byte, so somebody took them. After a restart of the machine the head may have reached the disk
 * before the log did: then the state as of the last fsync counts, and what came after it and was not
 * acknowledged is not missed.
 *
 * Waits: write in go_on_behind; the disk's cache; none (the kernel's own); others are refused by name
 *        pread in *; a file of the log; none (the kernel's own); an error */
#include "audit/inside.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool audit_pos_holds(int dir, const struct audit_pos *p, struct hmac_sha256_ctx *key,
                     struct buf *ret_line)
{
    char name[AUDIT_NAME_MAX], *text;
    struct audit_line l;
    struct err err = ERR_INIT;
    FD_AUTO fd = -1;
    if (p->len < 2 || p->len > AUDIT_RECORD_MAX)
        return false;
    audit_day_name(p->day, name);
    if (state_file(dir, name, O_RDONLY, &fd, &err) < 0 || !(text = malloc(p->len)))
        return false;
    bool holds = pread(fd, text, p->len, (off_t)p->offset) == (ssize_t)p->len &&
                 text[p->len - 1] == '\n' && !audit_line_parse(text, p->len - 1, &l) &&
                 memcmp(l.hash, p->hash, AUDIT_HASH) == 0 && !audit_line_check(text, &l, key);
    if (holds && ret_line) {
        buf_reset(ret_line);
        holds = buf_add(ret_line, text, p->len - 1) == 0;
    }
    free(text);
    return holds;
}

struct finding {
    enum { NOTHING, TORN, FOREIGN, MISSING, HEAD_LOST } what;
    uint64_t bytes, missing;
    uint64_t adopted;
    bool rebooted;
    char sha[2 * AUDIT_HASH + 1], text[200];
};

/* Whether all that the head knows is there. */
static bool covered(struct audit *a, const struct audit_head *h)
{
    char name[AUDIT_NAME_MAX];
    struct stat st;
    audit_day_name(h->day, name);
    if (h->end &&
        (fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (uint64_t)st.st_size < h->end))
        return false;
    return h->seq == 0 || audit_pos_holds(a->dir, &h->last, &a->key, NULL);
}

static void adopt(struct audit_head *h, const struct audit_line *l, uint64_t at, size_t len)
{
    h->seq = l->seq;
    h->last.day = h->day;
    h->last.offset = at;
    h->last.len = (uint32_t)len + 1;
    memcpy(h->last.hash, l->hash, AUDIT_HASH);
    h->end = at + len + 1;
    if (l->kind == AUDIT_BEGIN && h->open_runs++ == 0)
        h->oldest = h->last;
    if ((l->kind == AUDIT_END || l->kind == AUDIT_LOST) && h->open_runs > 0 && --h->open_runs == 0)
        h->oldest = (struct audit_pos){0};
}

static bool continues(struct audit *a, const struct audit_head *h, const char *line, size_t len,
                      struct audit_line *l)
{
    return !audit_line_parse(line, len, l) && l->seq == h->seq + 1 &&
           memcmp(l->prev, h->last.hash, AUDIT_HASH) == 0 && !audit_line_check(line, l, &a->key);
}

/* Takes over what continues the chain behind h->end, and looks at what is left. a->log_fd is the day's file. */
static int read_on(struct audit *a, struct audit_head *h, struct finding *f, struct err *err)
{
    struct stat st;
    struct audit_lines lines;
    struct audit_line l;
    const char *line;
    size_t len;
    uint64_t at;
    int r;
    if (fstat(a->log_fd, &st) < 0)
        return err_sys(err, "look at the day's log");
    audit_lines_init(&lines, a->log_fd, h->end, (uint64_t)st.st_size);
    while ((r = audit_lines_next(&lines, &line, &len, &at)) == 1 &&
           continues(a, h, line, len, &l)) {
        adopt(h, &l, at, len);
        audit_index_note(a, l.seq, l.ts, at, line, len);
        f->adopted++;
    }
    audit_index_write(a, h->day);
    if (r == -2)
        err_sys(err, "read the day's log");
    audit_lines_done(&lines);
    f->bytes = (uint64_t)st.st_size - h->end;
    if (r == -2)
        return err->code;
    /* A line of ours is written with its newline last and is not that long: what is whole, or longer, and not ours is
     * somebody else's. Only after a power cut can the file system have left more, and then without a newline. */
    if (f->bytes)
        f->what = r == 1 || (f->bytes >= AUDIT_RECORD_MAX && !f->rebooted) ? FOREIGN : TORN;
    return 0;
}

static void describe(struct audit *a, const struct audit_head *h, struct finding *f)
{
    uint8_t chunk[16384], hash[AUDIT_HASH];
    struct sha256_ctx sha;
    uint64_t at = h->end, left = f->bytes;
    sha256_init(&sha);
    while (left) {
        ssize_t n =
            pread(a->log_fd, chunk, left < sizeof chunk ? (size_t)left : sizeof chunk, (off_t)at);
        if (n <= 0)
            break;
        if (at == h->end)
            snprintf(f->text, sizeof f->text, "%.*s", (int)(n < 160 ? n : 160),
                     (const char *)chunk);
        sha256_update(&sha, (size_t)n, chunk);
        at += (uint64_t)n;
        left -= (uint64_t)n;
    }
    sha256_digest(&sha, AUDIT_HASH, hash);
    audit_hex(hash, AUDIT_HASH, f->sha);
}

/* Records that the head has signed are not there. The chain goes on from what the head says, so the gap stays to be
 * seen; what lies in the file stays too. */
static int go_on_behind(struct audit *a, struct audit_head *h, struct err *err)
{
    struct stat st;
    char last = '\n';
    int r = audit_day_open(a, h->day, true, err);
    if (r < 0)
        return r;
    if (fstat(a->log_fd, &st) < 0)
        return err_sys(err, "look at the day's log");
    if (st.st_size > 0 && pread(a->log_fd, &last, 1, st.st_size - 1) != 1)
        return err_sys(err, "read the day's log");
    h->end = (uint64_t)st.st_size;
    if (last != '\n') {
        if (write(a->log_fd, "\n", 1) != 1)
            return err_sys(err, "write the day's log");
        h->end++;
    }
    h->reserved = 0;
    return 0;
}

/* No slot of the head is ours: the last record that is signed must do. */
static int rebuild(struct audit *a, struct audit_head *h, struct err *err)
{
    struct audit_files files;
    struct audit_file *file;
    struct audit_anchor anchor;
    struct audit_line l;
    const char *line;
    size_t len;
    uint64_t at;
    *h = (struct audit_head){0};
    int r = audit_anchor_load(a->seal, &a->key, &anchor, err);
    if (r < 0 && r != ERR_FORMAT)
        return r;
    if (r == 0) {
        h->seq = anchor.seq;
        memcpy(h->last.hash, anchor.hash, AUDIT_HASH);
    }
    r = audit_files_open(a->dir, &files, err);
    if (r < 0)
        return r;
    while ((file = audit_files_take(&files, h->seq + 1))) {
        struct audit_lines lines;
        audit_lines_init(&lines, file->fd, 0, file->size);
        h->day = file->day;
        while (audit_lines_next(&lines, &line, &len, &at) == 1)
            if (!audit_line_parse(line, len, &l) && l.seq > h->seq &&
                !audit_line_check(line, &l, &a->key))
                adopt(h, &l, at, len);
        audit_lines_done(&lines);
    }
    audit_files_done(&files);
    return h->day ? go_on_behind(a, h, err) : 0;
}

/* Which state counts. Sets what is missing, if something is. */
static int choose(struct audit *a, struct audit_head *h, struct finding *f, struct err *err)
{
    const uint8_t *sets = a->head_map;
    struct audit_head disk;
    bool have_now = audit_head_pick(sets, &a->key, h);
    bool have_disk = audit_head_pick(sets + AUDIT_HEAD_SET, &a->key, &disk);
    if (!have_now && !have_disk) {
        static const uint8_t zeros[AUDIT_HEAD_ALL];
        int r = rebuild(a, h, err);
        if (r == 0 && (h->day || memcmp(sets, zeros, sizeof zeros) !=
                                     0)) /* otherwise there was nothing yet */
            f->what = HEAD_LOST;
        return r;
    }
    if (!have_now)
        *h = disk;
    f->rebooted = memcmp(h->boot, a->self.boot, AUDIT_BOOT) != 0;
    if (covered(a, h))
        return 0;
    struct audit_head ahead = *h;
    if (f->rebooted && have_disk && disk.seq < h->seq && covered(a, &disk)) {
        struct audit_head try = disk;
        struct finding found = {.rebooted = true};
        int r = try.day ? audit_day_open(a, try.day, true, err) : 0;
        if (r == 0 && try.day)
            r = read_on(a, &try, &found, err);
        if (r < 0)
            return r;
        if (try.seq >= ahead.unsynced) { /* all that is gone was never acknowledged */
            *h = disk;
            f->missing = ahead.seq > try.seq ? ahead.seq - try.seq : 0;
            f->what = TORN;
            return 0;
        }
    }
    f->what = MISSING;
    return go_on_behind(a, h, err);
}

static int tell(struct audit *a, const struct finding *f, struct err *err)
{
    static const struct {
        const char *status, *reason;
    } words[] = {
        [TORN] = {"cut", "a crash left this half written; it was never acknowledged"},
        [FOREIGN] = {"foreign", "somebody else wrote lines into the log"},
        [MISSING] = {"missing", "records that the signed head knows are not in the log"},
        [HEAD_LOST] = {"head", "the signed head is gone or not ours"},
    };
    const struct audit_arg args[] = {
        {.name = "bytes", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)f->bytes},
        {.name = "records", .kind = AUDIT_ARG_NUMBER, .number = (int64_t)f->missing},
        {.name = "sha256", .text = f->sha[0] ? f->sha : NULL},
        {.name = "text", .text = f->text[0] ? f->text : NULL},
        {.name = "restarted", .kind = AUDIT_ARG_NUMBER, .number = f->rebooted},
    };
    const struct audit_outcome o = {.status = words[f->what].status,
                                    .reason = words[f->what].reason};
    const struct audit_facts facts = {
        .tool = "audit", .args = args, .nargs = sizeof args / sizeof *args, .outcome = &o};
    return audit_append_own(a, f->what == TORN ? AUDIT_REPAIR : AUDIT_TAMPERED, &facts, err);
}

int audit_recover(struct audit *a, struct err *err)
{
    struct audit_head h = {0};
    struct finding f = {0}, behind = {0};
    int r = choose(a, &h, &f, err);
    if (r < 0)
        return r;
    behind.rebooted = f.rebooted;
    if (h.day && f.what != MISSING && f.what != HEAD_LOST) {
        r = audit_day_open(a, h.day, true, err);
        if (r == 0)
            r = read_on(a, &h, &behind, err);
        if (r < 0)
            return r;
        if (behind.what != NOTHING) {
            describe(a, &h, &behind);
            behind.missing = f.missing;
            f = behind;
        }
        if (behind.what == TORN && ftruncate(a->log_fd, (off_t)h.end) < 0)
            return err_sys(err, "cut what a crash left");
        if (behind.what == FOREIGN && (r = go_on_behind(a, &h, err)) < 0)
            return r;
        h.reserved = 0;
    }
    if (f.rebooted)
        h.sweep = 1; /* stays until that is done, should we be killed on the way */
    a->head = h;
    audit_head_store(a, AUDIT_HEAD_NOW);
    memcpy(a->seen, a->head_map, sizeof a->seen); /* its other slot is what it is */
    a->seen_any = true;
    if (r == 0 && h.sweep)
        r = audit_runs_after_boot(a, err);
    if (r == 0 && f.what != NOTHING)
        r = tell(a, &f, err);
    return r;
}
