/* SPDX-License-Identifier: Apache-2.0 */
/* Durable, and no slower for ten runs that begin together than for two: whoever syncs covers everybody who
 * appended before, and notes in the head how far the disk is (the set AUDIT_HEAD_DISK). Who comes while
 * another syncs waits for that note.
 *
 * But nobody depends on it. A process may be stopped on its way out of fdatasync, where most of its time
 * goes, and then its lock says for hours that a sync is under way. So the lock is only advice: who has waited
 * LIMIT_SYNC_SHARE_MS, or sees that the sync began longer ago than that, syncs for itself. Two syncs of the
 * same file do no harm to each other. What must not happen twice at once is the note, a few stores under a
 * lock of its own; whoever cannot have that lock leaves the note out. Its own record is on disk all the same,
 * and an older note only means that others sync once more, and that after a power cut recover.c starts to
 * read a little earlier.
 *
 * Waits: SYS_futex in share; the process that syncs; LIMIT_SYNC_SHARE_MS; syncs for itself
 *        fdatasync in audit_sync_to; the disk; none (the kernel's own); holds nothing that others need
 *        lock_within in note; another's few stores; LIMIT_SYNC_NOTE_MS; leaves the note out */
#include "audit/inside.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARE_NS (LIMIT_SYNC_SHARE_MS * CLOCK_NS_PER_MS)
#define LOOK_NS  (5 * CLOCK_NS_PER_MS) /* one that was killed rings no bell */

static struct audit_advice *advice_of(const struct audit *a)
{
    return (struct audit_advice *)(a->head_map + AUDIT_HEAD_ALL);
}

/* How far the disk is, as somebody noted it in this boot; 0: nobody did. */
static uint64_t noted(struct audit *a, struct audit_head *ret)
{
    uint8_t set[AUDIT_HEAD_SET];
    memcpy(set, a->head_map + AUDIT_HEAD_SET, sizeof set);
    if (!audit_head_pick(set, &a->key, ret)) {
        *ret = (struct audit_head){0};
        return 0;
    }
    return memcmp(ret->boot, a->self.boot, AUDIT_BOOT) == 0 ? ret->seq : 0;
}

/* Waits until another's sync covers SEQ, or it is our turn, or waiting is no use. Whether we lead now. */
static bool share(struct audit *a, uint64_t seq)
{
    struct audit_advice *advice = advice_of(a);
    struct audit_head disk;
    for (uint64_t until = 0;;) {
        uint32_t bell = __atomic_load_n(&advice->sync_bell, __ATOMIC_ACQUIRE);
        if (lock_try(a->head_fd, F_WRLCK, AUDIT_LOCK_SYNC) == 0)
            return true;
        if (errno != EAGAIN || noted(a, &disk) >= seq)
            return false;
        uint64_t now = clock_now_ns(),
                 since = __atomic_load_n(&advice->sync_since, __ATOMIC_ACQUIRE);
        until = until ? until : now + SHARE_NS;
        if (now >= until || (since && since < now && now - since > SHARE_NS))
            return false;
        uint64_t ns = until - now < LOOK_NS ? until - now : LOOK_NS;
        struct timespec t = {.tv_nsec = (long)ns};
        syscall(SYS_futex, &advice->sync_bell, FUTEX_WAIT, bell, &t, NULL, 0);
    }
}

static void pass_on(struct audit *a)
{
    struct audit_advice *advice = advice_of(a);
    __atomic_store_n(&advice->sync_since, 0, __ATOMIC_RELEASE);
    lock_release(a->head_fd, AUDIT_LOCK_SYNC);
    __atomic_add_fetch(&advice->sync_bell, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &advice->sync_bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The head as of the last append, all of which a sync that begins now will cover. Who writes it holds the other lock,
 * so one slot may be torn; then the other one counts. And if the page was turned since, that synced all of ours: the
 * rest is the business of those who wrote it. */
static void written(struct audit *a, uint64_t seq, struct audit_head *ret)
{
    uint8_t set[AUDIT_HEAD_SET];
    memcpy(set, a->head_map, sizeof set);
    if (!audit_head_pick(set, &a->key, ret) || ret->seq < seq || ret->day != a->log_day)
        *ret = a->head;
}

static void note(struct audit *a, const struct audit_head *synced)
{
    struct audit_head disk, mine = a->head;
    struct err late = ERR_INIT;
    audit_no_job_control(a);
    if (lock_within(a->head_fd, F_WRLCK, AUDIT_LOCK_DISK, LIMIT_SYNC_NOTE_MS, "the audit's note",
                    &late) == 0) {
        if (noted(a, &disk) < synced->seq) {
            a->head = *synced;
            a->head.generation = disk.generation;
            audit_head_store(a, AUDIT_HEAD_DISK);
            a->head = mine;
        }
        lock_release(a->head_fd, AUDIT_LOCK_DISK);
    }
    audit_job_control(a);
}

int audit_sync_to(struct audit *a, uint64_t seq, struct err *err)
{
    struct audit_head disk, synced;
    int r = 0;
    base_assert(!a->locked);
    bool leads = share(a, seq);
    if (noted(a, &disk) < seq) {
        written(a, seq, &synced);
        if (leads)
            __atomic_store_n(&advice_of(a)->sync_since, clock_now_ns(), __ATOMIC_RELEASE);
        if (fdatasync(a->log_fd) < 0) {
            a->broken = true;
            r = err_sys(err, "sync the audit log");
        } else {
            note(a, &synced);
        }
    }
    if (leads)
        pass_on(a);
    return r;
}
