/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions hold that rest: their memory, and their files, which are memory too. A session that rests does not
 * change, so each is looked at once a rest, and again when another one ended.
 *
 * One that was ended has its memory until the kernel has taken its process apart, and as long each of its relatives has
 * only a share of what they have in common: a look at that moment would count too little, and keep it. So its end is
 * waited for, and where that takes longer the others count with all that is resident, and nothing is kept.
 *
 * The client says what is allowed, by its policy; whoever is called counts with its limit, since that is what it may take
 * before anybody can look again. It counts with half of the budget at most: on a machine where one limit is all of the
 * budget, sessions that hold next to nothing must not keep each other from working.
 *
 * Waits: poll in others_are_gone; the end of a session that was killed; LIMIT_DYING_MS after it was killed; counts what is resident */
#include "pool/holding.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Pages that several processes have count for each with its share, so that those of the template, and of a session and
 * its branches, are counted once. Where the kernel does not tell that, or SHARES would be too small: all that is
 * resident; else the limit. */
static uint64_t memory_of(uint64_t pid, uint64_t limit, bool shares)
{
    char path[48], text[4096];
    uint64_t resident = 0;
    snprintf(path, sizeof path, "/proc/%llu/smaps_rollup", (unsigned long long)pid);
    const char *at = shares && fd_read_file(AT_FDCWD, path, text, sizeof text) > 0
                         ? strstr(text, "\nPss:")
                         : NULL;
    if (at)
        return strtoull(at + 5, NULL, 10) * KIB;
    snprintf(path, sizeof path, "/proc/%llu/statm", (unsigned long long)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) <= 0 ||
        sscanf(text, "%*u %" SCNu64, &resident) != 1)
        return limit;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The template of a session with folders of the host is there for that session and its branches alone, which share in it. Any other
 * is there in any case, for whoever comes. */
static uint64_t own_template(const struct pool_session *s, const struct pool_held *held,
                             bool shares)
{
    const struct pool_warm *w = held->from;
    const pid_t pid = w->own.shares && w->template ? jail_template_pid(w->template) : 0;
    return pid > 0 && w->sessions ? memory_of((uint64_t)pid, s->limits.memory, shares) / w->sessions
                                  : 0;
}

/* Of the session that was ended last. */
static bool others_are_gone(struct pool_holder *h)
{
    struct pollfd end = {.fd = h->dying, .events = POLLIN};
    if (h->dying < 0)
        return true;
    const uint64_t now = clock_now_ns(), until = h->killed_ns + LIMIT_DYING_MS * CLOCK_NS_PER_MS;
    if (poll(&end, 1, until > now ? (int)((until - now) / CLOCK_NS_PER_MS) : 0) == 1)
        fd_close(fd_take(&h->dying));
    return h->dying < 0;
}

uint64_t pool_idle_memory(struct pool_holder *h, struct pool_session *s)
{
    struct pool_held *held = s->child;
    struct statvfs fs;
    if (s->state != POOL_SESSION_IDLE || s->died_ns)
        return 0;
    if (held->held_bytes)
        return held->held_bytes;
    const bool settled = others_are_gone(h);
    uint64_t bytes =
        memory_of(held->pid, s->limits.memory, settled) + own_template(s, held, settled);
    if (fstatvfs(held->child.files, &fs) == 0)
        bytes += (fs.f_blocks - fs.f_bfree) * fs.f_frsize;
    if (settled)
        held->held_bytes = bytes;
    return bytes;
}

void pool_idle_memory_ended(struct pool_holder *h, int pidfd)
{
    fd_close(h->dying);
    h->dying = pidfd;
    h->killed_ns = clock_now_ns();
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
        uint64_t held = s == all_but ? 0 : pool_idle_memory(h, s);
        uint64_t bound = last ? pool_idle_memory(h, last) : UINT64_MAX;
        if (held && (held < bound || (held == bound && s > last)) &&
            (!found || held > pool_idle_memory(h, found)))
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
            held += pool_idle_memory(h, &h->sessions.session[i]);
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
                         (unsigned long long)(pool_idle_memory(h, s) / MIB));
        if (n < 0 || used + (size_t)n >= cap)
            break;
        memcpy(to + used, one, (size_t)n + 1);
        used += (size_t)n;
    }
    return false;
}
