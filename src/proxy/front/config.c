/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon-proxy made of the policy, as JSON in a sealed file: names, tiers, models, the clients' tokens. No address of an upstream and
 * no key is in it. */
#include "proxy/front/front.h"

#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static bool read_upstream(struct proxy_upstream *u, const json_t *o)
{
    const json_t *models = json_object_get(o, "models");
    const int tier = gate_tier_find(text_of(o, "tier"));
    *u = (struct proxy_upstream){.name = text_of(o, "name"),
                                 .anthropic = strcmp(text_of(o, "shape"), "anthropic") == 0,
                                 .nmodels = json_array_size(models) / 2};
    u->models = calloc(u->nmodels + 1, sizeof *u->models);
    if (tier < 0 || !u->models)
        return false;
    u->tier = (enum gate_tier)tier;
    for (size_t i = 0; i < u->nmodels; i++)
        u->models[i] = (struct proxy_model){json_string_value(json_array_get(models, 2 * i)),
                                            json_string_value(json_array_get(models, 2 * i + 1))};
    return true;
}

int proxy_front_config_read(const char *text, size_t len, struct proxy_front_config *c,
                            struct err *err)
{
    json_t *o = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *upstreams = json_object_get(o, "upstreams"),
                 *clients = json_object_get(o, "clients");
    *c = (struct proxy_front_config){
        .text = o,
        .nupstreams = json_array_size(upstreams),
        .nclients = json_array_size(clients),
        .holdback = (uint64_t)json_integer_value(json_object_get(o, "holdback")),
        .retries = (uint64_t)json_integer_value(json_object_get(o, "retries")),
        .prompts = json_is_true(json_object_get(o, "prompts"))};
    c->upstreams = calloc(c->nupstreams + 1, sizeof *c->upstreams);
    c->clients = calloc(c->nclients + 1, sizeof *c->clients);
    bool good = o && c->upstreams && c->clients;
    for (size_t i = 0; good && i < c->nupstreams; i++)
        good = read_upstream(&c->upstreams[i], json_array_get(upstreams, i));
    for (size_t i = 0; good && i < c->nclients; i++) {
        const json_t *client = json_array_get(clients, i);
        c->clients[i] =
            (struct proxy_front_client){text_of(client, "name"), text_of(client, "token")};
        good = strlen(c->clients[i].token) >= LIMIT_HTTP_TOKEN_MIN;
    }
    return good ? 0 : err_set(err, ERR_FORMAT, "the configuration of the front is broken");
}

void proxy_front_config_done(struct proxy_front_config *c)
{
    for (size_t i = 0; c->upstreams && i < c->nupstreams; i++)
        free(c->upstreams[i].models);
    free(c->upstreams);
    free(c->clients);
    json_decref(c->text);
}

const char *proxy_model_find(const struct proxy_upstream *u, const char *name)
{
    for (size_t i = 0; i < u->nmodels; i++)
        if (strcmp(u->models[i].name, name) == 0)
            return u->models[i].upstream;
    return NULL;
}
