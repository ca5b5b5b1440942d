/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a model's stream, one a line, to the monitor: our own JSON lines, and the shapes of OpenAI, Anthropic and llama.cpp, with
 * or without the `data:` of server-sent events.
 *
 * Takes:   lines.
 * Gives:   text, tokens and entropies to a monitor.
 * Never:   takes a line that is none of these for text: it is counted, and the first one is named.
 * Runs in: `cordon monitor`, after it has given up everything but its streams.
 */
#ifndef PROG_CORDON_MONITOR_EVENTS_H
#define PROG_CORDON_MONITOR_EVENTS_H

#include "monitor/monitor.h"

struct monitor_events {
    struct monitor *monitor;
    uint64_t vocabulary;
    uint64_t lines, unknown,
        first_unknown; /* unknown: lines that are no event; the number of the first */
};

void monitor_events_line(struct monitor_events *e, const char *line, size_t len);

#endif
