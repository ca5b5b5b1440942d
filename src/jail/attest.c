/* SPDX-License-Identifier: Apache-2.0 */
/* Acts are chosen so that each one fails for one
 * layer's reason alone: the sealed file is readable by its mode, so only Landlock can say EACCES;
 * the denied call would say EFAULT without the filter; the descriptor at the limit would be given.
 *
 * Waits: connect in jail_attest_unfiltered; nobody: a datagram socket; at once; its error is the proof
 *        pread in *; nobody: /proc; at once; the layer is not confirmed */
#include "jail/attest.h"

#include "jail/inside.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

const char *const jail_layer_names[JAIL_LAYER_COUNT] = {"process", "syscalls", "resources",
                                                        "network", "filesystem"};

/* A folder in one number: the device in the upper half. */
static uint64_t folder(const struct stat *st)
{
    return (uint64_t)st->st_dev << 32 ^ (uint64_t)st->st_ino;
}

/* A look into /proc/PID is slow, so only those namespaces are looked up there that leave
 * no other trace: pid shows in the own number, mnt in the root, net in an act, uts in the name. */
static void look_up(struct jail_proof *proof, int proc, uint64_t namespaces)
{
    struct stat st;
    FD_AUTO dir = openat(proc, "self/ns", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < jail_namespace_count; i++)
        if (jail_namespaces[i].flag & namespaces)
            proof->namespaces[i] =
                fstatat(dir, jail_namespaces[i].name, &st, 0) == 0 ? (uint64_t)st.st_ino : 0;
    proof->root = stat("/", &st) == 0 ? folder(&st) : 0;
}

void jail_attest_own(struct jail_proof *proof, uint64_t user_ns)
{
    memset(proof, 0, sizeof *proof);
    for (size_t i = 0; i < jail_namespace_count; i++)
        if (jail_namespaces[i].flag == CLONE_NEWUSER)
            proof->namespaces[i] = user_ns;
}

void jail_attest_own_rest(struct jail_proof *proof, int proc)
{
    look_up(proof, proc, CLONE_NEWIPC | CLONE_NEWCGROUP);
}

void jail_attest_before(struct jail_proof *proof, int proc, enum jail_kind kind)
{
    struct utsname uts;
    memset(proof, 0, sizeof *proof);
    /* of a child: the user namespace shows in its id, which its template does not have; ipc in an act */
    look_up(proof, proc,
            kind == JAIL_KIND_CHILD ? CLONE_NEWCGROUP
                                    : CLONE_NEWUSER | CLONE_NEWIPC | CLONE_NEWCGROUP);
    proof->pid = (uint64_t)getpid();
    proof->uid = (uint64_t)getuid();
    if (uname(&uts) == 0)
        snprintf(proof->name, sizeof proof->name, "%s", uts.nodename);
}

static uint64_t outcome(long r)
{
    if (r < 0)
        return (uint64_t)errno;
    return 0;
}

/* Some tables notify these acts, and nobody answers yet: they are tried just before. Asking for an address sends nothing; in an empty network there is no way to any. */
void jail_attest_unfiltered(struct jail_proof *proof, const struct jail_proof *own)
{
    struct sockaddr_in home = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    proof->acts[JAIL_ACT_udp] =
        fd >= 0 && connect(fd, (struct sockaddr *)&home, sizeof home) == 0 ? 0 : (uint64_t)errno;
    fd_close(fd);
    proof->acts[JAIL_ACT_signal_up] = outcome(kill(getppid(), 0));
    struct msqid_ds queue;
    proof->acts[JAIL_ACT_queue] =
        own->queue ? outcome(msgctl(own->queue - 1, IPC_STAT, &queue)) : 0;
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
    static const char *const keep[] = {
        "NSpid:", "CapPrm:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:"};
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
            if (strncmp(line, keep[i], strlen(keep[i])) == 0 &&
                used + len + 2 < sizeof proof->status) {
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
    struct statvfs fs;
    own_status(proof, status_fd);
    proof->quota = statvfs(JAIL_OWN, &fs) == 0 ? (uint64_t)fs.f_blocks * fs.f_frsize : 0;
    a[JAIL_ACT_seal_open] = try_open(full ? "/.sealed" : "/etc/passwd", O_RDONLY);
    a[JAIL_ACT_root_write] = try_open("/.cordon-proof", O_WRONLY | O_CREAT | O_EXCL);
    a[JAIL_ACT_host_file] = try_open("/var", O_RDONLY | O_DIRECTORY);
    a[JAIL_ACT_denied_call] = outcome(syscall(SYS_capset, NULL, NULL));
}

void jail_attest_descriptors(struct jail_proof *proof, const struct jail_spec *spec)
{
    if (spec->kind == JAIL_KIND_TEMPLATE) /* it has no such limit: this would hit one of our own */
        return;
    int high = dup3(0, (int)spec->limits.descriptors, O_CLOEXEC);
    proof->acts[JAIL_ACT_high_dup] = outcome(high);
    fd_close(high);
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

static bool capabilities_are(const struct jail_proof *p, uint64_t want, bool bounding)
{
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)want);
    return status_is(p, "CapPrm:", text) && status_is(p, "CapEff:", text) &&
           (!bounding || status_is(p, "CapBnd:", text));
}

static bool own_namespace(const struct jail_proof *p, const struct jail_proof *own,
                          const char *name)
{
    for (size_t i = 0; i < jail_namespace_count; i++)
        if (strcmp(jail_namespaces[i].name, name) == 0)
            return p->namespaces[i] && own->namespaces[i] && p->namespaces[i] != own->namespaces[i];
    return false;
}

