/* SPDX-License-Identifier: Apache-2.0 */
/* Two user namespaces, one inside the other. The outer one owns the mount, pid, net, ipc and uts
 * namespaces and holds cordon-nest; the guest lives in the inner one, so that even a guest that won
 * every capability of its own namespace owns no mount table, no network and no process above it.
 * Each run has its own, which also makes RLIMIT_NPROC count this run alone.
 *
 * Waits: write in *; /proc; at once; an error */
#include "jail/inside.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

const struct jail_namespace jail_namespaces[] = {
    {"user", CLONE_NEWUSER, JAIL_OFF_user},
    {"mnt", CLONE_NEWNS, JAIL_OFF_mount},
    {"pid", CLONE_NEWPID, JAIL_OFF_pid},
    {"net", CLONE_NEWNET, JAIL_OFF_net},
    {"ipc", CLONE_NEWIPC, JAIL_OFF_ipc},
    {"uts", CLONE_NEWUTS, JAIL_OFF_uts},
    {"cgroup", CLONE_NEWCGROUP, JAIL_OFF_cgroupns},
};
const size_t jail_namespace_count = sizeof jail_namespaces / sizeof *jail_namespaces;

static uint64_t outer(const struct jail_spec *spec)
{
    uint64_t flags = 0;
    if (spec->mode != JAIL_FULL)
        return 0;
    for (size_t i = 0; i < jail_namespace_count; i++)
        if (!(spec->switches >> jail_namespaces[i].off & 1) ||
            jail_namespaces[i].flag & (CLONE_NEWUSER | CLONE_NEWNS))
            flags |= jail_namespaces[i].flag; /* user and mnt: without them nothing can be built */
    return flags;
}

uint64_t jail_ns_outer_flags(const struct jail_spec *spec)
{
    return outer(spec) &
           (CLONE_NEWUSER | CLONE_NEWPID); /* the others delay the process that makes the network */
}

uint64_t jail_ns_later_flags(const struct jail_spec *spec)
{
    /* net: made aside (net.c); cgroup: made last, with the guest. */
    return outer(spec) & (CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS);
}

uint64_t jail_ns_inner_flags(const struct jail_spec *spec)
{
    if (spec->mode != JAIL_FULL)
        return 0;
    /* A template stays root of the outer one: each of its children gets two of its own.
     * The cgroup namespace comes last: its root is the cgroup that one is in when it is made. */
    return (jail_off(spec, user) || spec->kind == JAIL_KIND_TEMPLATE ? 0ULL : CLONE_NEWUSER) |
           (jail_off(spec, cgroupns) ? 0ULL : CLONE_NEWCGROUP);
}

static char *put_number(char *at, unsigned long n)
{
    char digits[24];
    size_t len = 0;
    do
        digits[len++] = (char)('0' + n % 10);
    while (n /= 10);
    while (len)
        *at++ = digits[--len];
    return at;
}

static int write_map(int proc, const char *path, unsigned long inside, unsigned long outside,
                     unsigned long count)
{
    char line[80], *at = put_number(line, inside);
    *at++ = ' ';
    at = put_number(at, outside);
    *at++ = ' ';
    at = put_number(at, count);
    *at++ = '\n';
    int fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t len = (size_t)(at - line);
    ssize_t n = write(fd, line, len);
    close(fd);
    return n == (ssize_t)len ? 0 : -1;
}

static int no_setgroups(int proc, const char *path)
{
    int fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = write(fd, "deny", 4);
    close(fd);
    return n == 4 ? 0 : -1;
}

int jail_ns_no_setgroups(int proc)
{
    return no_setgroups(proc, "self/setgroups");
}

int jail_ns_map_block(int proc, const char *who, unsigned long uid, unsigned long gid,
                      unsigned long count)
{
    FD_AUTO dir = openat(proc, who, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || no_setgroups(dir, "setgroups") < 0 ||
        write_map(dir, "uid_map", 0, uid, count) < 0)
        return -1;
    return write_map(dir, "gid_map", 0, gid, count);
}

int jail_ns_map(int proc, const char *who, unsigned long inside_uid, unsigned long outside_uid,
                unsigned long inside_gid, unsigned long outside_gid)
{
    FD_AUTO dir = openat(proc, who, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || write_map(dir, "uid_map", inside_uid, outside_uid, 1) < 0)
        return -1;
    return write_map(dir, "gid_map", inside_gid, outside_gid, 1);
}

int jail_ns_map_self(int proc, unsigned long inside_uid, unsigned long outside_uid,
                     unsigned long inside_gid, unsigned long outside_gid)
{
    if (write_map(proc, "self/uid_map", inside_uid, outside_uid, 1) < 0)
        return -1;
    return write_map(proc, "self/gid_map", inside_gid, outside_gid, 1);
}
