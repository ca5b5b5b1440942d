/* SPDX-License-Identifier: Apache-2.0 */
/* Denied calls that matter arrive here while the guest waits. Their answer is EPERM whatever the supervisor
 * read of the guest's memory, so a guest that changes its arguments meanwhile gains nothing but a wrong line in
 * its own report. Some calls may go on, by their registers and by what the kernel says of the process: exit_group,
 * after a last look at what the process holds; a signal to itself; a file lock, while it holds few (locks.c; else
 * ENOLCK); a large mmap or mremap, while it stays below its memory limit (else ENOMEM). One notification is handled per call, so a guest that floods us waits its turn behind its own output and our
 * timers.
 *
 * Waits: sys_listener_receive in next_call; nobody: epoll said that a call is there; at once;
 *          ENOENT, its caller was killed
 *        F_SETLKW in takes_lock; nobody: it is compared, not called; at once; goes on */
#include "jail/outside.h"

#include "base/units.h"
#include "jail/decode.h"
#include "jail/filter.h"
#include "jail/supervisor/family.h"
#include "sys/entries.h"
#include "sys/fd.h"
#include "sys/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const struct {
    const char *layer, *hint;
} hints[] = {
    {"network", "there is no network in the jail; pass data in with --ro or --stdin"},
    {"process",
     "a program may not start others; --processes N lets it (exec; run in standard and open)"},
    {"resources", "the limit is 0 here; ask for --processes N if it must start others"},
    {"filesystem",
     "only /workspace, /tmp and what --rw names can be changed, and never its mounts"},
    {"syscalls", "the program can do without this call, or does not belong in a jail"},
};

/* Calls whose layer's advice would lead astray. */
static const struct {
    const char *call, *hint;
} own_hints[] = {
    {"ptrace", "no process may look into another; print what is to be seen"},
    {"process_vm_readv", "no process may look into another; print what is to be seen"},
    {"process_vm_writev", "no process may look into another; print what is to be seen"},
    {"memfd_create", "memory that no limit counts; use a file in /tmp"},
    {"timer_create", "use alarm or setitimer (signal.setitimer in Python)"},
    {"landlock_create_ruleset", "the program is confined already"},
    {"landlock_add_rule", "the program is confined already"},
    {"landlock_restrict_self", "the program is confined already"},
    {"getsockopt", "no handle of another process is given out"},
    {"kill", "a program may signal itself only"},
    {"tgkill", "a program may signal itself only"},
    {"tkill", "a program may signal itself only"},
};

static const char *hint_for(const char *layer)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcmp(hints[i].layer, layer) == 0)
            return hints[i].hint;
    return "";
}

struct guest_memory {
    pid_t pid;
    int listener;
    uint64_t id;
};

static ssize_t read_guest(void *ctx, uint64_t addr, void *buf, size_t len)
{
    const struct guest_memory *g = ctx;
    struct iovec here = {buf, len}, there = {(void *)(uintptr_t)addr, len};
    ssize_t n = process_vm_readv(g->pid, &here, 1, &there, 1, 0);
    /* the pid may be somebody else by now: then nothing was read */
    return sys_listener_holds(g->listener, g->id) ? n : -1;
}

/* Since 6.2 the size of the folder is the count; before that its entries are counted. */
static unsigned count_descriptors(pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    if (stat(path, &st) == 0 && st.st_size > 0)
        return (unsigned)st.st_size;
    return entries_count(path);
}

static unsigned long count_threads(pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return stat(path, &st) == 0 ? (unsigned long)st.st_nlink - 2 : 0;
}

void jail_notify_expect(pid_t pid)
{
    (void)count_descriptors(pid);
    (void)count_threads(pid);
}

/* The kernel lists the direct children of a thread; 0 where it was built without the list. */
static unsigned long count_children(pid_t pid)
{
    char path[64], text[32768];
    unsigned long n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    for (const char *c = text; *c; c++)
        n += *c == ' ';
    return n;
}

