/* SPDX-License-Identifier: Apache-2.0 */
/* One table, so that the command line, its clients and every language's judge say the same thing in the
 * same words. Operands are the program's own text: they are made harmless here, once. */
#include "check/sentence.h"

#include "base/err.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

void check_operand(const char *text, size_t len, char *out, size_t size)
{
    size_t at = 0, used = 0;
    base_assert(size > 8);
    while (at < len) {
        uint32_t cp;
        int n = utf8_decode((const unsigned char *)text + at, len - at, &cp);
        char as[4];
        int wide = n <= 0 ? utf8_encode('?', as)
                   : cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029
                       ? utf8_encode(' ', as)
                       : utf8_encode(cp, as);
        if (used + (size_t)wide + 4 > size) { /* leave room for the dots and the end */
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(out + used, as, (size_t)wide);
        used += (size_t)wide;
        at += n > 0 ? (size_t)n : 1;
    }
    out[used] = 0;
}

static const struct {
    const char *before, *behind;
} sentences[] = {
#define SENTENCE(name, before, behind) [CHECK_SAY_##name] = {before, behind},
    CHECK_SENTENCES(SENTENCE)
#undef SENTENCE
};

void check_sentence(enum check_sentence what, const char *operand, char *out, size_t size)
{
    const char *behind = sentences[what].behind;
    char plain[512];
    check_operand(operand, strlen(operand), plain, sizeof plain);
    snprintf(out, size, "%s%s%s", sentences[what].before, behind ? plain : "",
             behind ? behind : "");
    out[utf8_valid_prefix(out, strlen(out))] = 0;
}

int check_report_say(struct check_report *report, const char *rule, const char *hint,
                     enum check_sentence what, const char *operand, size_t len, unsigned line,
                     unsigned column)
{
    char word[200], message[320];
    check_operand(operand, len, word, sizeof word);
    check_sentence(what, word, message, sizeof message);
    const struct check_finding f = {.rule = rule,
                                    .layer = "input",
                                    .operand = word,
                                    .message = message,
                                    .hint = hint,
                                    .line = line,
                                    .column = column};
    return check_report_add(report, &f);
}
