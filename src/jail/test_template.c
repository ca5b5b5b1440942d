/* SPDX-License-Identifier: Apache-2.0 */
/* Templates, children and adopted runs, live. This program is all of it: the holder and supervisor, the template
 * (--template) and, in each child, the guest that does what it is told over its channel.
 * Usage: test_template CORDON-NEST [ROUNDS] */
#include "base/clock.h"
#include "base/tap.h"
#include "jail/test_guest.h"
#include "jail/test_talk.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what is shown ---- */

static void honest(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct test_talk t;
    if (!tap_ok(test_fresh(tpl, "python", false, &c, &t, NULL), "a child is born"))
        return;
    tap_eq_int(c.tag, 7, "a child carries the number of its order");
    tap_eq_int(test_ask(&t, "fds"), 15, "streams and channel are all that is open in a child");
    tap_eq_int(test_ask(&t, "pid"), 2, "a child is pid 2");
    tap_eq_int(test_ask(&t, "uid"), 1000, "a child is user 1000");
    tap_eq_int(test_ask(&t, "loaded"), 0,
               "what was loaded ahead found nothing of the template's but its memory");
    tap_eq_int(test_ask(&t, "confined"), 0, "a rehearsal finds nothing of the template's");
    tap_eq_int(test_ask(&t, "tid"), 1, "the C library of a child knows its thread id");
    tap_eq_int(test_ask(&t, "save /workspace/a"), 5, "a child can write its workspace");
    tap_eq_int(test_ask(&t, "save /tmp/a"), 5, "a child can write its /tmp");
    tap_eq_int(test_ask(&t, "say hello"), 5, "a child can print");
    struct stat st;
    tap_ok(fstatat(jail_run_files(t.run), "workspace/a", &st, 0) == 0 && st.st_size == 5,
           "a child's files are seen by descriptor");
    jail_run_end_now(t.run, 7);
    test_wait_end(&t);
    const struct jail_outcome *o = jail_run_outcome(t.run);
    tap_ok(o->end == JAIL_END_EXIT && o->exit_code == 7, "a child ends as its supervisor says");
    tap_eq_str(t.said, "hello", "the supervisor has what a child printed");
    tap_ok(o->memory > 0 && o->wall_us > 0,
           "the supervisor has the memory and the time that a child used");
    tap_eq_int(o->violation_count, 0, "nothing was denied to an honest child");
    for (int i = 0; i < JAIL_LAYER_COUNT; i++)
        tap_ok(o->layers.on[i] && !o->layers.note[i][0], "%s is on", jail_layer_names[i]);
    test_talk_end(&t, &c);
}

