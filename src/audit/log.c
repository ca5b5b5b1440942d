/* SPDX-License-Identifier: Apache-2.0 */
/* One lock around: read the head, append, write the head. Between two appends of one process another
 * may have written, and then the head file differs from what we wrote last; if it does not, everything
 * in memory is right and no file is read. The only question left is whether the log is as long as the
 * head says: if not, a writer was killed between its two writes (recover.c).
 *
 * The lock is the kernel's: it goes with a holder that is killed, but not with one that is stopped. Nobody
 * can take over from a stopped one: it may go on at any instruction, with a head in its memory that others
 * would have overtaken. So whoever waits gives up at a deadline and names it. What may take long (the body,
 * fdatasync) is done without the lock; sync.c has the second half.
 *
 * Disk space for the ends of running programs is set aside before they begin: a full disk refuses new
 * runs and still takes the records of those that run.
 *
 * Waits: fdatasync in turn_the_page; the disk, once a day; none (the kernel's own); others are refused by name
 *        fsync in open_file; the disk, once a day; none (the kernel's own); others are refused by name
 *        lock_within in audit_lock_bytes; another writer or reader; LIMIT_LOCK_MS, brief after a wait in
 *          vain; refused by name
 *        write in write_out; the disk's cache; none (the kernel's own); others are refused by name */
#include "audit/inside.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROOM  (256 * KIB) /* for ends, always */
#define SPARE (ROOM / 2)  /* of it for what is no end; the rest is for ends alone */
#define AHEAD (256 * KIB) /* and so much more at a time */
#define FLUSH (1 * MIB)   /* of a batch, at a time */

