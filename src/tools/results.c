/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with results after a search. Conditions and scores are those of the expression engine (docs/expr.md), over the fields that the results
 * have: there is no second language, and nothing of Python. A result is known by its `source`. */
#include "tools/api.h"

#include "base/limits.h"
#include "cordon.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RESULTS_MAX 1000
#define FUSE_K      60 /* of reciprocal rank fusion: Cormack, Clarke and Buettcher 2009 */
#define WORDS_MAX   128

/* ---- expressions over the fields of results ---- */

struct fields {
    struct tools_call *c;
    void *schema_mem, *program_mem, *ctx_mem, *scratch, *text_mem;
    size_t scratch_size, text_size;
    struct cordon_schema *schema;
    struct cordon_program *program;
    struct cordon_ctx *ctx;
};

static void fields_done(struct fields *f)
{
    free(f->schema_mem);
    free(f->program_mem);
    free(f->ctx_mem);
    free(f->scratch);
    free(f->text_mem);
}

static enum tools_end wrong(struct tools_call *c, const struct cordon_error *e)
{
    return tools_refuse(c, "%s: %.240s%s%.100s", cordon_class(e->status), e->message,
                        e->hint[0] ? "; " : "", e->hint);
}

/* Every field that one of them has, with some value. */
static char *all_fields(const json_t *results)
{
    json_t *all = json_object(), *one;
    const char *key;
    size_t i;
    json_array_foreach((json_t *)results, i, one)
    {
        json_t *value;
        json_object_foreach(one, key, value)(void) json_object_set(all, key, value);
    }
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return text;
}

static enum tools_end fields_init(struct fields *f, struct tools_call *c, const json_t *results,
                                  const char *source)
{
    static const char none[] = "{\"keys\": {}}";
    struct cordon_error e;
    char *text = all_fields(results);
    enum tools_end end = TOOLS_OK;
    *f = (struct fields){.c = c};
    if (!text)
        return tools_fail(c, "no memory");
    const size_t len = strlen(text), size = cordon_schema_size(sizeof none + len),
                 program = cordon_compile_size(strlen(source));
    f->schema_mem = malloc(size);
    f->program_mem = malloc(program);
    f->text_size = 2 * LIMIT_CALL + 64;
    f->text_mem = malloc(f->text_size);
    if (!f->schema_mem || !f->program_mem || !f->text_mem)
        end = tools_fail(c, "no memory");
    else if (cordon_schema_read_with(none, sizeof none - 1, text, len, f->schema_mem, size,
                                     &f->schema, &e) != CORDON_OK ||
             cordon_compile(f->schema, source, strlen(source), f->program_mem, program, &f->program,
                            &e) != CORDON_OK)
        end = wrong(c, &e);
    free(text);
    if (end != TOOLS_OK)
        return end;
    const size_t room = cordon_ctx_size(f->schema);
    f->scratch_size = cordon_scratch_size(f->program);
    f->ctx_mem = malloc(room);
    f->scratch = malloc(f->scratch_size);
    f->ctx = f->ctx_mem ? cordon_ctx_init(f->ctx_mem, room, f->schema, 0) : NULL;
    return f->ctx && f->scratch ? TOOLS_OK : tools_fail(c, "no memory");
}

/* The value of the expression for result I. The text of RESULT lives in *ret_text until the caller frees it. */
static enum tools_end fields_eval(struct fields *f, const json_t *result, size_t i,
                                  struct cordon_value *ret, char **ret_text)
{
    struct cordon_error e;
    char *text = json_dumps(result, JSON_COMPACT);
    *ret_text = text;
    if (!text)
        return tools_fail(f->c, "no memory");
    cordon_ctx_clear(f->ctx);
    if (cordon_ctx_json(f->ctx, text, strlen(text), f->text_mem, f->text_size, &e) == CORDON_OK &&
        cordon_eval(f->program, f->ctx, f->scratch, f->scratch_size, ret, &e) == CORDON_OK)
        return TOOLS_OK;
    return tools_refuse(f->c, "result %zu: %s: %.240s", i + 1, cordon_class(e.status), e.message);
}

static bool is_true(const struct cordon_value *v)
{
    switch (v->type) {
    case CORDON_NONE:
        return false;
    case CORDON_FLOAT:
        return v->f != 0;
    case CORDON_STR:
        return v->len > 0;
    default:
        return v->words || v->i;
    }
}

/* ---- lists ---- */

static const char *source_of(const json_t *result)
{
    return json_string_value(json_object_get(result, "source"));
}

