/* SPDX-License-Identifier: Apache-2.0 */
/* Without the lock: whoever measures holds up nobody. A number may be that of a moment ago. */
#include "gate/inside.h"

void gate_standing(const struct gate *g, struct gate_standing *ret)
{
    const struct gate_shared *s = g->map.at;
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
        const uint32_t state = gate_load(&s->breakers[i].state);
        ret->breakers_open += state == GATE_BREAKER_OPEN;
        ret->breakers_half_open += state == GATE_BREAKER_HALF;
    }
    ret->stopped = gate_load(&s->stopped) != 0;
}
