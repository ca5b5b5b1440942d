/* SPDX-License-Identifier: Apache-2.0 */
/* Why a mapped file and not SQLite: this is on the way of every run. Measured on a 2-core aarch64
 * machine, an admission and a release: SQLite (WAL, no fsync, prepared) 31 us, and 61 us more to open
 * it; here 3.6 us, and 19 us more to open it. Linking SQLite alone costs every start of `cordon`
 * 45 us of relocation. Approvals, which wait for a person, are in SQLite (cordon-approvals).
 *
 * Safe under kill -9, because
 * - the lock is the kernel's (an open-file-description lock on byte 0): it goes with its owner, and
 *   no value in the file can make anybody wait for nobody;
 * - each store leaves a state that is valid by itself: rows and keys are published by their last
 *   word, so the next process finds a change whole or not at all;
 * - a process that runs something holds a lock on the byte of its row, so the next one that needs a slot sees
 *   that the owner of this one was killed.
 * A process that is stopped keeps its locks: whoever waits for one gives up at a deadline and names it.
 * After a reboot the clock starts again, so times of an older boot are dropped. The stop flag is also
 * a file of its own, so that it outlives this one.
 *
 * Waits: SYS_futex in gate_bell_sleep; a slot, an answer, the end of a run; the caller's; it looks again
 *        fsync in gate_stop_keep; the disk; none (the kernel's own); the flag stands and was told before
 *        msync in gate_stop_keep; the disk; none (the kernel's own); the flag stands and was told before
 *        fsync in gate_stop_file_remove; the disk; none (the kernel's own); only `cordon resume` waits
 *        write in gate_stop_keep; a small file; none (the kernel's own); the flag stands already
 *        lock_within in gate_map_lock_within; another cordon; LIMIT_LOCK_MS, brief after one that timed out;
 *          refused by name */
#include "gate/map.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"
#include "sys/here.h"
#include "sys/lock.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC     "cordon gate 1\n"
#define FILE_NAME "gate.live"
#define STOP_BELL "stop.bell"
#define STOP_FILE "stopped"

_Static_assert(offsetof(struct gate_shared, client_keys) == 1024, "the head is 1 KiB");
_Static_assert(offsetof(struct gate_shared, rows) == 2048, "16 rows lie in the first page");
_Static_assert(sizeof(struct gate_row) == 128 && sizeof(struct gate_client_row) == 8192 &&
                   sizeof(struct gate_breaker_row) == 256 && sizeof(struct gate_bucket_row) == 64,
               "the layout is a file format");

/* ---- small things ---- */

uint64_t gate_boot_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t gate_hash(const void *data, size_t len, uint64_t seed) /* FNV-1a with a last mix */
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325ULL ^ seed;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3ULL;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ULL;
    h ^= h >> 32;
    return h ? h : 1;
}

void gate_bell_sleep(uint32_t *word, uint32_t seen, uint64_t ms)
{
    struct timespec t = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000L};
    syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void gate_bell_ring(uint32_t *word)
{
    __atomic_add_fetch(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- the lock ---- */

int gate_map_lock(struct gate_map *m, struct err *err)
{
    return gate_map_lock_within(
        m, m->late && m->lock_ms > LIMIT_LOCK_BRIEF_MS ? LIMIT_LOCK_BRIEF_MS : m->lock_ms, err);
}

int gate_map_lock_within(struct gate_map *m, uint64_t ms, struct err *err)
{
    base_assert(!m->locked);
    if (m->readonly)
        return err_set(err, ERR_STATE, "the state folder is read-only");
    int r =
        lock_within(m->fd, F_WRLCK, 0, ms, "the lock of " FILE_NAME " in the state folder", err);
    m->locked = r == 0;
    m->late = r == ERR_STATE;
    return r;
}

void gate_map_unlock(struct gate_map *m)
{
    base_assert(m->locked);
    m->locked = false;
    lock_release(m->fd, 0);
}

/* ---- rows ---- */

bool gate_row_alive(const struct gate_map *m, uint32_t row)
{
    if (m->mine[row])
        return true;
    struct flock l = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + (off_t)row, .l_len = 1};
    return fcntl(m->fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
}

void gate_row_set(struct gate_map *m, uint32_t row, enum gate_row_state state, uint64_t now)
{
    struct gate_row *r = &m->at->rows[row];
    r->since_ns = now;
    gate_store(&r->state, (uint32_t)state);
}

void gate_row_free(struct gate_map *m, uint32_t row)
{
    struct gate_shared *s = m->at;
    gate_store(&s->rows[row].state, GATE_ROW_FREE);
    while (s->rows_high > 0 && s->rows_high <= GATE_ROWS &&
           gate_load(&s->rows[s->rows_high - 1].state) == GATE_ROW_FREE)
        gate_store(&s->rows_high, s->rows_high - 1);
    if (m->mine[row]) {
        m->mine[row] = 0;
        lock_release(m->fd, 1 + (off_t)row);
    }
    if (gate_load(&s->stopped)) /* somebody may be waiting for the end of it */
        gate_bell_ring(&s->rows[row].bell);
}

unsigned gate_rows_reap(struct gate_map *m)
{
    unsigned dead = 0;
    for (uint32_t i = 0; i < gate_rows_high(m->at); i++)
        if (gate_load(&m->at->rows[i].state) != GATE_ROW_FREE && !gate_row_alive(m, i)) {
            gate_row_free(m, i);
            dead++;
        }
    return dead;
}

int gate_row_take(struct gate_map *m, uint32_t *ret_row, struct err *err)
{
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < GATE_ROWS; i++) {
            struct gate_row *r = &m->at->rows[i];
            if (gate_load(&r->state) != GATE_ROW_FREE || m->mine[i])
                continue;
            if (lock_try(m->fd, F_WRLCK, 1 + (off_t)i) < 0)
                continue; /* not given back yet */
            if (m->at->rows_high <= i)
                gate_store(&m->at->rows_high, i + 1);
            m->mine[i] = 1;
            r->number = ++m->at->numbers;
            r->pid = getpid();
            r->space = m->space;
            r->counted = 0;
            *ret_row = i;
            return 0;
        }
        if (gate_rows_reap(m) == 0)
            break;
    }
    return err_set(err, ERR_LIMIT, "%d executions run or wait already", GATE_ROWS);
}

