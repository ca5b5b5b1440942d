/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from filter.c because it names both architectures: see there. */
#include "jail/filter.h"

#include <linux/audit.h>
#include <stddef.h>
#include <string.h>

const struct jail_filter *jail_filter_find_arch(const char *name, unsigned audit_arch)
{
    const struct jail_filter *f = audit_arch == AUDIT_ARCH_X86_64    ? jail_filters_x86_64
                                  : audit_arch == AUDIT_ARCH_AARCH64 ? jail_filters_aarch64
                                                                     : NULL;
    for (; f && f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
