/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts behind the last whole word: a message that ends in `mode, memo` reads as if something else were broken. */
#include "base/fit.h"

#include <string.h>

void fit_words(char *text, size_t size, int wanted)
{
    static const char dots[] = "...";
    if (wanted < 0 || (size_t)wanted < size || size <= sizeof dots)
        return;
    size_t end = size - sizeof dots;
    const size_t least = end / 2; /* a word of half the text is cut in its middle */
    while (end > least && text[end] != ' ')
        end--;
    if (end == least)
        for (end = size - sizeof dots; end > least && ((unsigned char)text[end] & 0xc0) == 0x80;)
            end--; /* no character in half, either */
    while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == ',' || text[end - 1] == ';'))
        end--;
    memcpy(text + end, dots, sizeof dots);
}
