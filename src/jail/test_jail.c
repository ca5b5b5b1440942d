/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the jail that can be looked at without building one: limits, identities, scratch
 * folders, the judge of a proof, and binds that must be refused. */
#include "base/tap.h"
#include "jail/attest.h"
#include "jail/outside.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void limits(void)
{
    struct jail_spec s;
    struct err err = ERR_INIT;
    jail_spec_init(&s);
    tap_eq_int(jail_spec_check(&s, &err), 0, "the defaults make sense");
    s.limits.memory = 1;
    tap_ok(jail_spec_check(&s, &err) == ERR_USAGE && strstr(err.msg, "--memory: 1 byte"),
           "a memory limit of one byte is refused by name");
    jail_spec_init(&s);
    s.limits.wall_ms = UINT64_MAX;
    tap_ok(jail_spec_check(&s, &err) == ERR_USAGE && strstr(err.msg, "--timeout"),
           "a time limit of 2^64 - 1 ms is refused by name");
    jail_spec_init(&s);
    s.limits.descriptors = 3;
    tap_ok(jail_spec_check(&s, &err) == ERR_USAGE && strstr(err.msg, "--descriptors"),
           "a limit of three descriptors is refused by name");
    jail_spec_init(&s);
    s.mode = JAIL_LANDLOCK;
    s.limits.processes = 1;
    tap_ok(jail_spec_check(&s, &err) == ERR_USAGE && strstr(err.msg, "landlock"),
           "processes are refused in landlock mode, which could not end them");
}

/* What a launcher proves in a good jail. */
static struct jail_proof good_proof(void)
{
    return (struct jail_proof){
        .namespaces = {11, 0, 0, 0, 15, 0, 17},
        .pid = 2,
        .uid = 1000,
        .root = 99,
        .quota = LIMIT_DISK,
        .name = JAIL_HOSTNAME,
        .acts = {[JAIL_ACT_seal_open] = EACCES,
                 [JAIL_ACT_root_write] = EROFS,
                 [JAIL_ACT_host_file] = ENOENT,
                 [JAIL_ACT_denied_call] = EPERM,
                 [JAIL_ACT_high_dup] = EBADF,
                 [JAIL_ACT_udp] = ENETUNREACH,
                 [JAIL_ACT_leftover] = 1,
                 [JAIL_ACT_signal_up] = EPERM},
        .status = "NSpid:\t9\t2\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
                  "CapBnd:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"};
}

/* Each row breaks one thing of a good proof and names the layer that must go off. */
static void judge(void)
{
    struct jail_spec spec;
    struct jail_proof own = {.namespaces = {1, 2, 3, 4, 5, 6, 7}, .root = 1, .name = "host"};
    const struct jail_proof good = good_proof();
    struct jail_layers layers;
    struct err err = ERR_INIT;
    jail_spec_init(&spec);
    tap_eq_int(jail_attest_judge(&good, &spec, &own, &layers, &err), 0, "a good proof is believed");
    for (int i = 0; i < JAIL_LAYER_COUNT; i++)
        tap_ok(layers.on[i], "%s is on", jail_layer_names[i]);
    enum {
        USER,
        UID,
        PID,
        IPC,
        UTS,
        CAPS,
        NNP,
        FILTER,
        CALL,
        NOFILE,
        QUOTA,
        NET,
        SEAL,
        WRITE,
        ROOT,
        ROWS
    };
    static const struct {
        const char *what;
        enum jail_layer layer;
    } rows[ROWS] = {
        [USER] = {"the host's user namespace", JAIL_LAYER_PROCESS},
        [UID] = {"another id", JAIL_LAYER_PROCESS},
        [PID] = {"a pid of the host", JAIL_LAYER_PROCESS},
        [IPC] = {"the host's ipc namespace", JAIL_LAYER_PROCESS},
        [UTS] = {"the host's name", JAIL_LAYER_PROCESS},
        [CAPS] = {"a capability", JAIL_LAYER_PROCESS},
        [NNP] = {"no_new_privs off", JAIL_LAYER_PROCESS},
        [FILTER] = {"no filter", JAIL_LAYER_SYSCALLS},
        [CALL] = {"a call that was not denied", JAIL_LAYER_SYSCALLS},
        [NOFILE] = {"a descriptor past the limit", JAIL_LAYER_RESOURCES},
        [QUOTA] = {"a file system that does not count", JAIL_LAYER_RESOURCES},
        [NET] = {"a way to an address", JAIL_LAYER_NETWORK},
        [SEAL] = {"a sealed file that opened", JAIL_LAYER_FILESYSTEM},
        [WRITE] = {"a root that can be written", JAIL_LAYER_FILESYSTEM},
        [ROOT] = {"the host's root", JAIL_LAYER_FILESYSTEM},
    };
    for (int i = 0; i < ROWS; i++) {
        struct jail_proof p = good;
        switch (i) {
        case USER:
            p.namespaces[0] = own.namespaces[0];
            break;
        case UID:
            p.uid = 0;
            break;
        case PID:
            p.pid = 4711;
            break;
        case IPC:
            p.namespaces[4] = own.namespaces[4];
            break;
        case UTS:
            memcpy(p.name, "host", 5);
            break;
        case CAPS:
            p.status[strlen("NSpid:\t9\t2\nCapPrm:\t") + 15] = '1';
            break;
        case NNP:
            *(strstr(p.status, "NoNewPrivs:\t1") + 12) = '0';
            break;
        case FILTER:
            *(strstr(p.status, "Seccomp:\t2") + 9) = '0';
            break;
        case CALL:
            p.acts[JAIL_ACT_denied_call] = EFAULT;
            break;
        case NOFILE:
            p.acts[JAIL_ACT_high_dup] = 0;
            break;
        case QUOTA:
            p.quota = 10 * LIMIT_DISK;
            break;
        case NET:
            p.acts[JAIL_ACT_udp] = 0;
            break;
        case SEAL:
            p.acts[JAIL_ACT_seal_open] = 0;
            break;
        case WRITE:
            p.acts[JAIL_ACT_root_write] = 0;
            break;
        default:
            p.root = own.root;
        }
        int r = jail_attest_judge(&p, &spec, &own, &layers, &err);
        tap_ok(r == ERR_MISSING && !layers.on[rows[i].layer] &&
                   strcmp(err.layer, jail_layer_names[rows[i].layer]) == 0,
               "%s turns %s off", rows[i].what, jail_layer_names[rows[i].layer]);
    }
}

