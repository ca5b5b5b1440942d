/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance in which two swapped neighbours are one mistake, as typing mistakes are. Case does not count. */
#include "base/near.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { LONGEST = 64 }; /* letters; a longer word is near to none */

/* Changes of one letter (put in, left out, another, two swapped) between A and B. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST + 1], la = strlen(a), lb = strlen(b);
    if (la > LONGEST || lb > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *now = rows[i % 3], *before = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            const bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
            size_t best = before[j - 1] + !same;
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two[j - 2] + 1 < best)
                best = two[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[la % 3][lb];
}

/* Words that say yes or no are near by what they mean, not by their letters: 'no' is two swapped letters from 'on'. */
static int says(const char *word)
{
    static const char *const yes[] = {"on", "yes", "true", "always"}, *const no[] = {
                                                                          "off", "no", "false",
                                                                          "never", "none"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcasecmp(word, yes[i]) == 0)
            return 1;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (strcasecmp(word, no[i]) == 0)
            return -1;
    return strncmp(word, "no-", 3) == 0 ? -2 : 0;
}

const char *near_word(const char *word, const char *const *candidates, size_t n)
{
    const char *best = NULL;
    const int sense = says(word);
    size_t least = (strlen(word) < 6 ? 1 : strlen(word) / 3) + 1;
    for (size_t i = 0; i < n; i++) {
        const int other = says(candidates[i]);
        if ((sense == 1 || sense == -1) && sense == other)
            return candidates[i];
        size_t d = sense == other ? distance(word, candidates[i]) : least;
        if (d < least) {
            least = d;
            best = candidates[i];
        }
    }
    return best;
}
