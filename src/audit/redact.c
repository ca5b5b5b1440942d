/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments are redacted, never the fact. Three ways to know a secret: the name that it goes by, the
 * form that its issuer gave it, and the caller's own list (a hook, so that the cleaner of the output and
 * the audit agree). One pass over the text; what looks like a secret and is none costs a reader
 * something, the other mistake costs more.
 *
 * Names are compared without case, dashes and underscores: API_KEY, api-key and apiKey are one. A name may be a member of
 * JSON, and that JSON a text within other JSON: its quotation marks stand behind backslashes there. */
#include "audit/inside.h"

#include <string.h>

#define MARK "[redacted]"

static const char *const secret_names[] = {
    "password",  "passwd",     "passphrase",    "secret", "token",      "apikey", "privatekey",
    "accesskey", "signingkey", "authorization", "cookie", "credential", "bearer",
};

/* Forms that issuers give their keys: the beginning, and how many characters of a key must follow. */
static const struct form {
    const char *start;
    size_t least;
} forms[] = {
    {"sk-", 16},  {"sk_live_", 8}, {"rk_live_", 8},     {"ghp_", 16},   {"gho_", 16}, {"ghu_", 16},
    {"ghs_", 16}, {"ghr_", 16},    {"github_pat_", 16}, {"glpat-", 12}, {"xoxb-", 8}, {"xoxp-", 8},
    {"xoxa-", 8}, {"xoxs-", 8},    {"AKIA", 16},        {"ASIA", 16},   {"AIza", 30}, {"hf_", 20},
    {"npm_", 20}, {"eyJ", 20},     {"ya29.", 16},
};

static bool is_key_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == '+' || c == '/' || c == '=' || c == '~';
}

static bool is_name_char(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
}

bool audit_secret_name(const char *name, size_t len)
{
    char flat[64];
    size_t n = 0;
    for (size_t i = 0; i < len && n < sizeof flat - 1; i++) {
        char c = name[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c + 32);
        if (c != '-' && c != '_')
            flat[n++] = c;
    }
    flat[n] = 0;
    for (size_t i = 0; i < sizeof secret_names / sizeof *secret_names; i++)
        if (strstr(flat, secret_names[i]) && !strstr(flat, "tokens")) /* max_tokens is a count */
            return true;
    return false;
}

static size_t run_of_key(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && is_key_char((unsigned char)s[n]))
        n++;
    return n;
}

/* The length of a key of a known form at S; 0: none. */
static size_t known_form(const char *s, size_t len)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t n = strlen(forms[i].start);
        if (len <= n || memcmp(s, forms[i].start, n) != 0)
            continue;
        size_t more = run_of_key(s + n, len - n);
        if (more >= forms[i].least)
            return n + more;
    }
    return 0;
}

static bool starts(const char *s, size_t len, const char *word)
{
    size_t n = strlen(word);
    return len >= n && memcmp(s, word, n) == 0;
}

/* -----BEGIN ... PRIVATE KEY----- up to the end of its block, or of the text. */
static size_t private_key(const char *s, size_t len)
{
    if (!starts(s, len, "-----BEGIN "))
        return 0;
    size_t first = len < 80 ? len : 80;
    if (!memmem(s, first, "PRIVATE KEY", 11))
        return 0;
    const char *end = memmem(s + 11, len - 11, "-----END ", 9);
    const char *stop = end ? memmem(end + 9, len - (size_t)(end + 9 - s), "-----", 5) : NULL;
    return stop ? (size_t)(stop + 5 - s) : len;
}

static size_t slashes(const char *s, size_t len)
{
    size_t n = 0;
    while (n < len && s[n] == '\\')
        n++;
    return n;
}

/* The backslashes and the quotation mark at S; 0: there is none. */
static size_t mark_length(const char *s, size_t len)
{
    const size_t n = slashes(s, len);
    return n < len && (s[n] == '"' || s[n] == '\'') ? n + 1 : 0;
}

/* A text in quotation marks at S, with them; 0: none. Of a text within texts of JSON each mark has 1, 3, 7... backslashes: DEPTH.
 * Twice as many and one more stand before a mark that belongs to the value, fewer before one that ends what is around it. */