static void ends(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct test_talk t;
    struct jail_limits short_wall = {.wall_ms = 60}, short_cpu = {.cpu_ms = 60};
    if (tap_ok(test_fresh(tpl, "python", false, &c, &t, NULL), "a child is born")) {
        tap_ok(write(c.channel, "exit 5", 6) == 6, "a child is told to exit");
        test_wait_end(&t);
        tap_ok(jail_run_outcome(t.run)->end == JAIL_END_EXIT &&
                   jail_run_outcome(t.run)->exit_code == 5,
               "a child exits by itself");
        test_talk_end(&t, &c);
    }
    if (tap_ok(test_fresh(tpl, "python", false, &c, &t, NULL), "a child is born")) {
        tap_ok(write(c.channel, "abort", 5) == 5, "a child is told to abort");
        test_wait_end(&t);
        tap_ok(jail_run_outcome(t.run)->end == JAIL_END_SIGNAL &&
                   jail_run_outcome(t.run)->signal == SIGABRT,
               "a child that aborts dies of SIGABRT");
        test_talk_end(&t, &c);
    }
    if (tap_ok(test_fresh(tpl, "python", false, &c, &t, &short_wall), "a child is born")) {
        tap_ok(write(c.channel, "sleep", 5) == 5, "a child is told to sleep");
        test_wait_end(&t);
        tap_eq_int(jail_run_outcome(t.run)->end, JAIL_END_WALL,
                   "a child that sleeps ends by its time limit");
        test_talk_end(&t, &c);
    }
    if (tap_ok(test_fresh(tpl, "python", false, &c, &t, &short_cpu), "a child is born")) {
        tap_ok(write(c.channel, "spin", 4) == 4, "a child is told to spin");
        test_wait_end(&t);
        tap_eq_int(jail_run_outcome(t.run)->end, JAIL_END_CPU,
                   "a child that spins ends by its CPU limit");
        test_talk_end(&t, &c);
    }
    if (tap_ok(test_fresh(tpl, "python", false, &c, &t, NULL), "a child is born")) {
        tap_eq_int(test_ask(&t, "fill"), -ENOSPC, "a child's files have a quota");
        tap_eq_int(test_ask(&t, "grow"), -ENOMEM, "a child's memory has a limit");
        jail_run_end_now(t.run, 0);
        test_wait_end(&t);
        tap_ok(test_has_rule(t.run, "limit.disk"),
               "a full quota of files is reported as limit.disk");
        test_talk_end(&t, &c);
    }
    int in[2];
    struct jail_child_spec spec = test_child_spec("python", false);
    if (tap_ok(pipe2(in, O_CLOEXEC) == 0 && test_order(tpl, &spec, &c) &&
                   test_talk(&t, &c, NULL, in[0]),
               "a child is born")) {
        tap_ok(test_hear(&t) && write(in[1], "x", 1) == 1, "a child is given input");
        tap_eq_int(test_ask(&t, "read"), 'x', "a child reads its input");
        jail_run_stop(t.run);
        test_wait_end(&t);
        tap_eq_int(jail_run_outcome(t.run)->end, JAIL_END_STOPPED, "a child can be stopped");
        test_talk_end(&t, &c);
    }
    fd_close(in[0]);
    fd_close(in[1]);
}

static void attacks(struct jail_template *tpl)
{
    static const struct {
        const char *word;
        long want;
        const char *rule;
    } rows[] = {
        {"fork", -EPERM, "seccomp.clone"},
        {"branch", -EPERM, "seccomp.clone"},
        {"thread", -EPERM, "seccomp.clone"},
        {"socket", -EPERM, "seccomp.socket"},
        {"inet", -EPERM, "seccomp.socket"},
        {"exec", -EPERM, "seccomp.execve"},
        {"mount", -EPERM, "seccomp.mount"},
        {"umount", -EPERM, "seccomp.umount2"},
        {"setns", -EPERM, "seccomp.unshare"},
        {"ptrace", -EPERM, "seccomp.ptrace"},
        {"signal", 0, "seccomp.kill"},
        {"open /etc/shadow", -ENOENT, NULL},
        {"open /.sealed", -EACCES, NULL},
        {"open /home", -ENOENT, NULL},
        {"open /proc/self/status", -ENOENT, NULL},
        {"save /usr/x", -EROFS, NULL},
        {"save /x", -EROFS, NULL},
        {"open /usr/bin/env", 4, NULL},
    };
    struct jail_child c = JAIL_CHILD_NONE;
    struct test_talk t;
    if (!tap_ok(test_fresh(tpl, "python", false, &c, &t, NULL), "a child is born"))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_eq_int(test_ask(&t, rows[i].word), rows[i].want, "%s", rows[i].word);
        if (rows[i].rule)
            tap_ok(test_has_rule(t.run, rows[i].rule), "%s is told as %s", rows[i].word,
                   rows[i].rule);
    }
    jail_run_end_now(t.run, 0);
    test_wait_end(&t);
    test_talk_end(&t, &c);
    if (tap_ok(test_fresh(tpl, "python-threads", false, &c, &t, NULL), "a child is born")) {
        tap_ok(test_ask(&t, "thread") > 2, "where threads are allowed, one starts");
        jail_run_end_now(t.run, 0);
        test_wait_end(&t);
        test_talk_end(&t, &c);
    }
}

