/* The guest has no capability in any namespace, cannot get one by exec (bounding set empty,
 * securebits locked), and owns nothing in which one would matter (ns.c). */
#include "jail/inside.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In its own namespaces alone: mounts are taken away (SYS_ADMIN), and a child's user namespace may map
 * the id that is 0 here (SETFCAP). The exec that follows makes the bounding set the permitted one. */
int jail_caps_of_template(struct err *err)
{
    for (int cap = 0;; cap++) {
        if (cap == CAP_SYS_ADMIN || cap == CAP_SETFCAP)
            continue;
        if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
            continue;
        return errno == EINVAL ? 0 : err_sys(err, "drop capability %d", cap);
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
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {{0}};
#ifdef CORDON_LAYER_SWITCHES
    if (jail_off(spec, nnp)) /* seccomp then wants CAP_SYS_ADMIN; exec of a non-root id clears it */
        none[CAP_SYS_ADMIN / 32].effective = none[CAP_SYS_ADMIN / 32].permitted =
            1U << (CAP_SYS_ADMIN % 32);
#endif
    if (syscall(SYS_capset, &head, none) < 0)
        return err_sys(err, "capset to nothing");
    return 0;
}
