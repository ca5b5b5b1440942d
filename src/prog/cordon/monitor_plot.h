/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon monitor saw, told to cordon-plot while it reads.
 *
 * Takes:   the name of a picture that is to be drawn, or - for the terminal; verdicts, one after the other.
 * Gives:   the picture.
 * Never:   starts a program once the monitor has begun to read: cordon-plot is started before.
 * Runs in: cordon monitor.
 */
#ifndef CORDON_MONITOR_PLOT_H
#define CORDON_MONITOR_PLOT_H

#include "base/err.h"
#include "monitor/monitor.h"

#include <stdio.h>

struct monitor_plot {
    FILE *points;  /* to cordon-plot; NULL: no picture was asked for */
    int done;      /* says when the picture is whole */
    uint64_t told; /* the token of the last point */
};

/* FILE.png, FILE.svg, or - for a drawing of text on standard error. The file is made here. */
ERR_MUST_USE int monitor_plot_start(struct monitor_plot *p, const char *file, struct err *err);
void monitor_plot_point(struct monitor_plot *p, const struct monitor_verdict *v);
/* The verdict; returns when the picture is whole. */
ERR_MUST_USE int monitor_plot_end(struct monitor_plot *p, const struct monitor_verdict *v,
                                  struct err *err);

#endif
