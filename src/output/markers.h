/* SPDX-License-Identifier: Apache-2.0 */
/* Text that a model will read, with nothing in it that opens or closes a speaker's turn.
 *
 * Takes:   text that anybody may have written.
 * Gives:   the same text, each such marker broken by an entity, and how many there were.
 * Never:   takes a character away.
 * Runs in: cordon-tool, for what programs get; cordon-ask, for what judges get.
 */
#ifndef OUTPUT_MARKERS_H
#define OUTPUT_MARKERS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* Adds to *COUNT. */
ERR_MUST_USE int output_markers_break(const char *s, size_t len, struct buf *out, uint64_t *count);

#endif