uint64_t audit_now(const struct audit *a)
{
    struct timespec t;
    if (a->config.now_ms)
        return a->config.now_ms(a->config.now_ctx);
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- the lock ---- */

/* After a wait that timed out the holder is likely to be there still: the calls that follow on this handle do not
 * wait as long again. */
int audit_lock_bytes(struct audit *a, struct err *err)
{
    uint64_t ms = a->late && a->config.lock_ms > LIMIT_LOCK_BRIEF_MS ? LIMIT_LOCK_BRIEF_MS
                                                                     : a->config.lock_ms;
    int r = lock_within(a->head_fd, F_WRLCK, AUDIT_LOCK_APPEND, ms, "the audit's lock", err);
    a->late = r == ERR_STATE;
    return r;
}

void audit_unlock_bytes(struct audit *a)
{
    lock_release(a->head_fd, AUDIT_LOCK_APPEND);
}

/* A process that is stopped from its terminal while it holds a lock would stop everybody. */
void audit_no_job_control(struct audit *a)
{
    sigset_t stops;
    if (!a->terminal)
        return;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    sigaddset(&stops, SIGTTIN);
    sigaddset(&stops, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &stops, &a->signals);
}

void audit_job_control(struct audit *a)
{
    if (a->terminal)
        pthread_sigmask(SIG_SETMASK, &a->signals, NULL);
}

void audit_unlock(struct audit *a)
{
    base_assert(a->locked);
    a->locked = false;
    audit_unlock_bytes(a);
    audit_job_control(a);
}

static int open_file(struct audit *a, const char *name, bool make, int *ret_fd, struct err *err)
{
    FD_AUTO fd = -1;
    int r = state_file(a->dir, name, O_RDWR | O_APPEND, &fd, err);
    if (r == ERR_SYS && err->sys_errno == ENOENT && make) {
        r = state_file(a->dir, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL, &fd, err);
        if (r == 0 && fsync(a->dir) < 0)
            r = err_sys(err, "make %s durable", name);
    }
    if (r == 0)
        *ret_fd = fd_take(&fd);
    return r;
}

static struct audit_ahead *ahead_of(struct audit *a, uint32_t day)
{
    for (size_t i = 0; i < AUDIT_DAYS_AHEAD; i++)
        if (a->ahead[i].day == day)
            return &a->ahead[i];
    return NULL;
}

void audit_days_open_ahead(struct audit *a, uint64_t ms)
{
    char name[AUDIT_NAME_MAX];
    struct err unsaid = ERR_INIT;
    const uint64_t most = AUDIT_DAYS_AHEAD * AUDIT_DAY_MS, today = a->now / AUDIT_DAY_MS,
                   last = (a->now + (ms < most ? ms : most)) / AUDIT_DAY_MS;
    for (uint64_t n = today + 1; n <= last; n++) {
        const uint32_t day = audit_day_of(n * AUDIT_DAY_MS);
        struct audit_ahead *place = &a->ahead[n % AUDIT_DAYS_AHEAD];
        if (place->day == day)
            continue;
        if (place->day)
            fd_close(place->fd);
        audit_day_name(day, name);
        place->day = open_file(a, name, true, &place->fd, &unsaid) == 0 ? day : 0;
    }
}

int audit_day_open(struct audit *a, uint32_t day, bool make, struct err *err)
{
    char name[AUDIT_NAME_MAX];
    struct stat st;
    FD_AUTO fd = -1;
    audit_day_name(day, name);
    int r = open_file(a, name, make, &fd, err);
    const struct audit_ahead *ahead =
        r == ERR_SYS && err->sys_errno == EACCES ? ahead_of(a, day) : NULL;
    if (ahead && (fd = fcntl(ahead->fd, F_DUPFD_CLOEXEC, 3)) >= 0)
        r = 0; /* we gave up our rights meanwhile */
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at %s", name);
    if (st.st_nlink != 1)
        return err_set(err, ERR_STATE, "%s was removed", name);
    fd_close(a->log_fd);
    a->log_fd = fd_take(&fd);
    a->log_day = day;
    a->log_dev = st.st_dev;
    a->log_ino = st.st_ino;
    return 0;
}

/* Whether the day's file is as the head says. The descriptor is asked: a file that was removed or replaced has no name any
 * more. */
static bool whole(struct audit *a)
{
    char name[AUDIT_NAME_MAX];
    struct stat st;
    struct err err = ERR_INIT;
    if (a->head.day == 0)
        return true;
    if (a->log_fd < 0 || a->log_day != a->head.day || fstat(a->log_fd, &st) < 0 ||
        st.st_nlink != 1) {
        audit_day_name(a->head.day, name);
        if (a->head.end == 0 && faccessat(a->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
            errno == ENOENT)
            return true;
        if (audit_day_open(a, a->head.day, false, &err) < 0 || fstat(a->log_fd, &st) < 0)
            return false;
    }
    return (uint64_t)st.st_size == a->head.end;
}

int audit_lock(struct audit *a, struct err *err)
{
    struct stat st;
    base_assert(!a->locked);
    if (a->broken)
        return err_set(err, ERR_STATE,
                       "an earlier write to the audit failed, so this process records no more: "
                       "check the disk of the state folder, then start cordon again");
    audit_no_job_control(a);
    int r = audit_lock_bytes(a, err);
    if (r < 0) {
        audit_job_control(a);
        return r;
    }
    a->locked = true;
    a->now = audit_now(a);
    if (fstat(a->head_fd, &st) == 0 && st.st_nlink == 0) { /* its lock keeps nobody out any more */
        audit_unlock(a);
        return err_set(err, ERR_STATE,
                       "seal/head in the state folder was removed while this process wrote "
                       "records; it writes no more: start cordon again");
    }
    /* a head of zeros is what a new handle remembers, and what somebody may have made of the file */
    bool known = a->seen_any && memcmp(a->head_map, a->seen, sizeof a->seen) == 0;
    if (!known && audit_head_pick(a->head_map, &a->key, &a->head) &&
        memcmp(a->head.boot, a->self.boot, AUDIT_BOOT) == 0) {
        memcpy(a->seen, a->head_map, sizeof a->seen);
        known = a->seen_any = true;
    }
    if (known && !a->head.sweep && whole(a))
        return 0;
    r = audit_recover(a, err);
    if (r < 0)
        audit_unlock(a);
    return r;
}

/* ---- the head ---- */

void audit_head_store(struct audit *a, int which)
{
    uint8_t slot[AUDIT_HEAD_SLOT];
    struct audit_head h = a->head;
    h.generation++;
    memcpy(h.boot, a->self.boot, AUDIT_BOOT);
    audit_head_encode(&h, &a->key, slot);
    size_t at = (h.generation & 1) * AUDIT_HEAD_SLOT;
    memcpy(a->head_map + (size_t)which * AUDIT_HEAD_SET + at, slot, sizeof slot);
    if (which == AUDIT_HEAD_NOW) {
        memcpy(a->seen + at, slot, sizeof slot);
        a->head = h;
    }
}

/* ---- append ---- */

/* A new day begins a new file, unless there is one of that name with records in it: then the clock was set back, and
 * the order of the records matters more than the name they stand under. The head says so, durably, before the first
 * record is in the new file: a crash in between is then just an empty file. */
static int turn_the_page(struct audit *a, struct err *err)
{
    char name[AUDIT_NAME_MAX];
    struct stat st;
    uint32_t today = audit_day_of(a->now);
    if (today != a->head.day) {
        audit_day_name(today, name);
        bool fresh = fstatat(a->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size == 0
                                                                          : errno == ENOENT;
        if (!fresh && a->head.day != 0)
            return 0;
        if (a->head.end != 0) {
            base_assert(a->log_day == a->head.day); /* the lock saw to it */
            if (fdatasync(a->log_fd) < 0)
                return err_sys(err, "close the day's log");
            if (ftruncate(a->log_fd, (off_t)a->head.end) < 0)
                a->head.reserved =
                    0; /* what was set aside could not be given back: a little disk space */
        }
        a->head.day = today;
        a->head.end = a->head.reserved = 0;
        audit_head_store(a, AUDIT_HEAD_NOW);
        if (fdatasync(a->head_fd) < 0)
            return err_sys(err, "write the audit's head");
    }
    if (a->log_fd < 0 || a->log_day != a->head.day || a->head.end == 0)
        return audit_day_open(a, a->head.day, true, err);
    return 0;
}

static size_t left_by(enum audit_leaves leaves)
{
    return leaves == AUDIT_LEAVES_ALL ? ROOM : leaves == AUDIT_LEAVES_ENDS ? ROOM - SPARE : 0;
}

static int no_room(struct err *err)
{
    return err_sys(err, "no room left for audit records: free some on the disk of the state "
                        "folder, then try again");
}

static int set_room_aside(struct audit *a, struct audit_head *h, size_t more,
                          enum audit_leaves leaves, struct err *err)
{
    if (h->end + more + ROOM <= h->reserved)
        return 0;
    for (uint64_t extra = AHEAD;; extra = 0) {
        if (fallocate(a->log_fd, FALLOC_FL_KEEP_SIZE, (off_t)h->end,
                      (off_t)(more + ROOM + extra)) == 0) {
            h->reserved = h->end + more + ROOM + extra;
            return 0;
        }
        if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL) {
            h->reserved = UINT64_MAX / 2; /* this file system cannot; the write itself will tell */
            return 0;
        }
        if (extra == 0) /* an end is tried in any case */
            return !leaves || h->end + more + left_by(leaves) <= h->reserved ? 0 : no_room(err);
    }
}

static int write_out(struct audit *a, struct audit_head *h, enum audit_leaves leaves,
                     struct err *err)
{
    size_t done = 0;
    int r = set_room_aside(a, h, a->out.len, leaves, err);
    if (r < 0)
        return r;
    while (done < a->out.len) {
        ssize_t n = write(a->log_fd, a->out.data + done, a->out.len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : ENOSPC;
            return errno == ENOSPC ? no_room(err) : err_sys(err, "write the audit record");
        }
        done += (size_t)n;
    }
    h->end += a->out.len;
    buf_reset(&a->out);
    return 0;
}

static int put_lines(struct audit *a, struct audit_head *h, const struct audit_append *w,
                     struct err *err)
{
    const char *body = w->bodies;
    buf_reset(&a->out);
    for (size_t i = 0; i < w->count; body += w->lens[i++]) {
        size_t before = a->out.len;
        int r =
            audit_line_write(&a->out, h->seq + 1, a->now, body, w->lens[i], h->last.hash, &a->key);
        if (r < 0)
            return err_set(err, r, "no memory for an audit record");
        h->seq++;
        h->last.day = h->day;
        h->last.offset = h->end + before;
        h->last.len = (uint32_t)(a->out.len - before);
        audit_index_note(a, h->seq, a->now, h->last.offset, a->out.data + before, h->last.len);
        if (w->before)
            r = w->before(a, w->ctx, &h->last, h->seq, err);
        if (r == 0 && (i + 1 == w->count || a->out.len >= FLUSH))
            r = write_out(a, h, w->leaves, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* None of it is acknowledged: away with it. If that fails too, the next to lock the log does it. Cutting
 * also gives back what was set aside, so it is only done where something was written. */
static void take_back(struct audit *a)
{
    struct stat st;
    if (fstat(a->log_fd, &st) == 0 && (uint64_t)st.st_size == a->head.end)
        return;
    if (ftruncate(a->log_fd, (off_t)a->head.end) == 0) {
        a->head.reserved = 0;
        audit_head_store(a, AUDIT_HEAD_NOW);
    }
}

/* An end may come in between and use what is for ends; there is as much for this record beside it. */
int audit_set_room_aside(struct audit *a, size_t more, struct err *err)
{
    int r = turn_the_page(a, err);
    const uint64_t before = a->head.reserved;
    if (r == 0)
        r = set_room_aside(a, &a->head, more, AUDIT_LEAVES_ALL, err);
    if (a->head.reserved != before)
        audit_head_store(a, AUDIT_HEAD_NOW);
    return r;
}

int audit_append(struct audit *a, const struct audit_append *w, struct err *err)
{
    base_assert(a->locked && (w->count == 1 || !w->before));
    int r = turn_the_page(a, err);
    if (r < 0)
        return r;
    struct audit_head h = a->head;
    r = put_lines(a, &h, w, err);
    if (r < 0) {
        buf_reset(&a->index);
        take_back(a);
        return r;
    }
    audit_index_write(a, h.day);
    if (w->open_runs > 0 && h.open_runs++ == 0)
        h.oldest = h.last;
    if (w->open_runs < 0 && h.open_runs > 0 && --h.open_runs == 0)
        h.oldest = (struct audit_pos){0};
    if (w->unsynced)
        h.unsynced = h.seq;
    a->head = h;
    audit_head_store(a, AUDIT_HEAD_NOW);
    a->last_seq = h.seq;
    return 0;
}

int audit_append_own(struct audit *a, enum audit_kind kind, const struct audit_facts *f,
                     struct err *err)
{
    buf_reset(&a->own);
    int r = audit_body(a, &a->own, kind, f, 0, err);
    const struct audit_append w = {.bodies = a->own.data,
                                   .lens = &a->own.len,
                                   .count = 1,
                                   .unsynced = a->config.sync != AUDIT_SYNC_ON};
    return r < 0 ? r : audit_append(a, &w, err);
}
