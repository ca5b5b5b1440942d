/* SPDX-License-Identifier: Apache-2.0 */
/* The files in their order, what each was when it was read, and the policy made of them. Without files nothing is
 * read, copied or allocated but the store itself: the built-in table is the policy.
 *
 * Waits: read in read_file; a regular file; none (the kernel's own); an error */
#include "base/limits.h"
#include "policy/check.h"
#include "policy/load.h"
#include "sys/fd.h"
#include "sys/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#define SYSTEM_FILE "/etc/cordon/policy.yaml"
#define SOURCES     3
#define RACY_NS     20000000LL /* a file that changed so shortly before it was read may change unseen */

struct source {
    char *path;
    enum { OF_SYSTEM, OF_USER, ASKED_FOR } kind;
    bool there, racy;
    struct stat st;
    uint64_t read, in_force; /* a sum over the bytes, to know a change from a touch; 0: no file */
};

struct policy_store {
    struct source sources[SOURCES];
    size_t count;
    struct policy_box *box; /* NULL: built-in */
};

/* ---- one reading of all files ---- */

static long long since_change_ns(const struct stat *st)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec - st->st_ctim.tv_sec) * 1000000000LL + (now.tv_nsec - st->st_ctim.tv_nsec);
}

/* FNV-1a: nobody gains by a collision, who writes the file rules the policy anyway. */
static uint64_t sum_of(const struct buf *text)
{
    uint64_t sum = 14695981039346656037ULL;
    for (size_t i = 0; i < text->len; i++)
        sum = (sum ^ (unsigned char)text->data[i]) * 1099511628211ULL;
    return sum | 1;
}

static int read_file(int fd, const char *path, struct buf *out, struct err *err)
{
    char chunk[8192];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "the policy %.120s", path);
        if (n == 0)
            return 0;
        if (out->len + (size_t)n > POLICY_FILE_MAX || buf_add(out, chunk, (size_t)n) < 0)
            return err_set(err, ERR_LIMIT, "the policy %.120s has more than %d bytes", path,
                           POLICY_FILE_MAX);
    }
}

static int read_source(struct source *s, struct policy_box **box, struct policy_problems *problems,
                       struct err *err)
{
    struct stat st;
    int fd = -1, r = 0;
    s->read = 0;
    if (stat(s->path, &st) == 0 ||
        (errno != ENOENT && errno != ENOTDIR)) /* most often nothing is there */
        r = walk_open(&(struct walk_rules){.what = "the policy", .trusted_file = true}, s->path,
                      &fd, &s->st, err);
    if (r < 0 && s->kind == OF_USER && err->sys_errno == EACCES) {
        s->there = false; /* somebody else's home folder, by the environment */
        return 0;
    }
    if (r < 0)
        return r;
    s->there = fd >= 0;
    if (!s->there)
        return s->kind == ASKED_FOR
                   ? err_set(err, ERR_USAGE, "--policy %.150s: no such file", s->path)
                   : 0;
    long long age = since_change_ns(&s->st);
    s->racy = age < RACY_NS;
    struct buf text;
    buf_init(&text, POLICY_FILE_MAX);
    r = read_file(fd, s->path, &text, err);
    close(fd);
    s->read = sum_of(&text);
    if (r == 0 && !*box)
        *box = policy_box_new();
    if (r == 0 && *box)
        (*box)->later = s->kind != OF_SYSTEM;
    if (r == 0 && (!*box || policy_box_load(*box, s->path, text.data ? text.data : "", text.len,
                                            problems) < 0))
        r = err_set(err, ERR_MEMORY, "no memory for the policy");
    buf_done(&text);
    return r;
}

