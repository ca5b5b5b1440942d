/* SPDX-License-Identifier: Apache-2.0 */
/* Upstreams and clients of the gateway. Neither has a secret in it: a key and a token are named by the file or the variable that holds
 * them, so that a policy can be shown to anybody. An address without TLS is refused unless it is this machine's own. */
#include "policy/load.h"
#include "sys/gateway.h"

#include <string.h>

static const struct policy_key models = {"models of an upstream", POLICY_TYPE_WORDS, 0, 0, 256, ""};
static const struct policy_key budget = {"budget of a client",
                                         POLICY_TYPE_COUNT,
                                         offsetof(struct policy, proxy.holdback),
                                         0,
                                         1ULL << 50,
                                         ""};

/* "" where it is not there; *GOOD is false where it is no text. */
static const char *text_of(struct policy_loader *l, const struct policy_node *map, const char *key,
                           bool *good)
{
    const struct policy_node *n = policy_load_get(map, key);
    const char *text = n ? policy_load_text(l, n, key, POLICY_WORD_MAX) : NULL;
    *good = *good && (!n || text);
    return text ? policy_load_keep(l, text) : "";
}

/* ---- upstreams ---- */

static bool is_loopback(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const size_t len = strlen(names[i]);
        if (strncmp(host, names[i], len) == 0 && (!host[len] || strchr(":/", host[len])))
            return true;
    }
    return false;
}

static bool good_url(struct policy_loader *l, const struct policy_node *at, const char *url)
{
    const bool secure = strncmp(url, "https://", 8) == 0, plain = strncmp(url, "http://", 7) == 0;
    const char *host = url + (secure ? 8 : 7);
    if (!secure && !(plain && is_loopback(host)))
        policy_load_problem(l, at,
                            "url of an upstream: https://HOST/... is wanted; http:// is for "
                            "127.0.0.1, [::1] and localhost alone");
    else if (!*host || *host == '/' || strpbrk(host, "@?#\\ ") || url[strlen(url) - 1] == '/')
        policy_load_problem(
            l, at,
            "url of an upstream: a host and a path, without a user's name (@), a query "
            "(?, #), blanks or a slash at its end");
    else
        return true;
    return false;
}

static bool good_models(struct policy_loader *l, const struct policy_node *at,
                        const struct policy_words *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (!w->items[i][0] || w->items[i][0] == '=' ||
            w->items[i][strlen(w->items[i]) - 1] == '=') {
            policy_load_problem(l, at, "models of an upstream: NAME or NAME=MODEL is wanted");
            return false;
        }
    return true;
}

static const char *const tiers = "worker coder architect ingest";

static bool read_upstream(struct policy_loader *l, const struct policy_node *n,
                          struct policy_upstream *u)
{
    bool good = true;
    const struct policy_node *list = policy_load_get(n, "models");
    *u = (struct policy_upstream){.name = policy_load_keep(l, n->key->text),
                                  .url = text_of(l, n, "url", &good),
                                  .key_file = text_of(l, n, "key_file", &good),
                                  .key_env = text_of(l, n, "key_env", &good),
                                  .ca_file = text_of(l, n, "ca_file", &good),
                                  .tier = text_of(l, n, "tier", &good),
                                  .origin = policy_load_origin(l, n->key)};
    const char *shape = text_of(l, n, "shape", &good);
    const int found = policy_enum_find(POLICY_SHAPES, shape);
    if (!good)
        return false;
    if (found < 0)
        policy_load_problem(l, n, "shape of upstream %s: '%.40s' is none of openai, anthropic",
                            u->name, shape);
    else if (policy_enum_find(tiers, u->tier) < 0)
        policy_load_problem(l, n, "tier of upstream %s: '%.40s' is none of %s", u->name, u->tier,
                            tiers);
    else if (*u->key_file && *u->key_env)
        policy_load_problem(l, n, "upstream %s: its key is in key_file or in key_env, not in both",
                            u->name);
    else if ((*u->key_file && *u->key_file != '/') || (*u->ca_file && *u->ca_file != '/'))
        policy_load_problem(l, n, "upstream %s: key_file and ca_file need absolute paths", u->name);
    else if (!list)
        policy_load_problem(l, n, "upstream %s: its models are missing: [NAME, NAME=MODEL]",
                            u->name);
    else if (good_url(l, policy_load_get(n, "url") ? policy_load_get(n, "url") : n, u->url) &&
             policy_load_words(l, list, &models, &u->models) && good_models(l, list, &u->models)) {
        u->shape = (enum policy_shape)found;
        return true;
    }
    return false;
}

