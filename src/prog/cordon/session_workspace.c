/* SPDX-License-Identifier: Apache-2.0 */
/* A session's process is made by its template, before anybody knows of a workspace, so its /workspace is laid upon the
 * checkout of the head afterwards (jail_child_layer); where there are no overlays it gets a copy. The holder keeps the
 * checkout's descriptor with the session: as long as it is open, whoever tidies up leaves that checkout alone. A call that
 * touches nothing costs one look at the ref of the head and one at the upper layer (`make bench BENCH=workspace`).
 *
 * Each commit is the tree of the checkout with the whole upper layer upon it, so the checkout below stays the one that the
 * session began with until the head is moved by somebody else.
 *
 * Each call that ends well is a commit of its own, by the rule of workspaces.commit. What a call changed that did
 * not end well stays in the session, and the next commit has it, too. The guest is stopped while its files are read; it
 * was not killed, so the reader relies on nothing but descriptors (src/workspace/folder.c).
 *
 * Waits: flock in lay_files; nobody (LOCK_NB); at once; an error */
#include "session_workspace.h"

#include "base/clock.h"
#include "jail/child.h"
#include "sys/fd.h"
#include "sys/here.h"
#include "workspace_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- the note: name, commit, whether something is not committed, the commit of the lower layer ---- */

#define NOTE_FORM "%129s %40s %7s %40s"
#define UNKNOWN   "-" /* in place of a commit: its files are to be put there again */
#define COPY      "-" /* in place of a lower layer: there is none */

static bool read_note(struct session_workspace *w, const char *note)
{
    char word[8] = "";
    if (sscanf(note, NOTE_FORM, w->name, w->base, word, w->lower) != 4 ||
        !workspace_full_name_good(w->name)) {
        w->name[0] = 0;
        return false;
    }
    w->dirty = strcmp(word, "dirty") == 0;
    return true;
}

static void write_note(const struct session_workspace *w, char ret[POOL_NOTE + 1])
{
    snprintf(ret, POOL_NOTE + 1, "%s %s %s %s", w->name, w->base, w->dirty ? "dirty" : "clean",
             w->lower);
}

void session_workspace_note(const struct session_workspace *w, char ret[POOL_NOTE + 1])
{
    ret[0] = 0;
    if (w->name[0])
        write_note(w, ret);
}

void session_workspace_name(const char *note, char ret[WORKSPACE_FULL_MAX + 1])
{
    struct session_workspace w = {.name = ""};
    (void)read_note(&w, note);
    snprintf(ret, WORKSPACE_FULL_MAX + 1, "%s", w.name);
}

/* ---- files ---- */

/* FROM: the checkout of BASE. The holder keeps what a session upon layers needs; without it, it must not go on. */
static int lay_files(struct session_workspace *w, struct pool_client *holder,
                     struct jail_child *child, int from, const char *base, struct err *err)
{
    struct pool_answer kept;
    const bool layered = child->laid >= 0;
    if (strcmp(w->lower, COPY) == 0) /* layers are made while nothing of a guest ran, or never */
        return jail_child_fill(child->files, from, err);
    int r = flock(from, LOCK_SH | LOCK_NB) < 0 ? err_sys(err, "hold the checkout of %.70s", w->name)
                                               : jail_child_layer(child, from, err);
    if (r == JAIL_LAYER_NONE) {
        snprintf(w->lower, sizeof w->lower, COPY);
        return layered ? err_set(err, ERR_STATE, "the layers of /workspace cannot be made anew")
                       : jail_child_fill(child->files, from, err);
    }
    if (r == 0)
        r = pool_client_layers(holder, child, &kept, err);
    if (r == 0 && kept.declined)
        r = err_set(err, ERR_STATE, "%.190s", kept.reply.reason);
    if (r == 0)
        snprintf(w->lower, sizeof w->lower, "%s", base);
    return r;
}

