/* SPDX-License-Identifier: Apache-2.0 */
/* What an approval is bound to, besides the code: one text of all that decides what happens. The same request gives
 * the same text, and a yes holds for that text alone. Names are not enough: a folder is bound by its real path, device
 * and inode, since the same relative name means another folder elsewhere; standard input by its content, of which the
 * guest gets the copy that was looked at; a call of a session by the process that it goes to and how many calls came
 * before, since the same line means another thing there. Where the policy asks for it (approval.contents) a folder is
 * bound by all that lies in it, too.
 *
 * Waits: sendfile in copy_input; from a regular file into memory; none (the kernel's own); an error */
#include "flow/steps.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define INPUT_MAX (64 * MIB) /* of standard input that somebody can be asked about */

/* Whether somebody may be asked, so that what they saw must be what runs. A tool that the policy asks about is asked about
 * in every mode. */
static bool asks_somebody(const struct flow *f)
{
    const struct flow_context *h = f->req->context;
    const struct policy *p = h->policy;
    return !flow_only_judges(f) && (p->approval.mode != POLICY_AUTONOMOUS || p->arena.enabled ||
                                    gate_tool_asks(&h->gate_config, flow_tool_name(f)));
}

/* A sealed copy of what is left of the regular file FD, and the sum over it. */
static int copy_input(int fd, off_t size, int *ret_copy, char sum[65], struct err *err)
{
    off_t from = lseek(fd, 0, SEEK_CUR);
    off_t left = from < 0 || from > size ? 0 : size - from;
    if (left > (off_t)INPUT_MAX)
        return err_set(err, ERR_USAGE,
                       "standard input has %lld bytes, more than %lld that a person or judge can "
                       "be asked about: pass it with --ro",
                       (long long)left, (long long)INPUT_MAX);
    FD_AUTO copy = memfd_create("cordon-input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (copy < 0)
        return err_sys(err, "copy standard input");
    for (ssize_t n = 1; left > 0 && n > 0; left -= n)
        if ((n = sendfile(copy, fd, &from, (size_t)left)) < 0)
            return err_sys(err, "copy standard input");
    struct stat st;
    if (fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ||
        fstat(copy, &st) < 0 || lseek(copy, 0, SEEK_SET) < 0)
        return err_sys(err, "copy standard input");
    void *data =
        st.st_size ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, copy, 0) : NULL;
    if (data == MAP_FAILED)
        return err_sys(err, "look at standard input");
    gate_sha256_hex(data ? data : "", (size_t)st.st_size, sum);
    if (data)
        munmap(data, (size_t)st.st_size);
    *ret_copy = fd_take(&copy);
    return 0;
}

static int bind_input(struct flow *f, struct jsonw *j, struct err *err)
{
    struct stat st;
    char sum[65];
    const int fd = f->req->input;
    if (fd < 0 || fstat(fd, &st) < 0 || (S_ISCHR(st.st_mode) && !isatty(fd))) {
        jsonw_null(j, "stdin");
        return 0;
    }
    if (!S_ISREG(st.st_mode) || !asks_somebody(f)) {
        jsonw_string(j, "stdin",
                     S_ISREG(st.st_mode) ? "a file" : "a stream, which nobody has seen");
        return 0;
    }
    int r = copy_input(fd, st.st_size, &f->seen_input, sum, err);
    if (r == 0)
        jsonw_string(j, "stdin", sum);
    return r;
}

/* What the guest reads: the copy, where somebody was asked about it. */
int flow_input(const struct flow *f)
{
    return f->seen_input >= 0 ? f->seen_input : f->req->input;
}

/* Summed again right before the run. */
static int bind_contents(struct flow_contents *c, const char *real, struct jsonw *j,
                         struct err *err)
{
    int r = flow_contents_sum(real, c->sum, err);
    if (r < 0)
        return r;
    if (!(c->path = strdup(real)))
        return err_set(err, ERR_MEMORY, "no memory");
    jsonw_string(j, "contents", c->sum);
    return 0;
}

