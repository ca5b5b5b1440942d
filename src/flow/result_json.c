/* SPDX-License-Identifier: Apache-2.0 */
/* Every key of the contract in every result. */
#include "flow/result.h"

#include "base/jsonw.h"
#include "base/limits.h"

#include <string.h>

static void put_layers(struct jsonw *j, const struct flow_result *r)
{
    jsonw_open(j, "layers", '{');
    jsonw_string(j, "input", r->judged ? "on" : "off");
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++) {
        const char *note = r->layers.note[i];
        jsonw_string(j, jail_layer_names[i],
                     strncmp(note, "weak", 4) == 0 ? note
                     : r->layers.on[i] && !note[0] ? "on"
                                                   : "off");
    }
    jsonw_string(j, "output", r->cleaned ? "on" : "off");
    jsonw_string(j, "audit", r->recorded ? "on" : "off");
    jsonw_close(j, '}');
}

static void put_line(struct jsonw *j, unsigned line)
{
    if (line)
        jsonw_int(j, "line", line);
    else
        jsonw_null(j, "line");
}

static void put_places(struct jsonw *j, const struct flow_violation *v)
{
    if (v->place_count < 2)
        return;
    jsonw_open(j, "places", '[');
    for (size_t i = 0; i < v->place_count; i++) {
        jsonw_open(j, NULL, '{');
        jsonw_int(j, "line", v->places[i].line);
        jsonw_int(j, "column", v->places[i].column);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

void flow_violation_json(struct jsonw *j, const char *key, const struct flow_violation *v)
{
    jsonw_open(j, key, '{');
    jsonw_string(j, "layer", v->layer);
    jsonw_string(j, "rule", v->rule);
    jsonw_string(j, "detail", v->detail);
    put_line(j, v->line);
    if (v->column)
        jsonw_int(j, "column", v->column);
    put_places(j, v);
    jsonw_string(j, "hint", v->hint);
    jsonw_int(j, "times", (int64_t)v->times);
    jsonw_string(j, "outcome", flow_violation_end_name(v->end));
    jsonw_close(j, '}');
}

static void put_violations(struct jsonw *j, const struct flow_result *r)
{
    jsonw_open(j, "violations", '[');
    for (size_t i = 0; i < r->violation_count; i++)
        flow_violation_json(j, NULL, &r->violations[i]);
    jsonw_close(j, ']');
}

static void put_error(struct jsonw *j, const struct flow_result *r)
{
    if (r->status == FLOW_OK) {
        jsonw_null(j, "error");
        return;
    }
    jsonw_open(j, "error", '{');
    jsonw_string(j, "category", r->category);
    jsonw_string(j, "type", r->type);
    jsonw_string(j, "message", r->message);
    put_line(j, r->line);
    if (r->hint[0])
        jsonw_string(j, "hint", r->hint);
    if (r->retry_after_s)
        jsonw_int(j, "retry_after_s", r->retry_after_s);
    jsonw_close(j, '}');
}

static void put_text(struct jsonw *j, const char *key, const struct buf *b, bool there)
{
    if (there)
        jsonw_bytes(j, key, b->data ? b->data : "", b->len);
    else
        jsonw_null(j, key);
}

static void put_streams(struct jsonw *j, const struct flow_result *r)
{
    put_text(j, "stdout", &r->streams[0], true);
    put_text(j, "stderr", &r->streams[1], true);
    jsonw_int(j, "stdout_bytes", (int64_t)r->bytes[0]);
    jsonw_int(j, "stderr_bytes", (int64_t)r->bytes[1]);
    jsonw_bool(j, "truncated", r->truncated);
    put_text(j, "value", &r->value, r->has_value);
    jsonw_bool(j, "is_final", r->is_final);
    put_text(j, "final", &r->final, r->is_final);
}

static void put_end(struct jsonw *j, const struct flow_result *r)
{
    if (r->ran)
        jsonw_int(j, "exit_code", r->exit_code);
    else
        jsonw_null(j, "exit_code");
    if (r->signal)
        jsonw_int(j, "signal", r->signal);
    else
        jsonw_null(j, "signal");
    jsonw_open(j, "usage", '{');
    jsonw_decimal(j, "wall_ms", (double)r->wall_us / 1e3);
    jsonw_decimal(j, "cpu_ms", (double)r->cpu_us / 1e3);
    jsonw_decimal(j, "memory_mb", (double)r->memory / MIB);
    jsonw_string(j, "memory_by", r->memory_by);
    jsonw_close(j, '}');
}

static void put_files(struct jsonw *j, const struct flow_result *r)
{
    jsonw_open(j, "files", '[');
    for (size_t i = 0; i < r->file_count; i++) {
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "path", r->files[i].path);
        jsonw_int(j, "bytes", (int64_t)r->files[i].bytes);
        jsonw_string(j, "change", r->files[i].changed ? "modified" : "created");
        jsonw_string(j, "type", r->files[i].type);
        jsonw_string(j, "saved", r->files[i].saved);
        if (r->files[i].unsaved)
            jsonw_string(j, "reason", r->files[i].unsaved);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    if (r->files_cut)
        jsonw_bool(j, "files_truncated", true);
}

/* What was taken from the text of a model, and what was not; null where the text is the program. */
static void put_intake(struct jsonw *j, const struct intake_source *s)
{
    if (!s->blocks && !s->note_count) {
        jsonw_null(j, "intake");
        return;
    }
    jsonw_open(j, "intake", '{');
    jsonw_string(j, "language", s->language[0] ? s->language : NULL);
    jsonw_int(j, "line", (int64_t)s->line);
    jsonw_int(j, "blocks", (int64_t)s->blocks);
    jsonw_open(j, "notes", '[');
    for (size_t i = 0; i < s->note_count && i < INTAKE_NOTES; i++) {
        const struct intake_note *n = &s->notes[i];
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "what", intake_kind_name(n->kind));
        jsonw_int(j, "line", (int64_t)n->line);
        jsonw_string(j, "detail", n->detail[0] ? n->detail : NULL);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    jsonw_int(j, "notes_total", (int64_t)s->note_count);
    jsonw_close(j, '}');
}

static void put_snapshot(struct jsonw *j, const struct flow_snapshot *s)
{
    if (!s->workspace[0]) {
        jsonw_null(j, "snapshot");
        return;
    }
    const char *at = s->left.data, *end = at ? at + s->left.len : NULL;
    jsonw_open(j, "snapshot", '{');
    jsonw_string(j, "workspace", s->workspace);
    jsonw_string(j, "id", s->id[0] ? s->id : NULL);
    jsonw_bool(j, "changed", s->changed);
    jsonw_string(j, "reason", s->why[0] ? s->why : NULL);
    if (s->percent)
        jsonw_int(j, "used_percent", (int64_t)s->percent);
    else
        jsonw_null(j, "used_percent");
    jsonw_open(j, "left_out", '[');
    while (at && at < end) {
        const char *why = at + strlen(at) + 1;
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "path", at);
        jsonw_string(j, "reason", why);
        jsonw_close(j, '}');
        at = why + strlen(why) + 1;
    }
    jsonw_close(j, ']');
    jsonw_close(j, '}');
}

int flow_result_json(const struct flow_result *r, struct buf *out)
{
    struct jsonw j = {.out = out};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "id", r->id);
    jsonw_string(&j, "status", flow_status_name(r->status));
    jsonw_string(&j, "layer", r->layer);
    jsonw_string(&j, "reason", r->reason[0] ? r->reason : NULL);
    put_intake(&j, &r->intake);
    jsonw_open(&j, "notes", '[');
    for (size_t i = 0; i < r->note_count; i++)
        jsonw_string(&j, NULL, r->notes[i]);
    jsonw_close(&j, ']');
    put_violations(&j, r);
    jsonw_int(&j, "violations_total", (int64_t)r->violations_total);
    put_streams(&j, r);
    put_error(&j, r);
    put_end(&j, r);
    put_layers(&j, r);
    put_files(&j, r);
    put_snapshot(&j, &r->snapshot);
    jsonw_string(&j, "session", r->session[0] ? r->session : NULL);
    jsonw_close(&j, '}');
    return j.bad ? j.bad : buf_str(out, "\n");
}
