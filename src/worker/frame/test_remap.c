/* SPDX-License-Identifier: Apache-2.0 */
/* This program is a template of its own: its memory is remapped, and each case is a fork of it that fetches as a child does
 * and then looks at its page table. */
#include "worker/frame/remap.h"

#include "base/tap.h"
#include "sys/fd.h"
#include "worker/frame/language.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGES = 64,
    PRINTED = 3,
    OFTEN = 40,
    NEVER = 20
}; /* pages of the arena, by who writes them */
enum { FETCHED = 1, HAS_PRINTED = 2, HAS_OFTEN = 4, HAS_NEVER = 8 }; /* what a child exits with */

const struct worker_language *worker_language;

static char *arena;
static size_t page;

static int rehearse(const char *with, bool only_print)
{
    (void)with;
    arena[PRINTED * page]++;
    if (!only_print)
        arena[OFTEN * page]++;
    return 0;
}

static bool go_on(void)
{
    return false;
}

static bool stop(void)
{
    return true;
}

/* Whether page NUMBER of the arena is there and this process's own, not the file's. */
static bool is_own(int pagemap, size_t number)
{
    uint64_t entry = 0;
    const off_t at = (off_t)(((uintptr_t)arena / page + number) * sizeof entry);
    return pread(pagemap, &entry, sizeof entry, at) == (ssize_t)sizeof entry && entry >> 63 & 1 &&
           !(entry >> 61 & 1);
}

static int child(bool (*until)(void))
{
    pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        int had = worker_remap_fetch(until) ? FETCHED : 0;
        FD_AUTO pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
        had |= is_own(pagemap, PRINTED) ? HAS_PRINTED : 0;
        had |= is_own(pagemap, OFTEN) ? HAS_OFTEN : 0;
        had |= is_own(pagemap, NEVER) ? HAS_NEVER : 0;
        _exit(had);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* How many maps of constants lie directly behind the loader's code: on x86-64 two, those of its file and those that it wrote
 * itself; on aarch64 none, for there constants lie among the code. */
static int constants_behind_code(void)
{
    char line[512], rights[5], path[256];
    unsigned long from, to, end = 0;
    int count = 0;
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f)) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255s", &from, &to, rights, path) < 3)
            continue;
        const bool more = from == end && strcmp(rights, "r--p") == 0;
        count += more;
        if (more || (strcmp(rights, "r-xp") == 0 && strstr(path, "/ld-linux")))
            end = to;
    }
    if (f)
        fclose(f);
    return count;
}

int main(void)
{
    static const struct worker_language none = {.program = "test_remap"};
    struct err err = ERR_INIT;
    page = (size_t)sysconf(_SC_PAGESIZE);
    worker_language = &none;
    FD_AUTO proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    arena = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (proc < 0 || arena == MAP_FAILED)
        return 1;
    memset(arena, 'x', PAGES * page);
    const int maps = constants_behind_code();
    worker_remap_watch();
    worker_remap_add(arena, PAGES * page);
    tap_ok(worker_remap(proc, rehearse, NULL, &err) == 0, "a program's memory is remapped: %s",
           err.code ? err.msg : "good");
    tap_ok(arena[0] == 'x' && arena[OFTEN * page] == 'x',
           "remapped memory has what was written before, and nothing of a rehearsal");
    tap_eq_int(constants_behind_code(), maps > 1 ? 1 : maps,
               "the constants of a library are one map");
    tap_eq_int(
        child(go_on), FETCHED | HAS_PRINTED | HAS_OFTEN,
        "a child that nobody waits for fetches every page that a rehearsal wrote, and no other");
    tap_eq_int(child(stop), FETCHED | HAS_PRINTED,
               "a child that somebody waits for fetches what a program writes that only prints");
    return tap_done();
}