/* Each an object with a `source`; at most RESULTS_MAX. */
static enum tools_end check_results(struct tools_call *c, const json_t *results)
{
    const json_t *one;
    size_t i;
    if (json_array_size(results) > RESULTS_MAX)
        return tools_refuse(c, "more than %d results", RESULTS_MAX);
    json_array_foreach((json_t *)results, i, one)
    {
        if (!json_is_object(one) || !source_of(one))
            return tools_refuse(c, "result %zu is no result of a search: it has no `source`",
                                i + 1);
    }
    return TOOLS_OK;
}

/* RESULTS in this order, ranked anew, the first LIMIT of them; what they say is data as before. */
static enum tools_end answer(struct tools_call *c, const json_t *results)
{
    const uint64_t limit = tools_number(c, "limit", RESULTS_MAX);
    json_t *marked = json_array(), *one;
    size_t i;
    json_array_foreach((json_t *)results, i, one)
    {
        if (i >= limit)
            break;
        json_t *copy = tools_mark_all(c, one);
        if (copy)
            json_object_set_new(copy, "rank", json_integer((json_int_t)i + 1));
        if (!copy || json_array_append_new(marked, copy) < 0) {
            json_decref(marked);
            return tools_fail(c, "no memory");
        }
    }
    c->answer = json_pack("{s:o, s:s}", "results", marked, "source", "results of earlier calls");
    return TOOLS_OK;
}

enum tools_end tools_do_filter(struct tools_call *c)
{
    const json_t *results = json_object_get(c->args, "results");
    struct fields f = {0};
    json_t *kept = json_array(), *one;
    size_t i;
    enum tools_end end = check_results(c, results);
    if (end == TOOLS_OK)
        end = fields_init(&f, c, results, tools_text(c, "condition", ""));
    json_array_foreach((json_t *)results, i, one)
    {
        struct cordon_value v = {0};
        char *text = NULL;
        if (end == TOOLS_OK)
            end = fields_eval(&f, one, i, &v, &text);
        if (end == TOOLS_OK && is_true(&v))
            json_array_append(kept, one);
        free(text);
    }
    if (end == TOOLS_OK)
        end = answer(c, kept);
    fields_done(&f);
    json_decref(kept);
    return end;
}

/* ---- orders ---- */

struct ordered {
    json_t *result; /* borrowed */
    double score;
    size_t at; /* among equals the earlier one is first */
};

static int by_score(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->at < y->at ? -1 : 1;
}

static enum tools_end answer_sorted(struct tools_call *c, struct ordered *all, size_t count)
{
    json_t *list = json_array();
    qsort(all, count, sizeof *all, by_score);
    for (size_t i = 0; i < count; i++) {
        json_t *copy = json_copy(all[i].result);
        json_object_set_new(copy, "score", json_real(all[i].score));
        json_array_append_new(list, copy);
    }
    const enum tools_end end = answer(c, list);
    json_decref(list);
    return end;
}

/* The score of one result, or why it has none. */
static enum tools_end score_one(struct tools_call *c, struct fields *f, json_t *one, size_t i,
                                double *ret)
{
    struct cordon_value v = {0};
    char *text = NULL;
    enum tools_end end = fields_eval(f, one, i, &v, &text);
    const bool number =
        !v.words && (v.type == CORDON_INT || v.type == CORDON_FLOAT || v.type == CORDON_BOOL);
    if (end == TOOLS_OK && (!number || (v.type == CORDON_FLOAT && v.f - v.f != 0)))
        end = tools_refuse(c, "result %zu: the expression gives no finite number", i + 1);
    *ret = v.type == CORDON_FLOAT ? v.f : (double)v.i;
    free(text);
    return end;
}

enum tools_end tools_do_rescore(struct tools_call *c)
{
    const json_t *results = json_object_get(c->args, "results");
    struct fields f = {0};
    struct ordered *all = calloc(RESULTS_MAX, sizeof *all);
    const size_t count = json_array_size(results);
    if (!all)
        return tools_fail(c, "no memory");
    enum tools_end end = check_results(c, results);
    if (end == TOOLS_OK)
        end = fields_init(&f, c, results, tools_text(c, "expression", ""));
    for (size_t i = 0; end == TOOLS_OK && i < count && i < RESULTS_MAX; i++) {
        json_t *one = json_array_get(results, i);
        all[i] = (struct ordered){.result = one, .at = i};
        end = score_one(c, &f, one, i, &all[i].score);
    }
    if (end == TOOLS_OK)
        end = answer_sorted(c, all, count);
    fields_done(&f);
    free(all);
    return end;
}

static struct ordered *known(struct ordered *all, size_t count, const char *source)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(source_of(all[i].result), source) == 0)
            return &all[i];
    return NULL;
}

