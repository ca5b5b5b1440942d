/* SPDX-License-Identifier: Apache-2.0 */
/* A signal in the midst of a call that is being judged. Since Linux 5.19 the caller waits for the answer and nothing but
 * its death comes between; before, any handled signal takes the call back, and the answer finds nobody. The test build can
 * have the older behaviour on a newer kernel (CORDON_TEST_OFF=wait_killable), and both are shown here: a thread of this
 * process takes the filter, this one judges. Usage: test_killable [ROUNDS] */
#include "base/tap.h"
#include "jail/inside.h"
#include "sys/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct caller {
    struct jail_spec spec;
    struct err err;
    int listener, error; /* of its call */
    pid_t tid;
    sem_t locked;
};

static atomic_int handled;

static void on_signal(int nr)
{
    (void)nr;
    handled++;
}

static void *call(void *arg)
{
    struct caller *c = arg;
    c->tid = (pid_t)syscall(SYS_gettid);
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                ? err_sys(&c->err, "no_new_privs")
                : jail_seccomp_apply(&c->spec, &c->listener, &c->err);
    sem_post(&c->locked);
    if (r == 0)
        c->error = syscall(SYS_connect, 0, "", 1) < 0 ? errno : 0;
    return NULL;
}

/* 'D' where nothing but death wakes the thread, 'S' where any signal does. */
static char state_of(pid_t tid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state;
}

/* Lets one call wait for its answer, signals the caller, and answers once that has had its effect. */
static void one_call(unsigned long switches, bool waits_for_kill, const char *name)
{
    struct caller c = {.listener = -1};
    union sys_notice in;
    pthread_t thread;
    int before = handled;
    jail_spec_init(&c.spec);
    c.spec.filter = "exec";
    c.spec.switches = switches;
    sem_init(&c.locked, 0, 0);
    if (pthread_create(&thread, NULL, call, &c) != 0) {
        tap_ok(false, "%s: a thread is started", name);
        return;
    }
    sem_wait(&c.locked);
    bool received = c.listener >= 0 && sys_listener_receive(c.listener, &in) == 0;
    tap_ok(received && in.notif.data.nr == SYS_connect, "%s: the call waits for an answer (%s)",
           name, c.err.msg);
    if (received) {
        pthread_kill(thread, SIGUSR1);
        while (handled == before && state_of(c.tid) != 'D')
            sched_yield();
        tap_ok((handled == before) == waits_for_kill, "%s: the signal %s", name,
               waits_for_kill ? "waits until the call is answered" : "interrupts the call");
        tap_ok(sys_listener_holds(c.listener, in.notif.id) == waits_for_kill, "%s: the call %s",
               name, waits_for_kill ? "is still there" : "is gone");
        int r = sys_listener_answer(c.listener, in.notif.id, EPERM, 0);
        tap_ok(waits_for_kill ? r == 0 : r < 0 && errno == ENOENT, "%s: the answer %s", name,
               waits_for_kill ? "arrives" : "finds nobody, which is ENOENT and no fault");
    }
    pthread_join(thread, NULL);
    tap_eq_int(c.error, waits_for_kill ? EPERM : EINTR, "%s: the caller is told %s", name,
               waits_for_kill ? "EPERM" : "EINTR");
    tap_eq_int(handled, before + 1, "%s: the handler has run once", name);
    if (c.listener >= 0)
        close(c.listener);
    sem_destroy(&c.locked);
}

/* Makes an exec of a file that is not there, under the filter, and tells its listener before. 0: the exec was let pass. */
static int exec_under_filter(int tell)
{
    struct err err = {0};
    struct jail_spec spec;
    int listener = -1;
    char *none[] = {NULL};
    jail_spec_init(&spec);
    spec.filter = "exec";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        jail_seccomp_apply(&spec, &listener, &err) < 0 ||
        write(tell, &listener, sizeof listener) != sizeof listener)
        return 2;
    syscall(SYS_execve, "/nowhere/at/all", none, none);
    return errno == ENOENT ? 0 : 3;
}

static pid_t signals_for(pid_t caller)
{
    enum { SIGNALS = 30 };
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    for (int n = 0; n < SIGNALS && kill(caller, SIGUSR1) == 0; n++)
        sched_yield();
    _exit(0);
}

/* Signals that the launcher handles arrive one after the other: its exec is taken back and made again, and is let pass
 * all the same. A call that is taken back between poll and receive was once told as the launcher's death. */
static void exec_taken_back(int rounds)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &a, NULL);
    int passed = 0, tell[2];
    struct err err = {0};
    if (pipe2(tell, O_CLOEXEC) < 0)
        return;
    for (int i = 0; i < rounds; i++) {
        int listener = -1, status = -1;
        /* it shares our descriptors: under the filter it could send none */
        pid_t caller = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
        if (caller == 0)
            _exit(exec_under_filter(tell[1]));
        if (caller < 0 || read(tell[0], &listener, sizeof listener) != sizeof listener)
            break;
        pid_t signaller = signals_for(caller);
        int r = jail_seccomp_let_exec(listener, &err);
        if (r < 0)
            kill(caller, SIGKILL);
        waitpid(signaller, NULL, 0);
        close(listener); /* its end would be judged too */
        waitpid(caller, &status, 0);
        passed += r == 0 && status == 0;
    }
    tap_eq_int(passed, rounds,
               "an exec that signals take back is let pass when it is made again (%s)", err.msg);
    close(tell[0]);
    close(tell[1]);
}

int main(int argc, char **argv)
{
    struct sigaction a = {.sa_handler =
                              on_signal}; /* no SA_RESTART: the call would be tried again */
    sigaction(SIGUSR1, &a, NULL);
    one_call(0, true, "this kernel");
#ifdef CORDON_LAYER_SWITCHES
    one_call(1UL << JAIL_SWITCH_COUNT, false, "a kernel before 5.19, simulated");
#endif
    exec_taken_back(argc > 1 ? (int)strtol(argv[1], NULL, 10) : 2000);
    return tap_done();
}
