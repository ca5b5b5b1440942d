/* SPDX-License-Identifier: Apache-2.0 */
/* The native filters in a real kernel: what is denied, what is seen of it, and which programs live.
 * No namespaces and no Landlock here, so that a pass is the filter's own. */
#include "base/tap.h"
#include "jail/decode.h"
#include "jail/filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What one run left behind. */
struct outcome {
    int status; /* of waitpid */
    unsigned seen;
    char lines[64][JAIL_DECODE_LINE];
};

static ssize_t read_guest(void *ctx, uint64_t addr, void *buf, size_t len)
{
    struct iovec to = {buf, len}, from = {(void *)(uintptr_t)addr, len};
    return process_vm_readv(*(pid_t *)ctx, &to, 1, &from, 1, 0);
}

/* Answers one notification: the first ALLOW_EXECS execves go on, everything else is EPERM. */
static void answer(int listener, const struct jail_filter *f, unsigned *allow_execs,
                   struct outcome *out)
{
    struct seccomp_notif req = {0};
    struct seccomp_notif_resp resp = {0};
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &req) != 0)
        return;
    resp.id = req.id;
    const struct jail_call *call = jail_filter_call(f, req.data.nr);
    if (req.data.nr == __NR_execve && *allow_execs) {
        --*allow_execs;
        resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else if (req.data.nr == __NR_exit_group || /* a last look, then it goes on */
               (req.data.nr == __NR_fcntl &&     /* a lock, which the supervisor counts */
                (req.data.args[1] == F_SETLK || req.data.args[1] == F_SETLKW))) {
        resp.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
    } else {
        pid_t pid = (pid_t)req.pid;
        jail_decode_reader rd = {read_guest, &pid};
        char line[JAIL_DECODE_LINE];
        jail_decode(&req.data, call ? jail_call_name(f, call) : "?", &rd, line, sizeof line);
        if (!jail_decode_routine(line) && out->seen++ < 64)
            snprintf(out->lines[out->seen - 1], sizeof out->lines[0], "%s", line);
        resp.error = -EPERM;
    }
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

#define PATIENCE_MS 60000 /* without a sign of life from a program */

/* Runs BODY in a child under the filter, and answers for it until it ends. */
static bool run(const char *name, void (*body)(void *), void *ctx, unsigned allow_execs,
                struct outcome *out)
{
    const struct jail_filter *f = jail_filter_find(name);
    int to_parent[2], to_child[2];
    memset(out, 0, sizeof *out);
    if (!f || pipe2(to_parent, O_CLOEXEC) || pipe2(to_child, O_CLOEXEC))
        return false;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct sock_fprog prog = {f->len, (struct sock_filter *)(uintptr_t)f->insns};
        char go;
        dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 1);
        dup2(1, 2);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        int fd = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                              SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
        if (write(to_parent[1], &fd, sizeof fd) != sizeof fd || read(to_child[0], &go, 1) != 1)
            _exit(99);
        close(fd);
        body(ctx);
        _exit(0);
    }
    int their = -1, listener = -1;
    int pidfd = (int)syscall(__NR_pidfd_open, pid, 0);
    if (read(to_parent[0], &their, sizeof their) == (ssize_t)sizeof their && their >= 0)
        listener = (int)syscall(__NR_pidfd_getfd, pidfd, their, 0);
    if (listener < 0)
        kill(pid, SIGKILL);
    else if (write(to_child[1], "g", 1) != 1)
        kill(pid, SIGKILL);
    close(to_parent[0]);
    close(to_parent[1]);
    close(to_child[0]);
    close(to_child[1]);
    struct pollfd p[2] = {{pidfd, POLLIN, 0}, {listener, POLLIN, 0}};
    while (poll(p, 2, (int)(PATIENCE_MS * tap_slow())) > 0) {
        if (p[1].revents & POLLIN)
            answer(listener, f, &allow_execs, out);
        else if (p[1].revents) /* nobody is left under the filter */
            p[1].fd = -1;
        if (p[0].revents)
            break;
    }
    if (!p[0].revents)
        kill(pid, SIGKILL);
    waitpid(pid, &out->status, 0);
    close(pidfd);
    if (listener >= 0)
        close(listener);
    return listener >= 0;
}

/* --- Denials -------------------------------------------------------------------------------------
 */

