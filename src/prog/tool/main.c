/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-tool: one call of a tool. It is started for the call and dies with it, since its arguments, the files that it reads and the
 * libraries that parse both are the least trusted of what is outside the guest's jail. Or, for one run, the files of a guest that
 * can open none (tools/served.c). Or it reads a folder into an index that outlives the run, and nothing that the guest of that run sent.
 *
 * Waits: fd_receive in receive; the broker, its parent; none (its death ends us: the kernel kills us with it); ended
 *        fd_send in say_with; the broker, which reads one packet at a time; the same; ended
 *        write in say; the broker, which reads one packet at a time; the same; ended */
#include "base/limits.h"
#include "jail/confine.h"
#include "sys/fd.h"
#include "sys/rlimit.h"
#include "tools/api.h"
#include "wire/msg.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DONE = 0, FAILED = 1, USAGE = 2 };

static char storage[LIMIT_FRAME];

/* *RET_FD: what rode along, -1 where nothing did. */
static int receive(struct wire_reader *r, int *ret_fd)
{
    int fd = -1;
    struct fd_packet p = {.data = storage, .len = sizeof storage, .fds = &fd, .nfds = 1};
    if (fd_receive(TOOLS_SOCKET, &p) != 1 || wire_open(r, storage, p.len, NULL) < 0)
        return -1;
    *ret_fd = p.nfds ? fd : -1;
    return 0;
}

static int say(struct wire_writer *m)
{
    return wire_end(m) == 0 &&
                   write(TOOLS_SOCKET, m->out->data, m->out->len) == (ssize_t)m->out->len
               ? 0
               : -1;
}

/* Files that a host tool is given ride along; here they are closed. */
static int say_with(struct wire_writer *m, int *fds, size_t count)
{
    const struct fd_packet p = {
        .data = m->out->data, .len = m->out->len, .fds = fds, .nfds = count};
    const int r = fd_send(TOOLS_SOCKET, &p);
    for (size_t i = 0; i < count; i++)
        fd_close(fds[i]);
    return r;
}

/* Before anything is refused, so that it is on record by name in any case. */
static int say_named(const char *schema, const void *given, size_t len)
{
    struct wire_writer m;
    struct buf b;
    json_t *named = tools_named(schema, given, len);
    char *text = named ? json_dumps(named, JSON_COMPACT) : NULL;
    const size_t n = text ? strlen(text) : 0;
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&m, &b, WIRE_TOOL_NAMED);
    wire_put_bytes(&m, text ? text : "", n < LIMIT_NAMED ? n : 0);
    const int r = say(&m);
    free(text);
    json_decref(named);
    buf_done(&b);
    return r;
}

static int say_checked(const struct tools_call *c, const struct tools_program *start, int *fds,
                       size_t count)
{
    struct wire_writer m;
    struct buf b;
    /* of a tool that was made they become a literal of its program */
    const size_t ascii = c->limits[TOOLS_MADE] ? JSON_ENSURE_ASCII : 0;
    char *text = json_dumps(c->args, JSON_COMPACT | JSON_SORT_KEYS | ascii);
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&m, &b, WIRE_TOOL_CHECKED);
    wire_put_bytes(&m, text ? text : "", text ? strlen(text) : 0);
    wire_put_text(&m, start->word);
    wire_put_bytes(&m, start->source, start->len);
    const int r = !text || (count && wire_end(&m) < 0) ? -1
                  : count                              ? say_with(&m, fds, count)
                                                       : say(&m);
    free(text);
    buf_done(&b);
    return r;
}

/* Where it comes from, that it is data, and whether it was changed to be no more than that. */
static int mark_answer(struct tools_call *c)
{
    const json_t *source = json_object_get(c->answer, "source");
    return json_object_set_new(
               c->answer, "source",
               tools_mark(c, json_string_value(source), json_string_length(source))) < 0 ||
                   json_object_set_new(c->answer, "untrusted", json_true()) < 0 ||
                   json_object_set_new(c->answer, "neutralised",
                                       json_integer((json_int_t)c->neutralised)) < 0
               ? -1
               : 0;
}

static char *answer_text(struct tools_call *c, enum tools_end *end)
{
    if (*end == TOOLS_OK && json_object_get(c->answer, "source") && mark_answer(c) < 0)
        *end = tools_fail(c, "no memory");
    char *text = *end == TOOLS_OK ? json_dumps(c->answer, JSON_COMPACT) : NULL;
    if (*end == TOOLS_OK && (!text || strlen(text) > LIMIT_ANSWER)) {
        free(text);
        text = NULL;
        *end = tools_refuse(c, "the answer is longer than %llu bytes: ask for less", LIMIT_ANSWER);
    }
    if (!text) {
        json_t *why = tools_mark(c, c->refusal, strlen(c->refusal));
        text = why ? json_dumps(why, JSON_ENCODE_ANY) : NULL;
        json_decref(why);
    }
    return text;
}

