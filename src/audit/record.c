/* SPDX-License-Identifier: Apache-2.0 */
/* Every record has every member, in one order, whatever its kind: whoever reads the log with a script
 * never has to ask whether a member is there. Texts are cut to a length that depends on how much there
 * is: a record is never refused for being too long, it says less. */
#include "audit/inside.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

static const char *const names[AUDIT_KINDS] = {
    [AUDIT_BEGIN] = "begin",         [AUDIT_END] = "end",
    [AUDIT_LOST] = "lost",           [AUDIT_REFUSAL] = "refusal",
    [AUDIT_APPROVAL] = "approval",   [AUDIT_BREAKER] = "breaker",
    [AUDIT_STOP] = "stop",           [AUDIT_RESUME] = "resume",
    [AUDIT_POLICY] = "policy",       [AUDIT_SESSION] = "session",
    [AUDIT_WORKSPACE] = "workspace", [AUDIT_TOOL] = "tool",
    [AUDIT_MODEL] = "model",         [AUDIT_ALERT] = "alert",
    [AUDIT_REPAIR] = "repair",       [AUDIT_TAMPERED] = "tampered",
    [AUDIT_RETENTION] = "retention",
};

const char *audit_kind_name(enum audit_kind kind)
{
    return (unsigned)kind < AUDIT_KINDS ? names[kind] : "unknown";
}

/* How much of what somebody else wrote goes in: tried one after the other until the line fits. */
static const struct caps {
    size_t text, items;
} ladder[] = {
    {1024, LIMIT_VIOLATIONS}, {128, LIMIT_VIOLATIONS}, {32, LIMIT_VIOLATIONS}, {32, 8}, {0, 0}};

struct sheet {
    struct jsonw j;
    const struct audit_config *c;
    const struct caps *caps;
    struct buf *clean; /* one text after redaction */
};

/* A text that came from outside: redacted, cut, and marked where it was cut. */
static void outside(struct sheet *s, const char *key, const char *name, const char *text,
                    size_t len, struct audit_words *words)
{
    buf_reset(s->clean);
    int r = audit_redact(s->c, name, text, len, words, s->clean);
    if (r < 0) { /* rather nothing than a secret */
        jsonw_string(&s->j, key, "[left out: it could not be redacted]");
        return;
    }
    if (s->clean->len > s->caps->text) {
        char mark[64];
        size_t keep = s->caps->text, all = s->clean->len;
        while (keep &&
               ((unsigned char)s->clean->data[keep] & 0xc0) == 0x80) /* not inside a character */
            keep--;
        s->clean->len = keep;
        s->clean->data[keep] = 0;
        snprintf(mark, sizeof mark, "[... %zu more bytes]", all - keep);
        if (buf_str(s->clean, mark) < 0)
            s->j.bad = ERR_MEMORY;
    }
    jsonw_bytes(&s->j, key, s->clean->data ? s->clean->data : "", s->clean->len);
}

static void outside_text(struct sheet *s, const char *key, const char *text)
{
    if (text)
        outside(s, key, NULL, text, strlen(text), NULL);
    else
        jsonw_null(&s->j, key);
}

/* Names of ours: short, but a caller's mistake must not make a line of a megabyte. */
static void label(struct sheet *s, const char *key, const char *text)
{
    if (text)
        jsonw_bytes(&s->j, key, text, strnlen(text, 255));
    else
        jsonw_null(&s->j, key);
}

static void list(struct sheet *s, const struct audit_arg *arg)
{
    size_t show = arg->count < s->caps->items ? arg->count : s->caps->items;
    struct audit_words words = {.whole = true};
    jsonw_open(&s->j, arg->name, '[');
    for (size_t i = 0; i < show && !s->j.bad; i++)
        outside(s, NULL, arg->name, arg->list[i], strlen(arg->list[i]), &words);
    if (show < arg->count)
        jsonw_int(&s->j, NULL, (int64_t)(arg->count - show));
    jsonw_close(&s->j, ']');
}

