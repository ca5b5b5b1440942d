/* SPDX-License-Identifier: Apache-2.0 */
/* What --in names is copied into /workspace: by the builder where a jail is built for the run, here where the child was
 * made before anybody asked for it. A copy keeps the time of its source, so a file of the same name, size and time is
 * one that the program left alone: it is not listed, and not taken out. The sources are opened first, because root may
 * be given up before the end. */
#include "flow/steps.h"

#include "jail/put.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

int flow_inputs_open(struct flow *f, struct err *err)
{
    const struct jail_spec *s = &f->req->spec;
    for (size_t i = 0; i < s->nbinds; i++) {
        if (!s->binds[i].copied)
            continue;
        int fd = jail_bind_open(&s->binds[i], err);
        if (fd < 0)
            return fd;
        f->inputs[f->ninputs] = fd;
        f->input_binds[f->ninputs++] = &s->binds[i];
    }
    return 0;
}

int flow_inputs_put(struct flow *f, struct err *err)
{
    const int files = jail_run_files(f->run);
    int r = 0;
    for (size_t i = 0; i < f->ninputs && r == 0; i++)
        r = files < 0 ? err_set(err, ERR_STATE, "the child has no file system to copy into")
                      : jail_put(f->inputs[i], files, f->input_binds[i], err);
    return r;
}

enum flow_input_state flow_input_now(const struct flow *f, const char *path,
                                     const struct statx *now)
{
    for (size_t i = f->ninputs; i-- > 0;) {
        const char *dest = f->input_binds[i]->dest;
        const size_t len = strlen(dest);
        if (strncmp(path, dest, len) != 0 || (path[len] && path[len] != '/'))
            continue;
        struct statx was;
        const char *rest = path[len] ? path + len + 1 : "";
        if (statx(f->inputs[i], rest, AT_SYMLINK_NOFOLLOW | (*rest ? 0 : AT_EMPTY_PATH),
                  STATX_BASIC_STATS, &was) < 0)
            continue;
        return was.stx_size == now->stx_size && was.stx_mtime.tv_sec == now->stx_mtime.tv_sec &&
                       was.stx_mtime.tv_nsec == now->stx_mtime.tv_nsec
                   ? FLOW_INPUT_UNTOUCHED
                   : FLOW_INPUT_CHANGED;
    }
    return FLOW_INPUT_NONE;
}

void flow_inputs_close(struct flow *f)
{
    while (f->ninputs)
        fd_close(f->inputs[--f->ninputs]);
}
