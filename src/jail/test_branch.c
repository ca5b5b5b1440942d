/* SPDX-License-Identifier: Apache-2.0 */
/* The fork of a live session: what it keeps, what it refuses by name, and guests that cheat.
 * Usage: test_branch CORDON-NEST */
#include "base/clock.h"
#include "base/tap.h"
#include "jail/test_guest.h"
#include "jail/test_talk.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static void branches(struct jail_template *tpl)
{
    struct jail_child s = JAIL_CHILD_NONE, b = JAIL_CHILD_NONE;
    struct err err = ERR_INIT;
    if (!tap_ok(test_session(tpl, "python", &s), "a child is born"))
        return;
    test_call(&s, "save /workspace/a", false);
    test_call(&s, "mkdir /workspace/d", false);
    test_call(&s, "save /workspace/d/deep", false);
    test_call(&s, "link /workspace/l", false);
    test_call(&s, "save /workspace/shut", false);
    test_call(&s, "chmod /workspace/shut", false);
    test_call(&s, "chdir /workspace/d", false);
    int r = jail_branch(&s, &b, &err);
    if (!tap_ok(r == 0, "a session is forked%s%s", r ? ": " : "", r ? err.msg : ""))
        return;
    tap_eq_int(test_call(&b, "get", true), 5, "a session's variables are in its branch");
    tap_eq_int(b.generation, 1, "a branch of a session is generation 1");
    tap_eq_int(test_call(&b, "stat /workspace/a", false), 0, "a session's files are in its branch");
    tap_eq_int(test_call(&b, "stat deep", false), 0,
               "a branch has the working folder of its session");
    tap_eq_int(test_call(&b, "mode /workspace/d", false), 0750,
               "folders have their modes in a branch");
    tap_eq_int(test_call(&b, "mode /workspace/shut", false), 0,
               "files have their modes in a branch, even unreadable ones");
    tap_eq_int(test_call(&b, "islink /workspace/l", false), 1,
               "a symbolic link stays one in a branch");
    tap_eq_int(test_call(&b, "fds", false), 15,
               "a branch has streams and a channel of its own open, no more");
    tap_eq_int(test_call(&b, "uid", false), 1000, "a branch is user 1000");
    tap_eq_int(test_call(&b, "tid", false), 1, "the C library of a branch knows its thread id");
    tap_eq_int(test_call(&b, "set 6", false), 6, "a variable changes in the branch");
    tap_eq_int(test_call(&s, "get", false), 5,
               "a variable that changes in the branch does not change in the session");
    test_call(&b, "save /workspace/b", false);
    test_call(&s, "save /workspace/s", false);
    tap_eq_int(test_call(&s, "stat /workspace/b", false), -ENOENT,
               "a file of the branch is not in the session");
    tap_eq_int(test_call(&b, "stat /workspace/s", false), -ENOENT,
               "a file of the session is not in the branch");
    tap_eq_int(test_call(&b, "signal", false), 0, "the branch cannot signal the session");
    tap_eq_int(test_call(&s, "signal", false), 0, "the session cannot signal the branch");
    tap_eq_int(test_call(&b, "socket", false), -EPERM, "the branch is locked as the session is");
    tap_eq_int(test_call(&b, "mount", false), -EPERM, "a branch cannot mount");
    tap_eq_int(test_call(&b, "save /x", false), -EROFS, "a branch cannot write the root");
    tap_eq_int(test_call(&b, "open /.sealed", false), -EACCES, "Landlock holds in a branch");
    tap_eq_int(test_call(&s, "branch", false), -EPERM, "a fork that nobody asked for is refused");
    jail_child_kill(&s);
    tap_ok(test_gone(s.guest), "the session is closed");
    jail_child_close(&s);
    tap_eq_int(test_call(&b, "get", false), 6, "a branch outlives its session");
    struct test_talk t;
    int init_fd = fcntl(b.init, F_DUPFD_CLOEXEC, 0);
    if (tap_ok(test_talk(&t, &b, NULL, -1), "a supervisor can talk to a branch")) {
        tap_ok(write(t.channel, "exit 9", 6) == 6, "the branch is told to exit");
        test_wait_end(&t);
        tap_ok(jail_run_outcome(t.run)->end == JAIL_END_EXIT &&
                   jail_run_outcome(t.run)->exit_code == 9,
               "the init of a branch tells how the branch ended");
        test_talk_end(&t, &b);
    }
    tap_ok(test_gone(init_fd), "the init ends with the last branch of its session");
    fd_close(init_fd);
}

