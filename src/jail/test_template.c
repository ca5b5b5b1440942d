/* Templates, children and adopted runs, live. This program is all of it: the holder and supervisor, the template
 * (--template) and, in each child, the guest that does what it is told over its channel.
 * Usage: test_template CORDON-NEST [ROUNDS] */
#include "base/clock.h"
#include "base/tap.h"
#include "jail/child.h"
#include "jail/template.h"
#include "sys/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the guest ---- */

static int kept = 1; /* a variable of the session */

static long result(long r)
{
    return r < 0 ? -errno : r;
}

static void *in_thread(void *p)
{
    *(pid_t *)p = gettid();
    return NULL;
}

static long open_fds(void)
{
    long mask = 0;
    for (int fd = 0; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            mask |= 1L << (fd < 62 ? fd : 62);
    return mask;
}

static long signal_others(void)
{
    long reached = 0;
    for (int pid = 1; pid < 300; pid++)
        if (pid != getpid() && kill(pid, 0) == 0)
            reached++;
    reached += kill(0, 0) == 0;
    reached += kill(-1, 0) == 0;
    return reached;
}

static long save(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    long r = fd < 0 ? -errno : result(write(fd, text, strlen(text)));
    fd_close(fd);
    return r;
}

static long fill_up(void)
{
    static char block[65536];
    int fd = open("/workspace/big", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    while (fd >= 0 && write(fd, block, sizeof block) > 0)
        ;
    return -errno;
}

static long grow(void)
{
    for (int i = 0; i < 4096; i++) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return -errno;
        memset(p, 1, 1 << 20);
    }
    return 0;
}

static long start_thread(void)
{
    pthread_t t;
    pid_t tid = 0;
    int r = pthread_create(&t, NULL, in_thread, &tid);
    if (r == 0)
        pthread_join(t, NULL);
    return r ? -r : tid;
}

static long tid_is_right(void) /* what the C library thinks is its number, and what it is */
{
    int *kept_tid = NULL;
    syscall(SYS_prctl, 40 /* PR_GET_TID_ADDRESS */, &kept_tid);
    return kept_tid && *kept_tid == gettid();
}

static long act(const char *what, const char *arg)
{
    static const char *none[] = {NULL};
    struct stat st;
    if (strcmp(what, "pid") == 0)
        return getpid();
    if (strcmp(what, "uid") == 0)
        return getuid();
    if (strcmp(what, "fds") == 0)
        return open_fds();
    if (strcmp(what, "fork") == 0)
        return result(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
    if (strcmp(what, "branch") == 0)
        return jail_branch_here();
    if (strcmp(what, "thread") == 0)
        return start_thread();
    if (strcmp(what, "tid") == 0)
        return tid_is_right();
    if (strcmp(what, "socket") == 0)
        return result(socket(AF_UNIX, SOCK_DGRAM, 0));
    if (strcmp(what, "inet") == 0)
        return result(socket(AF_INET, SOCK_STREAM, 0));
    if (strcmp(what, "open") == 0)
        return result(open(arg, O_RDONLY | O_CLOEXEC));
    if (strcmp(what, "stat") == 0)
        return result(stat(arg, &st));
    if (strcmp(what, "save") == 0)
        return save(arg, "saved");
    if (strcmp(what, "fill") == 0)
        return fill_up();
    if (strcmp(what, "grow") == 0)
        return grow();
    if (strcmp(what, "signal") == 0)
        return signal_others();
    if (strcmp(what, "mount") == 0)
        return result(mount("x", "/live/tmp", "tmpfs", 0, ""));
    if (strcmp(what, "umount") == 0)
        return result(umount2("/live", MNT_DETACH));
    if (strcmp(what, "setns") == 0)
        return result(unshare(CLONE_NEWUSER));
    if (strcmp(what, "exec") == 0)
        return result(execve("/bin/true", (char *const *)none, (char *const *)none));
    if (strcmp(what, "ptrace") == 0)
        return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    if (strcmp(what, "say") == 0)
        return result(write(1, arg, strlen(arg)));
    if (strcmp(what, "read") == 0) {
        char c = 0;
        return read(0, &c, 1) == 1 ? c : -1;
    }
    if (strcmp(what, "set") == 0)
        return kept = (int)strtol(arg, NULL, 10);
    if (strcmp(what, "get") == 0)
        return kept;
    if (strcmp(what, "abort") == 0)
        abort();
    if (strcmp(what, "exit") == 0)
        _exit((int)strtol(arg, NULL, 10));
    if (strcmp(what, "sleep") == 0)
        return usleep(10000000);
    while (strcmp(what, "spin") == 0)
        ;
    return -ENOENT;
}

static int guest(void *ctx)
{
    char word[256], answer[32];
    (void)ctx;
    if (write(3, "ready", 5) != 5)
        return 1;
    for (ssize_t n; (n = read(3, word, sizeof word - 1)) > 0;) {
        word[n] = 0;
        char *arg = strchr(word, ' ');
        if (arg)
            *arg++ = 0;
        int len = snprintf(answer, sizeof answer, "%ld", act(word, arg ? arg : ""));
        if (write(3, answer, (size_t)len) != len)
            return 1;
    }
    return 0;
}

static int be_template(void)
{
    const struct jail_template_hooks hooks = {.entry = guest};
    struct err err = ERR_INIT;
    int r = jail_template_serve(&hooks, &err);
    if (r < 0)
        fprintf(stderr, "template: %s\n", err.msg);
    return r < 0;
}

/* ---- the holder and supervisor ---- */

static const char *nest;
static char self[4096];

static void print_err(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    (void)ctx, (void)stream;
    printf("# %.*s", (int)len, (const char *)data);
}

static struct jail_template *start_template(void)
{
    const char *argv[] = {"/guest", "--template", NULL}, *env[] = {NULL};
    struct jail_bind bind = {.source = self, .dest = "/guest"};
    struct jail_sink sink = {.bytes = print_err};
    struct jail_template *t = NULL;
    struct jail_spec spec;
    struct err err = ERR_INIT;
    jail_spec_init(&spec);
    spec.kind = JAIL_KIND_TEMPLATE;
    spec.filter = "template";
    spec.program = argv[0];
    spec.cwd = "/";
    spec.argv = argv;
    spec.argc = 2;
    spec.env = env;
    spec.binds = &bind;
    spec.nbinds = 1;
    tap_ok(jail_template_new(&spec, nest, &sink, &t, &err) == 0, "a template starts%s%s",
           err.msg[0] ? ": " : "", err.msg);
    return t;
}

static struct jail_child_plan plan_of(const char *filter, bool session)
{
    struct jail_spec spec;
    jail_spec_init(&spec);
    struct jail_child_plan plan = {
        .tag = 7, .filter = filter, .limits = spec.limits, .session = session};
    plan.limits.threads = strcmp(filter, "python") == 0 ? 0 : 2;
    plan.limits.disk = 1 << 20;
    return plan;
}

static bool order(struct jail_template *t, const struct jail_child_plan *plan, struct jail_child *c)
{
    struct err err = ERR_INIT;
    enum jail_template_event e = JAIL_TEMPLATE_NOTHING;
    if (jail_template_order(t, plan, &err) < 0)
        return tap_ok(false, "an order is taken: %s", err.msg);
    while (e == JAIL_TEMPLATE_NOTHING)
        e = jail_template_step(t, 10000, c, &err);
    if (e == JAIL_TEMPLATE_CHILD)
        return true;
    return tap_ok(false, "a child is born: %s (%s)", err.msg, err.layer);
}

/* A run over a child, word by word. */
struct talk {
    struct jail_run *run;
    int channel;
    char answer[64];
    bool closed;
    char said[256];
    size_t said_len;
};

static void take(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct talk *t = ctx;
    (void)stream;
    size_t room = sizeof t->said - 1 - t->said_len;
    memcpy(t->said + t->said_len, data, len < room ? len : room);
    t->said_len += len < room ? len : room;
}

static bool on_channel(void *ctx)
{
    struct talk *t = ctx;
    ssize_t n = read(t->channel, t->answer, sizeof t->answer - 1);
    t->answer[n > 0 ? n : 0] = 0;
    t->closed |= n <= 0;
    return n > 0;
}

static bool hear(struct talk *t)
{
    while (!t->answer[0] && !t->closed)
        if (jail_run_step(t->run, 10000))
            return false;
    return t->answer[0] != 0;
}

static bool talk_start(struct talk *t, struct jail_child *c, const struct jail_limits *limits,
                       int input)
{
    struct err err = ERR_INIT;
    struct jail_adopt a = {.input = input,
                           .sink = {.ctx = t, .bytes = take, .channel = on_channel}};
    *t = (struct talk){.channel = c->channel};
    if (limits)
        a.limits = *limits;
    int r = jail_run_adopt(c, &a, &t->run, &err);
    return r == 0 || tap_ok(false, "a child is adopted: %s", err.msg);
}

static long ask(struct talk *t, const char *word)
{
    t->answer[0] = 0;
    if (write(t->channel, word, strlen(word)) < 0 || !hear(t))
        return -9999;
    return strtol(t->answer, NULL, 10);
}

static void wait_end(struct talk *t)
{
    while (!jail_run_step(t->run, 10000))
        ;
}

static void talk_end(struct talk *t, struct jail_child *c)
{
    jail_run_free(t->run);
    jail_child_close(c);
}

/* A child that has said ready. */
static bool fresh(struct jail_template *tpl, const char *filter, bool session, struct jail_child *c,
                  struct talk *t, const struct jail_limits *limits)
{
    struct jail_child_plan plan = plan_of(filter, session);
    if (!order(tpl, &plan, c) || !talk_start(t, c, limits, -1))
        return false;
    bool ready = hear(t) && strcmp(t->answer, "ready") == 0;
    t->answer[0] = 0;
    return ready || tap_ok(false, "a child says that it is ready, not '%s'", t->answer);
}

static bool gone(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 10000) == 1;
}

static bool has_rule(const struct jail_run *run, const char *rule)
{
    const struct jail_outcome *o = jail_run_outcome(run);
    for (size_t i = 0; i < o->violation_count; i++)
        if (strcmp(o->violations[i].rule, rule) == 0)
            return true;
    return false;
}

/* ---- what is shown ---- */

static void honest(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct talk t;
    if (!fresh(tpl, "python", false, &c, &t, NULL))
        return;
    tap_eq_int(c.tag, 7, "a child carries the number of its order");
    tap_eq_int(ask(&t, "fds"), 15, "streams and channel are all that is open in it");
    tap_eq_int(ask(&t, "pid"), 2, "it is pid 2");
    tap_eq_int(ask(&t, "uid"), 1000, "and user 1000");
    tap_eq_int(ask(&t, "tid"), 1, "and its C library knows its number");
    tap_eq_int(ask(&t, "save /workspace/a"), 5, "it can write its workspace");
    tap_eq_int(ask(&t, "save /tmp/a"), 5, "and its /tmp");
    tap_eq_int(ask(&t, "say hello"), 5, "it can print");
    struct stat st;
    tap_ok(fstatat(jail_run_files(t.run), "workspace/a", &st, 0) == 0 && st.st_size == 5,
           "its files are seen by descriptor");
    jail_run_end_now(t.run, 7);
    wait_end(&t);
    const struct jail_outcome *o = jail_run_outcome(t.run);
    tap_ok(o->end == JAIL_END_EXIT && o->exit_code == 7, "it ends as its supervisor says");
    tap_eq_str(t.said, "hello", "what it printed is there");
    tap_ok(o->memory > 0 && o->wall_us > 0, "and what it used");
    tap_eq_int(o->violation_count, 0, "nothing was denied");
    for (int i = 0; i < JAIL_LAYER_COUNT; i++)
        tap_ok(o->layers.on[i] && !o->layers.note[i][0], "%s is on", jail_layer_names[i]);
    talk_end(&t, &c);
}

static void ends(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct talk t;
    struct jail_limits short_wall = {.wall_ms = 60}, short_cpu = {.cpu_ms = 60};
    if (fresh(tpl, "python", false, &c, &t, NULL)) {
        tap_ok(write(c.channel, "exit 5", 6) == 6, "told to exit");
        wait_end(&t);
        tap_ok(jail_run_outcome(t.run)->end == JAIL_END_EXIT &&
                   jail_run_outcome(t.run)->exit_code == 5,
               "it exits by itself");
        talk_end(&t, &c);
    }
    if (fresh(tpl, "python", false, &c, &t, NULL)) {
        tap_ok(write(c.channel, "abort", 5) == 5, "told to abort");
        wait_end(&t);
        tap_ok(jail_run_outcome(t.run)->end == JAIL_END_SIGNAL &&
                   jail_run_outcome(t.run)->signal == SIGABRT,
               "it dies of SIGABRT");
        talk_end(&t, &c);
    }
    if (fresh(tpl, "python", false, &c, &t, &short_wall)) {
        tap_ok(write(c.channel, "sleep", 5) == 5, "told to sleep");
        wait_end(&t);
        tap_eq_int(jail_run_outcome(t.run)->end, JAIL_END_WALL, "its time is up");
        talk_end(&t, &c);
    }
    if (fresh(tpl, "python", false, &c, &t, &short_cpu)) {
        tap_ok(write(c.channel, "spin", 4) == 4, "told to spin");
        wait_end(&t);
        tap_eq_int(jail_run_outcome(t.run)->end, JAIL_END_CPU, "its CPU time is up");
        talk_end(&t, &c);
    }
    if (fresh(tpl, "python", false, &c, &t, NULL)) {
        tap_eq_int(ask(&t, "fill"), -ENOSPC, "its files have a quota");
        tap_eq_int(ask(&t, "grow"), -ENOMEM, "its memory has a limit");
        jail_run_end_now(t.run, 0);
        wait_end(&t);
        tap_ok(has_rule(t.run, "limit.disk"), "that the files were full is told");
        talk_end(&t, &c);
    }
    int in[2];
    struct jail_child_plan plan = plan_of("python", false);
    if (pipe2(in, O_CLOEXEC) == 0 && order(tpl, &plan, &c) && talk_start(&t, &c, NULL, in[0])) {
        tap_ok(hear(&t) && write(in[1], "x", 1) == 1, "input is given");
        tap_eq_int(ask(&t, "read"), 'x', "and arrives");
        jail_run_stop(t.run);
        wait_end(&t);
        tap_eq_int(jail_run_outcome(t.run)->end, JAIL_END_STOPPED, "a child can be stopped");
        talk_end(&t, &c);
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
        {"stat /guest", 0, NULL},
    };
    struct jail_child c = JAIL_CHILD_NONE;
    struct talk t;
    if (!fresh(tpl, "python", false, &c, &t, NULL))
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tap_eq_int(ask(&t, rows[i].word), rows[i].want, "%s", rows[i].word);
        if (rows[i].rule)
            tap_ok(has_rule(t.run, rows[i].rule), "%s is told as %s", rows[i].word, rows[i].rule);
    }
    jail_run_end_now(t.run, 0);
    wait_end(&t);
    talk_end(&t, &c);
    if (fresh(tpl, "python-threads", false, &c, &t, NULL)) {
        tap_ok(ask(&t, "thread") > 2, "where threads are allowed, one starts");
        jail_run_end_now(t.run, 0);
        wait_end(&t);
        talk_end(&t, &c);
    }
}

