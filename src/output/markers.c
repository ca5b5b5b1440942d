/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing is taken away: a marker loses one character to an entity, so that a reader still sees what stood there. Which words open a turn
 * differs from model to model, so the table has those of all that are in use. */
#include "output/markers.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *marker;
    bool at_line; /* only at the beginning of a line */
} markers[] = {
    {"<|", false},
    {"<<sys>>", false},
    {"<</sys>>", false},
    {"[inst]", false},
    {"[/inst]", false},
    {"<system", false},
    {"</system", false},
    {"<assistant", false},
    {"</assistant", false},
    {"<user", false},
    {"</user", false},
    {"<human", false},
    {"</human", false},
    {"<tool", false},
    {"</tool", false},
    {"<function", false},
    {"</function", false},
    {"<instructions", false},
    {"</instructions", false},
    {"<start_of_turn>", false},
    {"<end_of_turn>", false},
    {"system:", true},
    {"assistant:", true},
    {"human:", true},
    {"user:", true},
    {"developer:", true},
    {"tool:", true},
    {"### instruction", true},
    {"### system", true},
};

static size_t marker_at(const char *s, size_t len, bool line)
{
    for (size_t i = 0; i < sizeof markers / sizeof *markers; i++) {
        const size_t n = strlen(markers[i].marker);
        if (n <= len && (line || !markers[i].at_line) && strncasecmp(s, markers[i].marker, n) == 0)
            return n;
    }
    return 0;
}

/* The marker with one character as an entity: its first, or the colon behind a name. */
static int break_marker(const char *s, size_t n, struct buf *out)
{
    if (s[n - 1] == ':') {
        int r = buf_add(out, s, n - 1);
        return r < 0 ? r : buf_str(out, "&#58;");
    }
    int r = buf_printf(out, "&#%d;", (unsigned char)s[0]);
    return r < 0 ? r : buf_add(out, s + 1, n - 1);
}

int output_markers_break(const char *s, size_t len, struct buf *out, uint64_t *count)
{
    bool line = true;
    int r = 0;
    for (size_t i = 0; i < len && r == 0;) {
        const bool may = strchr("<[#sahudtSAHUDT", s[i]) != NULL;
        const size_t n = may ? marker_at(s + i, len - i, line) : 0;
        if (n) {
            r = break_marker(s + i, n, out);
            ++*count;
            i += n;
            line = false;
            continue;
        }
        r = buf_add(out, s + i, 1);
        line =
            s[i] == '\n' || (line && (s[i] == ' ' || s[i] == '\t' || s[i] == '>' || s[i] == '*'));
        i++;
    }
    return r;
}
