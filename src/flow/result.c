/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended decides status, layer and reason of its result: one table has all of them. */
#include "flow/steps.h"

#include "base/fit.h"
#include "base/limits.h"
#include "base/units.h"
#include "base/utf8.h"
#include "gate/escalate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char *const names[] = {"ok",     "error",  "blocked", "denied", "timeout",
                                    "memory", "output", "crashed", "refused"};

const char *flow_status_name(enum flow_status s)
{
    return names[s];
}

void flow_result_init(struct flow_result *r)
{
    unsigned char random[8];
    *r = (struct flow_result){.category = "CODE"};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        memset(random, 0, sizeof random);
    snprintf(r->id, sizeof r->id, "run-");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(r->id + 4 + 2 * i, sizeof r->id - 4 - 2 * i, "%02x", random[i]);
    for (int i = 0; i < 2; i++)
        buf_init(&r->streams[i], 8 * LIMIT_OUTPUT_MAX);
    buf_init(&r->value, LIMIT_CHARACTER * (LIMIT_VALUE + 1));
    buf_init(&r->final, LIMIT_CHARACTER * (LIMIT_VALUE + 1));
}

void flow_result_done(struct flow_result *r)
{
    for (int i = 0; i < 2; i++)
        buf_done(&r->streams[i]);
    buf_done(&r->value);
    buf_done(&r->final);
    buf_done(&r->snapshot.left);
    intake_source_done(&r->intake);
    for (size_t i = 0; i < r->file_count; i++) {
        free(r->files[i].path);
        free(r->files[i].saved);
        free(r->files[i].unsaved);
    }
    free(r->files);
    free(r->violations);
    flow_left_close(r->left);
}

void flow_result_violation(struct flow_result *r, const struct flow_violation *v)
{
    r->violations_total += v->times ? v->times : 1;
    if (r->violation_count == 2 * LIMIT_VIOLATIONS) /* those of the jail and of the judge */
        return;
    if (r->violation_count == r->violation_cap) {
        size_t cap = r->violation_cap ? r->violation_cap * 2 : 8;
        struct flow_violation *more = realloc(r->violations, cap * sizeof *more);
        if (!more)
            return;
        r->violations = more;
        r->violation_cap = cap;
    }
    r->violations[r->violation_count] = *v;
    if (!v->times)
        r->violations[r->violation_count].times = 1;
    r->violation_count++;
}

void flow_result_say(struct flow_result *r, enum flow_status status, const char *layer,
                     const char *category, const char *type, const char *reason)
{
    r->status = status;
    r->layer = layer;
    r->category = category;
    snprintf(r->type, sizeof r->type, "%s", type);
    fit_words(r->reason, sizeof r->reason, snprintf(r->reason, sizeof r->reason, "%s", reason));
    fit_words(r->message, sizeof r->message, snprintf(r->message, sizeof r->message, "%s", reason));
}

static void seconds(uint64_t ms, char *out, size_t size)
{
    if (ms % 1000)
        snprintf(out, size, "%llu.%03llus", (unsigned long long)ms / 1000,
                 (unsigned long long)ms % 1000);
    else
        snprintf(out, size, "%llus", (unsigned long long)ms / 1000);
}

/* What the guest may write is mounted where nobody looks for it; whoever reads of it knows it as /workspace and /tmp. */
static void show_known_paths(char *text)
{
    static const char own[] = JAIL_OWN "/";
    const size_t cut = sizeof own - 2; /* its last slash stays */
    for (char *at = text; (at = strstr(at, own));)
        if (strncmp(at + cut, "/workspace", 10) == 0 || strncmp(at + cut, "/tmp", 4) == 0)
            memmove(at, at + cut, strlen(at + cut) + 1);
        else
            at += cut;
}

void flow_result_take(struct flow_result *r, const struct jail_violation *from)
{
    struct flow_violation v = {.times = from->times, .line = (unsigned)from->line};
    snprintf(v.layer, sizeof v.layer, "%s", from->layer);
    snprintf(v.rule, sizeof v.rule, "%s", from->rule);
    snprintf(v.detail, sizeof v.detail, "%s", from->detail);
    snprintf(v.hint, sizeof v.hint, "%s", from->hint);
    show_known_paths(v.detail);
    flow_result_violation(r, &v);
}

