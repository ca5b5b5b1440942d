/* SPDX-License-Identifier: Apache-2.0 */
/* Three quotes begin and end a string of several lines in Python; comments and strings of one line may hold three quotes
 * that do neither. */
#include "intake/quotes.h"

#include <string.h>

static size_t skip_short_string(const char *line, size_t len, size_t at)
{
    const char quote = line[at++];
    while (at < len && line[at] != quote)
        at += line[at] == '\\' ? 2 : 1;
    return at + 1;
}

char intake_quotes_after(char state, const char *line, size_t len)
{
    size_t at = 0;
    while (at < len) {
        const char c = line[at];
        const int three =
            (c == '"' || c == '\'') && at + 2 < len && line[at + 1] == c && line[at + 2] == c;
        if (state && c == '\\') {
            at += 2;
        } else if (state) {
            at += three && c == state ? 3 : 1;
            state = three && c == state ? 0 : state;
        } else if (c == '#') {
            break;
        } else if (three) {
            state = c;
            at += 3;
        } else {
            at = c == '"' || c == '\'' ? skip_short_string(line, len, at) : at + 1;
        }
    }
    return state;
}