static int say_end(struct tools_call *c, enum tools_end end)
{
    struct wire_writer m;
    struct buf b;
    char *text = answer_text(c, &end);
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&m, &b, WIRE_TOOL_SAID);
    wire_put_uint(&m, (uint64_t)end);
    wire_put_bytes(&m, text ? text : "", text ? strlen(text) : 0);
    const int r = text ? say(&m) : -1;
    free(text);
    buf_done(&b);
    return r;
}

static enum tools_end take_run(struct tools_call *c, struct wire_reader *r)
{
    char which[64], status[32], why[512];
    struct tools_run run = {.which = which, .status = status, .why = why};
    wire_get_text(r, which, sizeof which);
    wire_get_text(r, status, sizeof status);
    wire_get_text(r, why, sizeof why);
    run.flags = wire_get_uint(r);
    run.final.data = wire_get_bytes(r, &run.final.len);
    run.value.data = wire_get_bytes(r, &run.value.len);
    for (int i = 0; i < 2; i++)
        run.streams[i].data = wire_get_bytes(r, &run.streams[i].len);
    return tools_program_answer(c, &run);
}

/* Told to go, it carries the call out; told what the command of a host tool wrote, or
 * what a program gave, it makes that the answer. */
static int carry_out(struct tools_call *c)
{
    struct wire_reader r;
    enum tools_end end;
    uint64_t numbers[TOOLS_INDEXED_NUMBERS] = {0};
    size_t len;
    if (receive(&r, &c->base) < 0)
        return -1;
    if (r.type == WIRE_TOOL_RAN) {
        end = take_run(c, &r);
    } else if (r.type == WIRE_TOOL_OUTPUT) {
        const uint64_t kind = wire_get_uint(&r);
        const void *bytes = wire_get_bytes(&r, &len);
        end = tools_host_answer(
            c, kind < TOOLS_WROTE_COUNT ? (enum tools_wrote)kind : TOOLS_WROTE_WHY, bytes, len);
    } else if (r.type == WIRE_TOOL_GO) {
        (void)wire_get_uints(&r, numbers, TOOLS_INDEXED_NUMBERS);
        tools_indexed_unpack(numbers, &c->indexed);
        wire_get_text(&r, c->reason, sizeof c->reason);
        end = tools_do(c);
    } else {
        return -1;
    }
    return say_end(c, end);
}

/* -1: nobody hears. The schema of a tool that was made is in its file. */
static int take_arguments(struct tools_call *c, const char *schema, const void *given, size_t len,
                          enum tools_end *end)
{
    char *own = NULL;
    if (c->limits[TOOLS_MADE])
        *end = tools_made_schema(c, &own);
    schema = own ? own : schema;
    const int said = c->limits[TOOLS_NAMES] ? say_named(schema, given, len) : 0;
    if (*end == TOOLS_OK &&
        tools_check(schema, given, len, &c->args, c->refusal, sizeof c->refusal) < 0)
        *end = TOOLS_REFUSED;
    free(own);
    return said;
}

/* 0: it was carried out, or refused, and either was said. */
static int serve(int files)
{
    static char name[64], schema[16384], naming[NAMING_BYTES];
    static struct naming_rule rules[NAMING_MAX];
    struct tools_call c = {.name = name, .files = files, .base = -1};
    struct wire_reader r;
    size_t len, count = 0;
    int fds[LIMIT_TOOL_FILES];
    enum tools_end end = TOOLS_OK;
    struct tools_program start;
    if (receive(&r, &c.base) < 0 || r.type != WIRE_TOOL_CHECK)
        return -1;
    wire_get_text(&r, name, sizeof name);
    wire_get_text(&r, schema, sizeof schema);
    const void *given = wire_get_bytes(&r, &len);
    if (wire_get_uints(&r, c.limits, TOOLS_LIMITS) != TOOLS_LIMITS)
        return -1;
    size_t packed = 0; /* the frame is gone when a file is written */
    const void *from = wire_get_bytes(&r, &packed);
    if (packed > sizeof naming)
        return -1;
    memcpy(naming, from ? from : "", packed);
    if (naming_unpack(naming, packed, rules, &c.nnaming) < 0)
        return -1;
    c.naming = rules;
    if (take_arguments(&c, *schema ? schema : NULL, given, len, &end) < 0)
        return -1;
    if (end != TOOLS_OK)
        return say_end(&c, end);
    if (*schema && (end = tools_host_files(&c, schema, fds, &count)) != TOOLS_OK)
        return say_end(&c, end);
    if ((end = tools_program(&c, &start)) != TOOLS_OK)
        return say_end(&c, end);
    const int said = say_checked(&c, &start, fds, count) < 0 ? -1 : carry_out(&c);
    json_decref(c.args);
    json_decref(c.answer);
    buf_done(&c.text);
    return said;
}