/* A folder of the host lies outside the quota'd file system: its quota is the host's business. */
static bool shares_for_writing(const struct jail_spec *spec)
{
    for (size_t i = 0; i < spec->nbinds; i++)
        if (spec->binds[i].writable)
            return true;
    return false;
}

int jail_attest_judge(const struct jail_proof *p, const struct jail_spec *spec,
                      const struct jail_proof *own, struct jail_layers *ret, struct err *err)
{
    const uint64_t *a = p->acts;
    const bool full = spec->mode == JAIL_FULL;
    /* A template is ours: what only a guest must not have is not asked of it. A child's root is its
     * template's, which has proved that it is not the host's. */
    const bool guest = spec->kind != JAIL_KIND_TEMPLATE, child = spec->kind == JAIL_KIND_CHILD;
    struct {
        enum jail_layer layer;
        bool good;
        const char *what;
    } rows[] = {
        {JAIL_LAYER_PROCESS, !full || (child ? p->uid != own->uid : own_namespace(p, own, "user")),
         "user namespace"},
        {JAIL_LAYER_PROCESS, !full || !guest || p->uid == spec->inner_id, "inner user namespace"},
        {JAIL_LAYER_PROCESS, !full || p->pid == 2 || p->pid == 3 || (!guest && p->pid == 100),
         "pid namespace"},
        {JAIL_LAYER_PROCESS,
         !full || (child ? a[JAIL_ACT_queue] != 0 : own_namespace(p, own, "ipc")), "ipc namespace"},
        {JAIL_LAYER_PROCESS, !full || strcmp(p->name, JAIL_HOSTNAME) == 0, "uts namespace"},
        {JAIL_LAYER_PROCESS, !full || own_namespace(p, own, "cgroup"), "cgroup namespace"},
        {JAIL_LAYER_PROCESS, full || a[JAIL_ACT_signal_up] == EPERM, "signals kept in"},
        {JAIL_LAYER_PROCESS, capabilities_are(p, guest ? 0 : jail_caps_template_has(spec), full),
         "capabilities dropped"},
        {JAIL_LAYER_PROCESS, a[JAIL_ACT_leftover] != 0, "descriptors shut"},
        {JAIL_LAYER_PROCESS, status_is(p, "NoNewPrivs:", "1"), "no_new_privs"},
        {JAIL_LAYER_SYSCALLS, status_is(p, "Seccomp:", "2"), "seccomp filter"},
        {JAIL_LAYER_SYSCALLS, !guest || a[JAIL_ACT_denied_call] == EPERM, "a denied call"},
        {JAIL_LAYER_RESOURCES, !guest || a[JAIL_ACT_high_dup] == EBADF, "descriptor limit"},
        {JAIL_LAYER_RESOURCES,
         !full || !guest || (p->quota > 0 && p->quota <= spec->limits.disk + 65536), "disk quota"},
        {JAIL_LAYER_NETWORK, !full || a[JAIL_ACT_udp] == ENETUNREACH, "empty network"},
        {JAIL_LAYER_FILESYSTEM, !guest || a[JAIL_ACT_seal_open] == EACCES, "landlock"},
        {JAIL_LAYER_FILESYSTEM, a[JAIL_ACT_root_write] == EROFS || a[JAIL_ACT_root_write] == EACCES,
         "read-only root"},
        {JAIL_LAYER_FILESYSTEM,
         child  ? a[JAIL_ACT_host_file] != 0 && p->root == own->root
         : full ? p->root != own->root
                : a[JAIL_ACT_host_file] == EACCES,
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
            r = err_set(
                err, ERR_MISSING,
                "the jail could not prove that %s is on, so nothing ran; see `cordon doctor`",
                rows[i].what);
            err_layer(err, jail_layer_names[layer]);
        }
    }
    if (!full) {
        snprintf(ret->note[JAIL_LAYER_PROCESS], sizeof ret->note[0], "weak: no namespaces");
        snprintf(ret->note[JAIL_LAYER_RESOURCES], sizeof ret->note[0],
                 "weak: no quota on files, no count of threads");
        snprintf(ret->note[JAIL_LAYER_NETWORK], sizeof ret->note[0],
                 "weak: no net namespace; seccomp and Landlock");
        snprintf(ret->note[JAIL_LAYER_FILESYSTEM], sizeof ret->note[0],
                 "weak: no private root, no quota; Landlock");
    } else if (ret->on[JAIL_LAYER_RESOURCES] && shares_for_writing(spec)) {
        snprintf(ret->note[JAIL_LAYER_RESOURCES], sizeof ret->note[0],
                 "weak: in what --rw shares --disk bounds each single file, --inodes nothing");
    }
    return r;
}

void jail_layers_write(struct wire_writer *w, const struct jail_layers *l)
{
    const char *notes[JAIL_LAYER_COUNT];
    uint64_t on = 0;
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++) {
        notes[i] = l->note[i];
        on |= (uint64_t)l->on[i] << i;
    }
    wire_put_uint(w, on);
    wire_put_strings(w, notes, JAIL_LAYER_COUNT);
}

void jail_layers_read(struct wire_reader *r, struct jail_layers *ret)
{
    uint64_t on = wire_get_uint(r);
    size_t notes = wire_get_list(r);
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++)
        ret->on[i] = on >> i & 1;
    for (size_t i = 0; i < notes; i++) {
        size_t len;
        const char *text = wire_next(r, &len);
        if (i < JAIL_LAYER_COUNT)
            snprintf(ret->note[i], sizeof ret->note[i], "%.*s", (int)len, text);
    }
}
