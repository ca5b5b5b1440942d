/* SPDX-License-Identifier: Apache-2.0 */
/* The one error convention: 0 or a negative code, and a caller-held message.
 *
 * Takes:   a code and a format.
 * Gives:   a fixed-size record that needs no memory, so it also works after fork.
 * Never:   allocates, logs or exits.
 * Runs in: every process.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

/* Why something could not be done. A refusal of hostile code is not an error: it is a verdict. */
enum err_code {
    ERR_OK = 0,
    ERR_USAGE = -1,   /* the caller asked for something that makes no sense: exit status 2 */
    ERR_LIMIT = -2,   /* a ceiling of ours was reached */
    ERR_SYS = -3,     /* the kernel said no; sys_errno tells what */
    ERR_FORMAT = -4,  /* bytes that do not follow their format */
    ERR_MEMORY = -5,  /* no memory */
    ERR_MISSING = -6, /* a facility this machine lacks; `layer` names it: exit status 5 */
    ERR_STATE = -7,   /* asked at the wrong moment, or by the wrong party */
};

struct err {
    int code;
    int sys_errno;
    char layer[16]; /* the jail layer at fault, or empty */
    char msg[240];
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        0                                                                                          \
    }
#define ERR_MUST_USE __attribute__((warn_unused_result))

/* Fills ERR (which may be NULL) and returns CODE, so that `return err_set(...)` reads well. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The same with errno's text appended; keeps errno in the record. Returns ERR_SYS. */
int err_sys(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Whether the machine is at fault and not the request: descriptors, memory or disk were used up. */
bool err_is_host(const struct err *err);

/* Names the layer that failed; returns the code already in ERR. */
int err_layer(struct err *err, const char *layer);

/* Assertions stay on in release: a broken invariant stops the process. Not for input checks. */
#define base_assert(x) ((x) ? (void)0 : err_assert_failed(#x, __FILE__, __LINE__))
_Noreturn void err_assert_failed(const char *what, const char *file, int line);

#endif
