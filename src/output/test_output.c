/* SPDX-License-Identifier: Apache-2.0 */
/* Caps and visible control characters, each fed in every possible cut. */
#include "base/tap.h"
#include "output/capture.h"
#include "output/visible.h"

static void capture(void)
{
    struct output_capture c;
    struct buf rest;
    buf_init(&rest, 1000);
    output_capture_init(&c, 8); /* head 6, tail 2 */
    tap_eq_int(output_capture_add(&c, "abcd", 4), 4, "bytes that fit the head pass on");
    tap_eq_int(output_capture_add(&c, "efgh", 4), 2,
               "only those bytes pass on that still fit the head");
    tap_ok(!output_capture_truncated(&c), "eight of eight bytes: nothing is cut");
    tap_ok(output_capture_rest(&c, &rest) == 0 && strcmp(rest.data, "gh") == 0,
           "the bytes behind the head follow");
    output_capture_add(&c, "ijk", 3);
    buf_reset(&rest);
    tap_ok(output_capture_truncated(&c) && c.total == 11,
           "the ninth of eight bytes is cut, and counted");
    tap_ok(output_capture_rest(&c, &rest) == 0 && strcmp(rest.data, OUTPUT_MARKER "jk") == 0,
           "the marker comes before the last two bytes");
    output_capture_done(&c);

    output_capture_init(&c, 16); /* head 12, tail 4 */
    output_capture_add(&c, "0123456789ab----\xc3\xa9xyz", 21);
    buf_reset(&rest);
    tap_ok(output_capture_rest(&c, &rest) == 0 && strcmp(rest.data, OUTPUT_MARKER "xyz") == 0,
           "a sequence whose beginning was cut away is not shown in half");
    output_capture_done(&c);
    buf_done(&rest);
}

static void visible(void)
{
    static const struct {
        const char *in;
        const char *want;
    } rows[] = {
        {"plain\ttext\n", "plain\ttext\n"},
        {"\033]52;c;aGk=\a", "^[]52;c;aGk=^G"},
        {"a\rb\177", "a^Mb^?"},
        {"\xc2\x9b"
         "31m",
         "<U+009B>31m"},
        {"\xe2\x80\xae"
         "evil",
         "<U+202E>evil"},
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xe2\x82", "\\xe2\\x82"},
        {"\xe2\x82"
         "A",
         "\\xe2\\x82A"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].in);
        bool same = true;
        for (size_t cut = 0; cut <= len; cut++)
            for (size_t cut2 = cut; cut2 <= len; cut2++) {
                struct output_visible v = {0};
                struct buf out;
                buf_init(&out, 1000);
                int r = output_visible_add(&v, rows[i].in, cut, &out);
                r |= output_visible_add(&v, rows[i].in + cut, cut2 - cut, &out);
                r |= output_visible_add(&v, rows[i].in + cut2, len - cut2, &out);
                r |= output_visible_end(&v, &out);
                same = same && r == 0 && out.data && strcmp(out.data, rows[i].want) == 0;
                buf_done(&out);
            }
        tap_ok(same, "visible row %zu, in every cut", i);
    }
}

int main(void)
{
    capture();
    visible();
    return tap_done();
}
