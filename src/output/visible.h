/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a guest made safe to look at on a terminal: nothing in them acts on it.
 *
 * Takes:   bytes as they come, cut anywhere.
 * Gives:   printable text: control characters as ^X or <U+XXXX>, wrong bytes as \xNN.
 * Never:   lets an escape sequence, a bidi override or a C1 control through.
 * Runs in: the supervisor.
 */
#ifndef OUTPUT_VISIBLE_H
#define OUTPUT_VISIBLE_H

#include "base/buf.h"

#include <stdbool.h>

struct output_visible {
    unsigned char held[4]; /* the beginning of a sequence that the last chunk cut */
    size_t nheld;
    bool one_line; /* newlines are shown too */
    bool plain;    /* for somebody who decides by it: what cannot be seen is shown too */
};

ERR_MUST_USE int output_visible_add(struct output_visible *v, const void *data, size_t len,
                                    struct buf *out);
ERR_MUST_USE int output_visible_end(struct output_visible *v, struct buf *out);

#endif
