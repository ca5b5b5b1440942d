/* SPDX-License-Identifier: Apache-2.0 */
/* One table from call names to decoders, each a few lines over the same helpers, so that a new call
 * is one line. Names, not numbers: the same table serves both architectures. Everything goes out
 * through put(), which is where the bound and the escaping are; no decoder touches the buffer. */
#include "jail/decode.h"

#include "jail/decode_names.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAGE 4096u /* the smallest there is: larger ones only mean one read more */

struct line {
    char *out;
    size_t size, used;
    bool cut;
    jail_decode_reader *rd;
    const uint64_t *args;
};

static void put(struct line *l, const char *s, size_t len)
{
    for (size_t i = 0; i < len && !l->cut; i++) {
        unsigned char c = (unsigned char)s[i];
        char piece[5] = {(char)c};
        size_t n = 1;
        if (c == '\\' || c < 0x20 || c > 0x7e) {
            snprintf(piece, sizeof piece, c == '\\' ? "\\\\" : "\\x%02x", c);
            n = strlen(piece);
        }
        if (n > l->size - 1 - l->used) {
            l->cut = true;
            break;
        }
        memcpy(l->out + l->used, piece, n);
        l->used += n;
    }
}

__attribute__((format(printf, 2, 3))) static void say(struct line *l, const char *fmt, ...)
{
    char text[160];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n > 0)
        put(l, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static int arg_int(const struct line *l, int i)
{
    return (int)(uint32_t)l->args[i];
}

/* Guest memory, at most SIZE bytes; how many came, 0 if none. Page by page, since a string may end
 * with the last readable page. A reader that claims more than it was asked for is not believed. */
static size_t fetch(struct line *l, uint64_t addr, void *buf, size_t size)
{
    size_t got = 0;
    while (addr && got < size) {
        size_t want = PAGE - (size_t)((addr + got) % PAGE);
        want = want < size - got ? want : size - got;
        ssize_t n = l->rd->read(l->rd->ctx, addr + got, (char *)buf + got, want);
        if (n <= 0)
            break;
        got += (size_t)n < want ? (size_t)n : want;
        if ((size_t)n < want)
            break;
    }
    return got;
}

/* A string of the guest, a space before it. */
static void string(struct line *l, uint64_t addr)
{
    char s[JAIL_DECODE_PATH];
    size_t n = fetch(l, addr, s, sizeof s);
    const char *end = n ? memchr(s, 0, n) : NULL;
    if (addr == 0)
        say(l, " NULL");
    else if (n == 0)
        say(l, " ?");
    else if (end == s)
        say(l, " \"\"");
    else {
        say(l, " ");
        put(l, s, end ? (size_t)(end - s) : n);
        if (!end)
            say(l, "...");
    }
}

static void name_or_number(struct line *l, const struct decode_name *names, uint32_t value)
{
    const char *name = decode_name_of(names, value);
    if (name)
        say(l, " %s", name);
    else
        say(l, " 0x%x", value);
}

/* FLAGS as names joined by `|`; bits without a name in one number. */
static void flag_names(struct line *l, const struct decode_name *names, uint32_t flags)
{
    const char *sep = " ";
    for (; names->name; names++) {
        if (names->value && (flags & names->value) == names->value) {
            say(l, "%s%s", sep, names->name);
            flags &= ~names->value;
            sep = "|";
        }
    }
    if (flags || *sep == ' ')
        say(l, "%s0x%x", sep, flags);
}

static void unix_path(struct line *l, const struct sockaddr_un *un, size_t len)
{
    size_t n = len - offsetof(struct sockaddr_un, sun_path);
    if (len <= offsetof(struct sockaddr_un, sun_path)) {
        say(l, " (unnamed)");
    } else if (un->sun_path[0]) {
        say(l, " ");
        put(l, un->sun_path, strnlen(un->sun_path, n));
    } else { /* abstract: any bytes, and the length counts */
        say(l, " @");
        put(l, un->sun_path + 1, n - 1);
    }
}

/* LEN is the guest's word: it only makes the read shorter. */
static void address(struct line *l, uint64_t addr, uint64_t len)
{
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
        struct sockaddr_vm vm;
        char bytes[JAIL_DECODE_ADDR];
    } u = {.bytes = {0}};
    char text[INET6_ADDRSTRLEN] = "?";
    size_t want = (uint32_t)len < sizeof u ? (uint32_t)len : sizeof u;
    size_t n = fetch(l, addr, &u, want);
    if (n < sizeof u.sa.sa_family) {
        say(l, addr ? " ?" : " NULL");
        return;
    }
    name_or_number(l, decode_families, u.sa.sa_family);
    if (u.sa.sa_family == AF_UNIX) {
        unix_path(l, &u.un, n < sizeof u.un ? n : sizeof u.un);
    } else if (u.sa.sa_family == AF_INET &&
               n >= 8) { /* family, port and address; the rest is padding */
        inet_ntop(AF_INET, &u.in.sin_addr, text, sizeof text);
        say(l, " %s:%u", text, ntohs(u.in.sin_port));
    } else if (u.sa.sa_family == AF_INET6 && n >= 24) {
        inet_ntop(AF_INET6, &u.in6.sin6_addr, text, sizeof text);
        say(l, " [%s]:%u", text, ntohs(u.in6.sin6_port));
    } else if (u.sa.sa_family == AF_VSOCK && n >= sizeof u.vm) {
        say(l, " %u:%u", u.vm.svm_cid, u.vm.svm_port);
    } else if (u.sa.sa_family == AF_INET || u.sa.sa_family == AF_INET6) {
        say(l, " ?");
    }
}

