/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-workspace: keeps the workspaces of one user. Started by `cordon` for one command, with the folder of the
 * workspaces as descriptor 3, the folder to read or the file to write as 4 and the lock as 5; it reads what guests
 * wrote, so before it looks at anything it gives up everything else (src/jail/confine.c). It prints what was asked for on standard
 * output, and one line on standard error where it fails.
 *
 * Waits: write in put_all; the caller's reader; none (the caller's own pace); nothing but its own workspace is held */
#include "base/buf.h"
#include "base/jsonw.h"
#include "base/sanitized.h"
#include "base/units.h"
#include "jail/confine.h"
#include "jail/spec.h"
#include "output/visible.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "workspace/workspace.h"

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

enum { HOME_FD = 3, OTHER_FD = 4, LOCK_FD = 5 };
enum { DONE, FAILED, USAGE };

struct order {
    const char *name;
    const char *words[3]; /* what else the verb takes; empty where it was not given */
    enum workspace_form form;
    bool json;
    bool tty; /* what is printed is for a terminal */
};

/* ---- output ---- */

struct output {
    int fd;
    bool visible;
    struct output_visible state;
    struct buf held;
    int failed; /* errno of the write that failed; 0: none */
};

NO_SEARCH_FOR_LEAKS

static int put_all(int fd, const char *p, size_t len)
{
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ERR_SYS;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

static int flush(struct output *o)
{
    int r = put_all(o->fd, o->held.data, o->held.len);
    if (r < 0)
        o->failed = errno;
    buf_reset(&o->held);
    return r;
}

static int put(void *output, const void *data, size_t len)
{
    struct output *o = output;
    int r = o->held.len + 8 * (len < 64 * KIB ? len : 0) > 512 * KIB ? flush(o) : 0;
    for (const char *p = data; r == 0 && len;) { /* a byte may become several */
        const size_t n = len < 32 * KIB ? len : 32 * KIB;
        r = o->visible ? output_visible_add(&o->state, p, n, &o->held) : buf_add(&o->held, p, n);
        if (r == 0 && o->held.len > 256 * KIB)
            r = flush(o);
        p += n;
        len -= n;
    }
    return r;
}

static void output_init(struct output *o, int fd, bool visible)
{
    *o = (struct output){.fd = fd, .visible = visible};
    buf_init(&o->held, 1 * MIB);
}

static int output_end(struct output *o, int r, struct err *err)
{
    if (r == 0 && o->visible)
        r = output_visible_end(&o->state, &o->held);
    if (r == 0)
        r = flush(o);
    buf_done(&o->held);
    errno = o->failed;
    return o->failed ? err_sys(err, o->fd == OTHER_FD ? "write the export" : "standard output") : r;
}

/* ---- verbs ---- */

static void put_left(struct jsonw *j, const struct workspace_left *left)
{
    jsonw_open(j, "left_out", '[');
    for (size_t i = 0; i < left->count; i++) {
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "path", left->items[i].path);
        jsonw_string(j, "reason", left->items[i].why);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    jsonw_int(j, "left_out_more", (int64_t)left->more);
}

/* What a change came to: the head, whether it moved, what is not in it. */
static int tell(const struct order *o, const char *id, bool new, const struct workspace_left *left,
                struct err *err)
{
    struct output out;
    struct buf text;
    int r = 0;
    output_init(&out, STDOUT_FILENO, o->tty);
    buf_init(&text, 16 * MIB);
    if (o->json) {
        struct jsonw j = {.out = &text};
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", o->name);
        jsonw_string(&j, "id", id);
        jsonw_bool(&j, "changed", new);
        if (left)
            put_left(&j, left);
        jsonw_close(&j, '}');
        r = j.bad ? j.bad : buf_str(&text, "\n");
    } else {
        r = buf_printf(&text, "%s%s\n", id, new ? "" : " (nothing changed)");
        for (size_t i = 0; left && i < left->count && r == 0; i++)
            r = buf_printf(&text, "left out: %s: %s\n", left->items[i].path, left->items[i].why);
        if (left && left->more && r == 0)
            r = buf_printf(&text, "left out: %zu more\n", left->more);
    }
    if (r == 0)
        r = put(&out, text.data, text.len);
    buf_done(&text);
    return output_end(&out, r, err);
}

static int head_of(struct workspace *w, char id[WORKSPACE_ID], struct err *err)
{
    struct workspace_facts facts;
    int r = workspace_describe(w, &facts, err);
    if (r == 0)
        memcpy(id, facts.head, WORKSPACE_ID);
    return r;
}

static int do_create(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    int r = workspace_create(o->name, err);
    if (r == 0)
        r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = head_of(w, id, err);
    workspace_close(w);
    return r < 0 ? r : tell(o, id, true, NULL, err);
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
        r = workspace_import(w, OTHER_FD, &by, left, id, &new, err);
    if (r == 0)
        r = tell(o, id, new, left, err);
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
        r = workspace_snapshot(w, o->words[1], &by, id, err);
    workspace_close(w);
    return r < 0 ? r : tell(o, id, true, NULL, err);
}

static int do_restore(const struct order *o, struct err *err)
{
    const struct workspace_author by = {.message = *o->words[0] ? o->words[0] : NULL};
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "";
    bool new = false;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_restore(w, o->words[1], &by, id, &new, err);
    workspace_close(w);
    return r < 0 ? r : tell(o, id, new, NULL, err);
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
        r = workspace_log(w, most, o->form, &(struct workspace_sink){put, &out}, err);
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
                           &(struct workspace_sink){put, &out}, err);
    workspace_close(w);
    return output_end(&out, r, err);
}

