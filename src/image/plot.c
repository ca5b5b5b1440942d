/* SPDX-License-Identifier: Apache-2.0 */
/* Cairo draws the same for PNG and SVG. A strip has its own scale from 0 to the highest value, which is written beside it: what is looked
 * for is where a signal rises, and its size is in the verdict. */
#include "image/plot.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRIP ((double)(PLOT_BOTTOM - PLOT_TOP) / PLOT_SIGNALS)
#define GAP   14 /* between strips */
#define FONT  12.0

void plot_init(struct plot *p)
{
    memset(p, 0, sizeof *p);
    p->step = 1;
}

/* Neighbours become one point, with the larger of their values. */
static void halve(struct plot *p)
{
    for (uint64_t i = 0; i < PLOT_POINTS / 2; i++) {
        const struct plot_point *a = &p->points[2 * i], *b = a + 1;
        struct plot_point both = *b;
        for (int k = 0; k < PLOT_SIGNALS; k++)
            both.values[k] = a->values[k] > b->values[k] ? a->values[k] : b->values[k];
        p->points[i] = both;
    }
    p->count = PLOT_POINTS / 2;
    p->step *= 2;
}

static void add(struct plot *p, const struct plot_point *q)
{
    if (p->waiting) {
        struct plot_point *last = &p->points[p->count - 1];
        last->token = q->token;
        for (int k = 0; k < PLOT_SIGNALS; k++)
            last->values[k] = q->values[k] > last->values[k] ? q->values[k] : last->values[k];
    } else {
        if (p->count == PLOT_POINTS)
            halve(p);
        p->points[p->count++] = *q;
    }
    p->waiting = (p->waiting + 1) % p->step;
}

int plot_line(struct plot *p, const char *line, struct err *err)
{
    struct plot_point q = {0};
    double *v = q.values;
    unsigned long long onset = 0, tokens = 0, token = 0;
    int abort = 0, loop = 0;
    if (sscanf(line, "point %llu %lf %lf %lf %lf %lf %lf", &token, v, v + 1, v + 2, v + 3, v + 4,
               v + 5) == 1 + PLOT_SIGNALS) {
        q.token = token;
        add(p, &q);
        return 0;
    }
    if (sscanf(line, "verdict %d %d %llu %llu %199[^\n]", &abort, &loop, &onset, &tokens,
               p->words) == 5) {
        p->has_verdict = true;
        p->abort = abort;
        p->loop = loop;
        p->onset = onset;
        p->tokens = tokens;
        return 0;
    }
    if (sscanf(line, "names %23s %23s %23s %23s %23s %23s", p->names[0], p->names[1], p->names[2],
               p->names[3], p->names[4], p->names[5]) == PLOT_SIGNALS)
        return 0;
    return err_set(err, ERR_FORMAT, "'%.40s' is no line of cordon's", line);
}

static uint64_t last_token(const struct plot *p)
{
    uint64_t last = p->count ? p->points[p->count - 1].token : 1;
    return p->tokens > last ? p->tokens : last ? last : 1;
}

double plot_x(const struct plot *p, uint64_t token)
{
    return PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * (double)token / (double)last_token(p);
}

static double highest(const struct plot *p, int signal)
{
    double most = 0;
    for (uint64_t i = 0; i < p->count; i++)
        most = p->points[i].values[signal] > most ? p->points[i].values[signal] : most;
    return most;
}

/* ---- with cairo ---- */

static void set_font(cairo_t *c)
{
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c, FONT);
}

void plot_prepare(void)
{
    /* it is never released: the font stays open */
    cairo_surface_t *s = cairo_image_surface_create(CAIRO_FORMAT_RGB24, 100, 100);
    cairo_t *c = cairo_create(s);
    char all[2] = "";
    set_font(c);
    cairo_move_to(c, 10, 50);
    for (int letter = ' '; letter <= '~'; letter++) {
        all[0] = (char)letter;
        cairo_show_text(c, all);
        cairo_text_path(c, all);
    }
}

static void write_at(cairo_t *c, double x, double y, const char *text)
{
    cairo_set_source_rgb(c, 0.2, 0.2, 0.2);
    cairo_move_to(c, x, y);
    cairo_show_text(c, text);
}

static void draw_strip(cairo_t *c, const struct plot *p, int signal)
{
    const double top = PLOT_TOP + signal * STRIP + GAP, bottom = PLOT_TOP + (signal + 1) * STRIP;
    const double most = highest(p, signal);
    char text[64];
    cairo_set_source_rgb(c, 0.95, 0.95, 0.95);
    cairo_rectangle(c, PLOT_LEFT, top, PLOT_RIGHT - PLOT_LEFT, bottom - top);
    cairo_fill(c);
    write_at(c, 10, bottom - (bottom - top) / 2, p->names[signal]);
    snprintf(text, sizeof text, "highest %.3g", most);
    write_at(c, 10, bottom - (bottom - top) / 2 + FONT + 2, text);
    cairo_set_source_rgb(c, 0.12, 0.35, 0.65);
    cairo_set_line_width(c, 1.5);
    cairo_new_path(c);
    for (uint64_t i = 0; i < p->count; i++) {
        const double value = p->points[i].values[signal],
                     part = most > 0 && value > 0 ? value / most : 0;
        cairo_line_to(c, plot_x(p, p->points[i].token), bottom - part * (bottom - top));
    }
    cairo_stroke(c);
}

