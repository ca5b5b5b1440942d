/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables of an environment hold a secret: by their names, since a value does not tell. The words
 * are whole parts of a name (MONKEY is no KEY); a value that is a path or a number of few digits is
 * no secret, and redacting it would spoil the text. */
#include "output/clean.h"

#include <string.h>
#include <strings.h>

static const char *const words[] = {"APIKEY", "AUTH",       "CREDENTIAL", "CREDENTIALS", "KEY",
                                    "PASS",   "PASSPHRASE", "PASSWD",     "PASSWORD",    "PAT",
                                    "PWD",    "SECRET",     "SECRETS",    "TOKEN",       "TOKENS"};

static bool is_word(const char *s, size_t len)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && strncasecmp(words[i], s, len) == 0)
            return true;
    return false;
}

static bool contains(const char *s, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if (strncasecmp(s + i, word, n) == 0)
            return true;
    return false;
}

bool output_secret_name(const char *name, size_t len)
{
    if ((len == 3 && memcmp(name, "PWD", 3) == 0) || (len == 6 && memcmp(name, "OLDPWD", 6) == 0))
        return false; /* the shell's folders */
    if (contains(name, len, "SECRET") || contains(name, len, "PASSWORD") ||
        contains(name, len, "TOKEN") || contains(name, len, "PASSWD"))
        return true;
    for (size_t at = 0, end; at < len; at = end + 1) {
        for (end = at; end < len && name[end] != '_' && name[end] != '-' && name[end] != '.';)
            end++;
        if (is_word(name + at, end - at))
            return true;
    }
    return false;
}

static bool plain_value(const char *s, size_t len)
{
    size_t digits = strspn(s, "0123456789");
    return len < OUTPUT_SECRET_MIN || s[0] == '/' || (digits == len && len < 12);
}

size_t output_env_secrets(const char *const *env, size_t nenv, struct output_known *out, size_t max)
{
    size_t count = 0;
    for (size_t i = 0; i < nenv && env && env[i] && count < max; i++) {
        const char *equals = strchr(env[i], '=');
        if (!equals || !output_secret_name(env[i], (size_t)(equals - env[i])))
            continue;
        size_t len = strlen(equals + 1);
        if (!plain_value(equals + 1, len))
            out[count++] = (struct output_known){equals + 1, len, "[REDACTED:environment]", true};
    }
    return count;
}
