/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with the files of a session that is lent. Whoever looks into one is a process that can do nothing else:
 * cordon-tool for text, cordon-image for pictures. Here bytes are moved, below a descriptor and through no link.
 *
 * Waits: pread in *; a regular file of the session; none (the kernel's own); an error */
#include "base/jsonw.h"
#include "base/limits.h"
#include "base/units.h"
#include "flow/take.h"
#include "images.h"
#include "jail/put.h"
#include "naming_check.h"
#include "programs.h"
#include "session_request.h"
#include "sys/fd.h"
#include "tools/process.h"

#include <fcntl.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static int open_workspace(int files, struct err *err)
{
    const int fd = openat(files, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0
               ? fd
               : err_set(err, ERR_USAGE, "the session has no files: profile locked gives it none");
}

/* ---- what cordon-tool does ---- */

static void call_tool(struct session_request *q, int files, const char *tool,
                      const struct buf *args)
{
    const struct policy *p = q->h->flow.policy;
    const uint64_t limits[TOOLS_LIMITS] = {
        [TOOLS_FILE_READ] = p->sessions.file_read, [TOOLS_GREP_MATCHES] = p->sessions.grep_matches};
    struct tools_process process = {.sock = -1};
    char program[4096];
    q->status = programs_find("cordon-tool", program, sizeof program, &q->err);
    FD_AUTO exe = q->status < 0 ? -1 : open(program, O_PATH | O_CLOEXEC);
    if (q->status == 0 && exe < 0)
        q->status = err_sys(&q->err, "cordon-tool");
    if (q->status == 0)
        q->status = tools_process_start(&process, exe, files, -1, TOOLS_READS, &q->err);
    if (q->status < 0)
        return;
    enum tools_end end = tools_process_check(&process, tool, tools_find(tool)->schema, args->data,
                                             args->len, limits, NULL, NULL, &q->answer, &q->err);
    if (end == TOOLS_OK)
        end = tools_process_go(&process, NULL, &q->answer, &q->err);
    tools_process_end(&process);
    if (end == TOOLS_OK)
        return;
    q->status = q->err.code ? q->err.code : ERR_USAGE; /* else the answer is its sentence */
}

static void args_open(struct jsonw *j, struct buf *out)
{
    buf_init(out, LIMIT_CALL);
    *j = (struct jsonw){.out = out};
    jsonw_open(j, NULL, '{');
    jsonw_open(j, "args", '[');
    jsonw_close(j, ']');
    jsonw_open(j, "kwargs", '{');
}

static void args_close(struct session_request *q, int files, const char *tool, struct jsonw *j)
{
    jsonw_close(j, '}');
    jsonw_close(j, '}');
    if (q->status == 0 && j->bad)
        q->status = err_set(&q->err, ERR_USAGE, "its words are too long");
    if (q->status == 0)
        call_tool(q, files, tool, j->out);
    buf_done(j->out);
}

void session_request_list(void *request, int files, uint64_t disk)
{
    struct session_request *q = request;
    struct jsonw j;
    struct buf args;
    (void)disk;
    args_open(&j, &args);
    jsonw_string(&j, "path", q->path);
    args_close(q, files, "ListFiles", &j);
}

void session_request_search(void *request, int files, uint64_t disk)
{
    struct session_request *q = request;
    struct jsonw j;
    struct buf args;
    (void)disk;
    args_open(&j, &args);
    jsonw_string(&j, "pattern", q->words[1]);
    jsonw_string(&j, "path", q->path);
    if (!session_request_by_name(q))
        jsonw_bool(&j, "ignore_case", strcmp(q->words[3], "1") == 0);
    args_close(q, files, session_request_by_name(q) ? "Find" : "Grep", &j);
}

/* ---- reading ---- */

/* WORD as a number; empty: OTHERWISE. More than MOST: it is refused. */
static uint64_t number(struct session_request *q, const char *name, const char *word,
                       uint64_t otherwise, uint64_t most)
{
    uint64_t n = 0;
    if (!*word)
        return otherwise;
    if (units_count(word, &n) < 0 || n > most)
        q->status = err_set(&q->err, ERR_USAGE, "%s: '%.40s' is no number up to %llu", name, word,
                            (unsigned long long)most);
    return n;
}

static uint64_t offset_of(struct session_request *q)
{
    return number(q, "offset", q->words[1], 0, 1ULL << 40); /* as in the schema of ReadFile */
}

/* Where the file is, as the guest names it. */
static void put_source(struct session_request *q, struct jsonw *j)
{
    char shown[4200];
    snprintf(shown, sizeof shown, "/workspace/%s", q->path);
    jsonw_string(j, "source", shown);
}

static void read_bytes(struct session_request *q, int fd, const struct stat *st, const char *type)
{
    const uint64_t offset = offset_of(q),
                   asked = number(q, "limit", q->words[2], LIMIT_SERVE_FILE, UINT64_MAX),
                   most = asked < LIMIT_SERVE_FILE ? asked : LIMIT_SERVE_FILE;
    char *bytes = malloc(most + 1), *text = malloc(BASE64_ENCODE_RAW_LENGTH(most) + 1);
    const ssize_t n = q->status == 0 && bytes && text ? pread(fd, bytes, most, (off_t)offset) : -1;
    if (q->status == 0 && n < 0)
        q->status = err_sys(&q->err, "read it");
    if (q->status == 0) {
        struct jsonw j = {.out = &q->answer};
        const uint64_t next = offset + (uint64_t)n;
        base64_encode_raw(text, (size_t)n, (const uint8_t *)bytes);
        jsonw_open(&j, NULL, '{');
        put_source(q, &j);
        jsonw_bytes(&j, "data", text, BASE64_ENCODE_RAW_LENGTH((size_t)n));
        jsonw_string(&j, "encoding", "base64");
        jsonw_string(&j, "type", type);
        jsonw_int(&j, "bytes", (int64_t)st->st_size);
        jsonw_int(&j, "offset", (int64_t)offset);
        if (n > 0 && next < (uint64_t)st->st_size)
            jsonw_int(&j, "next_offset", (int64_t)next);
        else
            jsonw_null(&j, "next_offset");
        jsonw_close(&j, '}');
        q->status = j.bad ? err_set(&q->err, j.bad, "no memory") : 0;
    }
    free(bytes);
    free(text);
}

/* A picture is shown, scaled; its bytes are there by encoding base64. */
static void show_picture(struct session_request *q, int workspace, const struct stat *st,
                         const char *type)
{
    struct jsonw j = {.out = &q->answer};
    const bool shown = images_can_show(type) && images_event(workspace, q->path, q->path);
    jsonw_open(&j, NULL, '{');
    put_source(q, &j);
    jsonw_string(&j, "type", type);
    jsonw_int(&j, "bytes", (int64_t)st->st_size);
    jsonw_bool(&j, "shown", shown);
    jsonw_string(&j, "note",
                 shown ? "scaled; encoding base64 gives the bytes of the file"
                       : "it cannot be shown; encoding base64 gives the bytes of the file");
    jsonw_close(&j, '}');
    q->status = j.bad ? err_set(&q->err, j.bad, "no memory") : 0;
}

void session_request_read(void *request, int files, uint64_t disk)
{
    struct session_request *q = request;
    struct stat st = {0};
    unsigned char head[FLOW_TYPE_HEAD];
    struct jsonw j;
    struct buf args;
    (void)disk;
    FD_AUTO workspace = open_workspace(files, &q->err);
    FD_AUTO fd = workspace < 0 ? -1 : flow_take_open(workspace, q->path, &st, &q->err);
    if (fd < 0) {
        struct err why = q->err;
        q->err = (struct err)ERR_INIT;
        q->status = err_set(&q->err, ERR_USAGE, "/workspace/%.160s: %.300s", q->path,
                            strncmp(why.msg, "it: ", 4) == 0 ? why.msg + 4 : why.msg);
        return;
    }
    const ssize_t n = pread(fd, head, sizeof head, 0);
    const char *type = n > 0 ? flow_image_type(head, (size_t)n) : NULL;
    if (strcmp(q->words[3], "base64") == 0) {
        read_bytes(q, fd, &st, type);
    } else if (type) {
        show_picture(q, workspace, &st, type);
    } else {
        const uint64_t offset = offset_of(q),
                       limit = number(q, "limit", q->words[2], UINT64_MAX, UINT64_MAX);
        args_open(&j, &args);
        jsonw_string(&j, "path", q->path);
        jsonw_int(&j, "offset", (int64_t)offset);
        if (limit <= 100000000)
            jsonw_int(&j, "limit", (int64_t)limit);
        args_close(q, files, "ReadFile", &j);
    }
}

/* ---- writing ---- */

/* What copies files names an option, which this client has not: the rest is for it, too. */
static int told_plainly(struct err *err)
{
    const struct err was = *err;
    const struct err none = ERR_INIT;
    const char *rest = strncmp(was.msg, "--in ", 5) == 0 ? strstr(was.msg, ": ") : NULL;
    if (!rest)
        return was.code;
    *err = none;
    return err_set(err, was.code, "%s", rest + 2);
}

/* Which of its two limits the file system of the session has reached, if one: bytes or files. */
static int told_full(int files, size_t len, uint64_t disk, struct err *err)
{
    struct statvfs fs;
    const struct err none = ERR_INIT;
    if (fstatvfs(files, &fs) < 0)
        return told_plainly(err);
    const bool bytes = (uint64_t)fs.f_bavail * fs.f_frsize < len + 4 * KIB;
    if (!bytes && fs.f_ffree > 0)
        return told_plainly(err);
    *err = none;
    return bytes ? err_set(err, ERR_USAGE,
                           "it does not fit: the files of the session may take %llu bytes; "
                           "remove some",
                           (unsigned long long)disk)
                 : err_set(err, ERR_USAGE,
                           "it does not fit: the session may have %llu files and folders, and has "
                           "them; remove some",
                           (unsigned long long)fs.f_files);
}

void session_request_write(void *request, int files, uint64_t disk)
{
    struct session_request *q = request;
    char dest[4200], warning[NAMING_WARNING];
    FD_AUTO workspace = open_workspace(files, &q->err);
    FD_AUTO source = -1;
    if (workspace < 0) {
        q->status = ERR_USAGE;
        return;
    }
    snprintf(dest, sizeof dest, "/workspace/%s", q->path);
    q->status = naming_check_text(q->h->flow.policy, dest + strlen("/workspace"), q->rest,
                                  q->rest_len, warning, &q->err);
    if (q->status < 0)
        return;
    const struct jail_bind bind = {.source = q->path, .dest = dest, .copied = true};
    q->status = fd_sealed(q->rest, q->rest_len, &source, &q->err);
    if (q->status == 0 && fchmod(source, 0644) < 0)
        q->status = err_sys(&q->err, "a file in memory");
    if (q->status == 0 && (q->status = jail_put(source, files, &bind, &q->err)) < 0)
        q->status = told_full(files, q->rest_len, disk, &q->err);
    if (q->status < 0)
        return;
    struct jsonw j = {.out = &q->answer};
    q->call->wrote = true;
    jsonw_open(&j, NULL, '{');
    put_source(q, &j);
    jsonw_int(&j, "bytes", (int64_t)q->rest_len);
    if (warning[0])
        jsonw_string(&j, "warning", warning);
    jsonw_close(&j, '}');
    q->status = j.bad ? err_set(&q->err, j.bad, "no memory") : 0;
}