static int do_export(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    struct output out;
    output_init(&out, fcntl(OTHER_FD, F_GETFD) < 0 ? STDOUT_FILENO : OTHER_FD, false);
    const struct workspace_sink sink = {put, &out};
    int r = workspace_open(o->name, false, &w, err);
    if (r == 0)
        r = strcmp(o->words[0], "tar") == 0 ? workspace_export_tar(w, o->words[1], &sink, err)
                                            : workspace_export_bundle(w, &sink, err);
    workspace_close(w);
    return output_end(&out, r, err);
}

static int do_delete(const struct order *o, struct err *err)
{
    return workspace_delete(o->name, err);
}

/* ---- for runs ---- */

/* Prints the ids of the head and of its tree, whose files are then below trees/. Descriptor 5 has the lock for readers: where
 * nobody else has it, the checkouts of other states are of no use. */
static int do_checkout(const struct order *o, struct err *err)
{
    char ids[2][WORKSPACE_ID] = {"", ""}, line[2 * WORKSPACE_ID + 2];
    struct workspace *w = NULL;
    const bool alone = lock_try(LOCK_FD, F_WRLCK, workspace_lock_read(o->name)) == 0;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_checkout(w, o->words[0], alone, ids[0], ids[1], err);
    workspace_close(w);
    if (alone && lock_try(LOCK_FD, F_RDLCK, workspace_lock_read(o->name)) < 0 && r == 0)
        r = err_sys(err, "keep the lock for readers");
    if (r < 0)
        return r;
    const int n = snprintf(line, sizeof line, "%s %s\n", ids[0], ids[1]);
    return put_all(STDOUT_FILENO, line, (size_t)n) < 0 ? err_sys(err, "standard output") : 0;
}

/* The folder NAME in DIR, which a guest may have shut. No guest is alive; no link is followed. */
static int open_left(int dir, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV};
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (S_ISDIR(st.st_mode) && (st.st_mode & 0500) != 0500 && fchmodat(dir, name, 0700, 0) < 0)
        return -1;
    return (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
}

/* Id, whether it is new, then path and reason of each file that was left out, each with a NUL behind it. */
static int tell_kept(const char *id, bool new, const struct workspace_left *left, struct err *err)
{
    struct buf text;
    buf_init(&text, 16 * MIB);
    int r = buf_printf(&text, "%s%c%s%c", id, 0, new ? "new" : "same", 0);
    for (size_t i = 0; i < left->count && r == 0; i++)
        r = buf_printf(&text, "%s%c%s%c", left->items[i].path, 0, left->items[i].why, 0);
    if (r == 0 && put_all(STDOUT_FILENO, text.data, text.len) < 0)
        r = err_sys(err, "standard output");
    buf_done(&text);
    return r;
}

/* The upper layer of what the run left, or its copy of the files. The jail removes the upper layer where it makes a copy
 * (layers in src/jail/root.c), and only its absence says so: taking an empty folder for the copy would delete every file. */
static int open_files(bool *ret_layer, struct err *err)
{
    FD_AUTO layers = open_left(OTHER_FD, JAIL_LAYERS);
    FD_AUTO upper = layers < 0 ? -1 : open_left(layers, JAIL_UPPER_IN);
    *ret_layer = upper >= 0;
    if (layers >= 0 && upper < 0 && errno == ENOENT)
        upper = open_left(OTHER_FD, "workspace");
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
    int r = fchmod(OTHER_FD, 0755) < 0 ? err_sys(err, "open what the run left") : 0;
    FD_AUTO files = r < 0 ? -1 : open_files(&layer, err);
    if (r == 0)
        r = files < 0 ? files : workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_keep(w, files, layer, o->words[1], &by, left, id, &new, err);
    if (r == 0)
        r = tell_kept(id, new, left, err);
    workspace_close(w);
    workspace_left_done(left);
    free(left);
    return r;
}

/* ---- list ---- */

static int facts_of(const char *name, struct workspace_facts *ret, struct err *err)
{
    struct workspace *w = NULL;
    int r = workspace_open(name, false, &w, err);
    if (r == 0)
        r = workspace_describe(w, ret, err);
    workspace_close(w);
    return r;
}