/* What /proc/PID/status says behind KEY, which stands there in kB; 0 if it cannot be read. */
static uint64_t status_bytes(pid_t pid, const char *key)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    const char *at = fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, key) : NULL;
    return at ? strtoull(at + strlen(key), NULL, 10) * KIB : 0;
}

/* RLIMIT_AS leaves no trace of a refusal. jail_memory_was_short (spec.h) says why this number is one. */
void jail_notify_look_at_memory(struct jail_watch *w, pid_t pid)
{
    uint64_t peak = status_bytes(pid, "\nVmPeak:");
    if (peak > w->out->mapped)
        w->out->mapped = peak;
}

/* EMFILE and EAGAIN leave no trace in the kernel; a process that ends at its limit has met it. */
void jail_notify_last_look(struct jail_watch *w, pid_t pid)
{
    unsigned held = count_descriptors(pid);
    if (held >= w->limits->descriptors) {
        char detail[80];
        snprintf(detail, sizeof detail, "%u of %llu descriptors in use at its end", held,
                 (unsigned long long)w->limits->descriptors);
        jail_violation_add(w->out, "resources", "limit.descriptors", detail,
                           "close what is no longer used, or ask for --descriptors N");
    }
    unsigned long children = w->limits->processes && !w->in_group ? count_children(pid) : 0;
    if (children && children >= w->limits->processes)
        jail_violation_processes(w->out, children, w->limits->processes);
    unsigned long tasks = count_threads(pid);
    if (!w->in_group && tasks > w->limits->threads + w->limits->processes && tasks > 1) {
        char detail[80];
        snprintf(detail, sizeof detail, "%lu threads in use at its end", tasks);
        jail_violation_add(w->out, "resources", "limit.threads", detail,
                           "start fewer at once, or ask for --threads N");
    }
}

/* A field of /proc/PID/status: the last number of its line, or -1. */
static long status_number(pid_t pid, const char *key)
{
    char path[32], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    const char *at = fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, key) : NULL;
    long last = -1;
    if (at)
        at += strlen(key);
    while (at && *at && *at != '\n') {
        char *end;
        last = strtol(at, &end, 10);
        at = end + strspn(end, " \t");
    }
    return last;
}

static void record(struct jail_watch *w, const struct seccomp_notif *n)
{
    char rule[48], detail[320];
    const struct jail_call *call = jail_filter_call(w->filter, n->data.nr);
    if (!call) {
        snprintf(rule, sizeof rule, "seccomp.%d", n->data.nr);
        jail_violation_add(w->out, "syscalls", rule, "a call of no table", hint_for("syscalls"));
        return;
    }
    struct guest_memory memory = {(pid_t)n->pid, w->listener, n->id};
    struct jail_decode_reader reader = {.read = read_guest, .ctx = &memory};
    const char *name = jail_call_name(w->filter, call), *layer = jail_call_layer(w->filter, call);
    snprintf(rule, sizeof rule, "seccomp.%s", name);
    if (w->out->violations_total >= 10 * LIMIT_VIOLATIONS &&
        jail_violation_known(w->out, rule)) { /* a flood is counted, not read */
        w->out->violations_total++;
        return;
    }
    jail_decode(&n->data, name, &reader, detail, sizeof detail);
    if (jail_decode_routine(detail))
        return;
    const char *hint = hint_for(layer);
    for (size_t i = 0; i < sizeof own_hints / sizeof *own_hints; i++)
        if (strcmp(own_hints[i].call, name) == 0)
            hint = own_hints[i].hint;
    if (n->data.nr == SYS_clone && n->data.args[0] & CLONE_THREAD)
        hint = "there are no threads here; do one thing after another";
    jail_violation_add(w->out, layer, rule, detail, hint);
}

/* Raising a signal against itself, as abort and os.kill(os.getpid()) do. The target is a register, and
 * a process keeps its number, so nothing can change between our look and the call. */
static bool signals_itself(const struct jail_watch *w, const struct seccomp_notif *n)
{
    if (n->data.nr != SYS_kill && n->data.nr != SYS_tgkill)
        return false;
    /* what the process calls itself, deep in pid namespaces */
    long pid = status_number((pid_t)n->pid, "\nNStgid:");
    return pid > 0 && (int)n->data.args[0] == pid && sys_listener_holds(w->listener, n->id);
}

