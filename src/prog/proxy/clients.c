/* SPDX-License-Identifier: Apache-2.0 */
/* Where the policy names no clients there is one, with a token in the state folder: whoever can read that file is this user anyway. */
#include "clients.h"

#include "base/jsonw.h"
#include "sys/fd.h"
#include "sys/gateway.h"
#include "token.h"

#include <stdio.h>
#include <string.h>

#define TOKEN_NAME "proxy-token"

/* Those that the policy names. */
static int read_named(const struct policy *p, struct clients *c, struct err *err)
{
    char what[128];
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->count; i++) {
        c->names[i] = p->proxy.clients[i].name;
        c->budgets[i] = p->proxy.clients[i].budget;
        snprintf(what, sizeof what, "client %s: token_file", c->names[i]);
        r = token_read(what, p->proxy.clients[i].token_file, c->tokens[i], err);
        for (size_t k = 0; r == 0 && k < i; k++)
            if (strcmp(c->tokens[i], c->tokens[k]) == 0)
                r = err_set(err, ERR_USAGE, "clients %s and %s have the same token", c->names[k],
                            c->names[i]);
    }
    return r;
}

/* A client with a token that was made in the state folder. */
static int add_own(struct clients *c, const char *name, const char *token, uint64_t budget,
                   char file[STATE_PATH_MAX], bool *ret_made, struct err *err)
{
    const size_t i = c->count++;
    c->names[i] = name;
    c->budgets[i] = budget;
    return token_own(token, file, c->tokens[i], ret_made, err);
}

int clients_read(const struct policy *p, struct clients *c, struct err *err)
{
    char file[STATE_PATH_MAX];
    bool made = false;
    *c = (struct clients){.count = p->proxy.nclients};
    int r = read_named(p, c, err);
    if (r == 0 && c->count == 0) {
        r = add_own(c, "default", TOKEN_NAME, 0, file, &made, err);
        snprintf(c->told, sizeof c->told, "token %s %s", made ? "made, in" : "in", file);
    }
    /* runs of this state folder: guest code cannot spend what the judges need */
    if (r == 0)
        r = add_own(c, GATEWAY_LLM, GATEWAY_LLM_TOKEN, p->llm.budget, file, &made, err);
    return r == 0 ? add_own(c, GATEWAY_ARENA, GATEWAY_ARENA_TOKEN, 0, file, &made, err) : r;
}

static size_t name_length(const char *word) /* of NAME=MODEL */
{
    const char *sign = strchr(word, '=');
    return sign ? (size_t)(sign - word) : strlen(word);
}

int clients_models(const struct policy *p, struct buf *out, struct err *err)
{
    for (size_t i = 0; i < p->nupstreams; i++)
        for (size_t k = 0; k < p->upstreams[i].models.count; k++) {
            const char *word = p->upstreams[i].models.items[k];
            if (buf_printf(out, "%s %.*s\n",
                           p->upstreams[i].shape == POLICY_SHAPE_ANTHROPIC ? "anthropic" : "openai",
                           (int)name_length(word), word) < 0)
                return err_set(err, ERR_MEMORY, "no memory for the names of models");
        }
    return 0;
}

static void write_upstream(struct jsonw *j, const struct policy_upstream *u)
{
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "name", u->name);
    jsonw_string(j, "tier", u->tier);
    jsonw_string(j, "shape", u->shape == POLICY_SHAPE_ANTHROPIC ? "anthropic" : "openai");
    jsonw_open(j, "models", '[');
    for (size_t i = 0; i < u->models.count; i++) {
        const char *word = u->models.items[i];
        const size_t len = name_length(word);
        jsonw_bytes(j, NULL, word, len);
        jsonw_string(j, NULL, word[len] ? word + len + 1 : word);
    }
    jsonw_close(j, ']');
    jsonw_close(j, '}');
}

int clients_config(const struct policy *p, struct clients *c, int *ret_fd, struct err *err)
{
    struct buf text;
    struct jsonw j = {.out = &text};
    buf_init(&text, 4 * MIB);
    jsonw_open(&j, NULL, '{');
    jsonw_int(&j, "holdback", (int64_t)p->proxy.holdback);
    jsonw_int(&j, "retries", (int64_t)p->escalation.retries);
    jsonw_bool(&j, "prompts", p->proxy.prompts);
    jsonw_open(&j, "upstreams", '[');
    for (size_t i = 0; i < p->nupstreams; i++)
        write_upstream(&j, &p->upstreams[i]);
    jsonw_close(&j, ']');
    jsonw_open(&j, "clients", '[');
    for (size_t i = 0; i < c->count; i++) {
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "name", c->names[i]);
        jsonw_string(&j, "token", c->tokens[i]);
        jsonw_close(&j, '}');
    }
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    const int r =
        j.bad ? err_set(err, j.bad, "no memory") : fd_sealed(text.data, text.len, ret_fd, err);
    if (text.data)
        explicit_bzero(text.data, text.len);
    buf_done(&text);
    explicit_bzero(c->tokens, sizeof c->tokens);
    return r;
}