/* *ret_box is NULL when there are no files. */
static int read_all(struct policy_store *store, struct policy_box **ret_box, struct err *err)
{
    struct policy_problems problems;
    struct policy_box *box = NULL;
    struct err why = ERR_INIT; /* a caller that takes no message has one all the same */
    int r = 0;
    policy_problems_init(&problems);
    for (size_t i = 0; i < store->count && r == 0; i++)
        r = read_source(&store->sources[i], &box, &problems, &why);
    if (r == 0 && box) {
        policy_box_check(box, &problems);
        policy_problems_sort(&problems);
        if (problems.errors)
            r = policy_problems_err(&problems, &why);
    }
    policy_problems_done(&problems);
    if (r < 0) {
        policy_box_free(box);
        if (err)
            *err = why;
        return r;
    }
    *ret_box = box;
    return 0;
}

/* ---- where the files are ---- */

static int add_source(struct policy_store *store, int kind, const char *path)
{
    struct source *s = &store->sources[store->count++];
    *s = (struct source){.path = strdup(path), .kind = kind};
    return s->path ? 0 : ERR_MEMORY;
}

static bool shipped_place(const char *self, const char *name, char *out, size_t size)
{
    static const char *const places[] = {"policies", "../share/cordon/policies"};
    const char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++)
        if (snprintf(out, size, "%.*s/%s/%s.yaml", (int)(slash - self), self, places[i], name) <
                (int)size &&
            access(out, F_OK) == 0)
            return true;
    return false;
}

/* --policy as a path: a word without a slash and an ending is the name of a policy that we ship. */
static int find_extra(const char *word, char *out, size_t size, struct err *err)
{
    char self[4096] = "";
    const char *called = (const char *)getauxval(AT_EXECFN);
    if (strchr(word, '/') || strchr(word, '.')) {
        if (snprintf(out, size, "%s", word) >= (int)size)
            return err_set(err, ERR_USAGE, "--policy: the path is too long");
        return 0;
    }
    if (!policy_name_good(word))
        return err_set(err, ERR_USAGE,
                       "--policy: '%.60s' is neither a file nor the name of a policy", word);
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    if ((called && shipped_place(called, word, out, size)) || shipped_place(self, word, out, size))
        return 0;
    return err_set(
        err, ERR_USAGE,
        "--policy: no policy '%.60s' is shipped (max-safety and production are); a file is named "
        "by its path: ./%.60s",
        word, word);
}

static bool user_file(char *out, size_t size)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config && config[0] == '/')
        return snprintf(out, size, "%s/cordon/policy.yaml", config) < (int)size;
    return home && home[0] == '/' &&
           snprintf(out, size, "%s/.config/cordon/policy.yaml", home) < (int)size;
}

int policy_open(const char *extra, struct policy_store **ret_store, struct err *err)
{
    char user[4096], asked[4096];
    const char *files[3] = {SYSTEM_FILE, user_file(user, sizeof user) ? user : NULL, NULL};
    if (extra) {
        int r = find_extra(extra, asked, sizeof asked, err);
        if (r < 0)
            return r;
        files[2] = asked;
    }
    return policy_open_files(files[0], files[1], files[2], ret_store, err);
}

/* What was read is what is in force now. True: it is something else than before. */
static bool take_up(struct policy_store *store)
{
    bool other = false;
    for (size_t i = 0; i < store->count; i++) {
        other = other || store->sources[i].in_force != store->sources[i].read;
        store->sources[i].in_force = store->sources[i].read;
    }
    return other;
}

int policy_open_files(const char *system_file, const char *user, const char *asked,
                      struct policy_store **ret_store, struct err *err)
{
    struct policy_store *store = calloc(1, sizeof *store);
    int r = store ? 0 : ERR_MEMORY;
    if (r == 0 && system_file)
        r = add_source(store, OF_SYSTEM, system_file);
    if (r == 0 && user)
        r = add_source(store, OF_USER, user);
    if (r == 0 && asked)
        r = add_source(store, ASKED_FOR, asked);
    if (r < 0)
        err_set(err, r, "no memory for the policy");
    else
        r = read_all(store, &store->box, err);
    if (r < 0) {
        policy_close(store);
        return r;
    }
    take_up(store);
    *ret_store = store;
    return 0;
}

