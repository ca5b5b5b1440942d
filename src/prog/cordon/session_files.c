/* SPDX-License-Identifier: Apache-2.0 */
/* Files into a session and out of it, between two calls. The session is lent for a line that is empty: meanwhile nobody
 * else has it, and its descriptor of /workspace is ours. What is in there is the guest's, and some of its threads may
 * still be at work: both ways go through the functions that expect that (jail/put.h, flow/take.h).
 *
 * Waits: pread in *; a regular file of the session; none (the kernel's own); an error */
#include "session_files.h"

#include "base/limits.h"
#include "commands.h"
#include "flow/take.h"
#include "jail/put.h"
#include "naming_check.h"
#include "result.h"
#include "sys/fd.h"
#include "writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WORKSPACE "/workspace"

static int put_one(const struct policy *policy, const struct jail_bind *bind, int files,
                   char *warning, struct err *err)
{
    char broken[NAMING_WARNING];
    FD_AUTO source = jail_bind_open(bind, err);
    if (source < 0)
        return source;
    if (files < 0)
        return err_set(err, ERR_STATE, "the session has no file system");
    int r = naming_check_copy(policy, source, bind->dest + strlen(WORKSPACE), broken, err);
    if (r == 0 && !*warning)
        memcpy(warning, broken, sizeof broken);
    return r < 0 ? r : jail_put(source, files, bind, err);
}

int session_files_put(const struct policy *policy, const struct jail_spec *spec, int files,
                      char *warning, struct err *err)
{
    int r = 0;
    warning[0] = 0;
    for (size_t i = 0; i < spec->nbinds && r == 0; i++)
        if (spec->binds[i].copied)
            r = put_one(policy, &spec->binds[i], files, warning, err);
    return r;
}

struct moving {
    const struct jail_spec *in; /* put: what is copied in */
    const struct policy *policy;
    char warning[NAMING_WARNING];
    const char *path; /* get: below /workspace */
    const char *name; /* where it goes in the folder DIR */
    int dir;          /* -1: to standard output */
    bool replace;
    int status; /* what came of it */
    struct err err;
    struct session_call *call;
};

/* Whole, since nobody who reads slowly may hold the session: the reader is waited for when it is given back. */
static int print_file(struct moving *m, int left, uint64_t room)
{
    struct stat st;
    struct buf text;
    FD_AUTO fd = flow_take_open(left, m->path, &st, &m->err);
    if (fd < 0)
        return fd;
    if ((uint64_t)st.st_size > room)
        return err_set(&m->err, ERR_USAGE, "it is larger than the session's --disk");
    buf_init(&text, room + KIB);
    int r = 0;
    char chunk[65536];
    for (ssize_t n; r == 0 && (n = pread(fd, chunk, sizeof chunk, (off_t)text.len)) != 0;)
        r = n < 0 ? err_sys(&m->err, "read it") : buf_add(&text, chunk, (size_t)n);
    writer_ceiling(room + MIB);
    if (r == 0)
        writer_take(JAIL_STDOUT, &text);
    buf_done(&text);
    return r;
}

static void take_one(struct moving *m, int files, uint64_t room)
{
    char why[sizeof m->err.msg];
    FD_AUTO left = openat(files, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    m->status = left < 0 ? err_sys(&m->err, "open /workspace of the session")
                : m->dir < 0
                    ? print_file(m, left, room)
                    : flow_take_file(left, m->path, m->dir, m->name, m->replace, &room, &m->err);
    if (m->status == 0)
        return;
    snprintf(why, sizeof why, "%s", m->err.msg);
    m->status = err_set(&m->err, ERR_USAGE, WORKSPACE "/%.160s: %.300s", m->path, why);
}

/* The session is ours: nothing of it is judged or run. */
static void move(void *ctx, int files, uint64_t disk)
{
    struct moving *m = ctx;
    if (m->in)
        m->status = session_files_put(m->policy, m->in, files, m->warning, &m->err);
    else
        take_one(m, files, disk);
    m->call->wrote = m->in != NULL;
}

/* Lends the session, moves, and gives it back as it was. */
static int with_files(struct session_context *h, const char *session, struct moving *m,
                      const char *event, const char *what)
{
    struct session_call c = {.session = session,
                             .name = "<files>",
                             .source = "",
                             .line = true,
                             .quiet = true,
                             .input = -1,
                             .files = move,
                             .files_ctx = m};
    m->call = &c;
    if (session_note_room(h, what, &m->err) < 0) {
        result_complain(h->who, m->err.msg);
        return EXIT_NEVER_RAN;
    }
    int r = session_call(h, &c);
    if (r == EXIT_DONE && m->status < 0)
        return result_usage(h->who, &m->err);
    if (m->warning[0])
        result_complain(h->who, m->warning);
    if (c.uncommitted[0]) /* the files are there, and nobody else sees them in the workspace */
        result_complain(h->who, c.uncommitted);
    if (r == EXIT_DONE && session_note(h, event, session, what, NULL, &m->err) < 0) {
        result_complain(h->who, m->err.msg);
        return EXIT_FAILED;
    }
    return r;
}

int session_files_in(struct session_context *h, const char *session, const char *word)
{
    struct err err = ERR_INIT;
    struct jail_bind bind;
    struct jail_spec spec = {.binds = &bind, .nbinds = 1};
    struct moving m = {.in = &spec, .policy = h->flow.policy, .dir = -1, .err = ERR_INIT};
    if (programs_parse_copy(word, &h->mem, &bind, &err) < 0)
        return result_usage(h->who, &err);
    return with_files(h, session, &m, "put", bind.dest);
}

/* PATH below /workspace; NULL: it is somewhere else. */
static const char *in_workspace(const char *path)
{
    const size_t n = strlen(WORKSPACE);
    if (strncmp(path, WORKSPACE "/", n + 1) == 0)
        path += n + 1;
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return *path && *path != '/' ? path : NULL;
}

/* The folder that DEST names a file in, and that name. */
static int open_dest(const char *dest, const char *own, struct moving *m, struct err *err)
{
    char folder[4096];
    struct stat st;
    const bool into = !dest || (stat(dest, &st) == 0 && S_ISDIR(st.st_mode));
    const char *slash = into ? NULL : strrchr(dest, '/');
    snprintf(folder, sizeof folder, "%.*s",
             !dest   ? 1
             : into  ? 4095
             : slash ? (int)(slash - dest) + 1
                     : 1,
             dest && (into || slash) ? dest : ".");
    m->name = into ? own : slash ? slash + 1 : dest;
    m->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->dir >= 0)
        return 0;
    err_sys(err, "%.160s", folder);
    return err->code = ERR_USAGE;
}

int session_files_out(struct session_context *h, const char *session, const char *path,
                      const char *dest, bool replace)
{
    struct err err = ERR_INIT;
    struct moving m = {.path = in_workspace(path), .dir = -1, .replace = replace, .err = ERR_INIT};
    const bool to_stdout = dest && strcmp(dest, "-") == 0;
    int r = 0;
    if (!m.path)
        r = err_set(&err, ERR_USAGE, "%.160s is no file in /workspace: get takes those", path);
    else if (to_stdout && isatty(STDOUT_FILENO))
        r = err_set(&err, ERR_USAGE, "a file of a program is not printed on a terminal; name DEST");
    else if (!to_stdout)
        r = open_dest(dest, strrchr(m.path, '/') ? strrchr(m.path, '/') + 1 : m.path, &m, &err);
    if (r < 0)
        return result_usage(h->who, &err);
    r = with_files(h, session, &m, "got", path);
    fd_close(m.dir);
    return r;
}
