/* One table from how it ended to what is said about it; the JSON has every key of the contract in
 * every result, so that a reader never has to ask whether one is there. */
#include "result.h"

#include "base/jsonw.h"
#include "base/limits.h"
#include "commands.h"
#include "output/visible.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static void new_id(char *id, size_t size)
{
    unsigned char random[8];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        memset(random, 0, sizeof random);
    snprintf(id, size, "run-");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(id + 4 + 2 * i, size - 4 - 2 * i, "%02x", random[i]);
}

static void seconds(uint64_t ms, char *out, size_t size)
{
    if (ms % 1000)
        snprintf(out, size, "%llu.%03llus", (unsigned long long)ms / 1000,
                 (unsigned long long)ms % 1000);
    else
        snprintf(out, size, "%llus", (unsigned long long)ms / 1000);
}

void result_judge(struct result *r, const struct jail_outcome *o, const struct jail_limits *l)
{
    char time[32];
    *r = (struct result){.status = "ok", .category = "CODE", .exit_status = EXIT_DONE};
    new_id(r->id, sizeof r->id);
    switch (o->end) {
    case JAIL_END_EXIT:
        if (o->exit_code == 0)
            return;
        r->status = "error";
        r->type = "ExitStatus";
        r->exit_status = EXIT_FAILED;
        snprintf(r->reason, sizeof r->reason, "exited with status %d", o->exit_code);
        break;
    case JAIL_END_SIGNAL:
        r->status = "crashed";
        r->type = "Signal";
        r->exit_status = EXIT_FAILED;
        snprintf(r->reason, sizeof r->reason, "killed by signal %d (%s)", o->signal,
                 sigabbrev_np(o->signal) ? sigabbrev_np(o->signal) : "?");
        break;
    case JAIL_END_WALL:
    case JAIL_END_CPU:
        seconds(o->end == JAIL_END_WALL ? l->wall_ms : l->cpu_ms, time, sizeof time);
        r->status = "timeout";
        r->layer = "resources";
        r->category = "TIMEOUT";
        r->type = "TimeoutError";
        r->exit_status = EXIT_LIMIT;
        snprintf(r->reason, sizeof r->reason, "%s time limit of %s",
                 o->end == JAIL_END_WALL ? "wall" : "CPU", time);
        snprintf(r->message, sizeof r->message, "Execution timeout exceeded (%s)", time);
        return;
    case JAIL_END_MEMORY:
        r->status = "memory";
        r->layer = "resources";
        r->type = "MemoryError";
        r->exit_status = EXIT_LIMIT;
        snprintf(r->reason, sizeof r->reason, "memory limit of %llu MB (%s)",
                 (unsigned long long)(l->memory / MIB), o->memory_enforced_by);
        break;
    case JAIL_END_FLOOD:
        r->status = "output";
        r->layer = "output";
        r->type = "OutputError";
        r->exit_status = EXIT_LIMIT;
        snprintf(r->reason, sizeof r->reason, "more than %llu bytes of output",
                 (unsigned long long)l->flood);
        break;
    case JAIL_END_STOPPED:
        r->status = "error";
        r->category = "EARLY_ABORT";
        r->type = "Stopped";
        r->exit_status = EXIT_FAILED;
        snprintf(r->reason, sizeof r->reason, "stopped from outside");
        break;
    case JAIL_END_LOST:
    case JAIL_END_NONE:
        r->status = "crashed";
        r->layer = "process";
        r->type = "JailLost";
        r->exit_status = EXIT_FAILED;
        snprintf(r->reason, sizeof r->reason, "the jail was killed from outside");
        break;
    }
    snprintf(r->message, sizeof r->message, "%s", r->reason);
}

void result_refuse(struct result *r, const struct err *why)
{
    *r = (struct result){
        .status = "refused", .category = "CODE", .type = "JailError", .exit_status = EXIT_JAIL};
    new_id(r->id, sizeof r->id);
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++)
        if (strcmp(jail_layer_names[i], why->layer) == 0)
            r->layer = jail_layer_names[i];
    snprintf(r->reason, sizeof r->reason, "%s%s%s", r->layer ? r->layer : "", r->layer ? ": " : "",
             why->msg);
    snprintf(r->message, sizeof r->message, "%s", r->reason);
}

static void put_layers(struct jsonw *j, const struct jail_outcome *o)
{
    jsonw_open(j, "layers", '{');
    jsonw_string(j, "input", "off");
    for (size_t i = 0; i < JAIL_LAYER_COUNT; i++) {
        const char *note = o ? o->layers.note[i] : "";
        jsonw_string(j, jail_layer_names[i],
                     strncmp(note, "weak", 4) == 0      ? note
                     : o && o->layers.on[i] && !note[0] ? "on"
                                                        : "off");
    }
    jsonw_string(j, "output", o ? "on" : "off");
    jsonw_string(j, "audit", "off");
    jsonw_close(j, '}');
}

