/* SPDX-License-Identifier: Apache-2.0 */
/* Why a worker of ours ended that never spoke, by its exit status, for the builder (early.c) and for whoever waited for its READY. */
#include "jail/run.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

void jail_tell_exit(int status, struct err *err)
{
    struct rlimit space;
    if (status == JAIL_WORKER_GAVE_UP)
        err_set(err, ERR_MISSING, "the worker gave up before it was locked; try `cordon doctor`");
    else if ((status == JAIL_LOADER_FAILED || status == ENOMEM) &&
             getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        err_set(
            err, ERR_MISSING,
            "the worker does not fit into %llu KB of address space; raise `ulimit -v` or --memory",
            (unsigned long long)space.rlim_cur / 1024);
    else if (status == JAIL_LOADER_FAILED)
        err_set(
            err, ERR_MISSING,
            "the loader could not put the worker together, a library that it needs may be missing; "
            "install Cordon again, or build it on this machine");
    else
        err_set(err, ERR_MISSING, "the worker could not be executed: %s; try `cordon doctor`",
                strerror(status));
}
