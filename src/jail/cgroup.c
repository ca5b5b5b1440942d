/* SPDX-License-Identifier: Apache-2.0 */
/* Control groups, where the machine lets us have one: version 2 as one folder that the builder is cloned
 * into, version 1 as one folder in each of three hierarchies that cordon-nest is moved into before it
 * builds anything. A move waits for the kernel's readers (milliseconds), which is why `auto` takes
 * version 1 only for runs that rlimits cannot bound. The name carries the owner's pid and start
 * time, so that the next run recognises a folder whose owner died, and removes it.
 *
 * Waits: nanosleep in jail_cgroup_remove; the members to end; 2000 times, 4 s; the cgroup stays */
#include "jail/outside.h"

#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define TOP "/sys/fs/cgroup"

static const char *const controllers[JAIL_CGROUP_PARTS] = {"memory", "pids", "cpuacct"};

bool jail_cgroup_unified(void)
{
    struct statfs fs;
    char text[512];
    return statfs(TOP, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC &&
           fd_read_file(AT_FDCWD, TOP "/cgroup.controllers", text, sizeof text) >= 0 &&
           strstr(text, "memory");
}

int jail_cgroup_version(void)
{
    if (jail_cgroup_unified())
        return 2;
    return access(TOP "/memory/memory.limit_in_bytes", F_OK) == 0 ? 1 : 0;
}

static unsigned long long start_time(int pid)
{
    char path[48], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return 0;
    char *at = strrchr(text, ')'); /* the name before it may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static uint64_t number_in(int dir, const char *file, const char *key)
{
    char text[4096];
    if (dir < 0 || fd_read_file(dir, file, text, sizeof text) < 0)
        return 0;
    char *at = text;
    if (key) {
        size_t len = strlen(key);
        while (at && !(strncmp(at, key, len) == 0 && at[len] == ' '))
            at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
        at = at ? at + len : NULL;
    }
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Kills all that is in DIR. */
static void end_members(int dir)
{
    char text[8192];
    if (fd_write_file(dir, "cgroup.kill", "1") == 0)
        return;
    if (fd_read_file(dir, "cgroup.procs", text, sizeof text) < 0)
        return;
    for (char *at = text, *next; *at; at = next) {
        long pid = strtol(at, &next, 10);
        if (next == at)
            break;
        if (pid > 1)
            kill((pid_t)pid, SIGKILL);
        next += *next == '\n';
    }
}

/* A folder can be removed once its last member is gone; that is a matter of milliseconds. */
void jail_cgroup_remove(int parent, const char *name)
{
    for (int tries = 0; tries < 2000; tries++) {
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return;
        if (errno == EACCES || errno == EPERM) /* root was given up: the next run sweeps it */
            return;
        FD_AUTO dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0)
            end_members(dir);
        nanosleep(&(struct timespec){.tv_nsec = tries < 20 ? 200000 : 2000000}, NULL);
    }
}

/* Folders of owners that are no more (killed together with their janitor). */
static void sweep(int parent)
{
    DIR *d = entries_of(parent);
    if (!d)
        return;
    for (const char *name; (name = entries_next(d));) {
        int pid;
        unsigned long long born;
        if (sscanf(name, "cordon-%d-%llu-", &pid, &born) == 2 && start_time(pid) != born)
            jail_cgroup_remove(parent, name);
    }
    closedir(d);
}

/* The folder we are in ourselves, in the hierarchy of CONTROLLER ("" for version 2). */
static int own_folder(const char *controller, char *out, size_t size)
{
    char text[8192];
    if (fd_read_file(AT_FDCWD, "/proc/self/cgroup", text, sizeof text) < 0)
        return -1;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        for (char *save = NULL, *n = strtok_r(names + 1, ",", &save);;
             n = strtok_r(NULL, ",", &save)) {
            if ((n && strcmp(n, controller) == 0) || (!n && !*controller && !names[1])) {
                snprintf(out, size, "%s%s%s", TOP, *controller ? "/" : "", controller);
                size_t len = strlen(out);
                snprintf(out + len, size - len, "%s", strcmp(path, "/") == 0 ? "" : path);
                return 0;
            }
            if (!n)
                break;
        }
    }
    errno = ENOENT;
    return -1;
}

static int set(int dir, const char *file, uint64_t n, struct err *err)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    return fd_write_file(dir, file, text) < 0 ? err_sys(err, "cgroup %s = %s", file, text) : 0;
}

static int make_in(struct jail_cgroup *cg, struct jail_janitor *j, int part, const char *folder,
                   struct err *err)
{
    cg->parent[part] = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cg->parent[part] < 0)
        return err_sys(err, "open the cgroup %s", folder);
    sweep(cg->parent[part]);
    int r = jail_janitor_tell(j, cg->parent[part], cg->name, err);
    if (r < 0)
        return r;
    if (mkdirat(cg->parent[part], cg->name, 0755) < 0)
        return err_sys(err, "make a cgroup in %s", folder);
    cg->dir[part] = openat(cg->parent[part], cg->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return cg->dir[part] < 0 ? err_sys(err, "open the cgroup in %s", folder) : 0;
}