static void refusals(struct jail_template *tpl)
{
    static const struct {
        const char *word, *why, *undo;
    } rows[] = {
        {"keep-open /workspace", "open", "close"},
        {"share", "shared memory", NULL},
        {"stay", "threads", NULL},
    };
    struct jail_child s = JAIL_CHILD_NONE, b = JAIL_CHILD_NONE;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!tap_ok(test_session(tpl, "python-threads", &s), "a child is born"))
            return;
        tap_eq_int(test_call(&s, rows[i].word, false), 0, "%s", rows[i].word);
        tap_ok(jail_branch(&s, &b, &err) == ERR_STATE && strstr(err.msg, rows[i].why),
               "a session that cannot be forked is refused by name: %s", err.msg);
        tap_eq_int(test_call(&s, "branched", false), -EBUSY,
                   "a session that cannot be forked is told so, and lives");
        if (rows[i].undo && test_call(&s, rows[i].undo, false) == 0) {
            tap_eq_int(jail_branch(&s, &b, &err), 0,
                       "a session is forked once the reason of the refusal is gone");
            jail_child_close(&b);
        }
        jail_child_kill(&s);
        jail_child_close(&s);
    }
    if (tap_ok(test_session(tpl, "python", &s), "a child is born")) {
        test_call(&s, "cheat limit", false);
        tap_ok(jail_branch(&s, &b, &err) == ERR_STATE && strstr(err.msg, "kernel refused"),
               "a clone that the kernel refuses is told: %s", err.msg);
        tap_eq_int(test_call(&s, "branched", false), -EAGAIN,
                   "a session whose fork failed is told so, and lives");
        jail_child_kill(&s);
        jail_child_close(&s);
    }
    struct jail_child_spec spec = test_child_spec("python", false);
    if (tap_ok(test_order(tpl, &spec, &s), "a child is born")) {
        tap_ok(jail_branch(&s, &b, &err) == ERR_STATE,
               "a child that is no session is not forked: %s", err.msg);
        jail_child_close(&s);
    }
}

static void cheats(struct jail_template *tpl)
{
    static const char *const ways[] = {"fd", "pipe", "file", "cwd", "caps", "silent", "hide"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct jail_child s = JAIL_CHILD_NONE, b = JAIL_CHILD_NONE;
        struct err err = ERR_INIT;
        char word[32];
        if (!tap_ok(test_session(tpl, "python", &s), "a child is born"))
            return;
        snprintf(word, sizeof word, "cheat %s", ways[i]);
        test_call(&s, "save /workspace/keep", false);
        test_call(&s, "chdir /workspace", false);
        test_call(&s, word, false);
        tap_ok(jail_branch(&s, &b, &err) == ERR_MISSING, "a branch that cheats (%s) is seen: %s",
               ways[i], err.msg);
        tap_ok(test_gone(s.init) && test_gone(s.guest),
               "a session whose branch cheats is killed, and its init too");
        jail_child_close(&s);
    }
}

static void generations(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE, next = JAIL_CHILD_NONE;
    struct err err = ERR_INIT;
    uint64_t made = 0, ns = 0;
    if (!tap_ok(test_session(tpl, "python", &c), "a child is born"))
        return;
    for (int i = 0; i < JAIL_GENERATIONS; i++) {
        uint64_t start = clock_now_ns();
        if (jail_branch(&c, &next, &err) < 0) {
            printf("# generation %d: %s\n", i + 1, err.msg);
            break;
        }
        ns += clock_now_ns() - start;
        made++;
        jail_child_kill(&c);
        jail_child_close(&c);
        c = next;
    }
    tap_eq_int(made, JAIL_GENERATIONS, "a fork of a fork, %d deep", JAIL_GENERATIONS);
    tap_eq_int(test_call(&c, "get", true), 5,
               "the last of many branches still has the first one's variable");
    tap_ok(jail_branch(&c, &next, &err) == ERR_STATE && strstr(err.msg, "deep"),
           "a branch beyond the deepest generation is refused: %s", err.msg);
    printf("#= fork of a session: %.0f us\n", made ? (double)ns / 1e3 / (double)made : 0.0);
    jail_child_kill(&c);
    jail_child_close(&c);
}

int main(int argc, char **argv)
{
    struct jail_template *tpl = test_begin(argc, argv);
    if (!tap_ok(tpl != NULL, "a template starts"))
        return tap_done();
    branches(tpl);
    refusals(tpl);
    cheats(tpl);
    generations(tpl);
    jail_template_free(tpl);
    return tap_done();
}