static struct sockaddr_in dns; /* 8.8.8.8:53 */
static char big_path[4096];

struct attempt {
    const char *line; /* what the supervisor must see; NULL: nothing */
    int error;
    long (*act)(void);
};

static long try_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}
static long try_connect(void)
{
    return connect(0, (struct sockaddr *)&dns, sizeof dns);
}
static long try_bind(void)
{
    return bind(0, (struct sockaddr *)&dns, sizeof dns);
}
static long try_listen(void)
{
    return listen(0, 1);
}
static long try_accept(void)
{
    return accept4(0, NULL, NULL, SOCK_CLOEXEC);
}
static long try_execve(void)
{
    return execl("/bin/sh", "sh", NULL);
}
static long try_clone(void)
{
    return syscall(__NR_clone, SIGCHLD, 0, 0, 0, 0);
}
static long try_namespace(void)
{
    return syscall(__NR_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);
}
static long try_clone3(void)
{
    return syscall(__NR_clone3, NULL, 0);
}
static long try_ptrace(void)
{
    return ptrace(PTRACE_ATTACH, 1, NULL, NULL);
}
static long try_mount(void)
{
    return mount("proc", "/x", "proc", 0, NULL);
}
static long try_umount(void)
{
    return umount2("/x", 0);
}
static long try_chroot(void)
{
    return chroot("/");
}
static long try_reboot(void)
{
    return reboot(RB_DISABLE_CAD);
}
static long try_kexec(void)
{
    return syscall(__NR_kexec_load, 0, 0, NULL, 0);
}
static long try_unshare(void)
{
    return unshare(CLONE_NEWUSER);
}
static long try_uring(void)
{
    return syscall(__NR_io_uring_setup, 1, NULL);
}
static long try_setuid_file(void)
{
    return openat(AT_FDCWD, "/tmp/x", O_CREAT | O_WRONLY | O_CLOEXEC, 04755);
}
static long try_chmod(void)
{
    return chmod("/tmp", 04755);
}
static long try_tiocsti(void)
{
    return ioctl(0, TIOCSTI, "x");
}
static long try_ficlone(void)
{
    return ioctl(0, 0x40049409, 0);
}
static long try_openat2(void)
{
    return syscall(437, AT_FDCWD, "/", NULL, 0);
}
static long try_new_call(void)
{
    return syscall(600);
}
static long try_memfd(void)
{
    return syscall(__NR_memfd_create, "x", 0);
}
static long try_bad_pointer(void)
{
    return syscall(__NR_connect, 0, (void *)8, 16);
}
static long try_long_path(void)
{
    return chroot(big_path);
}
static long try_seccomp(void)
{
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
}
static long try_nice(void)
{
    return nice(-20);
}
static long try_setxattr(void)
{
    return syscall(__NR_setxattr, "/tmp", "user.x", "", 0, 0);
}

static const struct attempt attempts[] = {
    {"socket AF_INET SOCK_STREAM", EPERM, try_socket},
    {"connect AF_INET 8.8.8.8:53", EPERM, try_connect},
    {"bind AF_INET 8.8.8.8:53", EPERM, try_bind},
    {"listen fd 0", EPERM, try_listen},
    {"accept4 fd 0", EPERM, try_accept},
    {"execve /bin/sh", EPERM, try_execve},
    {"clone process", EPERM, try_clone},
    {"clone NEWUSER|NEWNS", EPERM, try_namespace},
    {NULL, ENOSYS, try_clone3},
    {"ptrace ATTACH 1", EPERM, try_ptrace},
    {"mount proc /x type proc", EPERM, try_mount},
    {"umount2 /x", EPERM, try_umount},
    {"chroot /", EPERM, try_chroot},
    {"reboot 0x0", EPERM, try_reboot},
    {"kexec_load", EPERM, try_kexec},
    {"unshare NEWUSER", EPERM, try_unshare},
    {"io_uring_setup", EPERM, try_uring},
    {"openat /tmp/x mode 04755", EPERM, try_setuid_file},
    {NULL, EPERM, try_chmod}, /* chmod or fchmodat, as the architecture has it */
    {"ioctl TIOCSTI", EPERM, try_tiocsti},
    {NULL, ENOTTY, try_ficlone},
    {NULL, ENOSYS, try_openat2},
    {NULL, ENOSYS, try_new_call},
    {"memfd_create x", EPERM, try_memfd},
    {"connect ?", EPERM, try_bad_pointer},
    {NULL, EPERM, try_long_path},
    {"prctl SET_SECCOMP 1", EPERM, try_seccomp},
    {NULL, EOPNOTSUPP, try_setxattr},
};
#define N_ATTEMPTS (sizeof attempts / sizeof *attempts)

