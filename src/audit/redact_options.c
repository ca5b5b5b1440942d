/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords that a command line carries by their place, not by their form: -pPASSWORD, -u user:password,
 * --password X, pwd=X. The rule, word by word:
 *
 *   --NAME X        where NAME says that X is secret: X goes. Short names (pw, pwd, pass) are whole parts of
 *                   NAME, and X stays where it is a path or a number of at most two digits.
 *   -pX             goes after a program that takes passwords so (mysql, sshpass, 7z, ...), whatever X is. After
 *                   others it stays where X is a path, ports and numbers only (-p8080:80), or lower-case letters,
 *                   dashes and underscores only: then it is an option's name (-print, -pix_fmt).
 *   -p X            X goes after `login` and after sshpass.
 *   -u USER:X       X goes, also as -uUSER:X, --user, --proxy-user; not where both are numbers (a uid and a gid).
 *
 * A list of arguments and a text that a shell would read are the same to it: words in their order. */
#include "audit/inside.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool equals(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static bool starts(const char *s, size_t len, const char *word)
{
    size_t n = strlen(word);
    return len >= n && memcmp(s, word, n) == 0;
}

static bool made_of(const char *s, size_t len, bool (*fits)(unsigned char c))
{
    for (size_t i = 0; i < len; i++)
        if (!fits((unsigned char)s[i]))
            return false;
    return len > 0;
}

static bool is_digit(unsigned char c)
{
    return isdigit(c) != 0;
}

static bool in_port(unsigned char c)
{
    return isdigit(c) || strchr(":.-/,", c);
}

static bool in_option(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '=';
}

static bool in_user(unsigned char c)
{
    return isalnum(c) || strchr("._@\\-", c);
}

bool audit_short_secret_name(const char *name, size_t len)
{
    static const char *const parts[] = {"pw", "pwd", "pass"};
    size_t from = len;
    while (from && name[from - 1] != '-' && name[from - 1] != '_')
        from--;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t n = strlen(parts[i]);
        if (len - from == n && strncasecmp(name + from, parts[i], n) == 0)
            return true;
        if (len - from > n && isupper((unsigned char)name[len - n]) && /* dbPass */
            strncasecmp(name + len - n, parts[i], n) == 0)
            return true;
    }
    return false;
}

bool audit_plain_value(const char *s, size_t len)
{
    if (len && (*s == '"' || *s == '\''))
        s++, len--;
    while (len && (s[len - 1] == '"' || s[len - 1] == '\''))
        len--;
    return len == 0 || strchr("/~.$", *s) || (len <= 2 && made_of(s, len, is_digit));
}

/* The last part of a path. */
static const char *base(const char *s, size_t *len)
{
    const char *slash = memrchr(s, '/', *len);
    *len -= slash ? (size_t)(slash + 1 - s) : 0;
    return slash ? slash + 1 : s;
}

static void see_program(struct audit_words *w, const char *s, size_t len)
{
    static const char *const takers[] = {"mysql",        "mysqldump", "mysqladmin", "mariadb",
                                         "mariadb-dump", "sshpass",   "7z",         "7za",
                                         "7zr",          "rar",       "unrar"};
    s = base(s, &len);
    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++)
        if (equals(s, len, takers[i])) {
            w->takes_password = true;
            w->password_next = equals(s, len, "sshpass");
        }
    if (equals(s, len, "login"))
        w->password_next = true;
}

/* USER:PASSWORD; where the password begins, or 0. */
static size_t after_user(const char *s, size_t len)
{
    const char *colon = memchr(s, ':', len);
    size_t user = colon ? (size_t)(colon - s) : 0, rest = colon ? len - user - 1 : 0;
    if (!user || !rest || !made_of(s, user, in_user) || colon[1] == '/')
        return 0;
    if (made_of(s, user, is_digit) && made_of(colon + 1, rest, is_digit))
        return 0;
    return user + 1;
}

static size_t hide(size_t lead, size_t len, size_t *ret_lead)
{
    *ret_lead = lead;
    return lead && lead < len ? len - lead : 0;
}

static size_t attached(struct audit_words *w, const char *s, size_t len, size_t *ret_lead)
{
    static const char *const users[] = {"--user=", "--proxy-user="};
    for (size_t i = 0; i < sizeof users / sizeof *users; i++)
        if (starts(s, len, users[i])) {
            size_t n = strlen(users[i]), from = after_user(s + n, len - n);
            return from ? hide(n + from, len, ret_lead) : 0;
        }
    if (len > 2 && (starts(s, len, "-u") || starts(s, len, "-U"))) {
        size_t from = after_user(s + 2, len - 2);
        return from ? hide(2 + from, len, ret_lead) : 0;
    }
    if (len > 2 && starts(s, len, "-p") &&
        (w->takes_password || (!made_of(s + 2, len - 2, in_port) &&
                               !made_of(s + 2, len - 2, in_option) && s[2] != '/'))) {
        w->password_next = w->takes_password = false;
        return hide(2, len, ret_lead);
    }
    return 0;
}

size_t audit_option_secret(struct audit_words *w, const char *s, size_t len, size_t *ret_lead)
{
    enum audit_next next = w->next;
    w->next = AUDIT_NEXT_PLAIN;
    *ret_lead = 0;
    if (next == AUDIT_NEXT_SECRET || len == 0)
        return len;
    if (s[0] != '-') {
        see_program(w, s, len);
        if (next == AUDIT_NEXT_USER) {
            size_t from = after_user(s, len);
            return from ? hide(from, len, ret_lead) : 0;
        }
        return next == AUDIT_NEXT_MAYBE && !audit_plain_value(s, len) ? len : 0;
    }
    if (equals(s, len, "-u") || equals(s, len, "-U") || equals(s, len, "--user") ||
        equals(s, len, "--proxy-user"))
        w->next = AUDIT_NEXT_USER;
    else if (equals(s, len, "-p") && w->password_next) {
        w->next = AUDIT_NEXT_SECRET;
        w->password_next = w->takes_password = false; /* sshpass -p X ssh -p 22 */
    } else if (!memchr(s, '=', len) && audit_secret_name(s, len))
        w->next = AUDIT_NEXT_SECRET;
    else if (!memchr(s, '=', len) && audit_short_secret_name(s, len))
        w->next = AUDIT_NEXT_MAYBE;
    else
        return attached(w, s, len, ret_lead);
    return 0;
}