static size_t quoted_length(const char *s, size_t len)
{
    const size_t first = mark_length(s, len), depth = first ? first - 1 : 0;
    size_t run = 0;
    for (size_t i = first; first && i < len; i++) {
        const size_t before = run % (2 * depth + 2);
        run = s[i] == '\\' ? run + 1 : 0;
        if (s[i] == s[depth] && before <= depth)
            return before == depth ? i + 1 : i;
    }
    return first ? len : 0;
}

/* A list or an object at S, with all that it holds. */
static size_t nested_length(const char *s, size_t len)
{
    size_t open = 0, i = 0;
    while (i < len) {
        const size_t quoted = quoted_length(s + i, len - i);
        const size_t plain = slashes(s + i, len - i);
        open += !quoted && (s[i] == '[' || s[i] == '{');
        open -= !quoted && (s[i] == ']' || s[i] == '}');
        i += quoted ? quoted : plain ? plain : 1;
        if (!open)
            return i;
    }
    return len;
}

/* After a name, its sign and quotes: how many bytes belong to the value. */
static size_t value_length(const char *s, size_t len)
{
    size_t n = quoted_length(s, len);
    if (n)
        return n;
    if (len && (*s == '[' || *s == '{'))
        return nested_length(s, len);
    while (n < len && s[n] != ' ' && s[n] != '\t' && s[n] != '\n' && s[n] != '&' && s[n] != ',' &&
           s[n] != ';' && s[n] != '"' && s[n] != '\'' && s[n] != '}' && s[n] != ')')
        n++;
    return n;
}

static bool separates(unsigned char c)
{
    return c <= ' ' || c == '"' || c == '\'' || c == ';' || c == '|' || c == '&' || c == '(' ||
           c == ')' || c == '`';
}

/* The word of a command line that begins at FROM: up to what separates words, quotes taken as one. */
static size_t command_word(const struct audit_words *w, const char *s, size_t from, size_t len)
{
    size_t n = 0, left = len - from;
    if (w->whole && from == 0 && (s[0] == '-' || w->next != AUDIT_NEXT_PLAIN))
        return len;
    while (n < left && !separates((unsigned char)s[from + n]))
        n++;
    if (from && (s[from - 1] == '"' || s[from - 1] == '\'') && w->next != AUDIT_NEXT_PLAIN) {
        const char *end = memchr(s + from, s[from - 1], left);
        return end ? (size_t)(end - s) - from : left;
    }
    if (n == 2 && n < left && s[from] == '-' && (s[from + 2] == '"' || s[from + 2] == '\''))
        n += value_length(s + from + 2, left - 2);
    return n;
}

/* 'name' is 5: our own sentence about an argument that is beyond a bound (tools/schema.c). */
static bool is_number_said(const char *s, size_t len)
{
    return starts(s, len, " is ") && len > 4 && (s[4] == '-' || (s[4] >= '0' && s[4] <= '9'));
}

/* name=value, name: value, "name": "value" where the name says that the value is secret. S stands at the sign;
 * WORD is what stood before it. Returns how many bytes after S are the value, with *ret_lead before them. */
static size_t named_value(const char *word, size_t word_len, const char *s, size_t len,
                          size_t *ret_lead)
{
    size_t lead = 0;
    bool sure = word_len && audit_secret_name(word, word_len);
    if (!sure && (word_len == 0 || !audit_short_secret_name(word, word_len)))
        return 0;
    lead = mark_length(s, len);
    if (lead && is_number_said(s + lead, len - lead)) {
        *ret_lead = lead + 4;
        return value_length(s + lead + 4, len - lead - 4);
    }
    if (!sure && !lead && *s != '=') /* "pass: 3" is no assignment */
        return 0;
    while (lead < len && s[lead] == ' ')
        lead++;
    if (lead >= len || (s[lead] != '=' && s[lead] != ':'))
        return 0;
    lead++;
    while (lead < len && s[lead] == ' ')
        lead++;
    /* Authorization: Bearer abc has a word between */
    if (starts(s + lead, len - lead, "Bearer ") || starts(s + lead, len - lead, "bearer "))
        lead += 7;
    else if (starts(s + lead, len - lead, "Basic ") || starts(s + lead, len - lead, "basic "))
        lead += 6;
    *ret_lead = lead;
    size_t n = value_length(s + lead, len - lead);
    return !sure && audit_plain_value(s + lead, n) ? 0 : n;
}