static void do_socket(struct line *l)
{
    uint32_t type = (uint32_t)arg_int(l, 1);
    name_or_number(l, decode_families, (uint32_t)arg_int(l, 0));
    name_or_number(l, decode_types, type & 0xf); /* CLOEXEC and NONBLOCK tell nothing */
}

static void do_connect(struct line *l)
{
    address(l, l->args[1], l->args[2]);
}

static void do_sendto(struct line *l)
{
    if (l->args[3] & MSG_OOB)
        say(l, "MSG_OOB");
    else
        address(l, l->args[4], l->args[5]);
}

static void do_recvfrom(struct line *l)
{
    if (l->args[3] & MSG_OOB)
        say(l, "MSG_OOB");
}

static void do_getsockopt(struct line *l)
{
    if (arg_int(l, 2) == 77) /* SO_PEERPIDFD, which Debian 12's headers lack */
        say(l, "SO_PEERPIDFD");
}

/* struct msghdr of a 64-bit caller: where to is the first thing in it. */
static void do_sendmsg(struct line *l)
{
    struct {
        uint64_t name;
        uint32_t namelen;
        uint32_t pad;
    } head;
    if (fetch(l, l->args[1], &head, sizeof head) != sizeof head)
        say(l, " ?");
    else if (head.name)
        address(l, head.name, head.namelen);
    else
        say(l, " fd %d", arg_int(l, 0));
}

static void do_setsockopt(struct line *l)
{
    name_or_number(l, decode_sockopts, (uint32_t)arg_int(l, 2));
}

static void do_fd(struct line *l)
{
    say(l, " fd %d", arg_int(l, 0));
}

static void do_path0(struct line *l)
{
    string(l, l->args[0]);
}

static void do_path1(struct line *l)
{
    string(l, l->args[1]);
}

static void do_two_paths(struct line *l)
{
    string(l, l->args[0]);
    string(l, l->args[1]);
}

static void do_execveat(struct line *l)
{
    char first = 1;
    if ((l->args[4] & AT_EMPTY_PATH) && fetch(l, l->args[1], &first, 1) == 1 && first == 0)
        do_fd(l);
    else
        string(l, l->args[1]);
}

static void do_clone(struct line *l)
{
    uint32_t flags = (uint32_t)l->args[0];
    uint32_t named = 0;
    for (const struct decode_name *n = decode_clone; n->name; n++)
        named |= flags & n->value;
    if (named)
        flag_names(l, decode_clone, named);
    else
        say(l, flags & CLONE_THREAD ? " thread" : " process");
}

static void do_unshare(struct line *l)
{
    flag_names(l, decode_clone, (uint32_t)arg_int(l, 0));
}

