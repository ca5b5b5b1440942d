/* SPDX-License-Identifier: Apache-2.0 */
/* A client that is refused writes a record for each refusal, and nothing bounds how often it asks: the rate bounds
 * executions only. So the first few of a window are records of their own; those after them are counted, and the
 * count is told when it has doubled, and once more, exactly, by the client's next request after the window. */
#include "gate/inside.h"

#include "base/clock.h"

#include <stdio.h>

#define TOLD_ONE_BY_ONE 5

/* Under the lock. */
static void tell_count(struct gate *g, const struct gate_client *client, uint64_t refused,
                       uint64_t untold)
{
    char detail[160];
    snprintf(detail, sizeof detail,
             "refused %llu times within %llu s; %llu of them have no record of their own",
             (unsigned long long)refused, (unsigned long long)(g->config->rates.window_ms / 1000),
             (unsigned long long)untold);
    struct gate_noted *n = gate_note(g, GATE_EVENT_REFUSALS, NULL, "", detail, 0);
    snprintf(n->client, sizeof n->client, "%s", client->id);
}

void gate_refusals_flush(struct gate *g, const struct gate_client *client,
                         struct gate_client_row *row, uint64_t now)
{
    const uint64_t window = g->config->rates.window_ms * CLOCK_NS_PER_MS;
    if (row->refused && now - row->refused_ns < window)
        return;
    if (row->refused > TOLD_ONE_BY_ONE)
        tell_count(g, client, row->refused, row->refused - TOLD_ONE_BY_ONE);
    row->refused = 0;
    row->refused_ns = now;
}

bool gate_refusal_alone(struct gate *g, const struct gate_client *client)
{
    struct err err = ERR_INIT;
    uint32_t at = 0;
    bool alone = true;
    if (gate_map_lock(&g->map, &err) < 0)
        return true; /* rather a record too many */
    uint64_t now = gate_now(g);
    if (gate_client_find(g, client->id, now, &at, &err) == 0) {
        struct gate_client_row *row = &g->map.at->clients[at];
        gate_refusals_flush(g, client, row, now);
        row->refused++;
        alone = row->refused <= TOLD_ONE_BY_ONE;
        if (!alone && (row->refused & (row->refused - 1)) == 0)
            tell_count(g, client, row->refused, row->refused - TOLD_ONE_BY_ONE);
    }
    gate_map_unlock(&g->map);
    gate_tell(g);
    return alone;
}