static void put_violations(struct jsonw *j, const struct jail_outcome *o)
{
    jsonw_open(j, "violations", '[');
    for (size_t i = 0; o && i < o->violation_count; i++) {
        const struct jail_violation *v = &o->violations[i];
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "layer", v->layer);
        jsonw_string(j, "rule", v->rule);
        jsonw_string(j, "detail", v->detail);
        if (v->line)
            jsonw_int(j, "line", (int64_t)v->line);
        else
            jsonw_null(j, "line");
        jsonw_string(j, "hint", v->hint);
        jsonw_int(j, "times", (int64_t)v->times);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
}

static int put_stream(struct jsonw *j, const char *key, const struct output_capture *c)
{
    struct buf whole;
    buf_init(&whole, c->head.len + c->tail_room + sizeof OUTPUT_MARKER);
    size_t len = c->head.len; /* a sequence that the cut went through is not shown in half */
    if (output_capture_truncated(c))
        for (size_t back = 0; back < 3 && len > 0 && (c->head.data[len - 1] & 0x80); back++)
            if ((c->head.data[--len] & 0xc0) == 0xc0)
                break;
    int r = buf_add(&whole, c->head.data, len);
    if (r == 0)
        r = output_capture_rest(c, &whole);
    if (r == 0)
        jsonw_bytes(j, key, whole.data ? whole.data : "", whole.len);
    buf_done(&whole);
    return r;
}

static int write_all(const char *p, size_t len)
{
    while (len) {
        ssize_t n = write(STDOUT_FILENO, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ERR_SYS;
        p += n;
        len -= (size_t)n;
    }
    return 0;
}

int result_print_json(const struct result *r, const struct jail_outcome *o,
                      const struct output_capture *s)
{
    static const char *const names[2] = {"stdout", "stderr"};
    struct buf out;
    buf_init(&out, 16 * LIMIT_OUTPUT_MAX);
    struct jsonw j = {.out = &out};
    bool ran = o && s, failed = strcmp(r->status, "ok") != 0;
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "id", r->id);
    jsonw_string(&j, "status", r->status);
    jsonw_string(&j, "layer", r->layer);
    jsonw_string(&j, "reason", r->reason[0] ? r->reason : NULL);
    put_violations(&j, o);
    jsonw_int(&j, "violations_total", o ? (int64_t)o->violations_total : 0);
    for (int i = 0; i < 2; i++)
        if (!ran || put_stream(&j, names[i], &s[i]) < 0)
            jsonw_string(&j, names[i], "");
    jsonw_int(&j, "stdout_bytes", ran ? (int64_t)s[0].total : 0);
    jsonw_int(&j, "stderr_bytes", ran ? (int64_t)s[1].total : 0);
    jsonw_bool(&j, "truncated",
               ran && (output_capture_truncated(&s[0]) || output_capture_truncated(&s[1])));
    jsonw_null(&j, "value");
    jsonw_bool(&j, "is_final", false);
    jsonw_null(&j, "final");
    if (failed) {
        jsonw_open(&j, "error", '{');
        jsonw_string(&j, "category", r->category);
        jsonw_string(&j, "type", r->type);
        jsonw_string(&j, "message", r->message);
        jsonw_null(&j, "line");
        jsonw_close(&j, '}');
    } else {
        jsonw_null(&j, "error");
    }
    if (o)
        jsonw_int(&j, "exit_code", o->exit_code);
    else
        jsonw_null(&j, "exit_code");
    if (o && o->signal)
        jsonw_int(&j, "signal", o->signal);
    else
        jsonw_null(&j, "signal");
    jsonw_open(&j, "usage", '{');
    jsonw_decimal(&j, "wall_ms", o ? (double)o->wall_us / 1e3 : 0);
    jsonw_decimal(&j, "cpu_ms", o ? (double)o->cpu_us / 1e3 : 0);
    jsonw_decimal(&j, "memory_mb", o ? (double)o->memory / MIB : 0);
    jsonw_string(&j, "memory_by", o ? o->memory_enforced_by : NULL);
    jsonw_close(&j, '}');
    put_layers(&j, o);
    jsonw_open(&j, "files", '[');
    jsonw_close(&j, ']');
    jsonw_null(&j, "snapshot");
    jsonw_null(&j, "session");
    jsonw_close(&j, '}');
    int e = j.bad ? j.bad : buf_str(&out, "\n");
    if (e == 0)
        e = write_all(out.data, out.len);
    buf_done(&out);
    return e;
}

void result_complain(const char *who, const char *text)
{
    struct output_visible v = {.one_line = true};
    struct buf line;
    buf_init(&line, 8192);
    if (output_visible_add(&v, text, strlen(text), &line) == 0 &&
        output_visible_end(&v, &line) == 0)
        fprintf(stderr, "%s: %s\n", who, line.data);
    buf_done(&line);
}

void result_print_text(const struct result *r, const struct jail_outcome *o)
{
    char line[1024];
    for (size_t i = 0; o && i < o->violation_count; i++) {
        const struct jail_violation *v = &o->violations[i];
        snprintf(line, sizeof line, "denied (%s): %s%s; %s", v->layer, v->detail,
                 v->times > 1 ? " and again" : "", v->hint);
        result_complain("cordon", line);
    }
    if (strcmp(r->status, "ok") != 0 && strcmp(r->status, "error") != 0) {
        snprintf(line, sizeof line, "%s: %s", r->status, r->message);
        result_complain("cordon", line);
    }
}
