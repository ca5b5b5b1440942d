/* SPDX-License-Identifier: Apache-2.0 */
/* Notes beyond those that are kept are counted, so that a text of a million odd characters costs no memory. */
#include "intake/notes.h"

#include <stdio.h>

void intake_source_init(struct intake_source *s, size_t max)
{
    *s = (struct intake_source){.line = 1};
    buf_init(&s->code, max);
}

void intake_source_done(struct intake_source *s)
{
    buf_done(&s->code);
}

const char *intake_kind_name(enum intake_kind kind)
{
    static const char *const names[] = {
        [INTAKE_MARK] = "byte order mark", [INTAKE_REASONING] = "reasoning",
        [INTAKE_PROSE] = "prose",          [INTAKE_BLOCK] = "block",
        [INTAKE_UNCLOSED] = "unclosed",    [INTAKE_INVISIBLE] = "invisible",
    };
    return names[kind];
}

void intake_note(struct intake_source *s, enum intake_kind kind, size_t line, size_t lines,
                 const char *detail)
{
    if (s->note_count < INTAKE_NOTES) {
        struct intake_note *n = &s->notes[s->note_count];
        *n = (struct intake_note){.kind = kind, .line = line, .lines = lines};
        snprintf(n->detail, sizeof n->detail, "%s", detail);
    }
    s->note_count++;
}