static int bind_folders(struct flow *f, struct jsonw *j, struct err *err)
{
    const struct jail_spec *s = &f->req->spec;
    if (s->nbinds && asks_somebody(f) && f->req->context->policy->approval.contents &&
        !(f->contents = calloc(s->nbinds, sizeof *f->contents)))
        return err_set(err, ERR_MEMORY, "no memory");
    jsonw_open(j, "binds", '[');
    for (size_t i = 0; i < s->nbinds; i++) {
        const struct jail_bind *b = &s->binds[i];
        struct stat st = {0};
        char *real = realpath(b->source, NULL);
        if (real && stat(real, &st) < 0)
            st = (struct stat){0}; /* the jail will say what is wrong */
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "source", real ? real : b->source);
        jsonw_int(j, "device", (int64_t)st.st_dev);
        jsonw_int(j, "inode", (int64_t)st.st_ino);
        jsonw_string(j, "dest", b->dest);
        jsonw_bool(j, "writable", b->writable);
        jsonw_bool(j, "committed", b->lower);
        jsonw_bool(j, "copied", b->copied);
        int r = real && f->contents ? bind_contents(&f->contents[i], real, j, err) : 0;
        if (r < 0) {
            free(real);
            return r;
        }
        jsonw_close(j, '}');
        if (b->writable || b->lower) { /* of a workspace what is written outlives the run, too */
            f->writes[f->nwrites++] = b->dest;
            if (real &&
                strcmp(real, b->dest) != 0) { /* judges and records know it by this name, too */
                f->writes[f->nwrites++] = real;
                f->owned[f->nowned++] = real;
                real = NULL;
            }
        }
        free(real);
    }
    jsonw_close(j, ']');
    return j->bad < 0 ? err_set(err, ERR_MEMORY, "no memory") : 0;
}

static void bind_session(const struct flow *f, struct jsonw *j)
{
    const struct flow_request *req = f->req;
    jsonw_string(j, "session", req->session);
    if (req->session && req->child) {
        jsonw_int(j, "session_process", jail_child_pid(req->child));
        jsonw_int(j, "session_call", (int64_t)req->session_call);
    }
}

static void bind_words(struct jsonw *j, const char *key, const char *const *words, size_t count)
{
    jsonw_open(j, key, '[');
    for (size_t i = 0; i < count; i++)
        jsonw_string(j, NULL, words[i]);
    jsonw_close(j, ']');
}

int flow_bind(struct flow *f, struct err *err)
{
    const struct flow_request *req = f->req;
    const struct jail_spec *s = &req->spec;
    struct jsonw j = {.out = &f->arguments};
    char *at;
    buf_init(&f->arguments, MIB);
    if (buf_reserve(&f->arguments, 1024, &at) < 0) /* most fit */
        return err_set(err, ERR_MEMORY, "no memory");
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "tool", flow_tool_name(f));
    /* the same text can be a program of two languages, and do another thing in each */
    jsonw_string(&j, "language", req->kind == FLOW_EXEC ? NULL : f->language->name);
    jsonw_string(&j, "profile", req->profile ? req->profile->name : NULL);
    jsonw_string(&j, "mode", s->mode == JAIL_FULL ? "full" : "landlock");
    jsonw_bool(&j, "proc", s->proc);
    jsonw_bool(&j, "exec_files", s->run_written);
    jsonw_open(&j, "calls", '[');
    for (size_t i = 0; req->tools && req->tools[i]; i++)
        jsonw_string(&j, NULL, req->tools[i]);
    jsonw_close(&j, ']');
    jsonw_string(&j, "worker", req->worker);
    bind_words(&j, "argv", req->kind == FLOW_EXEC ? s->argv : req->args,
               req->kind == FLOW_EXEC ? s->argc : req->nargs);
    if (req->method) {
        jsonw_string(&j, "method", req->method);
        jsonw_string(&j, "method_args", req->method_args);
        jsonw_string(&j, "save", req->save);
    }
    jsonw_string(&j, "out", req->out_name);
    if (req->out_name)
        f->writes[f->nwrites++] = req->out_name;
    int r = bind_folders(f, &j, err);
    if (r == 0)
        r = bind_input(f, &j, err);
    if (r < 0)
        return r;
    bind_session(f, &j);
    bind_words(&j, "env", s->env, s->envc);
    jsonw_open(&j, "limits", '{');
#define X(name) jsonw_int(&j, #name, (int64_t)s->limits.name);
    JAIL_LIMITS(X)
#undef X
    jsonw_close(&j, '}');
    jsonw_close(&j, '}');
    return j.bad < 0 ? err_set(err, ERR_USAGE, "the request is too long to be shown to anybody")
                     : 0;
}

void flow_unbind(struct flow *f)
{
    buf_done(&f->arguments);
    fd_close(f->seen_input);
    while (f->nowned)
        free(f->owned[--f->nowned]);
    for (size_t i = 0; f->contents && i < f->req->spec.nbinds; i++)
        free(f->contents[i].path);
    free(f->contents);
}