/* A large mapping: the limit itself decides, and here it is seen. The length is a register. */
static bool asks_too_much(const struct jail_watch *w, pid_t pid, uint64_t bytes)
{
    const uint64_t limit = w->limits->memory + w->limits->space;
    return bytes > limit || status_bytes(pid, "\nVmSize:") > limit - bytes;
}

/* By how much the process would grow. */
static uint64_t memory_asked(const struct seccomp_notif *n)
{
    if (n->data.nr == SYS_mmap)
        return n->data.args[1];
    const uint64_t was = n->data.args[1], wanted = n->data.args[2];
    return wanted > was ? wanted - was : 0;
}

static void record_memory(struct jail_watch *w, uint64_t bytes)
{
    char detail[112], asked[UNITS_TEXT], most[UNITS_TEXT];
    for (size_t i = 0; i < w->out->violation_count; i++)
        if (strcmp(w->out->violations[i].rule, JAIL_RULE_MEMORY) == 0) { /* libraries try again */
            w->out->violations[i].times++;
            w->out->violations_total++;
            return;
        }
    units_bytes_text(bytes, asked);
    units_bytes_text(w->limits->memory, most);
    snprintf(detail, sizeof detail, "asked for %s at once; the limit is %s", asked, most);
    jail_violation_add(w->out, "resources", JAIL_RULE_MEMORY, detail,
                       "work on smaller pieces, or ask for --memory N");
}

static bool takes_lock(const struct seccomp_notif *n)
{
    int command = (int)n->data.args[1];
    return n->data.nr == SYS_fcntl && (command == F_SETLK || command == F_SETLKW);
}

/* Records what the notified call is; 0 lets it go on, an errno is its answer. */
static int judge(struct jail_watch *w, const struct seccomp_notif *n)
{
    pid_t pid = (pid_t)n->pid;
    if (n->data.nr == SYS_exit_group) {
        jail_notify_last_look(w, pid);
        if (n->data.args[0])
            jail_notify_look_at_memory(w, pid);
        return 0;
    }
    if (takes_lock(n))
        return jail_locks_may_take(w, pid) ? 0 : ENOLCK;
    if (n->data.nr == SYS_mmap || n->data.nr == SYS_mremap) {
        uint64_t more = memory_asked(n);
        if (w->in_group) { /* address space costs nothing there: the kernel decides */
            w->out->mapped = more > w->out->mapped ? more : w->out->mapped;
            return 0;
        }
        if (!asks_too_much(w, pid, more))
            return 0;
        record_memory(w, more);
        return ENOMEM;
    }
    if (signals_itself(w, n)) {
        const int sig = (int)n->data.args[n->data.nr == SYS_tgkill ? 2 : 1];
        if (n->data.nr == SYS_tgkill && (sig == SIGABRT || sig == SIGSEGV))
            jail_notify_look_at_memory(w, pid); /* what many a library does for want of memory */
        w->out->killed_itself = w->out->killed_itself || sig == SIGKILL;
        return 0;
    }
    record(w, n);
    return EPERM;
}

static bool is_of_branch(void *ctx, pid_t pid)
{
    const struct jail_watch *w = ctx;
    return pid == w->only;
}

/* One call of ours. False: its caller was killed meanwhile, or it was of another branch and is passed on. */
static bool next_call(struct jail_watch *w, union sys_notice *ret)
{
    return w->family ? jail_family_receive(w->family, is_of_branch, w, ret)
                     : sys_listener_receive(w->listener, ret) == 0;
}

void jail_notify_handle(struct jail_watch *w)
{
    union sys_notice in;
    if (!next_call(w, &in))
        return;
    int error = judge(w, &in.notif);
    /* ENOENT: killed while it waited, and there is nobody to answer */
    (void)sys_listener_answer(w->listener, in.notif.id, error,
                              error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}