static void take_figures(struct flow_result *r, const struct jail_outcome *o)
{
    r->ran = true;
    r->exit_code = o->exit_code;
    r->signal = o->signal;
    r->stopped_by = o->stopped_by;
    r->wall_us = o->wall_us;
    r->cpu_us = o->cpu_us;
    r->memory = o->memory;
    r->mapped = o->mapped;
    r->memory_by = o->memory_enforced_by;
    r->layers = o->layers;
    for (int i = 0; i < 2; i++)
        r->bytes[i] = o->bytes[i];
    for (size_t i = 0; i < o->violation_count; i++) {
        r->violations_total -=
            o->violations[i].times; /* counted below, with those that were not kept */
        flow_result_take(r, &o->violations[i]);
    }
    r->violations_total += o->violations_total;
}

void flow_result_outcome(struct flow_result *r, const struct jail_outcome *o,
                         const struct jail_limits *l)
{
    char time[32], size[UNITS_TEXT], text[256];
    take_figures(r, o);
    switch (o->end) {
    case JAIL_END_EXIT:
        if (o->exit_code == 0)
            return;
        snprintf(text, sizeof text, "exited with status %d", o->exit_code);
        flow_result_say(r, FLOW_ERROR, NULL, "CODE", "ExitStatus", text);
        return;
    case JAIL_END_SIGNAL:
        if (o->killed_from_outside) {
            flow_result_say(r, FLOW_CRASHED, "process", "CODE", "JailLost",
                            "the program was killed from outside: by somebody, or for want of the "
                            "machine's memory");
            return;
        }
        snprintf(text, sizeof text, "killed by signal %d (%s)", o->signal,
                 sigabbrev_np(o->signal) ? sigabbrev_np(o->signal) : "?");
        flow_result_say(r, FLOW_CRASHED, NULL, "CODE", "Signal", text);
        if (o->signal ==
            SIGTRAP) /* how V8 ends where it gets too few addresses; node is the usual one */
            snprintf(r->hint, sizeof r->hint,
                     "an engine such as node reserves more than it uses, and ends so where it gets "
                     "less: try --memory 4g");
        return;
    case JAIL_END_WALL:
    case JAIL_END_CPU:
        seconds(o->end == JAIL_END_WALL ? l->wall_ms : l->cpu_ms, time, sizeof time);
        snprintf(text, sizeof text, "%s time limit of %s", o->end == JAIL_END_WALL ? "wall" : "CPU",
                 time);
        flow_result_say(r, FLOW_TIMEOUT, "resources", "TIMEOUT", "TimeoutError", text);
        snprintf(r->message, sizeof r->message, "Execution timeout exceeded (%s)", time);
        return;
    case JAIL_END_MEMORY:
        units_bytes_text(l->memory, size);
        snprintf(text, sizeof text, "memory limit of %s (%s)", size, o->memory_enforced_by);
        flow_result_say(r, FLOW_MEMORY, "resources", "CODE", "MemoryError", text);
        return;
    case JAIL_END_FLOOD:
        units_bytes_text(l->flood, size);
        snprintf(text, sizeof text, "more than %s of output", size);
        flow_result_say(r, FLOW_OUTPUT, "output", "CODE", "OutputError", text);
        return;
    case JAIL_END_STOPPED:
        flow_result_say(r, FLOW_ERROR, NULL, "EARLY_ABORT", "Stopped", "stopped from outside");
        return;
    case JAIL_END_LOST:
    case JAIL_END_NONE:
        flow_result_say(r, FLOW_CRASHED, "process", "CODE", "JailLost",
                        "the jail was killed from outside");
        return;
    }
}

void flow_result_refuse(struct flow_result *r, const struct err *why)
{
    const char *layer = NULL;
    char text[400];
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++)
        if (strcmp(jail_layer_names[i], why->layer) == 0)
            layer = jail_layer_names[i];
    snprintf(text, sizeof text, "%s%s%s", layer ? layer : "", layer ? ": " : "", why->msg);
    const char *type = why->code == ERR_USAGE ? "UsageError" : "JailError";
    flow_result_say(r, FLOW_REFUSED, layer,
                    gate_error_category_name(gate_error_category_of("refused", type)), type, text);
}

/* ---- clean ---- */

