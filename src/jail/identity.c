/* SPDX-License-Identifier: Apache-2.0 */
/* As an ordinary user the guest is that user, seen as another id from inside and with no way out.
 * As root it is an id that owns nothing on the machine, and a different one for each run that lives
 * at the same time, so that file modes alone already keep two runs apart. A template has a block of them: its own, and
 * one for each child. Blocks of one holder never meet; those of two holders could where pids go beyond a thousand, and
 * then two children may have one id, as all of an ordinary user's have. */
#include "jail/outside.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANGE_FIRST 0x70000000UL /* above every range that login.defs and systemd hand out */
#define RANGE_END   0x80000000UL /* from there on, programs take an id for a negative number */
#define RANGE_RUNS  0x00400000UL /* at the beginning: one for each number that a process can have */
/* The rest: a block for each template. */
#define BLOCKS_FIRST (RANGE_FIRST + RANGE_RUNS)
#define BLOCKS       ((RANGE_END - BLOCKS_FIRST) / JAIL_TEMPLATE_IDS)
#define PER_HOLDER   64 /* blocks from one holder's first to that of the next pid */
#define INITIAL_NS                                                                                 \
    0xEFFFFFFDUL /* the machine's first user namespace, in which every id is mapped */

static bool has_capability(unsigned cap)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data) < 0)
        return false;
    return data[cap / 32].effective >> (cap % 32) & 1;
}

/* Whether ID exists in our own user namespace, and if not, the highest that does. */
static unsigned long mapped(const char *map, unsigned long id)
{
    char text[4096];
    unsigned long highest = 0, first, outside, count;
    if (fd_read_file(AT_FDCWD, map, text, sizeof text) < 0)
        return 0;
    for (char *line = text; line && *line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (sscanf(line, "%lu %lu %lu", &first, &outside, &count) != 3 || count == 0)
            continue;
        if (id >= first && id - first < count)
            return id;
        if (first + count - 1 > highest)
            highest = first + count - 1;
    }
    return highest;
}

int jail_identity_choose(struct jail_identity *ret, struct err *err)
{
    struct stat st;
    *ret = (struct jail_identity){.uid = geteuid(), .gid = getegid()};
    if (stat("/proc/self/ns/user", &st) == 0)
        ret->user_ns = (uint64_t)st.st_ino;
    if (ret->uid != 0)
        return 0;
    if (!has_capability(CAP_SETUID) || !has_capability(CAP_SETGID)) {
        if (mapped("/proc/self/uid_map", 1) != 1)
            return 0; /* root of a one-id namespace: an ordinary user under another name */
        err_set(err, ERR_MISSING,
                "started as root without CAP_SETUID and CAP_SETGID: the guest would be root; start "
                "cordon as an ordinary user, or give the container both capabilities");
        return err_layer(err, "process");
    }
    unsigned long want = RANGE_FIRST + (unsigned long)getpid(), uid = want, gid = want;
    if (ret->user_ns != INITIAL_NS) {
        uid = mapped("/proc/self/uid_map", want);
        gid = mapped("/proc/self/gid_map", want);
    }
    if (uid == 0 || gid == 0)
        return 0; /* only root itself is mapped here, so it is not the host's root */
    ret->change = true;
    ret->mapped_mounts = has_capability(CAP_SYS_ADMIN);
    ret->uid = (uid_t)uid;
    ret->gid = (gid_t)gid;
    return 0;
}

uint64_t jail_identity_of_template(struct jail_identity *id)
{
    static unsigned long started;
    if (!id->change || id->user_ns != INITIAL_NS)
        return 0;
    const unsigned long block = ((unsigned long)getpid() * PER_HOLDER + started++) % BLOCKS;
    id->uid = (uid_t)(BLOCKS_FIRST + block * JAIL_TEMPLATE_IDS);
    id->gid = (gid_t)id->uid;
    return JAIL_TEMPLATE_IDS;
}

unsigned jail_identity_owner(unsigned id)
{
    _Static_assert(BLOCKS_FIRST % JAIL_TEMPLATE_IDS == 0, "blocks are found by a mask");
    return id >= BLOCKS_FIRST && id < RANGE_END ? id & ~(JAIL_TEMPLATE_IDS - 1U) : id;
}
