/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon-workspace prints may be a guest's: on a terminal nothing in it acts on that.
 *
 * Waits: fd_write_all in flush; the caller's reader; none (the caller's own pace); nothing but its own workspace is held */
#include "order.h"

#include "base/jsonw.h"
#include "base/units.h"
#include "sys/fd.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int flush(struct output *o)
{
    int r = fd_write_all(o->fd, o->held.data, o->held.len);
    if (r < 0)
        o->failed = errno;
    buf_reset(&o->held);
    return r;
}

int output_put(void *output, const void *data, size_t len)
{
    struct output *o = output;
    int r = o->held.len + 8 * (len < 64 * KIB ? len : 0) > 512 * KIB ? flush(o) : 0;
    for (const char *p = data; r == 0 && len;) { /* a byte may become several */
        const size_t n = len < 32 * KIB ? len : 32 * KIB;
        r = o->visible ? output_visible_add(&o->state, p, n, &o->held) : buf_add(&o->held, p, n);
        if (r == 0 && o->held.len > 256 * KIB)
            r = flush(o);
        p += n;
        len -= n;
    }
    return r;
}

void output_init(struct output *o, int fd, bool visible)
{
    *o = (struct output){.fd = fd, .visible = visible};
    buf_init(&o->held, 1 * MIB);
}

int output_end(struct output *o, int r, struct err *err)
{
    if (r == 0 && o->visible)
        r = output_visible_end(&o->state, &o->held);
    if (r == 0)
        r = flush(o);
    buf_done(&o->held);
    errno = o->failed;
    return o->failed
               ? err_sys(err, o->fd == ORDER_OTHER_FD ? "write the export" : "standard output")
               : r;
}

static void put_left(struct jsonw *j, const struct workspace_left *left)
{
    jsonw_open(j, "left_out", '[');
    for (size_t i = 0; i < left->count; i++) {
        jsonw_open(j, NULL, '{');
        jsonw_string(j, "path", left->items[i].path);
        jsonw_string(j, "reason", left->items[i].why);
        jsonw_close(j, '}');
    }
    jsonw_close(j, ']');
    jsonw_int(j, "left_out_more", (int64_t)left->more);
}

int order_tell(const struct order *o, const char *id, bool new, const struct workspace_left *left,
               struct err *err)
{
    struct output out;
    struct buf text;
    int r = 0;
    output_init(&out, STDOUT_FILENO, o->tty);
    buf_init(&text, 16 * MIB);
    if (o->json) {
        struct jsonw j = {.out = &text};
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", o->name);
        jsonw_string(&j, "id", id);
        jsonw_bool(&j, "changed", new);
        if (left)
            put_left(&j, left);
        jsonw_close(&j, '}');
        r = j.bad ? j.bad : buf_str(&text, "\n");
    } else {
        r = buf_printf(&text, "%s%s\n", id, new ? "" : " (nothing changed)");
        for (size_t i = 0; left && i < left->count && r == 0; i++)
            r = buf_printf(&text, "left out: %s: %s\n", left->items[i].path, left->items[i].why);
        if (left && left->more && r == 0)
            r = buf_printf(&text, "left out: %zu more\n", left->more);
    }
    if (r == 0)
        r = output_put(&out, text.data, text.len);
    buf_done(&text);
    return output_end(&out, r, err);
}
