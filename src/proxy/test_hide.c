/* SPDX-License-Identifier: Apache-2.0 */
/* A key in the bytes of an upstream, as it is and as JSON writes it, cut at every place: never handed on, and nothing else is changed. */
#include "proxy/keys/hide.h"

#include "base/tap.h"

#include <string.h>

static const char *const key = "sk-ab/sk-ab+9";

/* TEXT in two pieces that are cut at CUT, or byte by byte where CUT is beyond it. */
static bool gives(const struct proxy_hidden *h, const char *text, size_t cut, const char *want)
{
    struct proxy_hiding at;
    struct buf out;
    const size_t len = strlen(text);
    int r = 0;
    proxy_hiding_init(&at);
    buf_init(&out, 4096);
    if (cut <= len) {
        r = proxy_hide(h, &at, text, cut, &out);
        if (r == 0)
            r = proxy_hide(h, &at, text + cut, len - cut, &out);
    }
    for (size_t i = 0; cut > len && r == 0 && i < len; i++)
        r = proxy_hide(h, &at, text + i, 1, &out);
    if (r == 0)
        r = proxy_hide_end(h, &at, &out);
    const bool same =
        r == 0 && out.len == strlen(want) && (!out.len || memcmp(out.data, want, out.len) == 0);
    if (!same)
        printf("# cut at %zu: %.*s\n", cut, (int)out.len, out.len ? out.data : "");
    proxy_hiding_done(&at);
    buf_done(&out);
    return same;
}

int main(void)
{
    static const struct {
        const char *text, *want, *name;
    } rows[] = {
        {"the key is sk-ab/sk-ab+9.", "the key is [key].", "as it is"},
        {"sk-ab/sk-ab/sk-ab+9", "sk-ab/[key]", "behind its own beginning"},
        {"sk-ab/sk-ab+9sk-ab/sk-ab+9", "[key][key]", "twice"},
        {"\"sk-ab\\/sk-ab+9\"", "\"[key]\"", "with an escaped slash, as PHP writes it"},
        {"\"sk-ab/sk-ab\\u002B9\"", "\"[key]\"", "with an escaped plus, as .NET writes it"},
        {"\"sk-ab\\/sk-ab\\u002b9\"", "\"[key]\"", "with both, in small letters"},
        {"\\u0073k-ab/sk-ab+9", "[key]", "with its first character escaped"},
        {"\\sk-ab/sk-ab+9", "\\[key]", "behind a backslash"},
        {"\\usk-ab/sk-ab+9", "\\u[key]", "behind half an escape"},
        {"sk-ab\\/sk-ab\\/sk-ab+9", "sk-ab\\/[key]", "behind its own beginning, escaped"},
        {"sk-ab\\/sk-ab-9 \\u00e9 \\n \\", "sk-ab\\/sk-ab-9 \\u00e9 \\n \\", "not there"},
        {"sk-ab/sk-ab+", "sk-ab/sk-ab+", "not whole"},
        {"", "", "in nothing"},
    };
    struct proxy_hidden h;
    if (!tap_ok(proxy_hidden_init(&h, key, strlen(key)) == 0, "a key to hide is taken"))
        return tap_done();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool good = true;
        for (size_t cut = 0; cut <= strlen(rows[i].text) + 1; cut++)
            good = gives(&h, rows[i].text, cut, rows[i].want) && good;
        tap_ok(good, "a key %s, cut at every place: %s", rows[i].name, rows[i].want);
    }
    proxy_hidden_done(&h);
    const struct proxy_hidden none = {0};
    tap_ok(gives(&none, "sk-ab/sk-ab+9 \\/", 3, "sk-ab/sk-ab+9 \\/"),
           "where there is no key nothing is changed");
    return tap_done();
}
