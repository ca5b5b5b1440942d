/* SPDX-License-Identifier: Apache-2.0 */
/* A file and not the holder's memory: a holder whose last session was idle for too long ends right after it, and would
 * take along what it remembers. One line an end: name, role, whether it ran while it rested, when, why.
 *
 * A client that takes them renames the file first, so that the holder begins another one, and removes it when all is recorded. Both
 * hold a lock meanwhile, on the file and not on its name: a process that gets it for a file that was removed opens the file again.
 *
 * Waits: flock in *; nobody: LOCK_NB; at once; the holder begins again, the client leaves it to the other one
 *        write in pool_ended_write; the disk; none (the kernel's own); the end is not recorded
 *        fgets in pool_ended_take; a small file; none (the kernel's own); what is left is taken the next time */
#include "pool/ended.h"

#include "base/clock.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WRITTEN "sessions-ended"
#define TAKEN   "sessions-ended.taken"

enum {
    FILE_MAX = 256 * 1024, /* nobody has looked for a long time: more are not kept */
    TRIES = 8,
};

/* Locked, and still there under a name; else -1. */
static int open_locked(int dir, const char *name, int flags)
{
    struct err ignored = ERR_INIT; /* there is none, mostly */
    struct stat st;
    FD_AUTO fd = -1;
    if (state_file(dir, name, flags, &fd, &ignored) < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ||
        fstat(fd, &st) < 0 || st.st_nlink == 0)
        return -1;
    return fd_take(&fd);
}

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void pool_ended_write(int dir, const struct pool_ended *e)
{
    char line[POOL_NAME + POOL_ROLE + POOL_REASON + 64];
    struct pool_ended clean = *e;
    struct stat st;
    FD_AUTO fd = -1;
    for (int i = 0; i < TRIES && fd < 0; i++) /* one that is being taken is not there next time */
        fd = open_locked(dir, WRITTEN, O_WRONLY | O_APPEND | O_CREAT);
    for (char *c = clean.reason; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' '; /* a reason may quote what a template printed */
    int n = snprintf(line, sizeof line, "%s\t%s\t%d\t%llu\t%s\n", e->name, e->role, e->ran_at_rest,
                     (unsigned long long)now_ms(), clean.reason);
    base_assert(n > 0 && (size_t)n < sizeof line);
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > FILE_MAX || write(fd, line, (size_t)n) != n)
        return;
}

/* The next field of a line up to the tab; false: it is not there or too long. */
static bool field(char **at, char *out, size_t size)
{
    size_t len = strcspn(*at, "\t");
    if (len >= size || (*at)[len] != '\t')
        return false;
    memcpy(out, *at, len);
    out[len] = 0;
    *at += len + 1;
    return true;
}

/* False for what is no line of ours: a disk that was full cut it. */
static bool parse(char *line, struct pool_ended *ret)
{
    char rest[4], when[24];
    *ret = (struct pool_ended){0};
    if (!field(&line, ret->name, sizeof ret->name) || !pool_name_good(ret->name) ||
        !field(&line, ret->role, sizeof ret->role) || !field(&line, rest, sizeof rest) ||
        !field(&line, when, sizeof when) || strlen(line) >= sizeof ret->reason)
        return false;
    ret->ran_at_rest = rest[0] == '1';
    ret->ended_ms = strtoull(when, NULL, 10);
    snprintf(ret->reason, sizeof ret->reason, "%s", line);
    return true;
}

/* Left by a client that did not come to its end, or by the holder. */
static int take_file(int dir)
{
    int fd = open_locked(dir, TAKEN, O_RDONLY);
    if (fd >= 0 || faccessat(dir, TAKEN, F_OK, 0) == 0)
        return fd; /* another client is at it, and will come to the next one too */
    return renameat(dir, WRITTEN, dir, TAKEN) == 0 ? open_locked(dir, TAKEN, O_RDONLY) : -1;
}

int pool_ended_take(int dir, int (*record)(void *ctx, const struct pool_ended *e, struct err *err),
                    void *ctx, struct err *err)
{
    int r = 0;
    for (int i = 0; i < 2 && r == 0; i++) { /* what a client left, and what came since */
        FD_AUTO fd = dir >= 0 ? take_file(dir) : -1;
        if (fd < 0)
            return 0;
        FILE *f = fdopen(dup(fd), "re");
        struct pool_ended e;
        char line[POOL_NAME + POOL_ROLE + POOL_REASON + 64];
        while (f && r == 0 && fgets(line, sizeof line, f)) {
            line[strcspn(line, "\n")] = 0;
            if (parse(line, &e))
                r = record(ctx, &e, err);
        }
        if (!f || ferror(f))
            r = r < 0 ? r : err_sys(err, "read which sessions ended");
        if (f)
            fclose(f);
        if (r == 0 && unlinkat(dir, TAKEN, 0) < 0)
            r = err_sys(err, "remove which sessions ended");
    }
    return r;
}