/* No call of anybody's: a folder becomes an index. */
static int make_index(void)
{
    struct tools_indexed state = {.documents = 0};
    uint64_t numbers[TOOLS_INDEXED_NUMBERS];
    char shown[64];
    struct wire_reader r;
    struct wire_writer m;
    struct buf b;
    int base = -1;
    if (receive(&r, &base) < 0 || r.type != WIRE_TOOL_INDEX)
        return -1;
    wire_get_text(&r, shown, sizeof shown);
    if (tools_index_folder(base, TOOLS_INDEX, TOOLS_FILES, shown, &state) != 0)
        return -1;
    tools_indexed_pack(&state, numbers);
    buf_init(&b, 256);
    wire_begin(&m, &b, WIRE_TOOL_INDEXED);
    wire_put_uints(&m, numbers, TOOLS_INDEXED_NUMBERS);
    const int said = say(&m);
    buf_done(&b);
    return said;
}

static int limit_itself(void)
{
    const rlim_t seconds = 2 * LIMIT_TOOL_MS / 1000;
    (void)signal(SIGXFSZ, SIG_IGN); /* a write beyond it fails instead */
    return sys_rlimit_lower(RLIMIT_AS, LIMIT_TOOL_MEMORY, LIMIT_TOOL_MEMORY) < 0 ||
                   sys_rlimit_lower(RLIMIT_NOFILE, 128, 128) < 0 ||
                   sys_rlimit_lower(RLIMIT_FSIZE, LIMIT_INDEX, LIMIT_INDEX) < 0 ||
                   sys_rlimit_lower(RLIMIT_CPU, seconds, seconds) < 0
               ? -1
               : 0;
}

/* WORDS: ro or rw, then the name, of each descriptor from TOOLS_SHARES on. What is served is opened first, by its rights of now: a file that is
 * shared by itself has no folder to be found in later. */
static int confine_server(char **words, size_t count, struct err *err)
{
    struct tools_share shares[LIMIT_BINDS];
    struct jail_folder folders[1 + LIMIT_BINDS] = {{TOOLS_FILES, true}};
    size_t nfolders = 1;
    for (size_t i = 0; i < count; i++) {
        struct stat st;
        const int fd = TOOLS_SHARES + (int)i;
        shares[i] = (struct tools_share){fd, strcmp(words[2 * i], "rw") == 0, words[2 * i + 1]};
        if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
            folders[nfolders++] = (struct jail_folder){fd, shares[i].writable};
    }
    if (tools_served_open(TOOLS_FILES, shares, count) < 0)
        return err_sys(err, "open what is to be served");
    return jail_confine_folders(folders, nfolders, "files", err);
}

/* What it was started for; confined by now. */
static int act(const char *what, int files)
{
    if (strcmp(what, "serve") == 0)
        return files < 0 ? -1 : tools_serve_files();
    if (strcmp(what, "index") == 0)
        return files < 0 ? -1 : make_index();
    return serve(files);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct stat st;
    if (argc < 3 || argc > 3 + 2 * LIMIT_BINDS || strcmp(argv[1], "--from-cordon") != 0 ||
        fstat(TOOLS_SOCKET, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        fputs("cordon-tool: started by cordon only; see cordon-run(1), --tool\n", stderr);
        return USAGE;
    }
    const bool has = fstat(TOOLS_FILES, &st) == 0 && S_ISDIR(st.st_mode);
    const bool serves = strcmp(argv[2], "serve") == 0;
    const bool writes = strcmp(argv[2], "write") == 0;
    json_decref(
        json_object()); /* jansson reads its random number: later there is no file to read it from */
    umask(022);
    int r = limit_itself() < 0 ? err_sys(&err, "limits") : 0;
    if (r == 0)
        r = has && serves ? confine_server(argv + 3, ((size_t)argc - 3) / 2, &err)
                          : jail_confine(has && writes ? TOOLS_FILES : -1,
                                         has && !writes ? TOOLS_FILES : -1, "tool", &err);
    if (r < 0) {
        fprintf(stderr, "cordon-tool: %s\n", err.msg);
        return FAILED;
    }
    return act(argv[2], has ? TOOLS_FILES : -1) == 0 ? DONE : FAILED;
}
