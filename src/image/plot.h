/* SPDX-License-Identifier: Apache-2.0 */
/* The signals of a generation over its tokens as a picture: a strip for each signal, a line where a loop began, one where the verdict was.
 *
 * Takes:   lines of numbers that cordon wrote: points, and at last the verdict.
 * Gives:   a PNG, an SVG, or lines of text for a terminal.
 * Never:   keeps more than PLOT_POINTS points: neighbours become one, with the larger value.
 * Runs in: cordon-plot.
 */
#ifndef IMAGE_PLOT_H
#define IMAGE_PLOT_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define PLOT_SIGNALS 6
#define PLOT_POINTS  2048 /* an even number */
#define PLOT_WIDTH   960
#define PLOT_HEIGHT  600
#define PLOT_LEFT    120 /* where the first token is drawn, in pixels; the last one is at ... */
#define PLOT_RIGHT   940
#define PLOT_TOP     50 /* ... and the strips are from here ... */
#define PLOT_BOTTOM  560
#define PLOT_COLUMNS 64 /* of text */

enum plot_form { PLOT_PNG, PLOT_SVG, PLOT_TEXT };

struct plot_point {
    uint64_t token;
    double values[PLOT_SIGNALS];
};

struct plot {
    char names[PLOT_SIGNALS][24];
    struct plot_point points[PLOT_POINTS];
    uint64_t count, step,
        waiting; /* so many that were told are one point; how many of those are in the last one */
    bool has_verdict, abort, loop;
    uint64_t onset, tokens;
    char words[200]; /* what the verdict says */
};

void plot_init(struct plot *p);
/* One line that cordon wrote, without its end: `names A B ...`, `point TOKEN A B ...`, `verdict ABORT LOOP ONSET TOKENS WORDS`. */
ERR_MUST_USE int plot_line(struct plot *p, const char *line, struct err *err);
/* The fonts, before no file can be opened any more. */
void plot_prepare(void);
ERR_MUST_USE int plot_draw(const struct plot *p, enum plot_form form, struct buf *out,
                           struct err *err);
/* Where TOKEN is drawn. */
double plot_x(const struct plot *p, uint64_t token);

#endif
