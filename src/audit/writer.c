/* SPDX-License-Identifier: Apache-2.0 */
/* A pid alone names nobody: it is given again. With the start time and the boot it names one process
 * of one pid namespace for ever. */
#include "audit/inside.h"

#include "base/limits.h"
#include "sys/fd.h"
#include "sys/here.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Field N of /proc/PID/stat. The second field is the program's name and may hold anything, so the count starts behind its
 * closing bracket. */
static uint64_t field_of(const char *stat, int n)
{
    const char *at = strrchr(stat, ')');
    for (int field = 2; at && field < n; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

enum { FIELD_TERMINAL = 7, FIELD_START = 22 };

/* It has ended, and nobody reaped it: where the first process of a container is no init, nobody ever will. */
static bool is_zombie(const char *stat)
{
    const char *at = strrchr(stat, ')');
    return at && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0);
}

int audit_writer_self(struct audit_writer *ret, bool *ret_terminal, struct err *err)
{
    char text[1024], hex[2 * AUDIT_BOOT];
    const char *boot = here_boot();
    size_t n = 0;
    *ret = (struct audit_writer){.pid = (uint32_t)getpid(), .pid_ns = here_pid_space()};
    if (!boot)
        return err_set(err, ERR_MISSING, "the audit needs /proc to say who writes: boot_id");
    for (const char *c = boot; *c && n < sizeof hex; c++)
        if (*c != '-' && *c != '\n')
            hex[n++] = *c;
    if (n != sizeof hex || !audit_unhex(hex, AUDIT_BOOT, ret->boot))
        return err_set(err, ERR_FORMAT, "boot_id of the kernel is not a uuid");
    if (fd_read_file(AT_FDCWD, "/proc/self/stat", text, sizeof text) < 0)
        return err_sys(err, "the audit needs /proc to say who writes: /proc/self/stat");
    ret->start = field_of(text, FIELD_START);
    *ret_terminal = field_of(text, FIELD_TERMINAL) != 0;
    if (ret->start == 0 || ret->pid_ns == 0)
        return err_set(err, ERR_MISSING, "the audit needs /proc to say who writes: /proc/self");
    return 0;
}

bool audit_writer_gone(const struct audit_writer *w, const struct audit_writer *self,
                       uint64_t age_ms)
{
    char path[32], text[1024];
    if (memcmp(w->boot, self->boot, AUDIT_BOOT) != 0)
        return true;
    if (w->pid == self->pid && w->start == self->start && w->pid_ns == self->pid_ns)
        return false;
    if (w->pid_ns !=
        self->pid_ns) /* in another container: not to be seen from here, but no run is that long */
        return age_ms > LIMIT_WALL_MS_MAX;
    if (kill((pid_t)w->pid, 0) < 0 && errno == ESRCH)
        return true;
    snprintf(path, sizeof path, "/proc/%u/stat", w->pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return false; /* hidden from us, and kill says that it is there */
    return field_of(text, FIELD_START) != w->start || is_zombie(text);
}
