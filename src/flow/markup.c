/* SPDX-License-Identifier: Apache-2.0 */
/* A result is data, and a program that puts it into a page must escape it. For one that forgets, the result lists what a
 * browser would run. */
#include "flow/result.h"

#include "output/markup.h"

#include <stdio.h>

void flow_result_markup(struct flow_result *r)
{
    const struct {
        const char *name;
        const struct buf *text;
    } texts[] = {{"stdout", &r->streams[0]},
                 {"stderr", &r->streams[1]},
                 {"value", &r->value},
                 {"final", &r->final}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct flow_violation v = {
            .layer = "output",
            .rule = FLOW_RULE_MARKUP,
            .hint = "escape it before a browser shows it, or ask for --escape html",
            .end = FLOW_WAS_SEEN};
        char what[OUTPUT_MARKUP_WORDS];
        const struct buf *b = texts[i].text;
        v.times = b->len ? output_markup(b->data, b->len, what) : 0;
        if (!v.times)
            continue;
        snprintf(v.detail, sizeof v.detail, "%s holds markup that a browser runs: %s",
                 texts[i].name, what);
        flow_result_violation(r, &v);
    }
}