uint32_t gate_rows_high(const struct gate_shared *s)
{
    uint32_t high = gate_load(&s->rows_high);
    return high < GATE_ROWS ? high : GATE_ROWS;
}

/* ---- the stop file ---- */

int gate_stop_keep(const struct gate_map *m, struct err *err)
{
    const struct gate_shared *s = m->at;
    char text[512];
    int n = snprintf(text, sizeof text, "%llu\n%s\n%s\n", (unsigned long long)s->stopped_at,
                     s->stopped_by, s->stopped_why);
    FD_AUTO fd = -1;
    int r = state_file(m->dir, STOP_FILE, O_WRONLY | O_CREAT | O_TRUNC, &fd, err);
    /* a file without its text stops as well; and without a file there is the page that is mapped, whose place on the
     * disk was set aside when it was made */
    bool whole = r == 0 && write(fd, text, (size_t)n) == n && fsync(fd) == 0;
    if (r == 0 && fsync(m->dir) == 0 && whole)
        return 0;
    if (msync(m->at, offsetof(struct gate_shared, client_keys), MS_SYNC) == 0)
        return 0;
    return r < 0 ? r : err_sys(err, "write %s of the state folder", STOP_FILE);
}

int gate_stop_file_remove(int dir, struct err *err)
{
    if (unlinkat(dir, STOP_FILE, 0) < 0 && errno != ENOENT)
        return err_sys(err, "remove %s from the state folder", STOP_FILE);
    return fsync(dir) < 0 ? err_sys(err, "remove %s from the state folder", STOP_FILE) : 0;
}

static void take_line(char **at, char *out, size_t size)
{
    char *end = strchr(*at, '\n');
    if (end)
        *end = 0;
    snprintf(out, size, "%s", *at);
    *at = end ? end + 1 : *at + strlen(*at);
}

/* A file that is there stops, whatever is in it; nothing else does. Whether it is there needs no descriptor. If we
 * cannot read it for a reason of our own, this one process goes no further, and the next one looks again. */
