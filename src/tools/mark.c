/* SPDX-License-Identifier: Apache-2.0 */
/* A text of a file may have been written by anybody, and whoever reads the answer may be a model. Nothing is taken away:
 * a control or bidi character is shown by its name, and a marker that opens or closes a speaker's turn loses its first
 * character to an entity, so that a reader still sees what stood there. `neutralised` in the answer says that the
 * text is not what the file has; Edit works on the file itself. */
#include "tools/inside.h"

#include "base/limits.h"
#include "output/markers.h"
#include "output/visible.h"

#include <stdio.h>
#include <string.h>

/* Lines of Windows end in two characters; as a text they end. */
static int plain_lines(const char *s, size_t len, struct buf *out)
{
    int r = 0;
    for (size_t at = 0; at < len && r == 0;) {
        const char *end = memmem(s + at, len - at, "\r\n", 2);
        const size_t n = end ? (size_t)(end - s) - at : len - at;
        r = buf_add(out, s + at, n);
        at += n + (end ? 1 : 0);
    }
    return r;
}

json_t *tools_mark(struct tools_call *c, const void *bytes, size_t len)
{
    struct output_visible v = {0};
    struct buf lines, seen, text;
    json_t *ret = NULL;
    buf_init(&lines, len + 1);
    buf_init(&seen, 10 * len + 16); /* <U+E0001> for four bytes, \xNN for one */
    buf_init(&text, 60 * len + 96);
    int r = plain_lines(bytes, len, &lines);
    if (r == 0 && lines.len)
        r = output_visible_add(&v, lines.data, lines.len, &seen);
    if (r == 0)
        r = output_visible_end(&v, &seen);
    if (r == 0 && seen.len)
        r = output_markers_break(seen.data, seen.len, &text, &c->neutralised);
    if (r == 0) {
        if (seen.len != lines.len) /* what is shown by its name is longer */
            c->neutralised++;
        ret = json_stringn(text.len ? text.data : "", text.len);
    }
    buf_done(&lines);
    buf_done(&seen);
    buf_done(&text);
    return ret;
}

json_t *tools_mark_all(struct tools_call *c, const json_t *value)
{
    const char *key;
    json_t *one, *ret;
    size_t i;
    if (json_is_string(value))
        return tools_mark(c, json_string_value(value), json_string_length(value));
    if (json_is_array(value)) {
        ret = json_array();
        json_array_foreach((json_t *)value, i,
                           one) if (ret && json_array_append_new(ret, tools_mark_all(c, one)) < 0)
            ret = NULL;
        return ret;
    }
    if (!json_is_object(value))
        return json_incref((json_t *)value);
    ret = json_object();
    json_object_foreach((json_t *)value, key, one)
    {
        json_t *name = tools_mark(c, key, strlen(key));
        if (!ret || !name ||
            json_object_set_new(ret, json_string_value(name), tools_mark_all(c, one)) < 0) {
            json_decref(ret);
            ret = NULL;
        }
        json_decref(name);
    }
    return ret;
}
