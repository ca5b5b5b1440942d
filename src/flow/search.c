/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes that outlive a run: of each collection of the policy, and of the head of each workspace. Every search that needs one has it brought up
 * to date first, by a cordon-tool that is given the folder, the index and nothing that a guest sent; the one that has the guest's query only reads
 * it. So what a guest does to the process that reads its query stays in its run.
 *
 * The index has one name, and what stands there is never changed: a new one is written beside it, synced, and takes its name. Killed at
 * any instant, the old one is there or the new one; half of a new one is removed next time.
 *
 * A look at every file of a collection costs more than the query where there are many, and no guest can change one: a run that searches
 * again and again looks again from time to time.
 *
 * Waits: lock_within in bring_up; another search that brings it up to date; LIMIT_INDEX_LOCK_MS; the index as it is
 *        fd_write_all in note_state; the disk; none (the kernel's own); the next search looks again
 *        fdatasync in name_new; the disk; none (the kernel's own); an error, and the index as it is */
#include "flow/steps.h"

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/limits.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "sys/space.h"
#include "sys/state.h"
#include "tools/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEXES "indexes" /* in the state folder */
#define HEAD    "search"  /* the name in the folder of a workspace */
#define STATE   "search.state"

/* What is indexed, and where the index lies. */
struct kept_index {
    int folder, dir;
    char name[POLICY_COLLECTION_MAX + 1], shown[POLICY_COLLECTION_MAX + 2];
    char fresh[POLICY_COLLECTION_MAX + 8], lock[POLICY_COLLECTION_MAX + 8];
    char state[48]; /* what never changes and has this name is indexed; empty: it may change */
};

static void name_files(struct kept_index *p, const char *name)
{
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->fresh, sizeof p->fresh, "%s.new", p->name);
    snprintf(p->lock, sizeof p->lock, "%s.lock", p->name);
}

/* ---- which ---- */

/* Whether FD is the folder WHAT, or lies in it, by whatever name. */
static bool lies_in(int fd, const struct stat *what)
{
    struct stat st, last = {.st_ino = 0};
    FD_AUTO at = openat(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (at >= 0 && fstat(at, &st) == 0) {
        if (st.st_dev == what->st_dev && st.st_ino == what->st_ino)
            return true;
        if (st.st_dev == last.st_dev && st.st_ino == last.st_ino)
            return false;
        last = st;
        const int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd_close(at);
        at = up;
    }
    return true; /* nobody knows, so it may be */
}

/* The state folder has the audit, and what other runs left: none of that is a document. */
static int keep_apart(int folder, int state, struct err *err)
{
    struct stat of_folder, of_state;
    if (fstat(folder, &of_folder) < 0 || fstat(state, &of_state) < 0)
        return err_sys(err, "its folder");
    return lies_in(folder, &of_state) || lies_in(state, &of_folder)
               ? err_set(err, ERR_USAGE,
                         "it has the state folder in it, or lies there; search.collections must "
                         "name another folder")
               : 0;
}

static int open_collection(const char *name, const char *path, struct kept_index *p,
                           struct err *err)
{
    char state[STATE_PATH_MAX];
    FD_AUTO home = -1;
    p->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->folder < 0)
        return err_sys(err, "its folder");
    int r = state_path(state, sizeof state, err);
    if (r == 0)
        r = state_open(state, true, &home, err);
    if (r == 0)
        r = keep_apart(p->folder, home, err);
    if (r == 0)
        r = state_folder(home, INDEXES, true, &p->dir, err);
    name_files(p, name);
    snprintf(p->shown, sizeof p->shown, "%s:", name);
    return r;
}

/* The checkout that is the lower layer of /workspace: what the run has not touched has the same times and inodes there. 1: it has none. */
static int open_head(const struct flow *f, struct kept_index *p, struct err *err)
{
    const char *lower = f->req->checkout;
    for (size_t i = 0; i < f->spec.nbinds; i++)
        if (f->spec.binds[i].lower)
            lower = f->spec.binds[i].source;
    if (!lower || !f->req->index_folder)
        return 1;
    p->folder = open(lower, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (p->folder < 0)
        return err_sys(err, "the checkout of the workspace");
    const char *tree = strrchr(lower, '/');
    snprintf(p->state, sizeof p->state, "%s", tree ? tree + 1 : "");
    name_files(p, HEAD);
    snprintf(p->shown, sizeof p->shown, "/workspace");
    return state_open(f->req->index_folder, false, &p->dir, err);
}

/* ---- up to date ---- */

/* The index as it is; -1: there is none. */
static int open_index(const struct kept_index *p, struct err *err)
{
    int fd = -1;
    struct stat st;
    if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return -1;
    return state_file(p->dir, p->name, O_RDONLY, &fd, err) < 0 ? -1 : fd;
}

static int name_new(const struct kept_index *p, int fresh, struct err *err)
{
    return fdatasync(fresh) < 0 || renameat(p->dir, p->fresh, p->dir, p->name) < 0
               ? err_sys(err, "name the index %s", p->name)
               : 0;
}

static int index_now(const struct flow *f, const struct kept_index *p, int stop,
                     struct tools_indexed *ret, struct err *err)
{
    struct tools_process process = {.sock = -1};
    FD_AUTO program = open(f->req->tool_program, O_PATH | O_CLOEXEC);
    FD_AUTO base = open_index(p, err);
    FD_AUTO fresh = -1;
    if (program < 0)
        return err_sys(err, "cordon-tool");
    (void)unlinkat(p->dir, p->fresh, 0); /* of who was killed; the lock says that nobody is at it */
    int r = state_file(p->dir, p->fresh, O_RDWR | O_CREAT | O_EXCL, &fresh, err);
    tools_process_give_index(fresh);
    if (r == 0)
        r = tools_process_start(&process, program, p->folder, stop, TOOLS_INDEXES, err);
    if (r == 0)
        r = tools_process_index(&process, p->shown, base, ret, err);
    tools_process_end(&process);
    if (r == 0 && ret->written)
        r = name_new(p, fresh, err);
    else
        (void)unlinkat(p->dir, p->fresh, 0);
    return r;
}

/* An error leaves RET as it is, and the index that is there can be searched: then it is not current. */
static int bring_up(const struct flow *f, const struct kept_index *p, int stop,
                    struct tools_indexed *ret, struct err *err)
{
    const struct policy *policy = f->req->context->policy;
    struct disk_space space = {.short_of = false};
    FD_AUTO lock = -1;
    int r = disk_space_look(p->dir, policy->workspaces.free, policy->workspaces.free_percent,
                            &space, err);
    if (r == 0 && space.short_of)
        r = err_set(err, ERR_LIMIT,
                    "the disk of the state folder has %llu MB free, and %llu MB are kept free "
                    "(workspaces.free and workspaces.free_percent of the policy)",
                    (unsigned long long)(space.free / MIB), (unsigned long long)(space.kept / MIB));
    if (r == 0)
        r = state_file(p->dir, p->lock, O_RDWR | O_CREAT, &lock, err);
    if (r == 0)
        r = lock_within(lock, F_WRLCK, 0, LIMIT_INDEX_LOCK_MS, "the lock of an index", err);
    return r == 0 ? index_now(f, p, stop, ret, err) : r;
}

/* A checkout is named by the git id of its tree, and never changed: once all of it is in the index, there is nothing to look for. A note
 * that a crash left behind is of an older index at worst, and the run's own look finds what differs. */
static bool is_noted(const struct kept_index *p)
{
    char noted[sizeof p->state] = "";
    struct stat st;
    return p->state[0] && fd_read_file(p->dir, STATE, noted, sizeof noted) > 0 &&
           strcmp(noted, p->state) == 0 && fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void note_state(const struct kept_index *p)
{
    struct err ignored = ERR_INIT; /* then the next search looks again */
    FD_AUTO fd = -1;
    if (p->state[0] && state_file(p->dir, STATE, O_WRONLY | O_CREAT | O_TRUNC, &fd, &ignored) == 0)
        (void)!fd_write_all(fd, p->state, strlen(p->state));
}

/* A file that was as new as the look at it is read once more, so a state is noted by a look that found nothing to read.
 * What is not finished yet goes on at the next call; until then the process that has the query reads nothing by itself, which would
 * not be kept. */
static void bring_up_head(const struct flow *f, const struct kept_index *p, int stop,
                          struct tools_indexed *ret, struct err *err)
{
    if (is_noted(p)) {
        ret->current = true;
        return;
    }
    (void)unlinkat(p->dir, STATE, 0); /* of the state that the index is brought away from */
    if (bring_up(f, p, stop, ret, err) == 0 && ret->current && !ret->read)
        note_state(p);
}

const struct flow_look *flow_look_holds(const struct flow_looks *looks, const char *collection,
                                        uint64_t now_ns)
{
    enum { TIMES = 10 };
    for (size_t i = 0; i < FLOW_LOOKS; i++) {
        const struct flow_look *l = &looks->look[i];
        if (strcmp(l->collection, collection) != 0)
            continue;
        const uint64_t most = LIMIT_LOOK_MS * CLOCK_NS_PER_MS;
        const uint64_t holds = TIMES * (l->ended_ns - l->began_ns);
        return now_ns - l->ended_ns < (holds < most ? holds : most) ? l : NULL;
    }
    return NULL;
}

void flow_look_keep(struct flow_looks *looks, const char *collection, uint64_t began_ns,
                    uint64_t now_ns, const struct tools_indexed *state)
{
    struct flow_look *l = NULL;
    for (size_t i = 0; i < FLOW_LOOKS && !l; i++)
        if (strcmp(looks->look[i].collection, collection) == 0)
            l = &looks->look[i];
    if (!l)
        l = &looks->look[looks->next++ % FLOW_LOOKS];
    *l = (struct flow_look){.began_ns = began_ns, .ended_ns = now_ns};
    l->state = (struct tools_indexed){.documents = state->documents, .current = true};
    if (state->current) /* else the next search goes on */
        snprintf(l->collection, sizeof l->collection, "%s", collection);
}

/* Of a collection. What goes wrong is no error: then it is not current, and REASON says why. */
static void look_at(const struct flow *f, const struct kept_index *p, int stop,
                    struct flow_looks *looks, struct tools_base *ret, struct err *why)
{
    const uint64_t began = clock_now_ns();
    const struct flow_look *last = flow_look_holds(looks, p->name, began);
    if (last)
        ret->state = last->state;
    else if (bring_up(f, p, stop, &ret->state, why) < 0)
        snprintf(ret->reason, sizeof ret->reason, "%.200s", why->msg);
    else
        flow_look_keep(looks, p->name, began, clock_now_ns(), &ret->state);
}

/* ---- for one search ---- */

static enum tools_end refuse(const struct policy *policy, const char *name, struct buf *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const struct policy_words *w = &policy->search.collections;
    struct jsonw j = {.out = text};
    char why[600];
    size_t at = (size_t)snprintf(why, sizeof why, "there is no collection '%.40s'; ",
                                 name[strspn(name, letters)] ? "..." : name);
    at +=
        (size_t)snprintf(why + at, sizeof why - at, "%s",
                         w->count ? "the policy has" : "the policy has none (search.collections)");
    for (size_t i = 0; i < w->count && at + POLICY_COLLECTION_MAX + 8 < sizeof why; i++)
        at += (size_t)snprintf(why + at, sizeof why - at, "%s %.*s", i ? "," : "",
                               (int)strcspn(w->items[i], "="), w->items[i]);
    buf_reset(text);
    jsonw_string(&j, NULL, why);
    return TOOLS_REFUSED;
}

/* What the operator declared cannot be searched: that is no failure of the tool, whose breaker would shut every other search. */
static enum tools_end refuse_unreadable(const char *name, const struct err *why, struct buf *text)
{
    struct jsonw j = {.out = text};
    char line[400];
    snprintf(line, sizeof line, "the collection %s cannot be searched%s%.300s", name,
             why->code ? ": " : "", why->msg);
    buf_reset(text);
    jsonw_string(&j, NULL, line);
    return TOOLS_REFUSED;
}

static void close_kept(struct kept_index *p)
{
    fd_close(p->folder);
    fd_close(p->dir);
}

enum tools_end flow_search_base(const struct flow *f, const char *collection, int stop,
                                struct flow_looks *looks, struct tools_base *ret, struct buf *text)
{
    const struct policy *policy = f->req->context->policy;
    const char *path = *collection ? policy_find_collection(policy, collection) : NULL;
    struct kept_index p = {.folder = -1, .dir = -1};
    struct err why = ERR_INIT;
    *ret = (struct tools_base){.fd = -1};
    if (*collection && !path)
        return refuse(policy, collection, text);
    int r = path ? open_collection(collection, path, &p, &why) : open_head(f, &p, &why);
    if (r == 0 && !path)
        bring_up_head(f, &p, stop, &ret->state, &why);
    else if (r == 0)
        look_at(f, &p, stop, looks, ret, &why);
    if (r == 0)
        ret->fd = open_index(&p, &why);
    close_kept(&p);
    /* without one of a workspace, its files are read */
    return ret->fd < 0 && path ? refuse_unreadable(collection, &why, text) : TOOLS_OK;
}
