/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the locks, and why it is this order. The launcher is a child of the builder, in the
 * supervisor's memory while both sleep, and nothing of the guest exists before its last line. A worker
 * that was executed early (early.c) does the same itself, in the same order, before it starts its
 * interpreter: it enters its network and makes 1, and closes at 9 what an exec would have closed.
 *
 *   1  inner user namespace    from the clone; its map needs /proc, so it is written first
 *   2  session, keys, signals  no terminal, none of the caller's keys, default signals; inherited from
 *                              the builder, which has time for them while the network is made
 *   3  own status opened       Landlock would refuse it later; what is read after the locks is true
 *   4  rlimits                 inherited like 2; tasks here, descriptors at 10
 *   5  no-new-privs            Landlock and seccomp ask for it
 *   6  capabilities            before Landlock, which needs none of them after 5
 *   7  Landlock                its rules stand ready; before seccomp, which allows no such call
 *   8  seccomp                 forbids what the steps above need; its listener needs a descriptor
 *   9  descriptors             an own table; none but the three streams and the channel survives
 *                              the exec
 *  10  proof                   one forbidden act per layer, judged before the program is run; then
 *                              the limit on descriptors, under which no act could be tried
 *
 * Not dumpable is not on the list: exec resets it for a program. What would need it to be off is
 * shut by seccomp (ptrace, process_vm_*) and by RLIMIT_CORE; cordon-nest and the supervisor set it.
 *
 * Waits: write in *; the builder or supervisor to read: a packet that fits; at once; the jail is not built */
#include "jail/inside.h"

#include "jail/template.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void jail_apply_signals(void)
{
    for (int s = 1; s < 32;
         s++) /* exec itself resets handlers; what the caller ignored it would keep */
        signal(s, SIG_DFL);
    /* A file past its limit is a failed call, not a dead program. */
    signal(SIGXFSZ, SIG_IGN);
}

void jail_apply_session(const struct jail_spec *spec)
{
    const bool child = spec->kind == JAIL_KIND_CHILD;
    /* The caller's keys stay outside. A child has its template's session, which is as empty, and keys
     * are counted per user; its signals, too, are as the template left them. */
    if (!child)
        syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    setsid();
    umask(022);
    if (!child)
        jail_apply_signals();
}

static int own_identity(struct jail_stage *st, struct err *err)
{
    const struct jail_spec *spec = st->spec;
    const bool child = spec->kind == JAIL_KIND_CHILD;
    const bool inner =
        spec->kind != JAIL_KIND_TEMPLATE && spec->mode == JAIL_FULL && !jail_off(spec, user);
    sigset_t none;
    sigemptyset(&none);
    if (inner && jail_ns_map_self(st->proc, spec->inner_id, 0, spec->inner_id, 0) < 0)
        return err_sys(err, "map the guest's id");
    if (child && !spec->branches) /* the builder's second locks have it for a program */
        (void)!fd_write_file(st->user_limits, "max_user_namespaces", "0");
    if (child)
        jail_apply_session(spec);
    sigprocmask(SIG_SETMASK, &none, NULL);
    return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? err_sys(err, "the parent-death signal") : 0;
}

static int lock_process(const struct jail_spec *spec, struct err *err)
{
    if (!jail_off(spec, nnp) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_sys(err, "no_new_privs");
    if (spec->kind == JAIL_KIND_TEMPLATE)
        return jail_caps_of_template(spec, err);
    return jail_off(spec, caps) ? 0 : jail_caps_drop(spec, err);
}

/* A template's rules are for its children: it must mount, which Landlock would forbid it and them. */
static int lock_paths(struct jail_stage *st, struct err *err)
{
    if (st->spec->kind == JAIL_KIND_TEMPLATE)
        return jail_landlock_make(st->spec, st->binds, &st->ruleset, err);
    if (jail_off(st->spec, landlock))
        return 0;
    return jail_landlock_enter(st->ruleset, err);
}

static int lock_calls(struct jail_stage *st, struct err *err)
{
    return jail_off(st->spec, seccomp) ? 0 : jail_seccomp_apply(st->spec, &st->listener, err);
}

/* The message's sender is how the supervisor learns our pid: the kernel's word, not ours. */
int jail_apply_tell(int control, const struct jail_proof *proof)
{
    char storage[1536];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_STARTED);
    wire_put_int(&w, (int64_t)proof->pid);
    wire_put_text(&w, proof->status);
    return wire_end(&w) < 0 || write(control, b.data, b.len) != (ssize_t)b.len ? -1 : 0;
}