static void clean_buf(struct buf *b, const struct output_rules *rules, enum output_escape escape,
                      uint64_t cap, bool *truncated)
{
    struct output_clean c;
    struct buf out;
    output_clean_init(&c, rules, cap, OUTPUT_CHARACTERS);
    output_clean_add(&c, b->data, b->len);
    output_clean_end(&c);
    buf_init(&out, 8 * b->max + 64); /* an escape is six letters at most */
    if (output_clean_text(&c, escape, &out) < 0)
        buf_reset(&out); /* no memory: nothing is better than something unclean */
    *truncated = *truncated || output_clean_truncated(&c);
    output_clean_done(&c);
    buf_done(b);
    *b = out;
}

static void clean_chars(char *s, size_t size, const struct output_rules *rules,
                        enum output_escape escape)
{
    struct buf out;
    size_t len = strlen(s);
    buf_init(&out, 8 * size + 64);
    if (output_clean_once(rules, s, len, size, OUTPUT_BYTES, escape, &out) < 0)
        buf_reset(&out);
    len = out.len < size ? out.len : utf8_valid_prefix(out.data, size - 1);
    memcpy(s, out.data ? out.data : "", len);
    s[len] = 0;
    buf_done(&out);
}

void flow_words_clean(char *s, size_t size, const struct output_rules *rules)
{
    clean_chars(s, size, rules, OUTPUT_ESCAPE_NONE);
}

/* A name that cannot be cleaned is not shown. */
static void clean_path(struct flow_file *f, const struct output_rules *rules,
                       enum output_escape escape)
{
    struct buf out;
    size_t len = strlen(f->path);
    buf_init(&out, 8 * len + 64);
    if (output_clean_once(rules, f->path, len, 8 * len, OUTPUT_BYTES, escape, &out) < 0)
        buf_reset(&out);
    char *clean = strndup(out.data ? out.data : "", out.len);
    buf_done(&out);
    if (clean) {
        free(f->path);
        f->path = clean;
    } else
        f->path[0] = 0;
}

/* Paths and reasons of what was left out, in pairs. Half a pair, or what cannot be cleaned, is not shown. */
static void clean_left(struct buf *left, const struct output_rules *rules,
                       enum output_escape escape)
{
    const char *at = left->data;
    struct buf out;
    size_t rest = left->len, whole = 0;
    buf_init(&out, 8 * left->len + 64);
    for (bool reason = false; rest; reason = !reason) {
        const char *end = memchr(at, 0, rest);
        const size_t len = end ? (size_t)(end - at) : 0;
        if (!end || output_clean_once(rules, at, len, 8 * len, OUTPUT_BYTES, escape, &out) < 0 ||
            buf_add(&out, "", 1) < 0)
            break;
        at = end + 1;
        rest -= len + 1;
        whole = reason ? out.len : whole;
    }
    out.len = whole;
    buf_done(left);
    *left = out;
}

void flow_result_clean(struct flow_result *r, const struct output_rules *rules,
                       enum output_escape escape, uint64_t cap)
{
    if (!r->ran)
        escape = OUTPUT_ESCAPE_NONE; /* the words are ours, and no program's */
    if (r->has_value)
        clean_buf(&r->value, rules, escape, cap, &r->truncated);
    if (r->is_final)
        clean_buf(&r->final, rules, escape, cap, &r->truncated);
    if (r->message[0])
        clean_chars(r->message, sizeof r->message, rules, escape);
    if (r->reason[0])
        clean_chars(r->reason, sizeof r->reason, rules, escape);
    clean_chars(r->type, sizeof r->type, rules, escape); /* a program may name its exceptions */
    clean_chars(r->hint, sizeof r->hint, rules, escape); /* and the module that it misses */
    for (size_t i = 0; i < r->violation_count; i++) {
        struct flow_violation *v = &r->violations[i];
        clean_chars(v->detail, sizeof v->detail, rules, escape);
        clean_chars(v->hint, sizeof v->hint, rules, escape);
    }
    for (size_t i = 0; i < r->file_count; i++)
        clean_path(&r->files[i], rules, escape);
    clean_chars(r->snapshot.why, sizeof r->snapshot.why, rules, escape); /* may name a file */
    clean_left(&r->snapshot.left, rules, escape);
}