static int results[2]; /* a pipe: the child tells what errno it saw */

static void attempt_all(void *ctx)
{
    (void)ctx;
    for (size_t i = 0; i < N_ATTEMPTS; i++) {
        errno = 0;
        long r = attempts[i].act();
        int e = r == -1 ? errno : 0;
        if (write(results[1], &e, sizeof e) != sizeof e)
            _exit(1);
    }
}

static bool was_seen(const struct outcome *o, const char *line)
{
    for (unsigned i = 0; i < o->seen && i < 64; i++)
        if (strcmp(o->lines[i], line) == 0)
            return true;
    return false;
}

static void denials(void)
{
    static struct outcome o;
    dns.sin_family = AF_INET;
    dns.sin_port = htons(53);
    inet_pton(AF_INET, "8.8.8.8", &dns.sin_addr);
    memset(big_path, 'p', sizeof big_path - 1);
    if (pipe2(results, O_CLOEXEC) ||
        !tap_ok(run("exec", attempt_all, NULL, 0, &o), "the filter exec is loaded"))
        return;
    close(results[1]);
    for (size_t i = 0; i < N_ATTEMPTS; i++) {
        int e = -1;
        if (read(results[0], &e, sizeof e) != sizeof e)
            e = -1;
        const char *line = attempts[i].line;
        tap_eq_int(e, attempts[i].error, "attempt %zu fails as it should: %s", i,
                   line ? line : "-");
        if (line)
            tap_ok(was_seen(&o, line), "seen: %s", line);
    }
    close(results[0]);
    tap_ok(WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0, "the guest went on after each EPERM");
}

/* A listener that is gone: ENOSYS, and no hang. */
static void without_listener(void)
{
    const struct jail_filter *f = jail_filter_find("exec");
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct sock_fprog prog = {f->len, (struct sock_filter *)(uintptr_t)f->insns};
        alarm(10);
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        int fd = (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
                              SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
        close(fd);
        _exit(fd >= 0 && try_socket() == -1 && errno == ENOSYS ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    tap_eq_int(status, 0, "without its listener a notified call is ENOSYS and does not hang");
}

static void body_threads(void *ctx)
{
    (void)ctx;
    pthread_t t;
    int sv[2];
    char c = 0;
    if (pthread_create(&t, NULL, (void *(*)(void *))(uintptr_t)getpid, NULL) ||
        pthread_join(t, NULL))
        _exit(1);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) || send(sv[0], "x", 1, 0) != 1 ||
        recv(sv[1], &c, 1, 0) != 1)
        _exit(2);
    errno = 0;
    if (try_nice() != -1 && geteuid() != 0) /* real root may: the jail never runs it */
        _exit(3);
    _exit(c == 'x' ? 0 : 4);
}

static void small(const char *filter, void (*body)(void *), const char *what)
{
    static struct outcome o;
    bool loaded = run(filter, body, NULL, 0, &o);
    tap_ok(loaded && WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0, "%s: %s", filter, what);
}

/* --- Programs ------------------------------------------------------------------------------------
 */

