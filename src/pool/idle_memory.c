/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions hold that rest: their memory, and their files, which are memory too. A session that rests does not
 * change, so each is looked at once a rest, and again when another one ended.
 *
 * The client says what is allowed, by its policy; whoever is called counts with its limit, since that is what it may take
 * before anybody can look again. It counts with half of the budget at most: on a machine where one limit is all of the
 * budget, sessions that hold next to nothing must not keep each other from working. */
#include "pool/holding.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Pages that several processes have count for each with its share, so that those of the template, and of a session and
 * its branches, are counted once. Where the kernel does not tell that: all that is resident; else the limit. */
static uint64_t own_memory(const struct pool_session *s, const struct pool_held *held)
{
    char path[48], text[4096];
    uint64_t resident = 0;
    snprintf(path, sizeof path, "/proc/%llu/smaps_rollup", (unsigned long long)held->pid);
    const char *at =
        fd_read_file(AT_FDCWD, path, text, sizeof text) > 0 ? strstr(text, "\nPss:") : NULL;
    if (at)
        return strtoull(at + 5, NULL, 10) * KIB;
    snprintf(path, sizeof path, "/proc/%llu/statm", (unsigned long long)held->pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0 ||
        sscanf(text, "%*u %" SCNu64, &resident) != 1)
        return s->limits.memory;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t pool_idle_memory(struct pool_session *s)
{
    struct pool_held *held = s->child;
    struct statvfs fs;
    if (s->state != POOL_SESSION_IDLE || s->died_ns)
        return 0;
    if (held->held_bytes)
        return held->held_bytes;
    held->held_bytes = own_memory(s, held);
    if (fstatvfs(held->child.files, &fs) == 0)
        held->held_bytes += (fs.f_blocks - fs.f_bfree) * fs.f_frsize;
    return held->held_bytes;
}

void pool_idle_memory_changed(struct pool_holder *h)
{
    for (size_t i = 0; i < sizeof h->sessions.session / sizeof *h->sessions.session; i++) {
        struct pool_held *held = h->sessions.session[i].child;
        if (held)
            held->held_bytes = 0;
    }
}

/* The one that holds most, and less than the last one that was named (the same much: after it in the table). */
static struct pool_session *next_largest(struct pool_holder *h, const struct pool_session *all_but,
                                         struct pool_session *last)
{
    struct pool_session *found = NULL;
    for (size_t i = 0; i < sizeof h->sessions.session / sizeof *h->sessions.session; i++) {
        struct pool_session *s = &h->sessions.session[i];
        uint64_t held = s == all_but ? 0 : pool_idle_memory(s);
        uint64_t bound = last ? pool_idle_memory(last) : UINT64_MAX;
        if (held && (held < bound || (held == bound && s > last)) &&
            (!found || held > pool_idle_memory(found)))
            found = s;
    }
    return found;
}

bool pool_idle_memory_fits(struct pool_holder *h, const struct pool_session *all_but,
                           uint64_t asked, uint64_t budget, struct pool_reply *declined)
{
    uint64_t held = 0;
    for (size_t i = 0; i < sizeof h->sessions.session / sizeof *h->sessions.session; i++)
        if (&h->sessions.session[i] != all_but)
            held += pool_idle_memory(&h->sessions.session[i]);
    if (asked > budget / 2)
        asked = budget / 2;
    if (!budget || held <= budget - asked)
        return true;
    *declined = (struct pool_reply){.type = WIRE_DECLINED, .state = POOL_WHY_BUDGET};
    char *to = declined->reason;
    size_t cap = sizeof declined->reason;
    size_t used =
        (size_t)snprintf(to, cap,
                         "idle sessions hold %llu MB; with %llu MB for this call that is more "
                         "than %llu MB (sessions.memory_percent); close",
                         (unsigned long long)(held / MIB), (unsigned long long)(asked / MIB),
                         (unsigned long long)(budget / MIB));
    const char *between = " ";
    for (struct pool_session *s = NULL; (s = next_largest(h, all_but, s)); between = ", or ") {
        char one[POOL_NAME + 32];
        int n = snprintf(one, sizeof one, "%s%s (%llu MB)", between, s->name,
                         (unsigned long long)(pool_idle_memory(s) / MIB));
        if (n < 0 || used + (size_t)n >= cap)
            break;
        memcpy(to + used, one, (size_t)n + 1);
        used += (size_t)n;
    }
    return false;
}