static void do_setns(struct line *l)
{
    do_fd(l);
    if (arg_int(l, 1))
        flag_names(l, decode_clone, (uint32_t)arg_int(l, 1));
}

static void do_ptrace(struct line *l)
{
    name_or_number(l, decode_ptrace, (uint32_t)l->args[0]);
    if (l->args[0] != 0) /* TRACEME names nobody */
        say(l, " %d", arg_int(l, 1));
}

static void do_pid(struct line *l)
{
    say(l, " %d", arg_int(l, 0));
}

static void do_kcmp(struct line *l)
{
    say(l, " %d %d", arg_int(l, 0), arg_int(l, 1));
}

static void do_pid_signal(struct line *l)
{
    say(l, " %d signal %d", arg_int(l, 0), arg_int(l, 1));
}

static void do_tgsigqueueinfo(struct line *l)
{
    say(l, " %d signal %d", arg_int(l, 1), arg_int(l, 2));
}

static void do_pidfd_getfd(struct line *l)
{
    say(l, " pidfd %d fd %d", arg_int(l, 0), arg_int(l, 1));
}

static void do_prlimit(struct line *l)
{
    say(l, " %d resource %d", arg_int(l, 0), arg_int(l, 1));
}

static void do_mount(struct line *l)
{
    string(l, l->args[0]);
    string(l, l->args[1]);
    if (l->args[2]) {
        say(l, " type");
        string(l, l->args[2]);
    }
}

static void do_move_mount(struct line *l)
{
    string(l, l->args[1]);
    string(l, l->args[3]);
}

static void mode(struct line *l, int i)
{
    say(l, " %05o", (unsigned)arg_int(l, i) & 0177777);
}

static void do_chmod(struct line *l)
{
    string(l, l->args[0]);
    mode(l, 1);
}

static void do_fchmod(struct line *l)
{
    do_fd(l);
    mode(l, 1);
}

static void do_chmodat(struct line *l)
{
    string(l, l->args[1]);
    mode(l, 2);
}

static void do_open(struct line *l)
{
    string(l, l->args[0]);
    say(l, " mode");
    mode(l, 2);
}

static void do_openat(struct line *l)
{
    string(l, l->args[1]);
    say(l, " mode");
    mode(l, 3);
}

static void do_prctl(struct line *l)
{
    name_or_number(l, decode_prctl, (uint32_t)arg_int(l, 0));
    if (decode_name_of(decode_prctl, (uint32_t)arg_int(l, 0)))
        say(l, " %lld", (long long)l->args[1]);
}

static void do_ioctl(struct line *l)
{
    name_or_number(l, decode_ioctl, (uint32_t)arg_int(l, 1));
}

static void do_fcntl(struct line *l)
{
    name_or_number(l, decode_fcntl, (uint32_t)arg_int(l, 1));
}

static void do_bpf(struct line *l)
{
    name_or_number(l, decode_bpf, (uint32_t)arg_int(l, 0));
}

static void do_keyctl(struct line *l)
{
    say(l, " operation %d", arg_int(l, 0));
}

static void do_personality(struct line *l)
{
    say(l, " 0x%x", (uint32_t)l->args[0]);
}

static void do_reboot(struct line *l)
{
    say(l, " 0x%x", (uint32_t)l->args[2]);
}

static void do_seccomp(struct line *l)
{
    say(l, " operation %d", arg_int(l, 0));
}

static void do_setpriority(struct line *l)
{
    name_or_number(l, decode_prio, (uint32_t)arg_int(l, 0));
    say(l, " %d to %d", arg_int(l, 1), arg_int(l, 2));
}

static void do_setscheduler(struct line *l)
{
    name_or_number(l, decode_sched, (uint32_t)arg_int(l, 1) & ~(uint32_t)SCHED_RESET_ON_FORK);
}

static void do_key(struct line *l)
{
    say(l, " key 0x%x", (uint32_t)l->args[0]);
}

/* A name of the guest with its length beside it. */
static void do_hostname(struct line *l)
{
    char s[64];
    uint64_t len = l->args[1];
    size_t n = fetch(l, l->args[0], s, len < sizeof s ? (size_t)len : sizeof s);
    if (n == 0)
        say(l, " ?");
    else {
        say(l, " ");
        put(l, s, strnlen(s, n));
    }
}