/* A child has no program of its own to compare with: what its template is tells that it is another. */
static void judge_child(void)
{
    struct jail_spec spec;
    struct jail_layers layers;
    struct err err = ERR_INIT;
    struct jail_proof own = {.namespaces = {1, 2, 3, 4, 5, 6, 7}, .root = 99, .queue = 1};
    struct jail_proof good = good_proof();
    good.namespaces[0] = good.namespaces[4] = 0; /* its template's */
    good.acts[JAIL_ACT_queue] = EINVAL;
    jail_spec_init(&spec);
    spec.kind = JAIL_KIND_CHILD;
    tap_eq_int(jail_attest_judge(&good, &spec, &own, &layers, &err), 0,
               "a child's proof is believed");
    struct jail_proof p = good;
    p.acts[JAIL_ACT_queue] = 0;
    tap_ok(jail_attest_judge(&p, &spec, &own, &layers, &err) < 0 && !layers.on[JAIL_LAYER_PROCESS],
           "a child's proof that finds its template's message queue is refused");
    p = good;
    p.uid = own.uid;
    tap_ok(jail_attest_judge(&p, &spec, &own, &layers, &err) < 0 && !layers.on[JAIL_LAYER_PROCESS],
           "a child's proof with its template's user id is refused");
    p = good;
    p.acts[JAIL_ACT_host_file] = 0;
    tap_ok(jail_attest_judge(&p, &spec, &own, &layers, &err) < 0 &&
               !layers.on[JAIL_LAYER_FILESYSTEM],
           "a child's proof that opens a folder of the host is refused");
    p = good;
    p.quota = 0;
    tap_ok(jail_attest_judge(&p, &spec, &own, &layers, &err) < 0 &&
               !layers.on[JAIL_LAYER_RESOURCES],
           "a child's proof without files of its own is refused");
}

/* A folder a thousand deep, with closed folders, links and fifos in it, is gone without recursion
 * and without touching what a link points to. */
