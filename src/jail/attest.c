/* The launcher tries and reads; the supervisor judges. Acts are chosen so that each one fails for one
 * layer's reason alone: the sealed file is readable by its mode, so only Landlock can say EACCES; the
 * denied call would say EFAULT without the filter; the descriptor at the limit would be given. */
#include "jail/attest.h"

#include "jail/inside.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *const jail_layer_names[JAIL_LAYER_COUNT] = {"process", "syscalls", "resources", "network",
                                                        "filesystem"};

void jail_attest_before(struct jail_proof *proof, int proc)
{
    struct stat st;
    FD_AUTO dir = openat(proc, "self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
    memset(proof, 0, sizeof *proof);
    for (size_t i = 0; i < jail_namespace_count; i++)
        proof->namespaces[i] =
            fstatat(dir, jail_namespaces[i].name, &st, 0) == 0 ? (uint64_t)st.st_ino : 0;
    proof->pid = (uint64_t)getpid();
    proof->root = stat("/", &st) == 0 ? (uint64_t)st.st_dev : 0;
}

void jail_attest_network(struct jail_proof *proof)
{
    struct sockaddr_in home = {.sin_family = AF_INET,
                               .sin_port = htons(9),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool reached = fd >= 0 && (connect(fd, (struct sockaddr *)&home, sizeof home) == 0 ||
                               errno == EINPROGRESS || errno == ECONNREFUSED);
    proof->acts[JAIL_ACT_tcp] = reached ? 0 : (uint64_t)errno;
    fd_close(fd);
}

static uint64_t outcome(long r)
{
    if (r < 0)
        return (uint64_t)errno;
    return 0;
}

static uint64_t try_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600);
    uint64_t r = outcome(fd);
    fd_close(fd);
    return r;
}

static void own_status(struct jail_proof *proof, int fd)
{
    static const char *const keep[] = {"NSpid:", "CapPrm:", "CapEff:", "CapBnd:", "NoNewPrivs:",
                                       "Seccomp:"};
    char text[4096];
    size_t used = 0;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = 0;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
            size_t len = strlen(line);
            if (strncmp(line, keep[i], strlen(keep[i])) == 0 && used + len + 2 < sizeof proof->status) {
                memcpy(proof->status + used, line, len);
                used += len;
                proof->status[used++] = '\n';
            }
        }
    }
    proof->status[used] = 0;
}

void jail_attest_after(struct jail_proof *proof, const struct jail_spec *spec, int status_fd)
{
    uint64_t *a = proof->acts;
    bool full = spec->mode == JAIL_FULL;
    own_status(proof, status_fd);
    a[JAIL_ACT_seal_open] = try_open(full ? "/.sealed" : "/etc/passwd", O_RDONLY);
    a[JAIL_ACT_root_write] = try_open("/.cordon-proof", O_WRONLY | O_CREAT | O_EXCL);
    a[JAIL_ACT_host_file] = try_open("/var", O_RDONLY | O_DIRECTORY);
    a[JAIL_ACT_denied_call] = outcome(syscall(SYS_capset, NULL, NULL));
    a[JAIL_ACT_high_dup] = outcome(dup2(0, (int)spec->limits.descriptors));
    a[JAIL_ACT_signal_up] = outcome(kill(getppid(), 0));
}

int jail_attest_send(const struct jail_proof *proof, int control, int listener)
{
    /* No sendmsg here: the filter is on. The memory is the stack's: after fork nothing is allocated. */
    char room[2048];
    struct buf b = {.data = room, .cap = sizeof room, .max = sizeof room - 1};
    struct wire_writer w;
    uint64_t acts[JAIL_ACT_COUNT + 2];
    memcpy(acts, proof->acts, sizeof proof->acts);
    acts[JAIL_ACT_COUNT] = proof->pid;
    acts[JAIL_ACT_COUNT + 1] = proof->root;
    wire_begin(&w, &b, WIRE_PROVED);
    wire_put_int(&w, listener);
    wire_put_uints(&w, proof->namespaces, JAIL_PROOF_NAMESPACES);
    wire_put_uints(&w, acts, JAIL_ACT_COUNT + 2);
    wire_put_text(&w, proof->status);
    if (wire_end(&w) < 0)
        return ERR_LIMIT;
    return write(control, b.data, b.len) == (ssize_t)b.len ? 0 : ERR_SYS;
}