static void siblings(struct jail_template *tpl)
{
    struct jail_child a = JAIL_CHILD_NONE, b = JAIL_CHILD_NONE;
    struct test_talk ta = {0}, tb = {0};
    if (!tap_ok(test_fresh(tpl, "python", false, &a, &ta, NULL) &&
                    test_fresh(tpl, "python", false, &b, &tb, NULL),
                "two children are born"))
        return;
    tap_eq_int(test_ask(&ta, "save /workspace/mine"), 5, "a child writes a file");
    tap_eq_int(test_ask(&tb, "stat /workspace/mine"), -ENOENT,
               "a child does not see its sibling's file");
    tap_eq_int(test_ask(&tb, "fds"), 15, "a child has no descriptor of its sibling");
    tap_eq_int(test_ask(&tb, "signal"), 0, "a child cannot signal its sibling");
    tap_eq_int(test_ask(&ta, "set 5"), 5, "a variable is set in one of two children");
    tap_eq_int(test_ask(&tb, "get"), 1, "a variable of one child is not set in its sibling");
    jail_run_free(ta.run);
    jail_child_close(&a);
    tap_eq_int(test_ask(&tb, "pid"), 2, "a child goes on when its sibling ends");
    test_talk_end(&tb, &b);
}

/* A supervisor in another process, that dies: the child must not outlive it. */
static void leash(struct jail_template *tpl)
{
    struct jail_child_spec spec = test_child_spec("python", false);
    struct jail_child c = JAIL_CHILD_NONE;
    struct err err = ERR_INIT;
    int sv[2] = {-1, -1};
    if (!tap_ok(test_order(tpl, &spec, &c) &&
                    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0,
                "a child is born"))
        return;
    int guest_fd = fcntl(c.guest, F_DUPFD_CLOEXEC, 0), init_fd = fcntl(c.init, F_DUPFD_CLOEXEC, 0);
    tap_ok(jail_child_send(sv[0], &c, &err) == 0, "a child is sent to another process");
    jail_child_close(&c);
    fd_close(sv[0]);
    pid_t pid = fork();
    if (pid == 0) {
        struct test_talk t;
        bool good = jail_child_receive(sv[1], &c, &err) == 0 && c.tag == 7 &&
                    test_talk(&t, &c, NULL, -1) && test_hear(&t) && test_ask(&t, "pid") == 2;
        if (good)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    fd_close(sv[1]);
    int status = 0;
    waitpid(pid, &status, 0);
    tap_ok(WIFSIGNALED(status), "a process talks to a child that it received, and is killed");
    tap_ok(test_gone(guest_fd) && test_gone(init_fd),
           "a child dies with the process that received it");
    fd_close(guest_fd);
    fd_close(init_fd);
}

static void session(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE, lease = JAIL_CHILD_NONE;
    struct test_talk t;
    struct err err = ERR_INIT;
    struct jail_child_spec spec = test_child_spec("python", true);
    int sv[2] = {-1, -1};
    if (!tap_ok(test_order(tpl, &spec, &c) &&
                    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == 0,
                "a child is born"))
        return;
    for (int call = 0; call < 3; call++) {
        if (!tap_ok(jail_child_send(sv[0], &c, &err) == 0 &&
                        jail_child_receive(sv[1], &lease, &err) == 0 &&
                        test_talk(&t, &lease, NULL, -1) && (call > 0 || test_hear(&t)),
                    "a session's child is lent"))
            return;
        tap_eq_int(test_ask(&t, "get"), call ? 40 + call - 1 : 1,
                   "call %d of a session sees its state", call);
        char word[32];
        snprintf(word, sizeof word, "set %d", 40 + call);
        tap_eq_int(test_ask(&t, word), 40 + call, "a call of a session changes its state");
        jail_run_release(t.run, 3);
        test_wait_end(&t);
        const struct jail_outcome *o = jail_run_outcome(t.run);
        tap_ok(o->end == JAIL_END_EXIT && o->exit_code == 3, "a call of a session ends");
        test_talk_end(&t, &lease);
        tap_ok(jail_child_alive(&c), "a session goes on when its call has ended");
    }
    int init_fd = fcntl(c.init, F_DUPFD_CLOEXEC, 0);
    jail_child_kill(&c);
    tap_ok(test_gone(c.guest) && test_gone(init_fd),
           "a session that is killed is gone, and its init with it");
    fd_close(init_fd);
    jail_child_close(&c);
    fd_close(sv[0]);
    fd_close(sv[1]);
}

/* ---- nothing is left ---- */

struct count {
    unsigned processes, fds, template_fds;
    unsigned long rss, template_rss;
};

static unsigned long rss_kb(const char *path)
{
    char text[4096];
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "VmRSS:") : NULL;
    return at ? strtoul(at + 6, NULL, 10) : 0;
}

