/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-workspace: keeps the workspaces of one user. Started by `cordon` for one command, with the folder of the
 * workspaces as descriptor 3, the folder to read or the file to write as 4 and the lock as 5; it reads what guests
 * wrote, so before it looks at anything it gives up everything else (src/jail/confine.c). It prints what was asked for on standard
 * output, and one line on standard error where it fails.
 *
 * Waits: fd_write_all in *; the caller's reader; none (the caller's own pace); nothing but its own workspace is held */
#include "order.h"

#include "base/buf.h"
#include "base/sanitized.h"
#include "base/units.h"
#include "jail/confine.h"
#include "jail/spec.h"
#include "sys/fd.h"
#include "sys/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DONE, FAILED, USAGE };

NO_SEARCH_FOR_LEAKS

/* ---- verbs ---- */

static int head_of(struct workspace *w, char id[WORKSPACE_ID], struct err *err)
{
    struct workspace_facts facts;
    int r = workspace_describe(w, &facts, err);
    if (r == 0)
        memcpy(id, facts.head, WORKSPACE_ID);
    return r;
}

/* A store that is nearly full, on standard error. */
static void announce(const struct order *o, const struct workspace *w, int r)
{
    const unsigned percent = r == 0 ? order_percent(o, w) : 0;
    if (percent >= WORKSPACE_ANNOUNCED)
        fprintf(stderr, "cordon workspace: %s uses %u %% of the %llu MB of its store%s\n", o->name,
                percent, o->store / MIB, percent >= WORKSPACE_URGENT ? ": it is nearly full" : "");
}

static int do_create(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    int r = workspace_clone_part(o->name)
                ? err_set(err, ERR_USAGE, "a clone is made by cordon workspace clone")
                : order_bound(o, NULL, err);
    if (r == 0)
        r = workspace_create(o->name, err);
    if (r == 0)
        r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = head_of(w, id, err);
    workspace_close(w);
    return r < 0 ? r : order_tell(o, id, true, NULL, err);
}

static int do_import(const struct order *o, struct err *err)
{
    const struct workspace_author by = {.message = *o->words[0] ? o->words[0] : "import"};
    struct workspace_left *left = calloc(1, sizeof *left);
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    bool new = false;
    int r = left ? workspace_open(o->name, true, &w, err) : err_set(err, ERR_MEMORY, "no memory");
    if (r == 0)
        r = order_bound(o, w, err);
    if (r == 0)
        r = workspace_import(w, ORDER_OTHER_FD, &by, left, id, &new, err);
    if (r == 0)
        r = order_tell(o, id, new, left, err);
    announce(o, w, r);
    workspace_close(w);
    if (left)
        workspace_left_done(left);
    free(left);
    return r;
}

static int do_snapshot(const struct order *o, struct err *err)
{
    const struct workspace_author by = {.message = *o->words[0] ? o->words[0] : "snapshot"};
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    if (*o->words[1] && !workspace_snapshot_name_good(o->words[1]))
        return err_set(err, ERR_USAGE,
                       "'%.70s' cannot name a snapshot: 1 to 64 of a-z 0-9 . _ -, not head or "
                       "genesis, and not of hexadecimal digits alone",
                       o->words[1]);
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = order_bound(o, w, err);
    if (r == 0)
        r = workspace_snapshot(w, o->words[1], &by, id, err);
    announce(o, w, r);
    workspace_close(w);
    return r < 0 ? r : order_tell(o, id, true, NULL, err);
}

static int do_restore(const struct order *o, struct err *err)
{
    const struct workspace_author by = {.message = *o->words[0] ? o->words[0] : NULL};
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    bool new = false;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = order_bound(o, w, err);
    if (r == 0)
        r = workspace_restore(w, o->words[1], &by, id, &new, err);
    announce(o, w, r);
    workspace_close(w);
    return r < 0 ? r : order_tell(o, id, new, NULL, err);
}

static void tell_large(void *output, const char *path)
{
    static const char why[] = ": larger than 4 MB, so it is not compared line by line\n";
    struct err ignored = ERR_INIT; /* of whoever does not read standard error */
    struct output out;
    (void)output;
    _Static_assert(LIMIT_WORKSPACE_DIFF == 4 * MIB, "the sentence above says so");
    output_init(&out, STDERR_FILENO, true);
    int r = output_put(&out, "cordon workspace: ", 18);
    if (r == 0)
        r = output_put(&out, path, strlen(path));
    if (r == 0)
        r = output_put(&out, why, sizeof why - 1);
    (void)!output_end(&out, r, &ignored);
}

static int do_log(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    struct output out;
    uint64_t most = UINT64_MAX;
    if (*o->words[0] && units_count(o->words[0], &most) < 0)
        return err_set(err, ERR_USAGE, "--lines needs a number");
    output_init(&out, STDOUT_FILENO, o->tty);
    int r = workspace_open(o->name, false, &w, err);
    if (r == 0)
        r = workspace_log(w, most, o->form, &(struct workspace_sink){output_put, &out, tell_large},
                          err);
    workspace_close(w);
    return output_end(&out, r, err);
}

