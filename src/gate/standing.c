/* SPDX-License-Identifier: Apache-2.0 */
/* Without the lock: whoever measures holds up nobody. A number may be that of a moment ago. */
#include "gate/inside.h"

#include "base/clock.h"

/* One whose time is over refuses nobody: the next request is its probe. */
static bool refuses(const struct gate *g, const struct gate_breaker_row *b, uint64_t now)
{
    const uint64_t opened = gate_load(&b->opened_ns);
    return gate_load(&b->state) == GATE_BREAKER_OPEN &&
           now < opened + g->config->breaker.cooldown_ms * CLOCK_NS_PER_MS;
}

void gate_standing(const struct gate *g, struct gate_standing *ret)
{
    const struct gate_shared *s = g->map.at;
    const uint64_t now = gate_now(g);
    *ret = (struct gate_standing){0};
    for (uint32_t i = 0; i < gate_rows_high(s); i++) {
        const uint32_t state = gate_load(&s->rows[i].state);
        if (state == GATE_ROW_FREE || !gate_row_alive(&g->map, i))
            continue;
        ret->running += state == GATE_ROW_RUNNING;
        ret->waiting += state == GATE_ROW_WAITING;
        ret->parked += state == GATE_ROW_PARKED;
    }
    for (uint32_t i = 0; i < GATE_BREAKERS; i++) {
        if (!gate_load(&s->breaker_keys[i]))
            continue;
        const bool open = refuses(g, &s->breakers[i], now);
        ret->breakers_open += open;
        ret->breakers_half_open += !open && gate_load(&s->breakers[i].state) != GATE_BREAKER_CLOSED;
    }
    ret->stopped = gate_load(&s->stopped) != 0;
}