static void scratch(void)
{
    struct jail_identity id = {.uid = geteuid(), .gid = getegid()};
    struct err err = ERR_INIT;
    struct stat st;
    char path[512], target[] = "/tmp/cordon-test-target-XXXXXX";
    int keep = mkstemp(target);
    struct jail_janitor janitor = {0};
    tap_ok(keep >= 0 && jail_janitor_start(&janitor, &err) == 0 &&
               jail_scratch_make(&id, &janitor, path, sizeof path, &err) == 0,
           "a folder is made, and the janitor is told of it");
    FD_AUTO dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FD_AUTO deep = openat(dir, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool made = deep >= 0;
    for (int i = 0; i < 1000 && made; i++) {
        int next = -1;
        made = mkdirat(deep, "d", 0700) == 0 && symlinkat(target, deep, "link") == 0 &&
               (next = openat(deep, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0;
        fd_close(deep);
        deep = next;
    }
    made = made && mkfifoat(deep, "fifo", 0600) == 0 && mkdirat(deep, "shut", 0700) == 0 &&
           mkdirat(deep, "shut/inner", 0700) == 0 && fchmodat(deep, "shut", 0, 0) == 0;
    tap_ok(made, "a folder is filled with folders, a thousand levels deep");
    jail_janitor_finish(&janitor);
    for (int i = 0; i < 20 && stat(path, &st) == 0; i++)
        jail_scratch_remove(
            path); /* each gives up after seconds: an emulated machine needs several */
    tap_ok(stat(path, &st) < 0 && errno == ENOENT,
           "a folder with a thousand levels below it is removed");
    tap_ok(fstat(keep, &st) == 0 && st.st_nlink == 1 && (st.st_mode & 0777) == 0600,
           "a file that links in a removed folder pointed to is as it was");
    unlink(target);
    fd_close(keep);
}

/* Somebody makes folders as fast as they are removed: whoever empties the folder stops at its time, not at the end of them. */
static void endless_folders(void)
{
    char path[] = "/tmp/cordon-test-endless-XXXXXX";
    FD_AUTO dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const pid_t maker = dir < 0 ? -1 : fork();
    if (maker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (unsigned long i = 0;; i = (i + 1) % 100000) {
            char name[32];
            snprintf(name, sizeof name, "made-%lu", i);
            (void)!mkdirat(dir, name, 0700);
        }
    }
    jail_scratch_empty(dir, 200);
    tap_ok(maker > 0 && kill(maker, 0) == 0,
           "emptying a folder ends though somebody goes on filling it");
    if (maker > 0) {
        kill(maker, SIGKILL);
        waitpid(maker, NULL, 0);
    }
    jail_scratch_remove(path);
    tap_ok(access(path, F_OK) < 0, "a folder that nobody fills any more is removed");
}

static void stop_in_child(void)
{
    raise(SIGSTOP);
}

/* A janitor that was doubled is killed, stopped, or left alone: the folder that it was told of is gone afterwards, and its
 * owner need not do anything, as one that has given up root cannot. */
static void second_janitor(void)
{
    static const struct {
        int signal;
        const char *what;
    } rows[] = {{0, "left alone"}, {SIGKILL, "killed"}, {SIGSTOP, "stopped"}};
    struct jail_identity id = {.uid = geteuid(), .gid = getegid()};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct jail_janitor j = {0};
        struct err err = ERR_INIT;
        struct stat st;
        char path[512] = "";
        tap_ok(jail_janitor_start(&j, &err) == 0 &&
                   jail_scratch_make(&id, &j, path, sizeof path, &err) == 0 &&
                   jail_janitor_double(&j, &err) == 0,
               "a janitor that is doubled: %s", err.msg);
        if (rows[i].signal)
            kill(j.pid, rows[i].signal);
        tap_ok(jail_janitor_finish(&j) && stat(path, &st) < 0 && errno == ENOENT,
               "what a doubled janitor was told of is removed where it is %s", rows[i].what);
    }
}

/* Whenever the janitor is stopped, its supervisor goes on, and what was told is removed by one of them. */
static void stopped_janitor(void)
{
    struct jail_janitor j = {0};
    struct err err = ERR_INIT;
    tap_ok(jail_janitor_start(&j, &err) == 0, "a janitor starts");
    pid_t pid = j.pid;
    kill(pid, SIGSTOP);
    tap_ok(jail_janitor_tell(&j, -1, "/nowhere", &err) < 0 && strstr(err.msg, "stopped"),
           "a janitor that is stopped when it is told something is an error: %s", err.msg);
    tap_ok(!jail_janitor_finish(&j) && kill(pid, 0) < 0,
           "a stopped janitor is killed by its owner, and cleaned up nothing");
    tap_ok(jail_janitor_start(&j, &err) == 0 && jail_janitor_tell(&j, -1, "/nowhere", &err) == 0,
           "another janitor starts and is told of a folder");
    pid = j.pid;
    kill(pid, SIGSTOP);
    tap_ok(!jail_janitor_finish(&j) && kill(pid, 0) < 0,
           "a janitor that is stopped when it is to clean up is killed, and its work left to us");
    second_janitor();
    pthread_atfork(NULL, NULL, stop_in_child); /* from here on every child of fork stops */
    tap_ok(jail_janitor_start(&j, &err) < 0 && j.pid == 0 && waitpid(-1, NULL, WNOHANG) < 0,
           "a janitor that is stopped before its first word is an error, and gone: %s", err.msg);
}

static void binds(void)
{
    static const struct {
        struct jail_bind bind;
        const char *says;
    } rows[] = {
        {{"/nonexistent", "/x", false}, "/nonexistent"},
        {{"/usr", "x", false}, "absolute"},
        {{"/usr", "/", false}, "absolute"},
        {{"/usr", "/a/../b", false}, "absolute"},
        {{"/usr", "/proc/x", false}, "belongs to the jail"},
        {{"/usr", "/live", false}, "belongs to the jail"},
        {{"/usr", "/.fd", false}, "belongs to the jail"},
        {{"/dev/null", "/x", false}, "neither a folder"},
        {{"/proc/self/root", "/x", false}, "/proc/self/root"},
        {{"/proc/self/cwd", "/x", true}, "symbolic link"},
    };
    struct jail_identity id = {.uid = geteuid(), .gid = getegid()};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct jail_bind b = rows[i].bind;
        struct jail_spec spec = {.binds = &b, .nbinds = 1};
        struct err err = ERR_INIT;
        int fd = -1;
        tap_ok(jail_binds_open(&spec, &id, &fd, &err) == ERR_USAGE && strstr(err.msg, rows[i].says),
               "--%s %s:%s is refused: %s", b.writable ? "rw" : "ro", b.source, b.dest, err.msg);
    }
}

int main(void)
{
    limits();
    judge();
    judge_child();
    scratch();
    endless_folders();
    binds();
    stopped_janitor(); /* the last: no fork after it works */
    return tap_done();
}
