/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a guest's output, in any chunks: the same text each time, valid UTF-8, without what was to
 * be hidden, within the cap. */
#include "base/utf8.h"
#include "output/clean.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct output_known known[] = {
    {"/srv/state/cordon", 17, "/STATE", false},
    {"hunter2-hunter2", 15, "[REDACTED:environment]", true},
    {"2-hunter2-x", 11, "[REDACTED:environment]", true},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct output_rules *rules = NULL;
    struct output_clean c;
    struct buf whole, parts;
    if (size < 3 || output_rules_new(known, 3, OUTPUT_SCRUB | OUTPUT_REDACT, &rules, NULL) < 0)
        return 0;
    size_t cap = data[0] < 200 ? data[0] : 100000, step = 1 + data[1] % 64;
    enum output_unit unit = data[2] & 1 ? OUTPUT_CHARACTERS : OUTPUT_BYTES;
    enum output_escape escape = data[2] & 2   ? OUTPUT_ESCAPE_HTML
                                : data[2] & 4 ? OUTPUT_ESCAPE_TERMINAL
                                              : OUTPUT_ESCAPE_NONE;
    data += 3;
    size -= 3;
    buf_init(&whole, 1 << 24);
    buf_init(&parts, 1 << 24);
    base_assert(output_clean_once(rules, data, size, cap, unit, escape, &whole) == 0);
    output_clean_init(&c, rules, cap, unit);
    for (size_t at = 0; at < size; at += step)
        output_clean_add(&c, data + at, step < size - at ? step : size - at);
    output_clean_end(&c);
    base_assert(output_clean_text(&c, escape, &parts) == 0);
    base_assert(c.bytes_in == size);
    base_assert(whole.len == parts.len &&
                (!whole.len || memcmp(whole.data, parts.data, whole.len) == 0));
    base_assert(utf8_valid_prefix(whole.data, whole.len) == whole.len);
    base_assert(!whole.len || !memmem(whole.data, whole.len, "hunter2-hunter2", 15));
    if (escape == OUTPUT_ESCAPE_HTML)
        base_assert(!whole.len ||
                    (!memchr(whole.data, '<', whole.len) && !memchr(whole.data, '"', whole.len)));
    if (escape == OUTPUT_ESCAPE_TERMINAL)
        base_assert(!whole.len || !memchr(whole.data, '\033', whole.len));
    if (!c.binary) {
        uint64_t kept = c.kept.total - output_clean_cut(&c);
        base_assert(kept <= cap && output_clean_truncated(&c) == (c.kept.total > cap));
    }
    output_clean_done(&c);
    buf_done(&whole);
    buf_done(&parts);
    output_rules_free(rules);
    return 0;
}
