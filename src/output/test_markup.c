/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser would run is found, however it is written; what it only shows is not. */
#include "base/clock.h"
#include "base/tap.h"
#include "output/markup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text, *what; /* NULL: nothing is found */
} rows[] = {
    {"<script>alert(1)</script>", "<script>"},
    {"<ScRiPt\n>", "<script>"},
    {"a<script/x>", "<script>"},
    {"<iframe src=x>", "<iframe src>"},
    {"<img src=x onerror=alert(1)>", "<img onerror>"},
    {"<img/src='x'/onerror=alert(1)>", "<img onerror>"},
    {"<img src='>' OnError = 'alert(1)'>", "<img onerror>"},
    {"<svg onload=alert(1)//", "<svg onload>"},
    {"<p title=\"never closed onclick=x <script>", "<p onclick>"},
    {"<a href=javascript:alert(1)>", "<a href=javascript:>"},
    {"<a href=' java\tscript:alert(1)'>", "<a href=javascript:>"},
    {"<a href=\"&#106;avas&#x63;ript&colon;alert(1)\">", "<a href=javascript:>"},
    {"<a href=\"jjavascript:alert(1)\">", "<a href=javascript:>"},
    {"<animate values='0;javascript:x'>", "<animate values=javascript:>"},
    {"<form action=data:text/html,x>", "<form action=data:text/html>"},
    {"<!-- <script> -->", "<script>"},
    {"<meta http-equiv=refresh content=0>", "<meta http-equiv>"},
    {"<object data=x.swf>", "<object data>"},
    {"<x\303\251 =onclick=1 onclick=2>", "<x?? onclick>"},
    {"if a <b and c> d: x < script", NULL},
    {"{\"a\": \"x<y\"}", NULL},
    {"<b>bold</b> <p class=on>", NULL},
    {"List<Map<String, Integer>> x; a << b; </script>", NULL},
    {"&lt;script&gt;", NULL},
    {"<a href='https://example.org/?q=javascript'>", NULL},
    {"<object object at 0x7f00> <frame at 0x7f01, file 'a.py', line 1, code f>", NULL},
    {"<function on_click at 0x7f00> <generator object only_even at 0x7f01>", NULL},
    {"<", NULL},
    {"", NULL},
};

int main(void)
{
    char what[OUTPUT_MARKUP_WORDS], name[160];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = output_markup(rows[i].text, strlen(rows[i].text), what);
        snprintf(name, sizeof name, "a browser %s %.80s", rows[i].what ? "runs" : "only shows",
                 rows[i].text);
        for (char *c = name; *c; c++)
            *c = (unsigned char)*c < ' ' || *c == '#' ? ' ' : *c;
        tap_ok((n > 0) == (rows[i].what != NULL), "%s", name);
        tap_eq_str(what, rows[i].what ? rows[i].what : "", "%s: the markup is told in words", name);
    }
    tap_eq_int((long)output_markup("<script><b><script>", 19, what), 2,
               "every tag that runs is counted");

    /* twice the text takes about twice the time: each of these would be quadratic if a tag were looked at again */
    static const char *const slow[] = {"<a b=\"", "<a b='\"", "<", "<a ", "<a href=&#"};
    const size_t size = 1 << 20;
    char *text = malloc(size);
    for (size_t i = 0; text && i < sizeof slow / sizeof *slow; i++) {
        size_t step = strlen(slow[i]);
        for (size_t at = 0; at < size; at++)
            text[at] = slow[i][at % step];
        uint64_t cost[2];
        for (int half = 1; half >= 0; half--) {
            uint64_t best = UINT64_MAX;
            for (int j = 0; j < 5; j++) {
                uint64_t began = clock_now_ns();
                output_markup(text, size >> half, what);
                uint64_t took = clock_now_ns() - began;
                best = took < best ? took : best;
            }
            cost[half] = best;
        }
        tap_ok(cost[0] < 16 * cost[1], "markup made of '%s' takes linear time", slow[i]);
    }
    free(text);
    return tap_done();
}
