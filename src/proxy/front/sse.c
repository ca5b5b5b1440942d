/* SPDX-License-Identifier: Apache-2.0 */
/* Lines end in LF, CR or both, as the standard has it. Names of events are not needed: what an event is stands in its data, in all
 * protocols that are spoken here. */
#include "proxy/front/sse.h"

#include "base/limits.h"

#include <string.h>

void proxy_sse_init(struct proxy_sse *s)
{
    *s = (struct proxy_sse){.has_data = false};
    buf_init(&s->line, LIMIT_PROXY_EVENT);
    buf_init(&s->data, LIMIT_PROXY_EVENT);
}

void proxy_sse_done(struct proxy_sse *s)
{
    buf_done(&s->line);
    buf_done(&s->data);
}

void proxy_sse_next(struct proxy_sse *s)
{
    buf_reset(&s->data);
    s->has_data = false;
}

/* A line is whole. */
static int take_line(struct proxy_sse *s, bool *ret_event)
{
    const char *line = s->line.len ? s->line.data : "";
    size_t len = s->line.len;
    int r = 0;
    if (len == 0) {
        *ret_event = s->has_data;
    } else if (len >= 5 && memcmp(line, "data:", 5) == 0) {
        const size_t skip = len > 5 && line[5] == ' ' ? 6 : 5;
        if (s->has_data)
            r = buf_add(&s->data, "\n", 1);
        if (r == 0)
            r = buf_add(&s->data, line + skip, len - skip);
        s->has_data = true;
    }
    buf_reset(&s->line);
    return r;
}

int proxy_sse_take(struct proxy_sse *s, const char *data, size_t len, size_t *ret_used,
                   bool *ret_event)
{
    int r = 0;
    size_t i = 0;
    *ret_event = false;
    while (r == 0 && i < len && !*ret_event) {
        if (data[i] == '\n' && s->after_cr) {
            s->after_cr = false;
            i++;
            continue;
        }
        s->after_cr = data[i] == '\r';
        if (data[i] == '\n' || data[i] == '\r') {
            r = take_line(s, ret_event);
            i++;
            continue;
        }
        size_t n = 1;
        while (i + n < len && data[i + n] != '\n' && data[i + n] != '\r')
            n++;
        r = buf_add(&s->line, data + i, n);
        i += n;
    }
    *ret_used = i;
    return r;
}
