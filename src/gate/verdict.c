/* SPDX-License-Identifier: Apache-2.0 */
/* Strict, because the text comes from a model that has read hostile code: there is one way to say yes,
 * and everything else is a no. */
#include "gate/verdict.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* The text after PREFIX on the line at *AT; moves to the next line. NULL: the line is another one. */
static const char *line(const char **at, const char *end, const char *prefix, size_t *ret_len)
{
    const char *nl = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    size_t skip = strlen(prefix);
    if (!nl || (size_t)(nl - *at) < skip || memcmp(*at, prefix, skip) != 0)
        return NULL;
    const char *text = *at + skip;
    *ret_len = (size_t)(nl - text);
    *at = nl + 1;
    return text;
}

bool gate_verdict_printable(const char *s, size_t len)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + len;
    while (p < end) {
        uint32_t cp = 0;
        int n = utf8_decode(p, (size_t)(end - p), &cp);
        if (n <= 0 || cp < 32 || (cp >= 127 && cp < 160) || (cp >= 0x202a && cp <= 0x202e) ||
            (cp >= 0x2066 && cp <= 0x2069) || cp == 0x2028 || cp == 0x2029)
            return false;
        p += n;
    }
    return true;
}

int gate_verdict_read(const char *text, size_t len, const char hash[65],
                      struct gate_verdict *ret_verdict, struct err *err)
{
    const char *at = text, *end = text + len, *word;
    size_t n = 0;
    word = line(&at, end, "cordon-verdict 1", &n);
    if (!word || n != 0)
        return err_set(err, ERR_FORMAT, "the first line is not `cordon-verdict 1`");
    word = line(&at, end, "code ", &n);
    if (!word || n != 64)
        return err_set(err, ERR_FORMAT, "the second line is not `code` and a hash");
    if (memcmp(word, hash, 64) != 0)
        return err_set(err, ERR_FORMAT, "the verdict is on other code");
    word = line(&at, end, "verdict ", &n);
    bool yes = word && n == 7 && memcmp(word, "approve", 7) == 0;
    if (!yes && !(word && n == 6 && memcmp(word, "reject", 6) == 0))
        return err_set(err, ERR_FORMAT,
                       "the third line is not `verdict approve` or `verdict reject`");
    word = line(&at, end, "reason ", &n);
    if (!word || n == 0 || n >= sizeof ret_verdict->reason || !gate_verdict_printable(word, n))
        return err_set(err, ERR_FORMAT,
                       "the fourth line is not `reason` and 1 to 400 bytes of text");
    if (at != end)
        return err_set(err, ERR_FORMAT, "there are more than four lines");
    *ret_verdict = (struct gate_verdict){.approve = yes};
    memcpy(ret_verdict->reason, word, n);
    return 0;
}