/* ://user:password@ : S stands behind the slashes. Returns the password's length and where it begins. */
static size_t url_password(const char *s, size_t len, size_t *ret_lead)
{
    size_t colon = 0;
    for (size_t i = 0; i < len && i < 512; i++) {
        if (s[i] == '@')
            break;
        if (s[i] == '/' || s[i] == ' ' || s[i] == '\n' || s[i] == '"' || i + 1 == len)
            return 0;
        if (s[i] == ':' && !colon)
            colon = i + 1;
    }
    if (!colon)
        return 0;
    const char *at = memchr(s + colon, '@', len - colon);
    if (!at)
        return 0;
    *ret_lead = colon;
    return (size_t)(at - s) - colon;
}

static int scan(const char *s, size_t len, struct audit_words *words, struct buf *out)
{
    size_t plain = 0,
           word = 0, /* not written yet from `plain` on; the present word begins at `word` */
        quoted = 0;  /* and behind the last quotation mark: a member's name may have spaces */
    int r = 0;
    for (size_t i = 0; i < len && r == 0;) {
        size_t lead = 0, hide = 0;
        bool inside_word = i > word;
        if (!separates((unsigned char)s[i]) && (i == 0 || separates((unsigned char)s[i - 1])))
            hide = audit_option_secret(words, s + i, command_word(words, s, i, len), &lead);
        if (!hide && !is_name_char((unsigned char)s[i])) {
            hide = named_value(s + word, i - word, s + i, len - i, &lead);
            if (!hide && (i == 0 || s[i - 1] != '\\') && mark_length(s + i, len - i))
                hide = named_value(s + quoted, i - quoted, s + i, len - i, &lead);
            if (!hide && i >= 2 && starts(s + i - 2, len - i + 2, "://") && i + 1 < len) {
                lead = 1;
                hide = url_password(s + i + 1, len - i - 1, &lead);
                lead = hide ? lead + 1 : 0;
            }
        } else if (!hide && !inside_word) {
            hide = known_form(s + i, len - i);
            if (!hide)
                hide = private_key(s + i, len - i);
            if (!hide && (starts(s + i, len - i, "Bearer ") || starts(s + i, len - i, "bearer "))) {
                lead = 7;
                hide = run_of_key(s + i + 7, len - i - 7);
                hide = hide >= 8 ? hide : 0;
            }
        }
        if (hide) {
            r = buf_add(out, s + plain, i + lead - plain);
            if (r == 0)
                r = buf_str(out, MARK);
            i += lead + hide;
            plain = word = quoted = i;
            continue;
        }
        if (s[i] == '\\' && i + 1 < len && strchr("nrt", s[i + 1])) /* a line of a text of JSON */
            i++, word = i + 1;
        if (!is_name_char((unsigned char)s[i]))
            word = i + 1;
        if (s[i] == '"' || s[i] == '\'')
            quoted = i + 1;
        i++;
    }
    return r < 0 ? r : buf_add(out, s + plain, len - plain);
}

int audit_redact(const struct audit_config *c, const char *name, const char *text, size_t len,
                 struct audit_words *words, struct buf *out)
{
    struct audit_words alone = {0};
    words = words ? words : &alone;
    if (name && audit_secret_name(name, strlen(name)))
        return buf_str(out, MARK);
    if (!c || !c->redact)
        return scan(text, len, words, out);
    struct buf first;
    buf_init(&first, out->max);
    int r = c->redact(c->redact_ctx, text, len, &first);
    if (r == 0)
        r = scan(first.data ? first.data : "", first.len, words, out);
    buf_done(&first);
    return r;
}
