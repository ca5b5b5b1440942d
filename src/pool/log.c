/* SPDX-License-Identifier: Apache-2.0 */
/* One allocation a record, in a list: dropping the oldest is free, and nothing is copied when the log
 * turns over. */
#include "pool/log.h"

#include "base/err.h"

#include <stdbool.h>
#include <stdlib.h>

struct pool_record {
    struct pool_record *next;
    size_t len;
    char data[];
};

/* What a record costs beside its bytes; so that empty ones are not free. */
#define COST(len) ((len) + sizeof(struct pool_record) + 16)

void pool_log_init(struct pool_log *l, size_t max)
{
    *l = (struct pool_log){.max = max};
}

static void drop_first(struct pool_log *l, struct pool_log_account *all)
{
    struct pool_record *r = l->first;
    base_assert(r && l->bytes >= COST(r->len) && all->bytes >= COST(r->len));
    l->bytes -= COST(r->len);
    all->bytes -= COST(r->len);
    l->first = r->next;
    if (!l->first)
        l->last = NULL;
    l->records--;
    free(r);
}

void pool_log_done(struct pool_log *l, struct pool_log_account *all)
{
    while (l->first)
        drop_first(l, all);
    *l = (struct pool_log){.max = l->max};
}

char *pool_log_add(struct pool_log *l, struct pool_log_account *all, size_t len)
{
    size_t cost = COST(len);
    /* Only this log's own records make room: a talkative session does not cost the others theirs. */
    while (l->first && (l->bytes + cost > l->max || all->bytes + cost > all->max)) {
        drop_first(l, all);
        l->dropped++;
    }
    bool fits = l->bytes + cost <= l->max && all->bytes + cost <= all->max;
    struct pool_record *r = fits ? malloc(sizeof *r + len) : NULL;
    if (!r) {
        l->dropped++;
        return NULL;
    }
    *r = (struct pool_record){.len = len};
    if (l->last)
        l->last->next = r;
    else
        l->first = r;
    l->last = r;
    l->records++;
    l->bytes += cost;
    all->bytes += cost;
    return r->data;
}

const struct pool_record *pool_log_next(const struct pool_log *l, const struct pool_record *r,
                                        const char **ret_data, size_t *ret_len)
{
    r = r ? r->next : l->first;
    if (r) {
        *ret_data = r->data;
        *ret_len = r->len;
    }
    return r;
}