static int do_diff(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    struct output out;
    output_init(&out, STDOUT_FILENO, o->tty);
    int r = workspace_open(o->name, false, &w, err);
    if (r == 0)
        r = workspace_diff(w, o->words[0], o->words[1], o->form,
                           &(struct workspace_sink){output_put, &out, tell_large}, err);
    workspace_close(w);
    return output_end(&out, r, err);
}

static int do_export(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    struct output out;
    output_init(&out, fcntl(ORDER_OTHER_FD, F_GETFD) < 0 ? STDOUT_FILENO : ORDER_OTHER_FD, false);
    const struct workspace_sink sink = {output_put, &out};
    int r = workspace_open(o->name, false, &w, err);
    if (r == 0)
        r = strcmp(o->words[0], "tar") == 0 ? workspace_export_tar(w, o->words[1], &sink, err)
                                            : workspace_export_bundle(w, &sink, err);
    workspace_close(w);
    return output_end(&out, r, err);
}

static int do_delete(const struct order *o, struct err *err)
{
    return workspace_clone_part(o->name)
               ? err_set(err, ERR_USAGE, "a clone is removed by cordon workspace discard %s",
                         o->name)
               : workspace_delete(o->name, err);
}

/* ---- for runs ---- */

/* Prints the ids of the head and of its tree, whose files are then below trees/. Descriptor 5 has the lock for readers: where
 * nobody else has it, the checkouts of other states are of no use. */
static int do_checkout(const struct order *o, struct err *err)
{
    char ids[2][WORKSPACE_ID] = {"", ""}, line[2 * WORKSPACE_ID + 2];
    struct workspace *w = NULL;
    const bool alone = lock_try(ORDER_LOCK_FD, F_WRLCK, workspace_lock_read(o->name)) == 0;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_checkout(w, o->words[0], alone, ids[0], ids[1], err);
    workspace_close(w);
    if (alone && lock_try(ORDER_LOCK_FD, F_RDLCK, workspace_lock_read(o->name)) < 0 && r == 0)
        r = err_sys(err, "keep the lock for readers");
    if (r < 0)
        return r;
    const int n = snprintf(line, sizeof line, "%s %s\n", ids[0], ids[1]);
    return fd_write_all(STDOUT_FILENO, line, (size_t)n) < 0 ? err_sys(err, "standard output") : 0;
}