void policy_load_upstreams(struct policy_loader *l, const struct policy_node *map)
{
    static const char *const keys[] = {"url",     "shape",  "tier",    "key_file",
                                       "key_env", "models", "ca_file", NULL};
    struct policy_box *box = l->box;
    if (!policy_load_map(l, map, "upstreams", NULL))
        return;
    for (const struct policy_node *n = map->first; n; n = n->next) {
        struct policy_upstream u;
        size_t i = 0;
        if (!policy_load_name_good(l, n, "an upstream") ||
            !policy_load_map(l, n, "an upstream", keys) || !read_upstream(l, n, &u))
            continue;
        while (i < box->p.nupstreams && strcmp(box->upstreams[i].name, u.name) != 0)
            i++;
        if (i == POLICY_UPSTREAMS_MAX) {
            policy_load_problem(l, n->key, "more than %d upstreams", POLICY_UPSTREAMS_MAX);
            return;
        }
        box->p.nupstreams += i == box->p.nupstreams;
        box->upstreams[i] = u;
    }
}

/* ---- clients ---- */

static bool read_client(struct policy_loader *l, const struct policy_node *n,
                        struct policy_client *c)
{
    static const char *const keys[] = {"name", "token_file", "budget", NULL};
    bool good = true;
    if (n->kind != POLICY_MAP || !n->first) {
        policy_load_problem(l, n, "a client is a mapping: {name: ..., token_file: /...}");
        return false;
    }
    if (!policy_load_map(l, n, "a client", keys))
        return false;
    *c = (struct policy_client){.name = text_of(l, n, "name", &good),
                                .token_file = text_of(l, n, "token_file", &good),
                                .origin = policy_load_origin(l, n)};
    const struct policy_node *b = policy_load_get(n, "budget");
    const char *text = b ? policy_load_text(l, b, "budget of a client", 64) : NULL;
    struct policy at = {0};
    struct err err = ERR_INIT;
    if (!good || (b && !text))
        return false;
    if (!policy_name_good(c->name) || strlen(c->name) > 40 || *c->token_file != '/')
        policy_load_problem(l, n,
                            "a client needs a name of at most 40 characters and the absolute path "
                            "of its token_file");
    else if (strcmp(c->name, GATEWAY_LLM) == 0 || strcmp(c->name, GATEWAY_ARENA) == 0)
        policy_load_problem(
            l, n, "client %s: runs are called that at the gateway; take another name", c->name);
    else if (text && policy_value_read(&budget, text, &l->box->mem, &at, &err) < 0)
        policy_load_problem(l, b, "budget of a client: %s", err.msg);
    else {
        c->budget = at.proxy.holdback;
        return true;
    }
    return false;
}

void policy_load_clients(struct policy_loader *l, const struct policy_node *list)
{
    size_t count = 0, good = 0;
    for (const struct policy_node *n = list->kind == POLICY_LIST ? list->first : NULL; n;
         n = n->next)
        count++;
    if (list->kind != POLICY_LIST || count > POLICY_CLIENTS_MAX) {
        policy_load_problem(l, list,
                            "proxy.clients: a list of at most %d is wanted: [{name: ..., "
                            "token_file: /...}]",
                            POLICY_CLIENTS_MAX);
        return;
    }
    struct policy_client *clients = policy_load_alloc(l, (count + 1) * sizeof *clients);
    if (!clients)
        return;
    for (const struct policy_node *n = list->first; n; n = n->next) {
        if (!read_client(l, n, &clients[good]))
            continue;
        for (size_t i = 0; i < good; i++)
            if (strcmp(clients[i].name, clients[good].name) == 0)
                policy_load_problem(l, n, "client '%s' comes twice", clients[i].name);
        good++;
    }
    if (good != count)
        return;
    l->box->p.proxy.clients = clients;
    l->box->p.proxy.nclients = good;
    l->box->p.clients_origin = policy_load_origin(l, list->key);
}
