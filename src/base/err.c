/* SPDX-License-Identifier: Apache-2.0 */
/* Messages are formatted into the caller's record at the place where the reason is known; whoever
 * reports (prog/, flow/) only prints. vsnprintf with integers and strings allocates nothing.
 *
 * The code is written last: a process that writes into another's memory (jail/builder) may be killed at any instant, and
 * whoever reads a code finds the whole message behind it. */
#include "base/err.h"

#include "base/fit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    err->sys_errno = 0;
    err->layer[0] = 0;
    fit_words(err->msg, sizeof err->msg, vsnprintf(err->msg, sizeof err->msg, fmt, ap));
    va_end(ap);
    err->code = code;
    return code;
}

int err_sys(struct err *err, const char *fmt, ...)
{
    int saved = errno;
    if (!err)
        return ERR_SYS;
    va_list ap;
    va_start(ap, fmt);
    err->sys_errno = saved;
    err->layer[0] = 0;
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    const char *why = strerror(saved), *hint = saved == EFBIG    ? " (raise `ulimit -f`)"
                                               : saved == EMFILE ? " (raise `ulimit -n`)"
                                                                 : "";
    size_t tail = strlen(why) + strlen(hint) + 2, room = sizeof err->msg - 1;
    if (tail > room / 2)
        tail = room / 2;
    if (n > (int)(room - tail)) { /* why it failed is worth more than the end of a path */
        fit_words(err->msg, room - tail + 1, n);
        n = (int)strlen(err->msg);
    }
    if (n >= 0)
        snprintf(err->msg + n, sizeof err->msg - (size_t)n, ": %s%s", why, hint);
    err->code = ERR_SYS;
    return ERR_SYS;
}

bool err_is_host(const struct err *err)
{
    switch (err->sys_errno) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EIO:
        return true;
    default:
        return err->code == ERR_MEMORY;
    }
}

int err_layer(struct err *err, const char *layer)
{
    if (!err)
        return ERR_SYS;
    snprintf(err->layer, sizeof err->layer, "%s", layer);
    return err->code;
}

void err_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "cordon: broken invariant: %s (%s:%d)\n", what, file, line);
    abort();
}