int jail_attest_read(struct wire_reader *r, struct jail_proof *ret_proof, int *ret_listener,
                     struct err *err)
{
    uint64_t acts[JAIL_ACT_COUNT + 2];
    *ret_listener = (int)wire_get_int(r);
    size_t ns = wire_get_uints(r, ret_proof->namespaces, JAIL_PROOF_NAMESPACES);
    size_t na = wire_get_uints(r, acts, JAIL_ACT_COUNT + 2);
    if (ns != JAIL_PROOF_NAMESPACES || na != JAIL_ACT_COUNT + 2)
        return err_set(err, ERR_FORMAT, "a proof of another shape");
    memcpy(ret_proof->acts, acts, sizeof ret_proof->acts);
    ret_proof->pid = acts[JAIL_ACT_COUNT];
    ret_proof->root = acts[JAIL_ACT_COUNT + 1];
    wire_get_text(r, ret_proof->status, sizeof ret_proof->status);
    return 0;
}

static bool status_is(const struct jail_proof *p, const char *key, const char *want)
{
    const char *at = strstr(p->status, key);
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " \t");
    size_t len = strcspn(at, "\n");
    return len == strlen(want) && strncmp(at, want, len) == 0;
}

static bool no_capabilities(const struct jail_proof *p, bool bounding)
{
    return status_is(p, "CapPrm:", "0000000000000000") && status_is(p, "CapEff:", "0000000000000000") &&
           (!bounding || status_is(p, "CapBnd:", "0000000000000000"));
}

static bool own_namespace(const struct jail_proof *p, const struct jail_proof *own, const char *name)
{
    for (size_t i = 0; i < jail_namespace_count; i++)
        if (strcmp(jail_namespaces[i].name, name) == 0)
            return p->namespaces[i] && own->namespaces[i] && p->namespaces[i] != own->namespaces[i];
    return false;
}

int jail_attest_judge(const struct jail_proof *p, const struct jail_spec *spec,
                      const struct jail_proof *own,
                      struct jail_layers *ret, struct err *err)
{
    const uint64_t *a = p->acts;
    const bool full = spec->mode == JAIL_FULL;
    struct {
        enum jail_layer layer;
        bool good;
        const char *what;
    } rows[] = {
        {JAIL_LAYER_PROCESS, !full || own_namespace(p, own, "user"), "user namespace"},
        {JAIL_LAYER_PROCESS, !full || (own_namespace(p, own, "pid") && p->pid <= 3), "pid namespace"},
        {JAIL_LAYER_PROCESS, !full || own_namespace(p, own, "ipc"), "ipc namespace"},
        {JAIL_LAYER_PROCESS, !full || own_namespace(p, own, "uts"), "uts namespace"},
        {JAIL_LAYER_PROCESS, !full || own_namespace(p, own, "cgroup"), "cgroup namespace"},
        {JAIL_LAYER_PROCESS, no_capabilities(p, full), "capabilities dropped"},
        {JAIL_LAYER_PROCESS, status_is(p, "NoNewPrivs:", "1"), "no_new_privs"},
        {JAIL_LAYER_SYSCALLS, status_is(p, "Seccomp:", "2"), "seccomp filter"},
        {JAIL_LAYER_SYSCALLS, a[JAIL_ACT_denied_call] == EPERM, "a denied call"},
        {JAIL_LAYER_RESOURCES, a[JAIL_ACT_high_dup] == EBADF, "descriptor limit"},
        {JAIL_LAYER_NETWORK, !full || own_namespace(p, own, "net"), "net namespace"},
        {JAIL_LAYER_NETWORK, a[JAIL_ACT_tcp] != 0, "a connection refused"},
        {JAIL_LAYER_FILESYSTEM, !full || own_namespace(p, own, "mnt"), "mount namespace"},
        {JAIL_LAYER_FILESYSTEM, a[JAIL_ACT_seal_open] == EACCES, "landlock"},
        {JAIL_LAYER_FILESYSTEM, a[JAIL_ACT_root_write] == EROFS || a[JAIL_ACT_root_write] == EACCES,
         "read-only root"},
        {JAIL_LAYER_FILESYSTEM, full ? p->root != own->root : a[JAIL_ACT_host_file] == EACCES,
         "private root"},
    };
    int r = 0;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++)
        ret->on[i] = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        enum jail_layer layer = rows[i].layer;
        if (rows[i].good)
            continue;
        if (ret->on[layer])
            snprintf(ret->note[layer], sizeof ret->note[layer], "%s not seen", rows[i].what);
        ret->on[layer] = false;
        if (r == 0 && !spec->switches) {
            r = err_set(err, ERR_MISSING, "the jail's own proof failed: %s was not seen",
                        rows[i].what);
            err_layer(err, jail_layer_names[layer]);
        }
    }
    if (!full) {
        snprintf(ret->note[JAIL_LAYER_PROCESS], sizeof ret->note[0], "weak: no namespaces");
        snprintf(ret->note[JAIL_LAYER_NETWORK], sizeof ret->note[0],
                 "weak: no net namespace; seccomp and Landlock");
        snprintf(ret->note[JAIL_LAYER_FILESYSTEM], sizeof ret->note[0],
                 "weak: no private root, no quota; Landlock");
    }
    return r;
}