static void arguments(struct sheet *s, const struct audit_facts *f)
{
    size_t show = f->nargs < s->caps->items ? f->nargs : s->caps->items;
    jsonw_open(&s->j, "args", '{');
    for (size_t i = 0; i < show && !s->j.bad; i++) {
        const struct audit_arg *arg = &f->args[i];
        if (arg->kind == AUDIT_ARG_NUMBER)
            jsonw_int(&s->j, arg->name, arg->number);
        else if (arg->kind == AUDIT_ARG_LIST)
            list(s, arg);
        else if (arg->text)
            outside(s, arg->name, arg->name, arg->text, arg->len ? arg->len : strlen(arg->text),
                    NULL);
        else
            jsonw_null(&s->j, arg->name);
    }
    if (show < f->nargs)
        jsonw_int(&s->j, "left_out", (int64_t)(f->nargs - show));
    jsonw_close(&s->j, '}');
}

static void violations(struct sheet *s, const struct audit_outcome *o)
{
    size_t show = !o ? 0 : o->nviolations < s->caps->items ? o->nviolations : s->caps->items;
    jsonw_open(&s->j, "security_violations", '[');
    for (size_t i = 0; i < show && !s->j.bad; i++)
        outside_text(s, NULL, o->violations[i]);
    jsonw_close(&s->j, ']');
    jsonw_int(&s->j, "violations_total",
              !o ? 0 : (int64_t)(o->violations_total ? o->violations_total : o->nviolations));
}

static void code(struct sheet *s, const struct audit_facts *f)
{
    label(s, "code_hash", f->code_hash);
    if (f->code_hash)
        jsonw_int(&s->j, "code_size", (int64_t)f->code_len);
    else
        jsonw_null(&s->j, "code_size");
}

static void writer(struct sheet *s, const struct audit_writer *w)
{
    char boot[2 * AUDIT_BOOT + 1];
    audit_hex(w->boot, AUDIT_BOOT, boot);
    jsonw_open(&s->j, "writer", '{');
    jsonw_int(&s->j, "pid", w->pid);
    jsonw_int(&s->j, "start", (int64_t)w->start);
    jsonw_string(&s->j, "boot", boot);
    jsonw_close(&s->j, '}');
}

static void number_or_null(struct sheet *s, const char *key, bool there, uint64_t n)
{
    if (there)
        jsonw_int(&s->j, key, n > INT64_MAX ? INT64_MAX : (int64_t)n);
    else
        jsonw_null(&s->j, key);
}

static void verdict(struct sheet *s, enum audit_validation v)
{
    jsonw_string(&s->j, "validation_result",
                 v == AUDIT_PASSED    ? "passed"
                 : v == AUDIT_BLOCKED ? "blocked"
                                      : NULL);
}

static void how_it_ended(struct sheet *s, const struct audit_outcome *o)
{
    const struct audit_outcome none = {0};
    bool there = o != NULL;
    o = o ? o : &none;
    verdict(s, o->validation);
    number_or_null(s, "execution_time_ms", there, o->wall_us / 1000);
    number_or_null(s, "duration", there, o->wall_us / 1000);
    if (o->has_exit_code)
        jsonw_int(&s->j, "exit_code", o->exit_code);
    else
        jsonw_null(&s->j, "exit_code");
    number_or_null(s, "signal", o->signal != 0, (uint64_t)o->signal);
    number_or_null(s, "memory_used_mb", there, (o->memory_bytes + MIB - 1) / MIB);
    number_or_null(s, "output_size", there, o->output_bytes);
    label(s, "error_type", o->error_type);
}

static void steps(struct sheet *s, const struct audit_outcome *o)
{
    jsonw_open(&s->j, "steps", '{');
    for (size_t i = 0; o && i < o->nsteps; i++)
        jsonw_int(&s->j, o->steps[i].name, (int64_t)o->steps[i].us);
    jsonw_close(&s->j, '}');
}

static void success(struct sheet *s, const char *status)
{
    if (status)
        jsonw_bool(&s->j, "success", strcmp(status, "ok") == 0);
    else
        jsonw_null(&s->j, "success");
}

static void write_body(struct sheet *s, enum audit_kind kind, const struct audit_facts *f,
                       uint64_t begin_seq, const struct audit_writer *w)
{
    const struct audit_outcome *o = f->outcome;
    jsonw_string(&s->j, "kind", audit_kind_name(kind));
    label(s, "execution_id", f->execution_id);
    label(s, "client_id", f->client_id);
    label(s, "tool", f->tool);
    number_or_null(s, "begin_seq", begin_seq != 0, begin_seq);
    label(s, "status", o ? o->status : NULL);
    success(s, o ? o->status : NULL);
    label(s, "layer", o ? o->layer : NULL);
    outside_text(s, "reason", o ? o->reason : NULL);
    code(s, f);
    how_it_ended(s, o);
    label(s, "workerId", f->worker_id);
    label(s, "session", f->session);
    label(s, "language", f->language);
    label(s, "profile", f->profile);
    label(s, "role", f->role);
    violations(s, o);
    steps(s, o);
    arguments(s, f);
    writer(s, w);
}