int jail_apply_say(int to, const struct jail_stage *st)
{
    char storage[4096];
    struct buf b = {.data = storage, .cap = sizeof storage, .max = sizeof storage - 1};
    struct wire_writer w;
    wire_begin(&w, &b, WIRE_LOCKED);
    wire_put_int(&w, st->err.code);
    wire_put_text(&w, st->err.layer);
    wire_put_text(&w, st->err.msg);
    jail_layers_write(&w, &st->layers);
    return wire_end(&w) < 0 || write(to, b.data, b.len) != (ssize_t)b.len ? -1 : 0;
}

static int fail(struct jail_stage *st, const char *layer)
{
    if (*layer)
        err_layer(&st->err, layer);
    return 1; /* our death is the end of the pipe for the builder */
}

int jail_apply_identity(struct jail_stage *st, struct jail_proof *proof, int *ret_status)
{
    const struct jail_spec *spec = st->spec;
    if (own_identity(st, &st->err) < 0)
        return fail(st, "process");
    jail_attest_before(proof, st->proc, spec->kind);
    *ret_status = openat(st->proc, "self/status", O_RDONLY | O_CLOEXEC);
    if (*ret_status < 0) {
        err_sys(&st->err, "open the own status in /proc");
        return fail(st, "process");
    }
    if ((spec->kind == JAIL_KIND_CHILD || spec->locks_itself) && chdir(spec->cwd) < 0) {
        err_sys(&st->err, "enter %s", spec->cwd);
        return fail(st, "filesystem");
    }
    return 0;
}

int jail_apply_locks(struct jail_stage *st, struct jail_proof *proof)
{
    const struct jail_spec *spec = st->spec;
    struct err *err = &st->err;
    const bool child = spec->kind == JAIL_KIND_CHILD; /* its builder has its template's limits */
    if (!jail_off(spec, rlimits) &&
        ((child && jail_rlimits_apply(spec, err) < 0) || jail_rlimit_tasks(spec, err) < 0))
        return fail(st, "resources");
    if (lock_process(spec, err) < 0)
        return fail(st, "process");
    if (lock_paths(st, err) < 0)
        return fail(st, "filesystem");
    jail_attest_unfiltered(proof, st->own);
    return lock_calls(st, err) < 0 ? fail(st, "syscalls") : 0;
}

int jail_apply_last(struct jail_stage *st, struct jail_proof *proof)
{
    const struct jail_spec *spec = st->spec;
    const bool guest = spec->kind != JAIL_KIND_TEMPLATE;
    if (guest && !jail_off(spec, rlimits) && jail_rlimit_descriptors(spec, &st->err) < 0)
        return fail(st, "resources");
    jail_attest_descriptors(proof, spec);
    /* it names the layer */
    return jail_attest_judge(proof, spec, st->own, &st->layers, &st->err) < 0 ? 1 : 0;
}

/* The channel; a template finds more (template.h), and none of it leads to a process outside. */
static int leave_for_program(const struct jail_stage *st, int *const *keep, size_t keeps,
                             struct err *err)
{
    const int fds[] = {st->channel, st->own_proc, st->ruleset, st->user_limits};
    size_t count = st->spec->kind == JAIL_KIND_TEMPLATE ? 4 : st->channel >= 0;
    return count ? jail_fds_place(JAIL_FD_CHANNEL, fds, count, keep, keeps, err) : 0;
}

int jail_launch(void *p)
{
    struct jail_stage *st = p;
    const struct jail_spec *spec = st->spec;
    struct err *err = &st->err;
    struct jail_proof proof;
    int status, control = st->control[1], ready = st->ready[1]; /* ours may move */

    if (jail_apply_identity(st, &proof, &status) || jail_apply_locks(st, &proof))
        return 1;
    /* not close-on-exec, on purpose: step 9 must catch it */
    int leftover = fcntl(0, F_DUPFD, JAIL_FD_TEMPLATE_LAST + 1);
    int *const keep[] = {&status, &control, &ready};
    if (jail_fds_leave_behind(spec, err) < 0 ||
        leave_for_program(st, keep, sizeof keep / sizeof *keep, err) < 0)
        return fail(st, "process");

    jail_attest_after(&proof, spec, status);
    proof.acts[JAIL_ACT_leftover] = fcntl(leftover, F_GETFD) & FD_CLOEXEC;
    fd_close(leftover);
    if (jail_apply_last(st, &proof))
        return 1;
    if (jail_apply_tell(control, &proof) < 0 || write(ready, "R", 1) != 1)
        return 1; /* the supervisor or the builder is gone */
    /* Where the table notifies exec, this one waits for the builder's word, and is the only one. */
    execve(spec->program, (char *const *)spec->argv, (char *const *)spec->env);
    err_set(err, ERR_USAGE, "%.120s: %s", spec->program, strerror(errno));
    return write(ready, "E", 1) != 1;
}
