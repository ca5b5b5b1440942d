/* SPDX-License-Identifier: Apache-2.0 */
/* The codec against libcbor, then everything that a frame must not be. */
#include "base/limits.h"
#include "base/tap.h"
#include "wire/msg.h"

#include <cbor.h>

static const uint64_t edges[] = {0,     1,     23,         24,         255,       256,
                                 65535, 65536, 4294967295, 4294967296, INT64_MAX, UINT64_MAX};

static void against_libcbor(void)
{
    bool same = true;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        struct buf b;
        struct cbor_load_result loaded;
        buf_init(&b, 64);
        same = same && wire_cbor_put_uint(&b, edges[i]) == 0;
        cbor_item_t *item = cbor_load((unsigned char *)b.data, b.len, &loaded);
        same = same && item && cbor_isa_uint(item) && loaded.read == b.len &&
               cbor_get_int(item) == edges[i];
        if (item)
            cbor_decref(&item);
        unsigned char theirs[16];
        size_t n = cbor_encode_uint(edges[i], theirs, sizeof theirs);
        same = same && n == b.len && memcmp(theirs, b.data, n) == 0;
        struct wire_cursor c = {theirs, theirs + n, false};
        same = same && wire_cbor_get_uint(&c) == edges[i] && !c.bad && c.at == c.end;
        buf_done(&b);
    }
    tap_ok(same, "numbers: both ways the same as libcbor");

    struct buf frame;
    struct wire_writer w;
    struct cbor_load_result loaded;
    buf_init(&frame, 4096);
    wire_begin(&w, &frame, WIRE_STARTED);
    wire_put_int(&w, -42);
    wire_put_text(&w, "caf\xc3\xa9");
    tap_eq_int(wire_end(&w), 0, "a STARTED message is written");
    cbor_item_t *item = cbor_load((unsigned char *)frame.data, frame.len, &loaded);
    tap_ok(item && cbor_isa_array(item) && cbor_array_size(item) == 3 && loaded.read == frame.len,
           "libcbor sees an array of three");
    if (item) {
        cbor_item_t *n = cbor_array_get(item, 1), *t = cbor_array_get(item, 2);
        tap_ok(cbor_isa_negint(n) && cbor_get_int(n) == 41, "libcbor sees -42 in the array");
        tap_ok(cbor_isa_string(t) && cbor_string_length(t) == 5,
               "libcbor sees a text of five bytes in the array");
        cbor_decref(&n);
        cbor_decref(&t);
        cbor_decref(&item);
    }
    struct wire_reader r;
    char text[4];
    tap_eq_int(wire_open(&r, frame.data, frame.len, NULL), 0, "a STARTED message is read back");
    tap_eq_int(wire_get_int(&r), -42, "an integer of a message is read back with its sign");
    wire_get_text(&r, text, sizeof text);
    tap_eq_str(text, "caf", "a text of a message is cut to the size of the buffer");

    /* every prefix, every longer one and every single changed byte is either refused or read safely
     */
    bool prefixes = true;
    size_t accepted = 0;
    for (size_t n = 0; n < frame.len; n++)
        prefixes = prefixes && wire_open(&r, frame.data, n, NULL) < 0;
    tap_ok(prefixes, "no part of a message is a message");
    int longer = buf_str(&frame, "x");
    tap_ok(longer == 0 && wire_open(&r, frame.data, frame.len, NULL) < 0,
           "a message with one byte more is refused");
    frame.len--;
    for (size_t i = 0; i < frame.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            frame.data[i] = (char)(frame.data[i] ^ 1 << bit);
            accepted += wire_open(&r, frame.data, frame.len, NULL) == 0;
            frame.data[i] = (char)(frame.data[i] ^ 1 << bit);
        }
    tap_ok(accepted > 0 && accepted < frame.len * 8, "flipped bits: %zu of %zu still a message",
           accepted, frame.len * 8);
    buf_done(&frame);
}

static void refused(void)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *why;
    } rows[] = {
        {"", 0, "nothing"},
        {"\x81\x02", 2, "LISTENER as it is"}, /* the one that is good */
        {"\x81\x18\x02", 3, "a longer spelling of 2"},
        {"\x9f\x02\xff", 3, "an indefinite array"},
        {"\x82\x02\x00", 3, "LISTENER with a field"},
        {"\x81\x00", 2, "type 0"},
        {"\x81\x18\x63", 3, "a type beyond the table"},
        {"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", 9, "an array of 2^64"},
        {"\x83\x01\x00\x7b\xff\xff\xff\xff\xff\xff\xff\xff", 12, "a text of 2^64"},
        {"\x83\x01\x00\x61\xff", 5, "a text that is not UTF-8"},
        {"\x83\x01\x00\x61\x00", 5, "a text with a NUL"},
        {"\x83\x01\x00\x41\x61", 5, "bytes for text"},
        {"\x83\x01\xf6\x61\x61", 5, "null for a number"},
        {"\x83\x01\x3b\xff\xff\xff\xff\xff\xff\xff\xff\x61\x61", 13, "-2^64"},
    };
    struct wire_reader r;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok((wire_open(&r, rows[i].bytes, rows[i].len, NULL) == 0) == (i == 1), "%s",
               rows[i].why);
    static char large[LIMIT_FRAME + 1];
    tap_eq_int(wire_open(&r, large, sizeof large, NULL), ERR_LIMIT, "a frame past the ceiling");
}

int main(void)
{
    against_libcbor();
    refused();
    return tap_done();
}