int audit_body(struct audit *a, struct buf *out, enum audit_kind kind, const struct audit_facts *f,
               uint64_t begin_seq, struct err *err)
{
    struct sheet s = {.c = &a->config, .clean = &a->clean};
    int r = ERR_LIMIT;
    for (size_t i = 0; i < sizeof ladder / sizeof *ladder && r == ERR_LIMIT; i++) {
        buf_reset(&a->line); /* it has the ceiling of one record */
        s.caps = &ladder[i];
        s.j = (struct jsonw){.out = &a->line};
        write_body(&s, kind, f, begin_seq, &a->self);
        r = s.j.bad;
    }
    if (r == 0)
        r = buf_add(out, a->line.data, a->line.len);
    return r < 0 ? err_set(err, r, "the audit record of %.60s does not fit",
                           f->execution_id ? f->execution_id : "an event")
                 : 0;
}

static void copied(struct sheet *s, const char *key, const char *line, size_t len)
{
    const char *text = "null";
    size_t n = 4;
    char lead[48];
    if (line && !audit_line_member(line, len, key, &text, &n))
        text = "null", n = 4;
    int lead_len = snprintf(lead, sizeof lead, ", \"%s\": ", key);
    if (buf_add(s->j.out, lead, (size_t)lead_len) < 0 || buf_add(s->j.out, text, n) < 0)
        s->j.bad = ERR_LIMIT;
}

int audit_body_late(struct buf *out, const char *line, size_t len, uint64_t begin_seq,
                    const struct audit_late *late, const struct audit_writer *w, struct err *err)
{
    const struct audit_outcome o = {.status = late->known ? late->status : "lost",
                                    .error_type = late->error_type[0] ? late->error_type : NULL,
                                    .validation = (enum audit_validation)late->validation,
                                    .wall_us = late->wall_us,
                                    .has_exit_code = late->has_exit_code,
                                    .exit_code = late->exit_code,
                                    .signal = late->signal,
                                    .memory_bytes = late->memory_bytes,
                                    .output_bytes = late->output_bytes};
    struct sheet s = {.j = {.out = out}, .caps = &ladder[0]};
    size_t before = out->len;
    jsonw_string(&s.j, "kind", audit_kind_name(late->known ? AUDIT_END : AUDIT_LOST));
    copied(&s, "execution_id", line, len);
    copied(&s, "client_id", line, len);
    copied(&s, "tool", line, len);
    jsonw_int(&s.j, "begin_seq", (int64_t)begin_seq);
    jsonw_string(&s.j, "status", o.status);
    success(&s, o.status);
    jsonw_string(&s.j, "layer", late->layer[0] ? late->layer : NULL);
    jsonw_string(&s.j, "reason",
                 late->known
                     ? "this record could not be written when the run ended"
                     : "the process that ran it ended before the run did, or the machine did");
    copied(&s, "code_hash", line, len);
    copied(&s, "code_size", line, len);
    how_it_ended(&s, late->known ? &o : NULL);
    copied(&s, "workerId", line, len);
    copied(&s, "session", line, len);
    copied(&s, "language", line, len);
    copied(&s, "profile", line, len);
    copied(&s, "role", line, len);
    jsonw_open(&s.j, "security_violations", '[');
    jsonw_close(&s.j, ']');
    jsonw_int(&s.j, "violations_total", (int64_t)late->violations);
    steps(&s, NULL);
    jsonw_open(&s.j, "args", '{');
    jsonw_int(&s.j, "began_by", late->writer.pid);
    if (late->ended_ms)
        jsonw_int(&s.j, "ended", (int64_t)late->ended_ms);
    jsonw_close(&s.j, '}');
    writer(&s, w);
    if (s.j.bad < 0)
        out->len = before;
    return s.j.bad < 0 ? err_set(err, s.j.bad, "the late record of a run does not fit") : 0;
}