/* When it was started, in ticks since the boot; 0: it is gone. A pid tells nothing: they come around again. */
static unsigned long long birthday(long pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Ours: every process that this very program is, besides us. The oldest one is the template. */
static struct count look(void)
{
    struct count c = {.fds = entries_count("/proc/self/fd"), .rss = rss_kb("/proc/self/status")};
    long oldest = 0;
    unsigned long long first = 0;
    char name[32];
    snprintf(name, sizeof name, TEST_GUEST_NAME "\n", (int)getpid());
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], comm[64];
        long pid = strtol(e->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
        if (pid <= 0 || pid == getpid() || fd_read_file(AT_FDCWD, path, comm, sizeof comm) < 0 ||
            strcmp(comm, name) != 0)
            continue;
        c.processes++;
        unsigned long long born = birthday(pid);
        if (born && (!first || born < first)) {
            first = born;
            oldest = pid;
        }
    }
    if (d)
        closedir(d);
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd", oldest);
    c.template_fds = entries_count(path);
    snprintf(path, sizeof path, "/proc/%ld/status", oldest);
    c.template_rss = rss_kb(path);
    return c;
}

static bool one_of_many(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct test_talk t;
    if (!test_fresh(tpl, "python", false, &c, &t, NULL))
        return false;
    bool good = test_ask(&t, "pid") == 2 && test_ask(&t, "say x") == 1;
    jail_run_end_now(t.run, 0);
    test_wait_end(&t);
    good &= strcmp(t.said, "x") == 0;
    test_talk_end(&t, &c);
    return good;
}

/* The same for a while: nobody dies any more, and nobody is made. */
static void wait_until_even(struct count *c, unsigned want)
{
    struct count last = look();
    for (int i = 0, same = 0; i < 500 && same < 5; i++) {
        usleep(10000);
        *c = look();
        same =
            c->processes == want && last.processes == want && c->template_fds == last.template_fds
                ? same + 1
                : 0;
        last = *c;
    }
}

static void many(struct jail_template *tpl, long rounds)
{
    struct count before, after;
    long good = 0;
    for (int i = 0; i < 40; i++)
        (void)one_of_many(tpl);
    wait_until_even(&before, 2);
    uint64_t start = clock_now_ns();
    for (long i = 0; i < rounds; i++)
        good += one_of_many(tpl);
    double us = (double)(clock_now_ns() - start) / 1e3 / (double)rounds;
    wait_until_even(&after, 2);
    tap_eq_int(good, rounds, "%ld children were born, ran and were killed", rounds);
    tap_eq_int(after.processes, 2,
               "no process is left but the template and the builder of the next child");
    tap_eq_int(after.fds, before.fds, "the holder's descriptors are as many as before");
    tap_ok(after.template_fds == before.template_fds && after.template_fds > 2,
           "the template's descriptors are as many as before (%u, %u)", before.template_fds,
           after.template_fds);
    tap_ok(after.rss <= before.rss + 256 && after.template_rss <= before.template_rss + 256,
           "memory is flat: %lu -> %lu KB, template %lu -> %lu KB", before.rss, after.rss,
           before.template_rss, after.template_rss);
    printf("#= one child after the other, from order to end: %.0f us each\n", us);
}

int main(int argc, char **argv)
{
    struct jail_template *tpl = test_begin(argc, argv);
    if (!tap_ok(tpl != NULL, "a template starts"))
        return tap_done();
    honest(tpl);
    ends(tpl);
    attacks(tpl);
    siblings(tpl);
    leash(tpl);
    session(tpl);
    many(tpl, argc > 2 ? strtol(argv[2], NULL, 10) : 1000);
    jail_template_free(tpl);
    struct count last;
    wait_until_even(&last, 0);
    tap_eq_int(last.processes, 0, "the template is gone when it is freed");
    return tap_done();
}
