/* The order of the locks, and why it is this order. The launcher is a child of cordon-nest that shares
 * its memory until the exec (vfork), and nothing of the guest exists before the last line.
 *
 *   1  inner user namespace    from the clone; its map needs /proc, so it is written first
 *   2  session, streams        no terminal, three descriptors
 *   3  own status opened       Landlock would refuse it later; what is read after the locks is true then
 *   4  rlimits                 while nothing can fail for lack of them
 *   5  Landlock's rules        need paths to be opened, hence before the descriptors are closed
 *      - no-new-privs          first: Landlock and seccomp ask for it
 *      - capabilities          before Landlock: afterwards the bounding set is nobody's business
 *   6  every other descriptor  closed
 *   7  not dumpable            after the last change of credentials, which would reset it
 *   8  seccomp                 last: it forbids what the steps above need
 *   9  proof                   one forbidden act per layer; the supervisor judges, then says GO
 */
#include "jail/inside.h"

#include "jail/attest.h"
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

enum { CONTROL = 3, STATUS = 4, FIRST_FREE = 5 }; /* the launcher's descriptors while it locks itself */

_Noreturn static void give_up(struct err *err, const char *layer, const char *step)
{
    err_layer(err, layer);
    jail_report_failure(CONTROL, err, step);
    _exit(1);
}

static void default_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int s = 1; s < 32; s++) /* exec itself resets handlers; what the caller ignored it would keep */
        signal(s, SIG_DFL);
    /* A file past its limit is a failed call, not a dead program. */
    signal(SIGXFSZ, SIG_IGN);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves the descriptors to their places. Sources may sit on one another's targets: copies first. */
static int arrange(const struct jail_launch *l, int status, struct err *err)
{
    int control = fcntl(l->control, F_DUPFD_CLOEXEC, 64), kept = fcntl(status, F_DUPFD_CLOEXEC, 64);
    int stdio[3];
    for (int i = 0; i < 3; i++)
        stdio[i] = fcntl(l->stdio[i], F_DUPFD_CLOEXEC, 64);
    if (control < 0 || kept < 0 || stdio[0] < 0 || stdio[1] < 0 || stdio[2] < 0 ||
        dup3(control, CONTROL, O_CLOEXEC) < 0 || dup3(kept, STATUS, O_CLOEXEC) < 0)
        return err_sys(err, "arrange descriptors");
    return jail_fds_stdio(stdio, err);
}

static void wait_for_go(void)
{
    char go[64];
    struct wire_reader r;
    ssize_t n = read(CONTROL, go, sizeof go); /* GO, or the end */
    if (n <= 0 || wire_open(&r, go, (size_t)n, NULL) < 0 || r.type != WIRE_GO)
        _exit(1);
}

void jail_launch(const struct jail_launch *l)
{
    const struct jail_spec *spec = l->spec;
    struct err err = ERR_INIT;
    struct jail_proof proof;
    int listener = -1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (jail_ns_inner_flags(spec) && spec->mode == JAIL_FULL && !jail_off(spec, user) &&
        jail_ns_map_self(l->proc, spec->inner_id, 0, spec->inner_id, 0) < 0) {
        err_sys(&err, "map the guest's id");
        err_layer(&err, "process");
        jail_report_failure(l->control, &err, "user namespace");
        _exit(1);
    }
    if (!jail_off(spec, user)) /* no further user namespace below, behind seccomp's clone and unshare */
        (void)!fd_write_file(l->proc, "sys/user/max_user_namespaces", "0");
    syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); /* the caller's keys stay outside */
    setsid();
    umask(022);
    jail_attest_before(&proof, l->proc);
    FD_AUTO status = openat(l->proc, "self/status", O_RDONLY | O_CLOEXEC);
    if (status < 0 || arrange(l, status, &err) < 0) {
        if (status < 0)
            err_sys(&err, "open /proc/self/status");
        err_layer(&err, "process");
        jail_report_failure(l->control, &err, "descriptors");
        _exit(1);
    }
    if (chdir(spec->cwd) < 0) {
        err_sys(&err, "enter %s", spec->cwd);
        give_up(&err, "filesystem", "working folder");
    }
    default_signals();
    if (!jail_off(spec, rlimits) && jail_rlimits_apply(spec, &err) < 0)
        give_up(&err, "resources", "rlimits");
    if (!jail_off(spec, nnp) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        err_sys(&err, "no_new_privs");
        give_up(&err, "process", "no_new_privs");
    }
    if (!jail_off(spec, caps) && jail_caps_drop(spec, &err) < 0)
        give_up(&err, "process", "capabilities");
    if (!jail_off(spec, landlock) && jail_landlock_apply(spec, &err) < 0)
        give_up(&err, "filesystem", "landlock");
    if (!jail_off(spec, fds) && jail_fds_close_from(FIRST_FREE, &err) < 0)
        give_up(&err, "process", "descriptors");
    jail_attest_network(&proof);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* again: a change of credentials clears it */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
        err_sys(&err, "not dumpable");
        give_up(&err, "process", "dumpable");
    }
    if (!jail_off(spec, seccomp) && jail_seccomp_apply(spec, &listener, &err) < 0)
        give_up(&err, "syscalls", "seccomp");

    jail_attest_after(&proof, spec, STATUS);
    if (jail_attest_send(&proof, CONTROL, listener) < 0)
        _exit(1); /* the supervisor is gone */
    if (listener < 0 || spec->limits.processes > 0)
        wait_for_go();
    /* Otherwise the exec itself waits: its notification is the one that the supervisor lets continue
     * once it has judged the proof. Streams apart, every descriptor is close-on-exec. */
    execve(spec->program, (char *const *)spec->argv, (char *const *)spec->env);
    err_sys(&err, "%s", spec->program);
    give_up(&err, "", "exec");
}