static const struct {
    const char *name;
    void (*decode)(struct line *l);
} decoders[] = {
    {"socket", do_socket},
    {"socketpair", do_socket},
    {"connect", do_connect},
    {"bind", do_connect},
    {"listen", do_fd},
    {"accept", do_fd},
    {"accept4", do_fd},
    {"sendto", do_sendto},
    {"recvfrom", do_recvfrom},
    {"getsockopt", do_getsockopt},
    {"sendmsg", do_sendmsg},
    {"sendmmsg", do_sendmsg}, /* the first of its messages begins as one msghdr does */
    {"recvmsg", do_fd},
    {"recvmmsg", do_fd},
    {"setsockopt", do_setsockopt},
    {"execve", do_path0},
    {"execveat", do_execveat},
    {"clone", do_clone},
    {"unshare", do_unshare},
    {"setns", do_setns},
    {"ptrace", do_ptrace},
    {"process_vm_readv", do_pid},
    {"process_vm_writev", do_pid},
    {"pidfd_open", do_pid},
    {"pidfd_getfd", do_pidfd_getfd},
    {"pidfd_send_signal", do_fd},
    {"kcmp", do_kcmp},
    {"kill", do_pid_signal},
    {"tkill", do_pid_signal},
    {"tgkill", do_tgsigqueueinfo},
    {"rt_sigqueueinfo", do_pid_signal},
    {"rt_tgsigqueueinfo", do_tgsigqueueinfo},
    {"prlimit64", do_prlimit},
    {"mount", do_mount},
    {"umount2", do_path0},
    {"move_mount", do_move_mount},
    {"open_tree", do_path1},
    {"fsopen", do_path0},
    {"fspick", do_path1},
    {"mount_setattr", do_path1},
    {"pivot_root", do_two_paths},
    {"chroot", do_path0},
    {"name_to_handle_at", do_path1},
    {"open", do_open},
    {"openat", do_openat},
    {"creat", do_chmod},
    {"chmod", do_chmod},
    {"mkdir", do_chmod},
    {"mknod", do_chmod},
    {"fchmod", do_fchmod},
    {"fchmodat", do_chmodat},
    {"mkdirat", do_chmodat},
    {"mknodat", do_chmodat},
    {"memfd_create", do_path0},
    {"mq_open", do_path0},
    {"mq_unlink", do_path0},
    {"shmget", do_key},
    {"semget", do_key},
    {"msgget", do_key},
    {"prctl", do_prctl},
    {"ioctl", do_ioctl},
    {"fcntl", do_fcntl},
    {"bpf", do_bpf},
    {"keyctl", do_keyctl},
    {"add_key", do_two_paths},
    {"request_key", do_two_paths},
    {"seccomp", do_seccomp},
    {"personality", do_personality},
    {"reboot", do_reboot},
    {"setpriority", do_setpriority},
    {"sched_setscheduler", do_setscheduler},
    {"sethostname", do_hostname},
    {"setdomainname", do_hostname},
    {"swapon", do_path0},
    {"swapoff", do_path0},
    {"acct", do_path0},
    {"delete_module", do_path0},
};

void jail_decode(const struct seccomp_data *call, const char *name, jail_decode_reader *rd,
                 char *out, size_t size)
{
    if (size == 0)
        return;
    uint64_t args[6];
    for (int i = 0; i < 6; i++)
        args[i] = call->args[i];
    struct line l = {.out = out, .size = size, .rd = rd, .args = args};
    say(&l, "%s", name);
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++)
        if (strcmp(decoders[i].name, name) == 0)
            decoders[i].decode(&l);
    if (l.cut && size > 4) { /* an escape may be cut here; the dots say that it is not whole */
        l.used = l.used < size - 4 ? l.used : size - 4;
        memcpy(out + l.used, "...", 3);
        l.used += 3;
    }
    out[l.used] = 0;
}

bool jail_decode_routine(const char *line)
{
    return strcmp(line, "connect AF_UNIX /var/run/nscd/socket") == 0;
}
