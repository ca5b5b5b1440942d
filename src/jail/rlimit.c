/* SPDX-License-Identifier: Apache-2.0 */
/* The limits that the kernel keeps per process. They stand behind the cgroup where there is one,
 * and alone where there is none. One table, soft and hard the same unless a row says why not. */
#include "jail/inside.h"

#include "sys/rlimit.h"

static int lower(const char *name, int id, rlim_t soft, rlim_t hard, struct err *err)
{
    return sys_rlimit_lower(id, soft, hard) < 0 ? err_sys(err, "set %s", name) : 0;
}

int jail_rlimits_apply(const struct jail_spec *spec, struct err *err)
{
    const struct jail_limits *l = &spec->limits;
    const rlim_t cpu_s = (l->cpu_ms + 999) / 1000;
    /* What a template lowered its children could not have: it keeps what the caller had. */
    const bool guest = spec->kind != JAIL_KIND_TEMPLATE;
    const struct {
        const char *name;
        int id;
        bool on;
        rlim_t soft, hard;
    } rows[] = {
        /* 1, not 0: a core_pattern that is a pipe ignores 0 and runs its handler on the host */
        {"RLIMIT_CORE", RLIMIT_CORE, true, 1, 1},
        {"RLIMIT_AS", RLIMIT_AS, guest && spec->memory_by_rlimit, l->memory + l->space,
         l->memory + l->space},
        /* the supervisor's timer comes first; this one is behind it: a warning, then SIGKILL */
        {"RLIMIT_CPU", RLIMIT_CPU, guest, cpu_s + 1, cpu_s + 2},
        /* above the quota, so that a file that grows meets ENOSPC and only a sparse one meets this
         */
        {"RLIMIT_FSIZE", RLIMIT_FSIZE, guest, l->disk + 4096, l->disk + 4096},
        /* a child has its template's, which was placed when that was executed */
        {"RLIMIT_STACK", RLIMIT_STACK, spec->stack != 0, spec->stack, spec->stack},
        {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, guest, 65536, 65536},
        {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, guest, 256, 256},
        {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, true, 0, 0},
        {"RLIMIT_NICE", RLIMIT_NICE, true, 0, 0},
        {"RLIMIT_RTPRIO", RLIMIT_RTPRIO, true, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int r = rows[i].on ? lower(rows[i].name, rows[i].id, rows[i].soft, rows[i].hard, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

int jail_rlimit_tasks(const struct jail_spec *spec, struct err *err)
{
    const struct jail_limits *l = &spec->limits;
    rlim_t tasks = 1 + l->threads + l->processes;
    if (spec->branches) /* living branches count here too; then seccomp bounds the threads */
        tasks += JAIL_BRANCH_ROOM;
    if (!spec->memory_by_rlimit)
        tasks += 4; /* a cgroup counts them too, and tells when it refused one: let it be first */
    /* Counted per user namespace: this run alone. Without one the count is the user's, and useless. */
    const bool exact =
        spec->kind != JAIL_KIND_TEMPLATE && spec->mode == JAIL_FULL && !jail_off(spec, user);
    return exact ? lower("RLIMIT_NPROC", RLIMIT_NPROC, tasks, tasks, err) : 0;
}

int jail_rlimit_descriptors(const struct jail_spec *spec, struct err *err)
{
    return lower("RLIMIT_NOFILE", RLIMIT_NOFILE, spec->limits.descriptors, spec->limits.descriptors,
                 err);
}