/* The session gets the files of the head. The lock for readers keeps the checkout there until the session holds it. */
static int give_files(struct session_workspace *w, struct pool_client *holder,
                      struct jail_child *child, struct err *err)
{
    struct workspace_order *o = &w->order;
    char tree[41] = "", base[41] = "", folder[WORKSPACE_NAME_MAX + 1];
    char path[WORKSPACE_NAME_MAX + 64];
    struct buf text;
    const char *boot = here_boot();
    buf_init(&text, 4096);
    o->verb = "checkout";
    o->words[0] = boot ? boot : "";
    int r = workspace_order_hold(o, HOLD_READ, err);
    if (r == 0)
        r = workspace_order_hold(o, HOLD_CHANGE, err);
    if (r == 0)
        r = workspace_order_run(o, &text, err);
    workspace_order_release(o);
    if (r == 0 && sscanf(text.data ? text.data : "", "%40[0-9a-f] %40[0-9a-f]", base, tree) != 2)
        r = err_set(err, ERR_FORMAT, "cordon-workspace gave an answer that cordon does not read");
    buf_done(&text);
    workspace_base_part(o->name, folder);
    snprintf(path, sizeof path, "%s/trees/%s", folder, tree);
    FD_AUTO from =
        r < 0 ? -1 : openat(o->home, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (r == 0)
        r = from < 0 ? err_sys(err, "open the checkout of %.70s", o->name)
                     : lay_files(w, holder, child, from, base, err);
    workspace_order_release_reader(o);
    if (r == 0)
        memcpy(w->base, base, sizeof base);
    return r;
}

int session_workspace_new(const char *name, struct pool_client *holder, struct jail_child *child,
                          char ret_note[POOL_NOTE + 1], struct err *err)
{
    struct session_workspace w = {.order = WORKSPACE_ORDER_INIT};
    if (!*name)
        return err_set(err, ERR_USAGE, "--workspace needs a name; see cordon workspace list");
    snprintf(w.name, sizeof w.name, "%s", name);
    int r = workspace_order_open(&w.order, "checkout", name, HOLD_NONE, err);
    if (r == 0)
        r = give_files(&w, holder, child, err);
    workspace_order_done(&w.order);
    if (r == 0)
        write_note(&w, ret_note);
    return r;
}

/* ---- before a call ---- */

/* A moved head, as far as it can be followed. */
static int follow(struct session_workspace *w, const char *head, struct pool_client *holder,
                  struct jail_child *child, struct err *err)
{
    if (w->dirty) {
        snprintf(w->behind, sizeof w->behind,
                 "conflict: %.60s changed (it is at %.12s), and the session has changes of its own "
                 "since %.12s that no commit has; it keeps them",
                 w->name, head, w->base);
        return 0;
    }
    int r = give_files(w, holder, child, err);
    if (r < 0) /* it may have some of the files: the next call tries again */
        snprintf(w->base, sizeof w->base, UNKNOWN);
    return r;
}

/* Where a session's checkout lies: trees/ID of a workspace's folder. One that was left to it when the workspace was deleted has no
 * index. */
static void find_checkout(struct session_workspace *w, const struct jail_child *child)
{
    char self[40];
    snprintf(self, sizeof self, "/proc/self/fd/%d", child->lower);
    const ssize_t n = child->lower < 0 ? -1 : readlink(self, w->checkout, sizeof w->checkout - 1);
    w->checkout[n < 0 ? 0 : n] = 0;
    snprintf(w->folder, sizeof w->folder, "%s", w->checkout);
    char *tree = strrchr(w->folder, '/');
    if (tree)
        *tree = 0;
    char *trees = tree ? strrchr(w->folder, '/') : NULL;
    if (!trees || strcmp(trees, "/trees") != 0)
        w->checkout[0] = 0;
    else
        *trees = 0;
}

/* What is needed when the flow has taken the child. */
static int take_descriptors(struct session_workspace *w, const struct jail_child *child,
                            struct err *err)
{
    w->control = fcntl(child->control, F_DUPFD_CLOEXEC, 3);
    w->guest = fcntl(child->guest, F_DUPFD_CLOEXEC, 3);
    w->layers = child->laid < 0 ? -1 : fcntl(child->laid, F_DUPFD_CLOEXEC, 3);
    find_checkout(w, child);
    return w->control < 0 || w->guest < 0 || (child->laid >= 0 && w->layers < 0)
               ? err_sys(err, "descriptors of the session")
               : 0;
}

int session_workspace_begin(struct session_workspace *w, const char *note,
                            struct pool_client *holder, struct jail_child *child, struct err *err)
{
    char head[41] = "";
    *w = (struct session_workspace){
        .order = WORKSPACE_ORDER_INIT, .control = -1, .guest = -1, .layers = -1};
    if (!read_note(w, note))
        return 0;
    w->open = true;
    w->order.lock_ms = LIMIT_WORKSPACE_LOCK_MS;
    int r = workspace_order_open(&w->order, "keep", w->name, HOLD_NONE, err);
    if (r == 0)
        r = workspace_order_head(&w->order, head, err);
    if (r == ERR_USAGE) { /* deleted, merged or discarded: its files and variables go on */
        snprintf(w->behind, sizeof w->behind, "%.150s", err->msg);
        *err = (struct err)ERR_INIT;
        return take_descriptors(w, child, err);
    }
    if (r == 0 && strcmp(head, w->base) != 0)
        r = follow(w, head, holder, child, err);
    return r < 0 ? r : take_descriptors(w, child, err);
}

void session_workspace_done(struct session_workspace *w)
{
    if (!w->open)
        return;
    workspace_order_done(&w->order);
    fd_close(fd_take(&w->control));
    fd_close(fd_take(&w->guest));
    fd_close(fd_take(&w->layers));
    w->open = false;
}

/* ---- after it ---- */

/* The process that reads may take longer than a session has to be given back. */
static void hold_still(const struct session_workspace *w)
{
    const uint64_t until =
        clock_now_ns() + (LIMIT_WORKSPACE_LOCK_MS + LIMIT_WORKSPACE_RUN_MS) * CLOCK_NS_PER_MS;
    (void)!jail_child_deadline(w->control, until); /* where the init is gone, so is the session */
    syscall(SYS_pidfd_send_signal, w->guest, SIGSTOP, NULL, 0); /* the next loan wakes it */
}

static void keep(void *session, int files, struct flow_result *result)
{
    struct session_workspace *w = session;
    struct flow_snapshot *s = &result->snapshot;
    char why[120] = "";
    snprintf(s->workspace, sizeof s->workspace, "%s", w->name);
    w->dirty = w->dirty || result->files_touched;
    if (w->behind[0]) {
        snprintf(s->why, sizeof s->why, "%s", w->behind);
    } else if (!w->dirty) {
        memcpy(s->id, w->base, sizeof w->base);
    } else if (workspace_run_discards(w->req, result->status, why, sizeof why)) {
        snprintf(s->why, sizeof s->why,
                 "%s: what it changed stays in the session, and is in no commit yet", why);
    } else {
        char states[2 * 41 + 1];
        const bool copied = w->layers < 0;
        hold_still(w);
        /* of a copy all of the files: there is no layer, whatever the guest made */
        w->order.form = copied ? "c" : "u";
        snprintf(states, sizeof states, "%s%s%s", w->base, copied ? "" : " ",
                 copied ? "" : w->lower);
        w->order.stop = w->req->stop;
        w->order.policy = w->req->context->policy;
        if (workspace_run_commit(&w->order, copied ? files : w->layers, states, "call", result) ==
            0) {
            w->dirty = false;
            memcpy(w->base, s->id, sizeof w->base);
        }
    }
}

void session_workspace_wrote(struct session_workspace *w, int files, struct flow_result *result)
{
    if (!w->name[0])
        return;
    w->dirty = true;
    keep(w, files, result);
}

void session_workspace_request(struct session_workspace *w, struct flow_request *req)
{
    w->req = req;
    if (!w->name[0] || req->kind != FLOW_CALL)
        return;
    req->keep = keep;
    req->keep_ctx = w;
    req->layered = w->layers >= 0;
    req->layers = w->layers;
    req->checkout = w->checkout[0] ? w->checkout : NULL;
    req->index_folder = w->checkout[0] ? w->folder : req->index_folder;
    req->once = false; /* root commits as root, so root is not given up */
}

/* ---- a branch ---- */

int session_workspace_fork(const char *note, char ret_note[POOL_NOTE + 1], struct err *err)
{
    struct workspace_order o = WORKSPACE_ORDER_INIT;
    struct session_workspace w = {.name = ""};
    char name[WORKSPACE_FULL_MAX + 1] = "";
    struct buf text;
    ret_note[0] = 0;
    if (!read_note(&w, note))
        return 0;
    buf_init(&text, 4096);
    o.words[2] = strcmp(w.base, UNKNOWN) == 0 ? "" : w.base;
    int r = workspace_order_open(&o, "clone", w.name, HOLD_CHANGE, err);
    if (r == 0)
        r = workspace_order_run(&o, &text, err);
    if (r == 0 &&
        (sscanf(text.data ? text.data : "", "%129s", name) != 1 || !workspace_full_name_good(name)))
        r = err_set(err, ERR_FORMAT, "cordon-workspace gave an answer that cordon does not read");
    workspace_order_done(&o);
    buf_done(&text);
    snprintf(w.name, sizeof w.name, "%s", name);
    if (r == 0)
        write_note(&w, ret_note);
    return r;
}

void session_workspace_unfork(const char *note)
{
    struct workspace_order o = WORKSPACE_ORDER_INIT;
    struct session_workspace w = {.name = ""};
    struct err ignored =
        ERR_INIT; /* then cordon workspace list shows it, and it can be discarded */
    struct buf text;
    if (!read_note(&w, note))
        return;
    buf_init(&text, 4096);
    if (workspace_order_open(&o, "discard", w.name, HOLD_CHANGE, &ignored) == 0)
        (void)!workspace_order_run(&o, &text, &ignored);
    workspace_order_done(&o);
    buf_done(&text);
}
