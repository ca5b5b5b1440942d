/* SPDX-License-Identifier: Apache-2.0 */
/* One folder a workspace, with a bare repository in it; and one rule for everything that takes more than one step:
 * it is made or unmade under a name that no workspace can have (.new-NAME, .old-NAME), and a rename is the instant at
 * which it counts. Whoever holds the lock of NAME knows that what lies under those names, and every lock file of git's
 * in the store, was left by a process that is dead.
 *
 * libgit2 syncs each object and the head itself; of many objects src/workspace/bulk.c does.
 *
 * Waits: fsync in sync_here; the disk; none (the kernel's own); the lock of one workspace is held */
#include "workspace/inside.h"

#include "base/clock.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STORE "store.git"

int workspace_git_err(struct err *err, const char *what)
{
    const git_error *e = git_error_last();
    const bool memory = e && e->klass == GIT_ERROR_NOMEMORY;
    return err_set(err, memory ? ERR_MEMORY : ERR_STATE, "%s: %.180s", what,
                   e ? e->message : "libgit2 gave no reason");
}

int workspace_printf(const struct workspace_sink *out, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0)
        return ERR_FORMAT;
    return out->put(out->ctx, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* Nothing but the store's own configuration: a user's or the machine's could name filters, hooks or another order. The
 * state folder was checked by whoever opened it, so libgit2 need not look at owners. */
int workspace_init(struct err *err)
{
    static const int levels[] = {GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_GLOBAL,
                                 GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_PROGRAMDATA};
    int r = git_libgit2_init();
    for (size_t i = 0; i < sizeof levels / sizeof *levels && r >= 0; i++)
        r = git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
    if (r >= 0)
        r = git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    if (r >= 0)
        r = git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    if (r >= 0) /* each object of a tree was written by us a moment ago */
        r = git_libgit2_opts(GIT_OPT_ENABLE_STRICT_OBJECT_CREATION, 0);
    return r < 0 ? workspace_git_err(err, "libgit2 does not start") : 0;
}

/* ---- folders ---- */

static void hidden(const char *kind, const char *name, char out[WORKSPACE_NAME_MAX + 16])
{
    snprintf(out, WORKSPACE_NAME_MAX + 16, ".%s-%s", kind, name);
}

static int sync_here(struct err *err)
{
    FD_AUTO here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return here < 0 || fsync(here) < 0 ? err_sys(err, "sync the folder of the workspaces") : 0;
}

#define USED ".used-" /* a checkout of a deleted workspace that a session has below it */

/* Checkouts that were left to sessions, when the last of those has ended. */
static int remove_used(struct err *err)
{
    DIR *d = entries_of(AT_FDCWD);
    int r = 0;
    if (!d)
        return err_sys(err, "look at the folder of the workspaces");
    for (const char *name; r == 0 && (name = entries_next(d));)
        if (strncmp(name, USED, strlen(USED)) == 0 && workspace_tree_unused(dirfd(d), name))
            r = workspace_remove(dirfd(d), name, err);
    closedir(d);
    return r;
}

/* Of the workspace in the folder OLD, which goes. Every session that has one of them holds it. */
static int leave_used(const char *old, struct err *err)
{
    char path[WORKSPACE_NAME_MAX + 32];
    snprintf(path, sizeof path, "%s/trees", old);
    DIR *d = entries_take(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    int r = 0;
    if (!d)
        return errno == ENOENT ? 0 : err_sys(err, "look at the checkouts");
    for (const char *name; r == 0 && (name = entries_next(d));) {
        char left[96];
        if (name[0] == '.' || workspace_tree_unused(dirfd(d), name))
            continue;
        snprintf(left, sizeof left, USED "%llu-%.40s", (unsigned long long)clock_now_ns(), name);
        if (renameat2(dirfd(d), name, AT_FDCWD, left, RENAME_NOREPLACE) < 0)
            r = err_sys(err, "leave a checkout to its session");
    }
    closedir(d);
    return r;
}

/* Left by who was killed while NAME was made or deleted. */
static int remove_rest(const char *name, struct err *err)
{
    static const char *const kinds[] = {"new", "old"};
    int r = 0;
    for (size_t i = 0; i < 2 && r == 0; i++) {
        char rest[WORKSPACE_NAME_MAX + 16];
        hidden(kinds[i], name, rest);
        r = leave_used(rest, err);
        if (r == 0)
            r = workspace_remove(AT_FDCWD, rest, err);
    }
    return r < 0 ? r : remove_used(err);
}

static bool exists(const char *name)
{
    struct stat st;
    return fstatat(AT_FDCWD, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int none(const char *name, struct err *err)
{
    return err_set(err, ERR_USAGE, "there is no workspace '%s'; see cordon workspace list", name);
}

/* ---- making ---- */

/* What makes git print what we print, and read the names that we refuse in the same way. */
static int configure(git_repository *repo)
{
    git_config *config = NULL;
    int r = git_repository_config(&config, repo);
    if (r == 0)
        r = git_config_set_int32(config, "core.abbrev", 12);
    if (r == 0)
        r = git_config_set_bool(config, "diff.renames", 0);
    if (r == 0)
        r = git_config_set_bool(config, "core.protectHFS", 1);
    if (r == 0)
        r = git_config_set_bool(config, "core.protectNTFS", 1);
    if (r == 0) /* objects that no ref names may be another process's commit in the making */
        r = git_config_set_int32(config, "gc.auto", 0);
    if (r == 0) /* git compares no more by lines than we do */
        r = git_config_set_int32(config, "core.bigFileThreshold", LIMIT_WORKSPACE_DIFF);
    git_config_free(config);
    return r;
}

static int fill(const char *path, struct err *err)
{
    static const struct workspace_author genesis = {.message = "genesis"};
    git_repository_init_options options = GIT_REPOSITORY_INIT_OPTIONS_INIT;
    git_repository *repo = NULL;
    git_treebuilder *builder = NULL;
    git_oid tree, commit;
    options.flags =
        GIT_REPOSITORY_INIT_BARE | GIT_REPOSITORY_INIT_MKDIR | GIT_REPOSITORY_INIT_NO_REINIT;
    options.initial_head = "main";
    options.description = "a workspace of cordon: read it with git, change it with cordon\n";
    int r = 0;
    if (git_repository_init_ext(&repo, path, &options) < 0 || configure(repo) < 0 ||
        git_treebuilder_new(&builder, repo, NULL) < 0 || git_treebuilder_write(&tree, builder) < 0)
        r = workspace_git_err(err, "the store cannot be made");
    if (r == 0)
        r = workspace_commit(repo, WORKSPACE_HEAD, &tree, NULL, &genesis, &commit, err);
    git_treebuilder_free(builder);
    git_repository_free(repo);
    return r;
}

int workspace_create(const char *name, struct err *err)
{
    char new[WORKSPACE_NAME_MAX + 16], store[WORKSPACE_NAME_MAX + 32];
    hidden("new", name, new);
    snprintf(store, sizeof store, "%s/" STORE, new);
    int r = remove_rest(name, err);
    if (r < 0)
        return r;
    if (exists(name))
        return err_set(err, ERR_USAGE, "there is a workspace '%s' already", name);
    if (mkdir(new, 0700) < 0)
        return err_sys(err, "make a folder for the workspace");
    r = fill(store, err);
    if (r == 0)
        r = sync_here(err);
    if (r == 0 && renameat2(AT_FDCWD, new, AT_FDCWD, name, RENAME_NOREPLACE) < 0)
        r = err_sys(err, "name the workspace '%s'", name);
    if (r < 0) { /* the disk may be full: what is half made goes at once */
        struct err ignored = ERR_INIT;
        (void)!remove_rest(name, &ignored);
        return r;
    }
    return sync_here(err);
}

int workspace_delete(const char *name, struct err *err)
{
    char old[WORKSPACE_NAME_MAX + 16];
    hidden("old", name, old);
    int r = remove_rest(name, err);
    if (r < 0)
        return r;
    if (renameat2(AT_FDCWD, name, AT_FDCWD, old, RENAME_NOREPLACE) < 0)
        return errno == ENOENT ? none(name, err) : err_sys(err, "delete the workspace '%s'", name);
    r = sync_here(err);
    return r < 0 ? r : remove_rest(name, err);
}

/* ---- opening ---- */

/* Only who holds the lock may call this: then nobody is alive who could have made one of these. */
static int remove_stale(const char *store, struct err *err)
{
    static const char *const locks[] = {"HEAD.lock", "config.lock", "packed-refs.lock"};
    FD_AUTO dir = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (dir < 0)
        return err_sys(err, "open the store");
    for (size_t i = 0; i < sizeof locks / sizeof *locks; i++)
        if (unlinkat(dir, locks[i], 0) < 0 && errno != ENOENT)
            return err_sys(err, "remove %s, which a dead process left", locks[i]);
    int r = workspace_remove(dir, WORKSPACE_INCOMING, err);
    if (r < 0)
        return r;
    enum { OBJECTS = 2 }; /* how many of them hold objects; the others hold refs */
    static const char *const folders[] = {"objects", "objects/pack", "refs/heads", "refs/tags",
                                          "refs/cordon/verified"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        DIR *d =
            entries_take(openat(dir, folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        if (!d && errno == ENOENT && i > OBJECTS)
            continue; /* nothing was ever verified */
        if (!d)
            return err_sys(err, "look into %s", folders[i]);
        for (const char *name; (name = entries_next(d));) {
            const size_t len = strlen(name);
            const bool lock = i >= OBJECTS && len > 5 && strcmp(name + len - 5, ".lock") == 0;
            const bool half = i < OBJECTS && (strncmp(name, "tmp_", 4) == 0 ||
                                              strncmp(name, "pack_git2_", 10) == 0);
            if (lock || half)
                (void)unlinkat(dirfd(d), name, 0); /* if it stays, it harms nobody */
        }
        closedir(d);
    }
    return 0;
}

/* Which commit is the head of NAME. A clone that is not there has none. */
static int find_ref(struct workspace *w, const char *name, struct err *err)
{
    git_oid id;
    const char *clone = workspace_clone_part(name);
    snprintf(w->ref, sizeof w->ref, WORKSPACE_REFS "%s", clone ? clone : "main");
    if (!clone || git_reference_name_to_id(&id, w->repo, w->ref) == 0)
        return 0;
    return err_set(err, ERR_USAGE, "%s has no clone '%s'; see cordon workspace list", w->folder,
                   clone);
}

int workspace_open(const char *name, bool change, struct workspace **ret, struct err *err)
{
    char store[WORKSPACE_NAME_MAX + 32];
    struct workspace *w = calloc(1, sizeof *w);
    if (!w)
        return err_set(err, ERR_MEMORY, "no memory");
    snprintf(w->name, sizeof w->name, "%s", name);
    workspace_base_part(name, w->folder);
    snprintf(store, sizeof store, "%s/" STORE, w->folder);
    int r = !exists(w->folder) ? none(w->folder, err) : change ? remove_stale(store, err) : 0;
    if (r == 0 && git_repository_open_bare(&w->repo, store) < 0)
        r = workspace_git_err(err, "the store cannot be opened");
    if (r == 0)
        r = find_ref(w, name, err);
    if (r < 0)
        workspace_close(w);
    else
        *ret = w;
    return r;
}

void workspace_close(struct workspace *w)
{
    if (!w)
        return;
    workspace_unbound(w);
    git_repository_free(w->repo);
    free(w);
}

/* ---- the head ---- */

/* libgit2 has said that a commit was written which a full disk did not take. What is acknowledged is looked at: the ref
 * and the object, as the next process would read them. */
static bool is_there(git_repository *repo, const char *ref, const git_oid *id)
{
    git_repository *again = NULL;
    git_commit *commit = NULL;
    git_oid now;
    const bool there = git_repository_open_bare(&again, git_repository_path(repo)) == 0 &&
                       git_reference_name_to_id(&now, again, ref) == 0 && git_oid_equal(&now, id) &&
                       git_commit_lookup(&commit, again, id) == 0;
    git_commit_free(commit);
    git_repository_free(again);
    return there;
}

int workspace_commit(git_repository *repo, const char *ref, const git_oid *tree,
                     const git_commit *parent, const struct workspace_author *author, git_oid *ret,
                     struct err *err)
{
    git_signature *by = NULL, *us = NULL;
    git_tree *files = NULL;
    git_buf message = {0};
    char mail[128];
    const git_commit *parents[] = {parent};
    const char *name = author->name ? author->name : "cordon";
    const git_time_t now = (git_time_t)time(NULL);
    snprintf(mail, sizeof mail, "%.100s@cordon", name);
    int r = git_signature_new(&by, name, mail, now, 0);
    if (r == 0)
        r = git_signature_new(&us, "cordon", "cordon@cordon", now, 0);
    if (r == 0)
        r = git_tree_lookup(&files, repo, tree);
    if (r == 0)
        r = git_message_prettify(&message, author->message, 0, 0);
    if (r == 0)
        r = git_commit_create(ret, repo, ref, by, us, NULL, message.ptr, files, parent ? 1 : 0,
                              parents);
    if (r == 0 && !is_there(repo, ref, ret)) {
        git_error_set_str(GIT_ERROR_OS, "it is not on the disk, which may be full");
        r = -1;
    }
    git_buf_dispose(&message);
    git_tree_free(files);
    git_signature_free(us);
    git_signature_free(by);
    return r < 0 ? workspace_git_err(err, "the commit failed, and the head is where it was") : 0;
}
