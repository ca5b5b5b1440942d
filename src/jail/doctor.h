/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can enforce, found by trying it.
 *
 * Takes:   nothing: it looks at the machine it runs on.
 * Gives:   one row per facility: enforced or missing, what was seen, and the operator's fix.
 * Never:   changes the machine; believes a version number where the thing itself can be tried.
 * Runs in: `cordon doctor`.
 */
#ifndef JAIL_DOCTOR_H
#define JAIL_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum jail_need {
    JAIL_NEED_FULL, /* the default mode cannot do without */
    JAIL_NEED_BOTH, /* neither mode can do without */
    JAIL_NEED_SOME, /* only what the detail names needs it */
};

struct jail_check {
    const char *name, *layer;
    enum jail_need need;
    bool enforced;
    char detail[200];
    const char *fix; /* what the operator can do when it is missing */
};

#define JAIL_CHECKS_MAX 24
size_t jail_doctor_look(struct jail_check checks[JAIL_CHECKS_MAX]);

#endif