static void siblings(struct jail_template *tpl)
{
    struct jail_child a = JAIL_CHILD_NONE, b = JAIL_CHILD_NONE;
    struct talk ta = {0}, tb = {0};
    if (!fresh(tpl, "python", false, &a, &ta, NULL) || !fresh(tpl, "python", false, &b, &tb, NULL))
        return;
    tap_eq_int(ask(&ta, "save /workspace/mine"), 5, "a child writes a file");
    tap_eq_int(ask(&tb, "stat /workspace/mine"), -ENOENT, "its sibling does not see it");
    tap_eq_int(ask(&tb, "fds"), 15, "nor any descriptor of it");
    tap_eq_int(ask(&tb, "signal"), 0, "nor its pid");
    tap_eq_int(ask(&ta, "set 5"), 5, "a variable is set");
    tap_eq_int(ask(&tb, "get"), 1, "in one child only");
    jail_run_free(ta.run);
    jail_child_close(&a);
    tap_eq_int(ask(&tb, "pid"), 2, "a sibling's end is nothing to it");
    talk_end(&tb, &b);
}

/* A supervisor in another process, that dies: the child must not outlive it. */
static void leash(struct jail_template *tpl)
{
    struct jail_child_plan plan = plan_of("python", false);
    struct jail_child c = JAIL_CHILD_NONE;
    struct err err = ERR_INIT;
    int sv[2];
    if (!order(tpl, &plan, &c) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return;
    int guest_fd = fcntl(c.guest, F_DUPFD_CLOEXEC, 0), init_fd = fcntl(c.init, F_DUPFD_CLOEXEC, 0);
    tap_ok(jail_child_send(sv[0], &c, &err) == 0, "a child is sent to another process");
    jail_child_close(&c);
    fd_close(sv[0]);
    pid_t pid = fork();
    if (pid == 0) {
        struct talk t;
        bool good = jail_child_receive(sv[1], &c, &err) == 0 && c.tag == 7 &&
                    talk_start(&t, &c, NULL, -1) && hear(&t) && ask(&t, "pid") == 2;
        if (good)
            kill(getpid(), SIGKILL);
        _exit(1);
    }
    fd_close(sv[1]);
    int status = 0;
    waitpid(pid, &status, 0);
    tap_ok(WIFSIGNALED(status), "it talked to it there, and was killed");
    tap_ok(gone(guest_fd) && gone(init_fd), "the child died with it");
    fd_close(guest_fd);
    fd_close(init_fd);
}

static void session(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE, lease = JAIL_CHILD_NONE;
    struct talk t;
    struct err err = ERR_INIT;
    struct jail_child_plan plan = plan_of("python", true);
    int sv[2];
    if (!order(tpl, &plan, &c) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return;
    for (int call = 0; call < 3; call++) {
        if (jail_child_send(sv[0], &c, &err) < 0 || jail_child_receive(sv[1], &lease, &err) < 0 ||
            !talk_start(&t, &lease, NULL, -1) || (call == 0 && !hear(&t)))
            return;
        tap_eq_int(ask(&t, "get"), call ? 40 + call - 1 : 1, "call %d of a session sees its state",
                   call);
        char word[32];
        snprintf(word, sizeof word, "set %d", 40 + call);
        tap_eq_int(ask(&t, word), 40 + call, "and changes it");
        jail_run_release(t.run, 3);
        wait_end(&t);
        const struct jail_outcome *o = jail_run_outcome(t.run);
        tap_ok(o->end == JAIL_END_EXIT && o->exit_code == 3, "the call is over");
        talk_end(&t, &lease);
        tap_ok(jail_child_alive(&c), "the session is not");
    }
    int init_fd = fcntl(c.init, F_DUPFD_CLOEXEC, 0);
    jail_child_kill(&c);
    tap_ok(gone(c.guest) && gone(init_fd), "killed, it is gone, and its init with it");
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

static unsigned count_dir(const char *path)
{
    unsigned n = 0;
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static unsigned long rss_kb(const char *path)
{
    char text[4096];
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "VmRSS:") : NULL;
    return at ? strtoul(at + 6, NULL, 10) : 0;
}

/* Ours: every process that this very program is, besides us. The oldest one is the template. */
static struct count look(void)
{
    struct count c = {.fds = count_dir("/proc/self/fd"), .rss = rss_kb("/proc/self/status")};
    long oldest = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], comm[64];
        long pid = strtol(e->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
        if (pid <= 0 || pid == getpid() || fd_read_file(AT_FDCWD, path, comm, sizeof comm) < 0 ||
            strcmp(comm, "guest\n") != 0)
            continue;
        c.processes++;
        oldest = !oldest || pid < oldest ? pid : oldest;
    }
    if (d)
        closedir(d);
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd", oldest);
    c.template_fds = count_dir(path);
    snprintf(path, sizeof path, "/proc/%ld/status", oldest);
    c.template_rss = rss_kb(path);
    return c;
}

static bool one_of_many(struct jail_template *tpl)
{
    struct jail_child c = JAIL_CHILD_NONE;
    struct talk t;
    if (!fresh(tpl, "python", false, &c, &t, NULL))
        return false;
    bool good = ask(&t, "pid") == 2 && ask(&t, "say x") == 1;
    jail_run_end_now(t.run, 0);
    wait_end(&t);
    good &= strcmp(t.said, "x") == 0;
    talk_end(&t, &c);
    return good;
}

static void settle(struct count *c, unsigned want)
{
    for (int i = 0; i < 200; i++) {
        *c = look();
        if (c->processes <= want)
            return;
        usleep(10000);
    }
}

static void many(struct jail_template *tpl, long rounds)
{
    struct count before, after;
    long good = 0;
    for (int i = 0; i < 40; i++)
        (void)one_of_many(tpl);
    settle(&before, 1);
    uint64_t start = clock_now_ns();
    for (long i = 0; i < rounds; i++)
        good += one_of_many(tpl);
    double us = (double)(clock_now_ns() - start) / 1e3 / (double)rounds;
    settle(&after, 1);
    tap_eq_int(good, rounds, "%ld children were born, ran and were killed", rounds);
    tap_eq_int(after.processes, 1, "no process is left but the template");
    tap_eq_int(after.fds, before.fds, "the holder's descriptors are as many as before");
    tap_ok(after.template_fds == before.template_fds && after.template_fds > 2,
           "and the template's (%u, %u)", before.template_fds, after.template_fds);
    tap_ok(after.rss <= before.rss + 256 && after.template_rss <= before.template_rss + 256,
           "memory is flat: %lu -> %lu KB, template %lu -> %lu KB", before.rss, after.rss,
           before.template_rss, after.template_rss);
    printf("#= one child after the other, from order to end: %.0f us each\n", us);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--template") == 0)
        return be_template();
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (argc < 2 || n < 0)
        return 2;
    self[n] = 0;
    nest = argv[1];
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    struct jail_template *tpl = start_template();
    if (!tpl)
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
    settle(&last, 0);
    tap_eq_int(last.processes, 0, "the template is gone when it is freed");
    return tap_done();
}