static int make_v1(const struct jail_limits *l, struct jail_janitor *j, struct jail_cgroup *cg,
                   uint64_t cap, struct err *err)
{
    char folder[1024];
    for (int part = 0; part < JAIL_CGROUP_PARTS; part++) {
        int r = own_folder(controllers[part], folder, sizeof folder) < 0
                    ? err_sys(err, "this machine mounts no %s cgroup", controllers[part])
                    : make_in(cg, j, part, folder, err);
        if (r < 0)
            return r;
    }
    int r = set(cg->dir[JAIL_CGROUP_MEMORY], "memory.limit_in_bytes", l->memory, err);
    if (r == 0)
        r = set(cg->dir[JAIL_CGROUP_PIDS], "pids.max", cap, err);
    /* where swap is counted at all it is part of the limit */
    if (r == 0 && faccessat(cg->dir[0], "memory.memsw.limit_in_bytes", F_OK, 0) == 0)
        r = set(cg->dir[0], "memory.memsw.limit_in_bytes", l->memory, err);
    return r;
}

/* Version 2 allows no process beside child groups that have controllers, so our own folder will not
 * do while we are in it; its parent does where that is delegated to us, the top where we are root.
 */
static int make_v2(const struct jail_limits *l, struct jail_janitor *j, struct jail_cgroup *cg,
                   uint64_t cap, struct err *err)
{
    char own[1024], parent[1024];
    const char *given = getenv("CORDON_CGROUP");
    if (own_folder("", own, sizeof own) < 0)
        return err_sys(err, "find the own cgroup");
    snprintf(parent, sizeof parent, "%s", own);
    if (strcmp(parent, TOP) != 0)
        *strrchr(parent, '/') = 0;
    const char *candidates[] = {given, parent, own, TOP};
    int r = ERR_SYS;
    for (size_t i = given ? 0 : 1; i < (given ? 1 : 4); i++) {
        r = make_in(cg, j, JAIL_CGROUP_MEMORY, candidates[i], err);
        int dir = cg->dir[JAIL_CGROUP_MEMORY];
        if (r == 0)
            r = set(dir, "memory.max", l->memory, err);
        if (r == 0)
            r = set(dir, "pids.max", cap, err);
        if (r == 0) {
            (void)!fd_write_file(dir, "memory.swap.max", "0");
            (void)!fd_write_file(dir, "memory.oom.group", "1");
            return 0;
        }
        if (cg->dir[0] >= 0)
            unlinkat(cg->parent[0], cg->name, AT_REMOVEDIR);
        jail_cgroup_close(cg);
    }
    return r;
}

static uint64_t tasks(const struct jail_limits *l)
{
    return 2 + l->processes + l->threads; /* cordon-nest and the guest */
}

int jail_cgroup_make(const struct jail_limits *limits, struct jail_janitor *janitor,
                     struct jail_cgroup *ret, struct err *err)
{
    static unsigned serial;
    struct jail_cgroup cg = JAIL_CGROUP_NONE;
    cg.version = jail_cgroup_version();
    snprintf(cg.name, sizeof cg.name, "cordon-%d-%llu-%u", (int)getpid(), start_time(getpid()),
             serial++);
    uint64_t cap = tasks(limits);
    int r = cg.version == 2   ? make_v2(limits, janitor, &cg, cap, err)
            : cg.version == 1 ? make_v1(limits, janitor, &cg, cap, err)
                              : err_set(err, ERR_MISSING, "no memory controller is mounted");
    if (r < 0) {
        for (int part = 0; part < JAIL_CGROUP_PARTS; part++)
            if (cg.dir[part] >= 0)
                unlinkat(cg.parent[part], cg.name, AT_REMOVEDIR);
        jail_cgroup_close(&cg);
        if (err) {
            err->code = ERR_MISSING;
            return err_layer(err, "resources");
        }
        return r;
    }
    *ret = cg;
    return 0;
}

int jail_cgroup_move_in(const struct jail_cgroup *cg, pid_t pid, struct err *err)
{
    char text[24];
    snprintf(text, sizeof text, "%d", (int)pid);
    for (int part = 0; part < JAIL_CGROUP_PARTS; part++)
        if (cg->dir[part] >= 0 && fd_write_file(cg->dir[part], "cgroup.procs", text) < 0) {
            err_sys(err, "move the jail into its %s cgroup", controllers[part]);
            return err_layer(err, "resources");
        }
    return 0;
}

bool jail_cgroup_oom_killed(const struct jail_cgroup *cg)
{
    int dir = cg->dir[JAIL_CGROUP_MEMORY];
    return number_in(dir, cg->version == 2 ? "memory.events" : "memory.oom_control", "oom_kill") >
           0;
}

uint64_t jail_cgroup_refused(const struct jail_cgroup *cg)
{
    return cg->version == 0
               ? 0
               : number_in(cg->dir[cg->version == 2 ? JAIL_CGROUP_MEMORY : JAIL_CGROUP_PIDS],
                           "pids.events", "max");
}

uint64_t jail_cgroup_cpu_us(const struct jail_cgroup *cg)
{
    return cg->version == 2   ? number_in(cg->dir[JAIL_CGROUP_MEMORY], "cpu.stat", "usage_usec")
           : cg->version == 1 ? number_in(cg->dir[JAIL_CGROUP_CPU], "cpuacct.usage", NULL) / 1000
                              : 0;
}

uint64_t jail_cgroup_peak(const struct jail_cgroup *cg)
{
    return number_in(cg->dir[JAIL_CGROUP_MEMORY],
                     cg->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes", NULL);
}

void jail_cgroup_close(struct jail_cgroup *cg)
{
    for (int part = 0; part < JAIL_CGROUP_PARTS; part++) {
        fd_close(cg->dir[part]);
        fd_close(cg->parent[part]);
        cg->dir[part] = cg->parent[part] = -1;
    }
    cg->version = 0;
}