void policy_close(struct policy_store *store)
{
    if (!store)
        return;
    policy_release(store, policy_now(store));
    for (size_t i = 0; i < store->count; i++)
        free(store->sources[i].path);
    free(store);
}

/* ---- in force ---- */

const struct policy *policy_now(const struct policy_store *store)
{
    return store->box ? &store->box->p : &policy_builtin;
}

const struct policy *policy_hold(struct policy_store *store)
{
    if (store->box)
        store->box->refs++;
    return policy_now(store);
}

void policy_release(struct policy_store *store, const struct policy *held)
{
    (void)store;
    if (!held || held == &policy_builtin)
        return;
    struct policy_box *box = (struct policy_box *)(uintptr_t)held; /* its first member */
    base_assert(box->refs > 0);
    if (--box->refs == 0)
        policy_box_free(box);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool changed(struct source *s)
{
    struct stat st;
    bool there = stat(s->path, &st) == 0;
    if (there && s->there && same_file(&st, &s->st) && !s->racy)
        return false;
    if (!there && !s->there)
        return false;
    s->there = there;
    s->racy = false;
    if (there)
        s->st = st;
    return true;
}

int policy_refresh(struct policy_store *store, struct err *err)
{
    struct policy_box *box = NULL;
    bool any = false;
    for (size_t i = 0; i < store->count; i++)
        any = changed(&store->sources[i]) || any;
    if (!any)
        return 0;
    int r = read_all(store, &box, err);
    if (r < 0)
        return r;
    if (!take_up(store)) { /* touched, not changed */
        policy_box_free(box);
        return 0;
    }
    policy_release(store, policy_now(store));
    store->box = box;
    return 1;
}

int policy_path_safe(const char *path, const char *const *writable, size_t count, struct err *err)
{
    struct stat st;
    FD_AUTO fd = -1;
    const struct walk_rules rules = {
        .what = "the policy", .writable = writable, .count = count, .trusted_file = true};
    return walk_open(&rules, path, &fd, &st, err);
}

int policy_paths_safe(const struct policy_store *store, const char *const *writable, size_t count,
                      struct err *err)
{
    struct err why = ERR_INIT;
    for (size_t i = 0; i < store->count && count; i++) {
        int r = policy_path_safe(store->sources[i].path, writable, count, &why);
        if (r < 0 && !(r == ERR_SYS && why.sys_errno == EACCES)) {
            if (err)
                *err = why;
            return r;
        }
    }
    return 0;
}

/* ---- looked at, not taken ---- */

int policy_check_bytes(const char *name, const void *data, size_t len,
                       struct policy_problems *problems)
{
    struct policy_box *box = policy_box_new();
    int r = box ? policy_box_load(box, name, data, len, problems) : ERR_MEMORY;
    if (r == 0)
        policy_box_check(box, problems);
    policy_problems_sort(problems);
    policy_box_free(box);
    return r;
}

int policy_check_file(const char *path, struct policy_problems *problems, struct err *err)
{
    struct buf text;
    struct stat st;
    struct err why = ERR_INIT;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        err_sys(err, "%.160s", path);
        return ERR_USAGE;
    }
    buf_init(&text, POLICY_FILE_MAX);
    int r = fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                ? read_file(fd, path, &text, err)
                : err_set(err, ERR_USAGE, "%.160s is no regular file", path);
    close(fd);
    if (r == 0 && policy_path_safe(path, NULL, 0, &why) <
                      0) /* a run would refuse the file for its place or mode */
        policy_problem_add(problems, true, path, 0, 0, "%s", why.msg);
    if (r == 0 && policy_check_bytes(path, text.data ? text.data : "", text.len, problems) < 0)
        r = err_set(err, ERR_MEMORY, "no memory");
    buf_done(&text);
    return r;
}
