/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon stop` works across processes without a list of who listens: the flag is in the mapped file
 * (read at each admission and before each plan) and in a file of its own (so it outlives a reboot),
 * and a named pipe that every supervisor polls becomes readable. Each supervisor then ends its own
 * run, cleans up and writes its records. One that does not answer is killed, which ends its jail as
 * well: cordon-nest dies with its supervisor; one that is stopped cannot answer and is killed at once.
 *
 * The flag comes first, and no lock before it: whoever holds the lock may be what has to be stopped.
 * Where the state folder is read-only the flag cannot be set, but a named pipe can be written there all
 * the same: what runs is ended, and gate_stop_read says that new ones are not refused.
 *
 * Waits: write in ring; nobody: the pipe is non-blocking; at once; EAGAIN is as good as written
 *        read in gate_resume; nobody: the pipe is non-blocking; at once; the pipe is empty
 *        gate_bell_sleep in wait_for; the end of a run; --patience, by steps of 20 ms; its supervisor is
 *          killed */
#include "gate/inside.h"

#include "base/clock.h"
#include "base/limits.h"
#include "gate/lineage.h"
#include "sys/fd.h"
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int gate_stop_fd(const struct gate *g)
{
    return g->map.stop_fd;
}

void gate_stop_read(const struct gate *g, struct gate_stop_info *i)
{
    const struct gate_shared *s = g->map.at;
    *i = (struct gate_stop_info){.stopped = gate_load(&s->stopped) != 0};
    if (!i->stopped)
        return;
    i->since = s->stopped_at;
    snprintf(i->who, sizeof i->who, "%.*s", (int)sizeof s->stopped_by - 1, s->stopped_by);
    snprintf(i->why, sizeof i->why, "%.*s", (int)sizeof s->stopped_why - 1, s->stopped_why);
}

/* One line, whatever somebody wrote. */
static void one_line(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "");
    for (char *p = out; *p; p++)
        if (*p == '\n' || *p == '\r')
            *p = ' ';
}

/* ---- who runs ---- */

struct seen {
    uint64_t number, admitted_ns, space;
    uint32_t row;
    pid_t pid;
};

static size_t snapshot(struct gate *g, struct gate_running *out, struct seen *seen, size_t cap)
{
    const struct gate_shared *s = g->map.at;
    size_t n = 0;
    uint64_t now = gate_boot_ns();
    if (g->map.locked)
        gate_rows_reap(&g->map);
    for (uint32_t i = 0; i < gate_rows_high(s); i++) {
        const struct gate_row *r = &s->rows[i];
        if (gate_load(&r->state) != GATE_ROW_RUNNING || !gate_row_alive(&g->map, i))
            continue;
        if (n < cap) {
            struct gate_running *o = &out[n];
            *o = (struct gate_running){.supervisor = r->pid, .end = ""};
            snprintf(o->run, sizeof o->run, "%.*s", (int)sizeof r->run - 1, r->run);
            snprintf(o->tool, sizeof o->tool, "%.*s", (int)sizeof r->tool - 1, r->tool);
            if (r->client < GATE_CLIENTS)
                snprintf(o->client, sizeof o->client, "%.63s", s->clients[r->client].id);
            o->ms = now > r->since_ns ? (now - r->since_ns) / CLOCK_NS_PER_MS : 0;
            if (seen)
                seen[n] = (struct seen){r->number, r->since_ns, r->space, i, r->pid};
        }
        n++;
    }
    return n;
}

size_t gate_running(struct gate *g, struct gate_running *out, size_t cap)
{
    struct err stuck = ERR_INIT;
    bool locked = gate_map_lock_within(&g->map, LIMIT_LOCK_BRIEF_MS, &stuck) == 0;
    size_t n = snapshot(g, out, NULL, cap);
    if (locked)
        gate_map_unlock(&g->map);
    return n;
}

/* ---- ending them ---- */

static bool over(const struct gate *g, const struct seen *s)
{
    const struct gate_row *r = &g->map.at->rows[s->row];
    return gate_load(&r->state) != GATE_ROW_RUNNING || r->number != s->number ||
           !gate_row_alive(&g->map, s->row);
}

/* Is PID still the process that took the row? It must have started before it did: a pid that was given
 * out again belongs to a younger process. And a pid means something only in its own namespace. */
static bool same_process(const struct gate *g, const struct seen *s)
{
    uint64_t tick = CLOCK_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    unsigned long long start = gate_process_start(s->pid);
    return start > 0 && start * tick <= s->admitted_ns && s->space == g->map.space && s->space != 0;
}

/* One that was stopped by a signal hears nothing, however long it is waited for. */
static bool deaf(const struct gate *g, const struct seen *s)
{
    char state = lock_process_state(s->pid);
    return (state == 'T' || state == 't') && same_process(g, s);
}

static bool wait_for(const struct gate *g, const struct seen *s, uint64_t until)
{
    uint32_t *word = &g->map.at->rows[s->row].bell;
    for (;;) {
        uint32_t bell = gate_load(word);
        if (over(g, s))
            return true;
        if (clock_now_ns() >= until || deaf(g, s))
            return false;
        gate_bell_sleep(word, bell, 20); /* one that was killed rings no bell */
    }
}

static void kill_supervisor(const struct gate *g, const struct seen *s)
{
    FD_AUTO fd = (int)syscall(SYS_pidfd_open, s->pid, 0);
    if (fd >= 0 && same_process(g, s) && !over(g, s)) /* looked at after it was pinned */
        syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

static int ring(struct gate *g, struct err *err)
{
    /* read and write: does not fail where nobody listens */
    FD_AUTO fd = openat(g->map.dir, "stop.bell", O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || (write(fd, "", 1) < 0 && errno != EAGAIN))
        return err_sys(err, "tell the runs to end (stop.bell in the state folder)");
    return 0;
}

static void set_flag(struct gate *g, const char *who, const char *why)
{
    struct gate_shared *s = g->map.at;
    s->stopped_at = (uint64_t)time(NULL);
    one_line(s->stopped_by, sizeof s->stopped_by, who);
    one_line(s->stopped_why, sizeof s->stopped_why, why);
    gate_store(&s->stopped, 1);
    __atomic_add_fetch(&s->counters[GATE_COUNTER_stops], 1, __ATOMIC_RELAXED);
}

/* Those who queues or wait for a person. */
static void wake_waiting(struct gate *g)
{
    struct gate_shared *s = g->map.at;
    for (uint32_t i = 0; i < gate_rows_high(s); i++)
        if (gate_load(&s->rows[i].state) == GATE_ROW_WAITING)
            gate_bell_ring(&s->rows[i].bell);
    gate_bell_ring(&s->answers);
}

int gate_stop(struct gate *g, const char *who, const char *why, uint64_t patience_ms,
              struct gate_running *out, size_t cap, size_t *ret_count, struct err *err)
{
    struct gate_shared *s = g->map.at;
    struct seen seen[GATE_ROWS];
    struct err stuck = ERR_INIT;
    if (!g->map.readonly)
        set_flag(g, who, why);
    /* whoever was in the middle of an admission has its slot after this, and is seen below; if the lock cannot be
     * had, the flag still turns it away before it runs */
    bool locked = gate_map_lock_within(&g->map, LIMIT_LOCK_BRIEF_MS, &stuck) == 0;
    size_t count = snapshot(g, out, seen, cap < GATE_ROWS ? cap : GATE_ROWS),
           shown = count < cap ? count : cap;
    if (locked)
        gate_map_unlock(&g->map);
    int r = ring(g, err);
    if (!g->map.readonly) {
        __atomic_add_fetch(&s->counters[GATE_COUNTER_stopped_runs], count, __ATOMIC_RELAXED);
        wake_waiting(g);
    }
    struct err disk = ERR_INIT;
    const int kept = g->map.readonly
                         ? err_set(&disk, ERR_STATE,
                                   "the state folder is read-only, so the stop is not kept: what "
                                   "runs was told to end, but new runs may begin wherever it can "
                                   "be written")
                         : gate_stop_keep(&g->map, &disk);
    if (kept < 0 && r == 0) {
        *err = disk;
        r = kept;
    }
    gate_note(g, GATE_EVENT_STOP, NULL, who, why, 0);
    gate_tell(g);

    uint64_t until = clock_now_ns() + patience_ms * CLOCK_NS_PER_MS;
    for (size_t i = 0; i < shown; i++)
        out[i].end = wait_for(g, &seen[i], until) ? "ended" : "";
    for (size_t i = 0; i < shown; i++)
        if (!*out[i].end)
            kill_supervisor(g, &seen[i]);
    for (size_t i = 0; i < shown; i++) {
        if (!*out[i].end)
            out[i].end =
                wait_for(g, &seen[i], clock_now_ns() + CLOCK_NS_PER_S) ? "killed" : "still running";
        struct gate_noted *n =
            gate_note(g, GATE_EVENT_STOPPED_RUN, NULL, out[i].run, out[i].end, out[i].ms / 1000);
        memcpy(n->run, out[i].run, sizeof n->run);
        memcpy(n->client, out[i].client, sizeof n->client);
        memcpy(n->tool, out[i].tool, sizeof n->tool);
        gate_tell(g);
    }
    *ret_count = count;
    return r;
}

int gate_resume(struct gate *g, const char *who, const char *why, struct err *err)
{
    char drop[256];
    int r = gate_map_lock(&g->map, err);
    if (r < 0)
        return r;
    /* the file first: if it cannot be removed, the stop stays */
    r = gate_stop_file_remove(g->map.dir, err);
    if (r == 0) {
        while (read(g->map.stop_fd, drop, sizeof drop) > 0)
            ;
        gate_store(&g->map.at->stopped, 0);
    }
    gate_map_unlock(&g->map);
    if (r == 0)
        gate_note(g, GATE_EVENT_RESUME, NULL, who, why, 0);
    gate_tell(g);
    return r;
}