/* A line two pixels wide over all strips, whole pixels, so that its colour is one. */
static void draw_mark(cairo_t *c, const struct plot *p, uint64_t token, double red, double green,
                      double blue, const char *name)
{
    const double x = (double)(int)plot_x(p, token);
    cairo_set_source_rgb(c, red, green, blue);
    cairo_rectangle(c, x - 1, PLOT_TOP, 2, PLOT_BOTTOM - PLOT_TOP);
    cairo_fill(c);
    cairo_text_extents_t size;
    cairo_text_extents(c, name, &size);
    const double left = x + 4 + size.width < PLOT_RIGHT ? x + 4 : x - 4 - size.width;
    cairo_move_to(c, left, PLOT_TOP + FONT - 2);
    cairo_show_text(c, name);
}

static void draw(cairo_t *c, const struct plot *p)
{
    char text[64];
    cairo_set_source_rgb(c, 1, 1, 1);
    cairo_paint(c);
    set_font(c);
    write_at(c, 10, 24, p->words);
    for (int i = 0; i < PLOT_SIGNALS; i++)
        draw_strip(c, p, i);
    write_at(c, PLOT_LEFT, PLOT_BOTTOM + 20, "token 0");
    snprintf(text, sizeof text, "token %llu", (unsigned long long)last_token(p));
    write_at(c, PLOT_RIGHT - 90, PLOT_BOTTOM + 20, text);
    if (p->loop)
        draw_mark(c, p, p->onset, 0.85, 0, 0, "onset");
    if (p->abort)
        draw_mark(c, p, p->tokens, 0, 0.5, 0, "verdict");
}

static cairo_status_t take(void *data, const unsigned char *bytes, unsigned len)
{
    return buf_add(data, bytes, len) < 0 ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

static int draw_picture(const struct plot *p, bool svg, struct buf *out, struct err *err)
{
    cairo_surface_t *s =
        svg ? cairo_svg_surface_create_for_stream(take, out, PLOT_WIDTH, PLOT_HEIGHT)
            : cairo_image_surface_create(CAIRO_FORMAT_RGB24, PLOT_WIDTH, PLOT_HEIGHT);
    cairo_t *c = cairo_create(s);
    draw(c, p);
    cairo_status_t status = cairo_status(c);
    cairo_destroy(c);
    if (!svg && status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_write_to_png_stream(s, take, out);
    cairo_surface_finish(s);
    if (status == CAIRO_STATUS_SUCCESS)
        status = cairo_surface_status(s);
    cairo_surface_destroy(s);
    return status == CAIRO_STATUS_SUCCESS
               ? 0
               : err_set(err, ERR_FORMAT, "cairo: %s", cairo_status_to_string(status));
}

/* ---- for a terminal ---- */

static unsigned column_of(const struct plot *p, uint64_t token)
{
    uint64_t at = token * PLOT_COLUMNS / last_token(p);
    return at < PLOT_COLUMNS ? (unsigned)at : PLOT_COLUMNS - 1;
}

static int write_strip(const struct plot *p, int signal, struct buf *out)
{
    static const char *const bars[] = {" ",
                                       "\xe2\x96\x81",
                                       "\xe2\x96\x82",
                                       "\xe2\x96\x83",
                                       "\xe2\x96\x84",
                                       "\xe2\x96\x85",
                                       "\xe2\x96\x86",
                                       "\xe2\x96\x87",
                                       "\xe2\x96\x88"};
    double most = highest(p, signal), values[PLOT_COLUMNS] = {0};
    unsigned at = 0; /* a column without a point has the value of the one before */
    for (uint64_t i = 0; i < p->count; i++) {
        const unsigned column = column_of(p, p->points[i].token);
        const double value = p->points[i].values[signal];
        while (at < column) {
            values[at + 1] = values[at];
            at++;
            if (at == column)
                values[at] = value;
        }
        values[column] = value > values[column] ? value : values[column];
    }
    int r = buf_printf(out, "%12s ", p->names[signal]);
    for (int i = 0; i < PLOT_COLUMNS && r == 0; i++)
        r = buf_str(out, bars[most > 0 ? (int)(values[i] / most * 8 + 0.5) : 0]);
    return r == 0 ? buf_printf(out, " %.3g\n", most) : r;
}

static int write_text(const struct plot *p, struct buf *out, struct err *err)
{
    char marks[PLOT_COLUMNS + 1];
    memset(marks, ' ', PLOT_COLUMNS);
    marks[PLOT_COLUMNS] = 0;
    if (p->abort)
        marks[column_of(p, p->tokens)] = 'V';
    if (p->loop)
        marks[column_of(p, p->onset)] = 'O';
    int r = buf_printf(out, "%s\n", p->words);
    for (int i = 0; i < PLOT_SIGNALS && r == 0; i++)
        r = write_strip(p, i, out);
    if (r == 0 && p->abort)
        r = buf_printf(out, "%12s %s %s\n", "", marks,
                       p->loop ? "O onset, V verdict" : "V verdict");
    return r == 0 ? 0 : err_set(err, ERR_MEMORY, "no memory");
}

int plot_draw(const struct plot *p, enum plot_form form, struct buf *out, struct err *err)
{
    return form == PLOT_TEXT ? write_text(p, out, err)
                             : draw_picture(p, form == PLOT_SVG, out, err);
}