enum tools_end tools_do_fuse(struct tools_call *c)
{
    const json_t *lists = json_object_get(c->args, "lists");
    struct ordered *all = calloc(RESULTS_MAX, sizeof *all);
    json_t *list, *one;
    size_t i, rank, count = 0;
    enum tools_end end = TOOLS_OK;
    if (!all)
        return tools_fail(c, "no memory");
    json_array_foreach((json_t *)lists, i, list)
    {
        if (end == TOOLS_OK)
            end = check_results(c, list);
        if (end != TOOLS_OK)
            break;
        json_array_foreach(list, rank, one)
        {
            struct ordered *o = known(all, count, source_of(one));
            if (!o && count == RESULTS_MAX) {
                end = tools_refuse(c, "more than %d results", RESULTS_MAX);
                break;
            }
            if (!o) {
                o = &all[count];
                *o = (struct ordered){.result = one, .at = count};
                count++;
            }
            o->score += 1.0 / (double)(tools_number(c, "k", FUSE_K) + rank + 1);
        }
    }
    if (end == TOOLS_OK)
        end = answer_sorted(c, all, count);
    free(all);
    return end;
}

/* ---- diversity ---- */

struct words {
    uint64_t hash[WORDS_MAX];
    size_t count;
    size_t folder; /* bytes of `source` up to its last slash */
};

static void take_words(const json_t *result, struct words *w)
{
    const char *text = json_string_value(json_object_get(result, "snippet")),
               *source = source_of(result), *slash = strrchr(source, '/');
    w->folder = slash ? (size_t)(slash - source) : 0;
    w->count = 0;
    for (const char *at = text ? text : ""; *at && w->count < WORDS_MAX;) {
        uint64_t h = 0xcbf29ce484222325ULL;
        const char *from = at;
        while (*at && (isalnum((unsigned char)*at) || (unsigned char)*at >= 0x80))
            h = (h ^ (uint64_t)(unsigned char)tolower((unsigned char)*at++)) * 0x100000001b3ULL;
        if (at == from) {
            at++;
            continue;
        }
        bool is_new = true;
        for (size_t i = 0; i < w->count && is_new; i++)
            is_new = w->hash[i] != h;
        if (is_new)
            w->hash[w->count++] = h;
    }
}

/* From 0 to 1: the share of words that both have, or a little for the same folder. */
static double likeness(const json_t *a, const struct words *x, const json_t *b,
                       const struct words *y)
{
    size_t both = 0;
    for (size_t i = 0; i < x->count; i++)
        for (size_t k = 0; k < y->count; k++)
            both += x->hash[i] == y->hash[k];
    const size_t all = x->count + y->count - both;
    const double words = all ? (double)both / (double)all : 0;
    const bool near =
        x->folder && x->folder == y->folder && strncmp(source_of(a), source_of(b), x->folder) == 0;
    return words > 0.2 || !near ? words : 0.2;
}

struct candidate {
    const json_t *result; /* borrowed */
    struct words words;
    double most; /* likeness to what was taken */
    bool taken;
};

/* Maximal marginal relevance: the next one is relevant and unlike those before it. Relevance is the place in the list that was given. */
static struct candidate *choose(struct candidate *all, size_t count, double part)
{
    struct candidate *best = NULL;
    double highest = 0;
    for (size_t i = 0; i < count; i++) {
        const double v = (1 - part) / (double)(i + 1) - part * all[i].most;
        if (!all[i].taken && (!best || v > highest)) {
            best = &all[i];
            highest = v;
        }
    }
    return best;
}

static enum tools_end diversify(struct tools_call *c, struct candidate *all, size_t count,
                                double part)
{
    json_t *list = json_array();
    for (struct candidate *next; (next = choose(all, count, part));) {
        next->taken = true;
        json_array_append(list, (json_t *)next->result);
        for (size_t i = 0; i < count; i++) {
            const double like =
                all[i].taken ? 0
                             : likeness(next->result, &next->words, all[i].result, &all[i].words);
            all[i].most = like > all[i].most ? like : all[i].most;
        }
    }
    const enum tools_end end = list ? answer(c, list) : tools_fail(c, "no memory");
    json_decref(list);
    return end;
}

enum tools_end tools_do_diversify(struct tools_call *c)
{
    const json_t *results = json_object_get(c->args, "results");
    const json_t *weight = json_object_get(c->args, "weight");
    const double part = json_is_number(weight) ? json_number_value(weight) : 0.5;
    const size_t count = json_array_size(results);
    enum tools_end end = check_results(c, results);
    if (end != TOOLS_OK)
        return end;
    struct candidate *all = calloc(count + 1, sizeof *all);
    if (!all)
        return tools_fail(c, "no memory");
    for (size_t i = 0; i < count; i++) {
        all[i].result = json_array_get(results, i);
        take_words(all[i].result, &all[i].words);
    }
    end = diversify(c, all, count, part);
    free(all);
    return end;
}