/* The folder NAME in DIR, which a guest may have shut. No guest is alive; no link is followed. */
static int open_left(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    const int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
    if (fd >= 0 || errno != EACCES || workspace_open_up(dir, name) < 0)
        return fd;
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

/* Id, whether it is new, percent of the store that is used, a word for nobody; then path and reason of each file that was left
 * out, each with a NUL behind it. */
static int tell_kept(const char *id, bool new, unsigned percent, const struct workspace_left *left,
                     struct err *err)
{
    struct buf text;
    buf_init(&text, 16 * MIB);
    int r = buf_printf(&text, "%s%c%s%c%u%c%c", id, 0, new ? "new" : "same", 0, percent, 0, 0);
    for (size_t i = 0; i < left->count && r == 0; i++)
        r = buf_printf(&text, "%s%c%s%c", left->items[i].path, 0, left->items[i].why, 0);
    if (r == 0 && fd_write_all(STDOUT_FILENO, text.data, text.len) < 0)
        r = err_sys(err, "standard output");
    buf_done(&text);
    return r;
}

/* The upper layer of what the run left, or its copy of the files. The jail removes the upper layer where it makes a copy
 * (layers in src/jail/root.c), and only its absence says so: taking an empty folder for the copy would delete every file. */
static int open_files(const struct order *o, bool *ret_layer, struct err *err)
{
    if (o->upper) { /* of a session that lives: descriptor 4 is below what covers its layers */
        FD_AUTO own = open_left(ORDER_OTHER_FD, JAIL_UPPER_IN);
        *ret_layer = true;
        return own < 0 ? err_sys(err, "open what the call left") : fd_take(&own);
    }
    if (o->copy) {
        FD_AUTO all = open_left(ORDER_OTHER_FD, "workspace");
        return all < 0 ? err_sys(err, "open what the call left") : fd_take(&all);
    }
    FD_AUTO layers = open_left(ORDER_OTHER_FD, JAIL_LAYERS);
    FD_AUTO upper = layers < 0 ? -1 : open_left(layers, JAIL_UPPER_IN);
    *ret_layer = upper >= 0;
    if (layers >= 0 && upper < 0 && errno == ENOENT)
        upper = open_left(ORDER_OTHER_FD, "workspace");
    return upper < 0 ? err_sys(err, "open what the run left") : fd_take(&upper);
}

/* What a run left, from the descriptor of the file system that it wrote in. */
static int do_keep(const struct order *o, struct err *err)
{
    const struct workspace_author by = {.name = o->words[0], .message = o->words[2]};
    struct workspace_left *left = calloc(1, sizeof *left);
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    bool new = false, layer = false;
    if (!left)
        return err_set(err, ERR_MEMORY, "no memory");
    /* root reads it as it is, and may change no mode of another's */
    int r = geteuid() != 0 && fchmod(ORDER_OTHER_FD, 0755) < 0
                ? err_sys(err, "open what the run left")
                : 0;
    FD_AUTO files = r < 0 ? -1 : open_files(o, &layer, err);
    if (r == 0)
        r = files < 0 ? files : workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = order_bound(o, w, err);
    if (r == 0)
        r = workspace_keep(w, files, layer, o->words[1], &by, left, id, &new, err);
    if (r == 0)
        r = tell_kept(id, new, order_percent(o, w), left, err);
    workspace_close(w);
    workspace_left_done(left);
    free(left);
    return r;
}

static int do_head(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    int r = workspace_open(o->name, false, &w, err);
    if (r == 0)
        r = head_of(w, id, err);
    workspace_close(w);
    return r < 0 ? r : order_tell(o, id, true, NULL, err);
}

/* ---- the order ---- */

static const struct verb {
    const char *name;
    int (*run)(const struct order *o, struct err *err);
} verbs[] = {
    {"checkout", do_checkout}, {"head", do_head},          {"keep", do_keep},
    {"create", do_create},     {"delete", do_delete},      {"diff", do_diff},
    {"export", do_export},     {"import", do_import},      {"list", order_list},
    {"log", do_log},           {"restore", do_restore},    {"snapshot", do_snapshot},
    {"clone", order_clone},    {"changed", order_changed}, {"verified", order_verified},
    {"merge", order_merge},    {"discard", order_discard}, {"changes", order_changes},
};

static bool read_order(char **argv, struct order *ret, const struct verb **ret_verb)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[3], verbs[i].name) == 0)
            *ret_verb = &verbs[i];
    ret->json = strchr(argv[2], 'j');
    ret->tty = strchr(argv[2], 't');
    ret->copy = strchr(argv[2], 'c');
    ret->upper = strchr(argv[2], 'u');
    ret->form = ret->json              ? WORKSPACE_JSON
                : strchr(argv[2], 's') ? WORKSPACE_STAT
                : strchr(argv[2], 'p') ? WORKSPACE_PATCH
                                       : WORKSPACE_TEXT;
    ret->name = argv[4];
    if (sscanf(argv[8], "%llu %llu %llu", &ret->store, &ret->free, &ret->free_percent) != 3)
        return false;
    for (size_t i = 0; i < 3; i++)
        ret->words[i] = argv[5 + i];
    return *ret_verb && (strcmp(argv[3], "list") == 0 || workspace_full_name_good(ret->name));
}

/* One line, whatever the names in it hold. */
static int complain(const char *why)
{
    struct output_visible v = {.one_line = true};
    struct buf line;
    buf_init(&line, 8192);
    const int r = buf_str(&line, "cordon workspace: ") < 0 ||
                          output_visible_add(&v, why, strlen(why), &line) < 0 ||
                          output_visible_end(&v, &line) < 0 || order_explain(why, &line) < 0 ||
                          buf_str(&line, "\n") < 0
                      ? -1
                      : fd_write_all(STDERR_FILENO, line.data, line.len);
    buf_done(&line);
    return r;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "cordon-workspace: started by cordon only; see cordon-workspace(1)\n";
    struct order order = {0};
    const struct verb *verb = NULL;
    struct err err = ERR_INIT;
    struct stat home;
    if (argc != 9 || strcmp(argv[1], "--from-cordon") != 0 || fstat(ORDER_HOME_FD, &home) < 0 ||
        !S_ISDIR(home.st_mode) || !read_order(argv, &order, &verb))
        return fd_write_all(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? FAILED : USAGE;
    umask(077);
    int r = fchdir(ORDER_HOME_FD) < 0 ? err_sys(&err, "enter the folder of the workspaces") : 0;
    if (r == 0)
        r = jail_confine(ORDER_HOME_FD,
                         strcmp(verb->name, "import") == 0 || strcmp(verb->name, "keep") == 0
                             ? ORDER_OTHER_FD
                             : -1,
                         "workspace", &err);
    /* Confined, since libgit2 would read and parse the machine's certificates, which no store needs. */
    if (r == 0)
        r = workspace_init(&err);
    if (r == 0)
        r = verb->run(&order, &err);
    if (r == 0)
        return DONE;
    return complain(err.msg) < 0 ? FAILED : r == ERR_USAGE ? USAGE : FAILED;
}