static int put_facts(const struct order *o, const char *name, const struct workspace_facts *f,
                     bool first, struct output *out)
{
    struct buf text;
    int r = 0;
    buf_init(&text, 64 * KIB);
    if (o->json) {
        struct jsonw j = {.out = &text};
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", name);
        jsonw_string(&j, "head", f->head);
        jsonw_int(&j, "time", f->time);
        jsonw_int(&j, "commits", (int64_t)f->commits);
        jsonw_int(&j, "files", (int64_t)f->files);
        jsonw_int(&j, "bytes", (int64_t)f->bytes);
        jsonw_int(&j, "store_bytes", (int64_t)f->store);
        jsonw_close(&j, '}');
        r = j.bad;
        if (r == 0 && !first)
            r = put(out, ", ", 2);
    } else {
        r = buf_printf(&text, "%-20s %.12s %6llu commits %8llu files %12llu bytes\n", name, f->head,
                       (unsigned long long)f->commits, (unsigned long long)f->files,
                       (unsigned long long)f->bytes);
    }
    if (r == 0)
        r = put(out, text.data, text.len);
    buf_done(&text);
    return r;
}

static int wanted(const struct dirent *e)
{
    return workspace_name_good(e->d_name);
}

/* One that is damaged keeps nobody from seeing the others; the first of them is the error at the end. */
static int do_list(const struct order *o, struct err *err)
{
    struct dirent **names = NULL;
    struct output out;
    const int count = scandir(".", &names, wanted, alphasort);
    if (count < 0)
        return err_sys(err, "look into the folder of the workspaces");
    output_init(&out, STDOUT_FILENO, o->tty);
    int damaged = 0, shown = 0, r = o->json ? put(&out, "[", 1) : 0;
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        struct workspace_facts f = {0};
        struct err why = ERR_INIT;
        struct stat st;
        if (r == 0 && stat(name, &st) == 0 && S_ISDIR(st.st_mode)) {
            if (facts_of(name, &f, &why) == 0)
                r = put_facts(o, name, &f, shown++ == 0, &out);
            else if (stat(name, &st) == 0 && damaged++ == 0) /* else it was deleted meanwhile */
                err_set(err, ERR_STATE, "'%s' cannot be read: %.300s", name, why.msg);
        }
        free(names[i]);
    }
    free(names);
    if (r == 0 && o->json)
        r = put(&out, "]\n", 2);
    else if (r == 0 && shown == 0 && !damaged)
        fputs("cordon workspace: no workspaces\n", stderr);
    r = output_end(&out, r, err);
    return r < 0 || !damaged ? r : ERR_STATE;
}

/* ---- the order ---- */

static const struct verb {
    const char *name;
    int (*run)(const struct order *o, struct err *err);
} verbs[] = {
    {"checkout", do_checkout}, {"keep", do_keep},         {"create", do_create},
    {"delete", do_delete},     {"diff", do_diff},         {"export", do_export},
    {"import", do_import},     {"list", do_list},         {"log", do_log},
    {"restore", do_restore},   {"snapshot", do_snapshot},
};

static bool read_order(char **argv, struct order *ret, const struct verb **ret_verb)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[3], verbs[i].name) == 0)
            *ret_verb = &verbs[i];
    ret->json = strchr(argv[2], 'j');
    ret->tty = strchr(argv[2], 't');
    ret->form = ret->json              ? WORKSPACE_JSON
                : strchr(argv[2], 's') ? WORKSPACE_STAT
                : strchr(argv[2], 'p') ? WORKSPACE_PATCH
                                       : WORKSPACE_TEXT;
    ret->name = argv[4];
    for (size_t i = 0; i < 3; i++)
        ret->words[i] = argv[5 + i];
    return *ret_verb && (strcmp(argv[3], "list") == 0 || workspace_name_good(ret->name));
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "cordon-workspace: started by cordon only; see cordon-workspace(1)\n";
    struct order order = {0};
    const struct verb *verb = NULL;
    struct err err = ERR_INIT;
    struct stat home;
    if (argc != 8 || strcmp(argv[1], "--from-cordon") != 0 || fstat(HOME_FD, &home) < 0 ||
        !S_ISDIR(home.st_mode) || !read_order(argv, &order, &verb))
        return put_all(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? FAILED : USAGE;
    umask(077);
    int r = fchdir(HOME_FD) < 0 ? err_sys(&err, "enter the folder of the workspaces") : 0;
    if (r == 0)
        r = workspace_init(&err);
    if (r == 0)
        r = jail_confine(
            HOME_FD,
            strcmp(verb->name, "import") == 0 || strcmp(verb->name, "keep") == 0 ? OTHER_FD : -1,
            "workspace", &err);
    if (r == 0)
        r = verb->run(&order, &err);
    if (r == 0)
        return DONE;
    struct output_visible v = {.one_line = true};
    struct buf line;
    buf_init(&line, 8192);
    if (buf_str(&line, "cordon workspace: ") < 0 ||
        output_visible_add(&v, err.msg, strlen(err.msg), &line) < 0 ||
        output_visible_end(&v, &line) < 0 || buf_str(&line, "\n") < 0 ||
        put_all(STDERR_FILENO, line.data, line.len) < 0)
        return FAILED;
    buf_done(&line);
    return r == ERR_USAGE ? USAGE : FAILED;
}