/* All of them must end well, and nothing of them may be seen. */
static const struct program {
    const char *filter;
    bool optional; /* not among the packages that scripts/setup installs */
    const char *argv[4];
    const char *needs; /* where that is not argv[0]: machines that only run programs lack it */
} programs[] = {
    {"exec", false, {"/bin/true"}},
    {"exec", false, {"/bin/cat", "/etc/passwd"}},
    {"exec", false, {"/bin/ls", "-l", "/"}},
    {"exec", false, {"/bin/ls", "-aR", "/etc/alternatives"}},
    {"exec", false, {"/usr/bin/id"}},
    {"exec", false, {"/usr/bin/sort", "/etc/passwd"}},
    {"exec", false, {"/bin/cp", "/etc/passwd", "/dev/null"}},
    {"exec", false, {"/usr/bin/perl", "-e", "print join ',', map { $_ * 2 } 1..9"}},
    {"exec", false, {"/bin/bash", "-c", "a=(1 2 3); echo ${#a[@]}; [[ -d / ]]"}},
    {"exec",
     false,
     {"/usr/bin/python3", "-Ic",
      "import asyncio, mmap, os, resource, shutil, signal, sqlite3, tempfile, threading, time\n"
      "t = threading.Thread(target=print); t.start(); t.join()\n"
      "d = tempfile.TemporaryDirectory(); c = sqlite3.connect(d.name + '/a.db')\n"
      "c.execute('create table t(x)'); c.execute('insert into t values(1)'); c.commit()\n"
      "c.close(); asyncio.run(asyncio.sleep(0)); mmap.mmap(-1, 4096); os.nice(0)\n"
      "shutil.copytree('/etc/alternatives', d.name + '/b', symlinks=True)\n"
      "shutil.copy2('/etc/passwd', d.name); os.chmod(d.name + '/passwd', 0o600)\n"
      "signal.setitimer(signal.ITIMER_REAL, 30); resource.getrlimit(resource.RLIMIT_AS)\n"
      "os.sched_getaffinity(0); os.mkfifo(d.name + '/f'); time.sleep(0); d.cleanup()\n"}},
    {"exec",
     true,
     {"/usr/bin/node", "-e",
      "const fs = require('fs'), {Worker} = require('worker_threads');"
      "setTimeout(() => fs.promises.readdir('/etc').then(() => new Worker('1', {eval: true})), "
      "1)"}},
    {"exec", true, {"/usr/bin/ruby", "-e", "Thread.new { puts 1 }.join; File.read('/etc/passwd')"}},
    {"exec-procs", false, {"/bin/true"}},
    {"exec-procs", false, {"/bin/sh", "-c", "ls / | wc -l && sort /etc/passwd | head -1"}},
    {"exec-procs", false, {"/bin/bash", "-c", "x=$(seq 1 9 | tr '\\n' ,); (sleep 0) & wait"}},
    {"exec-procs", false, {"/usr/bin/perl", "-e", "my $x = `echo 1`; exit system('/bin/true')"}},
    {"exec-procs",
     false,
     {"/usr/bin/python3", "-Ic",
      "import subprocess, os, multiprocessing as m\n"
      "assert subprocess.run(['/bin/echo', 'a'], capture_output=True).stdout == b'a\\n'\n"
      "assert os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)[1] == 0\n"
      "with m.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]\n"}},
    {"exec-procs",
     false,
     {"/bin/sh", "-c",
      "d=$(mktemp -d); echo 'int main(void) { return 0; }' >$d/a.c; cc -o $d/a $d/a.c && $d/a;"
      " r=$?; rm -r $d; exit $r"},
     "/usr/bin/cc"},
};

static void body_program(void *ctx)
{
    const struct program *p = ctx;
    const char *const env[] = {"PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", NULL};
    if (p->argv[0])
        execve(p->argv[0], (char **)(uintptr_t)p->argv, (char **)(uintptr_t)env);
    _exit(98);
}

static void live_programs(void)
{
    static struct outcome o;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const struct program *p = &programs[i];
        const char *needs = p->needs ? p->needs : p->optional ? p->argv[0] : NULL;
        if (needs && access(needs, X_OK) != 0) {
            printf("# not on this machine: %s\n", needs);
            continue;
        }
        struct program copy = *p;
        bool loaded = run(p->filter, body_program, &copy, 1, &o);
        bool good = loaded && WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0;
        good &= o.seen == 0;
        tap_ok(good, "%s: %s %.20s", p->filter, p->argv[0], p->argv[1] ? p->argv[1] : "");
        if (!good)
            printf("# status 0x%x\n", o.status);
        for (unsigned k = 0; k < o.seen && k < 64; k++)
            printf("# seen: %s\n", o.lines[k]);
    }
}

int main(void)
{
    if (syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &(uint32_t){SECCOMP_RET_USER_NOTIF})) {
        tap_skip("filters are loaded by the kernel", "this kernel has no user notification (5.0)");
        return tap_done();
    }
    denials();
    without_listener();
    small("exec", body_threads, "threads and socket pairs work, nice(-20) does not");
    live_programs();
    return tap_done();
}
