/* SPDX-License-Identifier: Apache-2.0 */
/* The anomaly rules over the records of a window, read from the log: what the writers' own memory of the
 * last hour may have missed (it is bounded, and not kept over a power cut) is found here. */
#include "audit_common.h"
#include "commands.h"
#include "result.h"

#include "base/jsonw.h"
#include "output/visible.h"
#include "policy/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    char *client, *id, *code;
    int64_t ms, violations;
    bool blocked, ran, timed_out;
    size_t order;
};

struct samples {
    struct sample *items;
    size_t count, cap;
};

static char *text_of(const json_t *record, const char *key)
{
    const char *s = json_string_value(json_object_get(record, key));
    return s ? strdup(s) : NULL;
}

static int keep(struct samples *all, const struct audit_step *s, const json_t *record)
{
    const char *validation = json_string_value(json_object_get(record, "validation_result")),
               *status = json_string_value(json_object_get(record, "status"));
    if (all->count == all->cap) {
        size_t cap = all->cap ? 2 * all->cap : 256;
        struct sample *more = realloc(all->items, cap * sizeof *more);
        if (!more)
            return -1;
        all->items = more;
        all->cap = cap;
    }
    struct sample *new = &all->items[all->count];
    bool blocked = validation && strcmp(validation, "blocked") == 0;
    *new = (struct sample){
        .client = text_of(record, "client_id"),
        .id = text_of(record, "execution_id"),
        .code = text_of(record, "code_hash"),
        .ms = json_integer_value(json_object_get(record, "execution_time_ms")),
        .violations = json_integer_value(json_object_get(record, "violations_total")),
        .blocked = blocked,
        .ran = s->kind == AUDIT_END && json_is_integer(json_object_get(record, "exit_code")),
        .timed_out = status && strcmp(status, "timeout") == 0,
        .order = all->count};
    all->count++;
    return 0;
}

static const char *name(const char *s)
{
    return s ? s : "-";
}

static int by_client(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int c = strcmp(name(x->client), name(y->client));
    return c ? c : (x->order > y->order) - (x->order < y->order);
}

static int by_code(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tell(const struct sample *s, bool about_one, bool json, const char *text)
{
    struct buf out;
    buf_init(&out, 65536);
    if (json) {
        struct jsonw j = {.out = &out};
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "client_id", s->client);
        jsonw_string(&j, "execution_id", about_one ? s->id : NULL);
        jsonw_string(&j, "alert", text);
        jsonw_close(&j, '}');
        if (!j.bad)
            puts(out.data);
    } else {
        struct output_visible v = {.one_line = true};
        if (output_visible_add(&v, name(s->client), strlen(name(s->client)), &out) == 0 &&
            buf_str(&out, ": ") == 0 && output_visible_add(&v, text, strlen(text), &out) == 0 &&
            output_visible_end(&v, &out) == 0)
            puts(out.data);
    }
    buf_done(&out);
}

/* The COUNT records of one client, in their order. */
static int judge(const struct sample *s, size_t count, const struct audit_config *c, bool json)
{
    char text[200];
    size_t failures = 0, ran = 0;
    int64_t sum = 0;
    char **codes = calloc(count, sizeof *codes);
    size_t ncodes = 0;
    if (!codes)
        return -1;
    for (size_t i = 0; i < count; i++) {
        failures += s[i].blocked;
        ran += s[i].ran;
        sum += s[i].ran ? s[i].ms : 0;
        if (s[i].code)
            codes[ncodes++] = s[i].code;
    }
    if (c->max_failures && failures > c->max_failures) {
        snprintf(text, sizeof text, "Excessive validation failures: %zu", failures);
        tell(s, false, json, text);
    }
    for (size_t i = 0; i < count; i++)
        if (c->long_factor && s[i].ran && !s[i].timed_out && ran > 1 &&
            ran >= c->long_min_records && s[i].ms >= (int64_t)c->long_floor_ms &&
            (s[i].ms * (int64_t)(ran - 1)) > (int64_t)c->long_factor * (sum - s[i].ms)) {
            audit_say_long(text, sizeof text, name(s[i].id), (uint64_t)s[i].ms,
                           (uint64_t)(sum - s[i].ms) / (ran - 1));
            tell(&s[i], true, json, text);
        }
    qsort(codes, ncodes, sizeof *codes, by_code);
    size_t same = ncodes ? 1 : 0;
    for (size_t i = 1; i < ncodes && same < c->duplicates; i++)
        same = strcmp(codes[i], codes[i - 1]) == 0 ? same + 1 : 1;
    if (c->duplicates && same >= c->duplicates)
        tell(s, false, json, "Duplicate code executions detected");
    for (size_t i = 0; i < count; i++)
        if (c->max_violations && s[i].violations > (int64_t)c->max_violations) {
            snprintf(text, sizeof text, "Excessive violations: %lld in %.100s",
                     (long long)s[i].violations, name(s[i].id));
            tell(&s[i], true, json, text);
        }
    free(codes);
    return 0;
}

static int gather(const struct audit_filter *f, struct samples *all, struct err *err)
{
    struct audit_walk *w;
    struct audit_step s;
    int r = audit_walk_new(NULL, &w, err);
    if (r < 0)
        return r;
    audit_walk_since(w, f->since);
    while ((r = audit_walk_next(w, &s, err)) == 1) {
        json_t *j = NULL;
        if (s.wrong) {
            audit_complain_step(&s);
            continue;
        }
        if ((s.kind != AUDIT_END && s.kind != AUDIT_REFUSAL) || !audit_wanted(f, &s, &j))
            continue;
        if (!j)
            j = json_loadb(s.text, s.len, JSON_REJECT_DUPLICATES, NULL);
        if (!j || keep(all, &s, j) < 0)
            r = err_set(err, ERR_MEMORY, "no memory for the records of the window");
        json_decref(j);
        if (r < 0)
            break;
    }
    audit_walk_free(w);
    return r;
}

int audit_anomalies(struct audit_filter *f, uint64_t now_ms, bool json)
{
    struct audit_config c;
    struct samples all = {0};
    struct policy_store *policy = NULL;
    struct err err = ERR_INIT;
    int r = policy_open(NULL, &policy, &err);
    if (r == 0) {
        audit_config_init(&c);
        audit_config_apply(&c, policy_now(policy));
        if (!f->since)
            f->since = now_ms > c.window_ms ? now_ms - c.window_ms : 1;
        r = gather(f, &all, &err);
    }
    if (r == 0 && all.count) {
        qsort(all.items, all.count, sizeof *all.items, by_client);
        for (size_t i = 0, next; i < all.count && r == 0; i = next) {
            for (next = i + 1; next < all.count && strcmp(name(all.items[i].client),
                                                          name(all.items[next].client)) == 0;)
                next++;
            if (judge(&all.items[i], next - i, &c, json) < 0)
                r = err_set(&err, ERR_MEMORY, "no memory to look for anomalies");
        }
    }
    for (size_t i = 0; i < all.count; i++) {
        free(all.items[i].client);
        free(all.items[i].id);
        free(all.items[i].code);
    }
    free(all.items);
    policy_close(policy);
    if (r < 0)
        result_complain("cordon audit", err.msg);
    return r < 0 ? EXIT_FAILED : EXIT_DONE;
}
