/* SPDX-License-Identifier: Apache-2.0 */
/* The guest has no capability in any namespace, cannot get one by exec (bounding set empty,
 * securebits locked), and owns nothing in which one would matter (ns.c). */
#include "jail/inside.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int keep_only(uint64_t kept, struct err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)kept, .permitted = (uint32_t)kept},
        {.effective = (uint32_t)(kept >> 32), .permitted = (uint32_t)(kept >> 32)}};
    return syscall(SYS_capset, &head, data) < 0 ? err_sys(err, "capset") : 0;
}

/* Root that reads what a guest shut needs one right for it, and no other: what it writes is its own. */
int jail_caps_of_reader(bool reads, struct err *err)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[2] = {{0}};
    if (syscall(SYS_capget, &head, has) < 0)
        return err_sys(err, "capget");
    return keep_only(reads ? has[0].permitted & (1U << CAP_DAC_READ_SEARCH) : 0, err);
}

/* A template mounts nothing itself: the builder of a child is root of a user namespace of its own. But a child's
 * namespace may map the id that is 0 here only if its maker has SETFCAP; for anything else that it would serve
 * there is no file that a template can write. One that has ids for its children becomes the child's for the moment
 * in which it makes its namespaces: SETUID and SETGID, over ids that own nothing but those children's files. The exec
 * that follows makes the bounding set the permitted one. */
uint64_t jail_caps_template_has(const struct jail_spec *spec)
{
    return 1ULL << CAP_SETFCAP | (spec->ids ? 1ULL << CAP_SETUID | 1ULL << CAP_SETGID : 0);
}

int jail_caps_of_template(const struct jail_spec *spec, struct err *err)
{
    const uint64_t kept = jail_caps_template_has(spec);
    for (int cap = 0;; cap++) {
        if ((cap < 64 && kept >> cap & 1) || prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        return errno == EINVAL ? keep_only(kept, err) : err_sys(err, "drop capability %d", cap);
    }
}

int jail_caps_drop(const struct jail_spec *spec, struct err *err)
{
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return err_sys(err, "clear the ambient set");
    const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                               SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                               SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    /* Without namespaces an ordinary user may change neither and has nothing to drop. */
    bool may = prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0;
    if (!may && (spec->mode == JAIL_FULL || errno != EPERM))
        return err_sys(err, "lock the securebits");
    for (int cap = 0; may; cap++) {
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        if (errno == EINVAL)
            break; /* past the last one this kernel knows */
        return err_sys(err, "drop capability %d from the bounding set", cap);
    }
    uint64_t kept = 0;
#ifdef CORDON_LAYER_SWITCHES
    if (jail_off(spec, nnp)) /* seccomp then wants CAP_SYS_ADMIN; exec of a non-root id clears it */
        kept = 1ULL << CAP_SYS_ADMIN;
#endif
    return keep_only(kept, err);
}