static int read_stop_file(int dir, struct gate_shared *s, struct err *err)
{
    char text[512] = "", since[32], *at = text;
    struct stat st;
    if (fstatat(dir, STOP_FILE, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_sys(err, "look for %s in the state folder", STOP_FILE);
    if (fd_read_file(dir, STOP_FILE, text, sizeof text) < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR)
            return err_sys(err, "read %s of the state folder", STOP_FILE);
        snprintf(text, sizeof text, "0\nsomebody\n%s cannot be read: %s\n", STOP_FILE,
                 strerror(errno));
    }
    take_line(&at, since, sizeof since);
    take_line(&at, s->stopped_by, sizeof s->stopped_by);
    take_line(&at, s->stopped_why, sizeof s->stopped_why);
    s->stopped_at = strtoull(since, NULL, 10);
    gate_store(&s->stopped, 1);
    return 0;
}

/* ---- opening ---- */

static void read_boot(char *out, size_t size)
{
    const char *boot = here_boot();
    memset(out, 0, size); /* the whole field is compared */
    snprintf(out, size, "%s", boot ? boot : "unknown\n");
}

/* Under the lock: a new file, or one of another boot. Those who run hold their rows' locks, and keep
 * them; after a reboot nobody does. */
static int begin_boot(struct gate_map *m, const char *boot, struct err *err)
{
    struct gate_shared *s = m->at;
    int r = read_stop_file(m->dir, s, err);
    if (r < 0)
        return r;
    memset(s->client_keys, 0, sizeof s->client_keys);
    memset(s->breaker_keys, 0, sizeof s->breaker_keys);
    memset(s->tasks, 0, sizeof s->tasks);
    memset(s->buckets, 0, sizeof s->buckets);
    gate_rows_reap(m);
    memcpy(s->boot, boot, sizeof s->boot);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(s->magic, MAGIC, sizeof MAGIC);
    return 0;
}

static int check_head(struct gate_map *m, struct err *err)
{
    char boot[sizeof m->at->boot];
    static const char none[sizeof m->at->magic];
    read_boot(boot, sizeof boot);
    if (memcmp(m->at->magic, MAGIC, sizeof MAGIC) == 0 &&
        memcmp(m->at->boot, boot, sizeof boot) == 0)
        return 0;
    if (m->readonly)
        return err_set(err, ERR_STATE,
                       "the state folder is read-only, and nothing has run there since the machine "
                       "was started; make it writable for the first run (mount, chmod)");
    int r = gate_map_lock(m, err);
    if (r < 0)
        return r;
    if (memcmp(m->at->magic, MAGIC, sizeof MAGIC) != 0 &&
        memcmp(m->at->magic, none, sizeof none) != 0)
        r = err_set(err, ERR_STATE,
                    "%s of the state folder is not this version's, or damaged; remove it while no "
                    "cordon runs (rates and breakers begin anew, a stop stays)",
                    FILE_NAME);
    else if (memcmp(m->at->magic, MAGIC, sizeof MAGIC) != 0 ||
             memcmp(m->at->boot, boot, sizeof boot) != 0)
        r = begin_boot(m, boot, err);
    gate_map_unlock(m);
    return r;
}

/* A named pipe wakes everybody who polls it, without a list of who they are: the byte that
 * `cordon stop` writes is read by nobody until `cordon resume`. */
static int open_bell(struct gate_map *m, struct err *err)
{
    struct stat st;
    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
    m->stop_fd = openat(m->dir, STOP_BELL, flags);
    if (m->stop_fd < 0 && errno == ENOENT && !m->readonly) {
        if (mkfifoat(m->dir, STOP_BELL, 0600) < 0 && errno != EEXIST)
            return err_sys(err, "make %s in the state folder", STOP_BELL);
        m->stop_fd = openat(m->dir, STOP_BELL, flags);
    }
    if (m->stop_fd < 0 || fstat(m->stop_fd, &st) < 0)
        return err_sys(err, "open %s of the state folder", STOP_BELL);
    if (!S_ISFIFO(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
        return err_set(err, ERR_STATE,
                       "%s of the state folder is not the pipe that cordon made; remove it while "
                       "no cordon runs",
                       STOP_BELL);
    return 0;
}

int gate_map_open(struct gate_map *m, int dir, bool readonly, uint64_t lock_ms, struct err *err)
{
    struct stat st;
    *m = (struct gate_map){
        .dir = dir, .fd = -1, .stop_fd = -1, .readonly = readonly, .lock_ms = lock_ms};
    m->space = here_pid_space();
    int r = state_file(dir, FILE_NAME, readonly ? O_RDONLY : O_RDWR | O_CREAT, &m->fd, err);
    if (r == 0 && fstat(m->fd, &st) < 0)
        r = err_sys(err, "open %s", FILE_NAME);
    bool small = r == 0 && st.st_size < (off_t)sizeof(struct gate_shared);
    if (small && readonly)
        r = err_set(err, ERR_STATE,
                    "%s of the state folder is cut short, and the folder is read-only; make it "
                    "writable, and cordon mends it",
                    FILE_NAME);
    if (r == 0 && small) {
        /* allocated, not only long: a full disk is an error here and not a signal later */
        int e = posix_fallocate(m->fd, 0, sizeof(struct gate_shared));
        errno = e;
        if (e != 0)
            r = err_sys(err, "make %s in the state folder", FILE_NAME);
    }
    if (r == 0) {
        void *at = mmap(NULL, sizeof(struct gate_shared),
                        readonly ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        if (at == MAP_FAILED)
            r = err_sys(err, "map %s of the state folder", FILE_NAME);
        else
            m->at = at;
    }
    if (r == 0)
        r = open_bell(m, err);
    if (r == 0)
        r = check_head(m, err);
    if (r < 0)
        gate_map_close(m);
    return r;
}

/* Once a stop was rung, a descriptor from before stays readable, also after `cordon resume`. */
bool gate_map_is_current(const struct gate_map *m)
{
    struct pollfd bell = {.fd = m->stop_fd, .events = POLLIN};
    return state_is_same(m->dir, FILE_NAME, m->fd) &&
           state_is_same(m->dir, STOP_BELL, m->stop_fd) && poll(&bell, 1, 0) == 0;
}

void gate_map_close(struct gate_map *m)
{
    if (m->at)
        munmap(m->at, sizeof(struct gate_shared));
    fd_close(m->fd);
    fd_close(m->stop_fd);
    *m = (struct gate_map){.dir = -1, .fd = -1, .stop_fd = -1};
}
