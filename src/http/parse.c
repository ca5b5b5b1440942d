/* SPDX-License-Identifier: Apache-2.0 */
/* A head is looked at twice: byte by byte as it comes, so that a head that can never be good is refused at once and not
 * when its time is over; then as a whole. Nothing here is repaired. */
#include "http/http.h"

#include <string.h>

int http_scan(const char *data, size_t len, size_t *scanned)
{
    for (size_t i = *scanned; i < len; i++) {
        const unsigned char c = (unsigned char)data[i];
        const bool after_cr = i && data[i - 1] == '\r';
        if (after_cr != (c == '\n') || c >= 127 || (c < ' ' && !strchr("\t\r\n", c)) || c == 0)
            return -400;
        if (c == '\n' && i >= 3 && data[i - 3] == '\r' && data[i - 2] == '\n')
            return (int)i + 1;
        if (c == '\n' && i == 1) /* an empty line where the request should be */
            return -400;
        if (i + 1 >= LIMIT_HTTP_HEAD)
            return -431;
        *scanned = i + 1;
    }
    return 0;
}

/* ---- the request line ---- */

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int parse_first(char *line, struct http_head *head)
{
    static const char *const methods[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_DELETE] = "DELETE"};
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || target == line || target[1] != '/' || strpbrk(version + 1, " \t") ||
        strchr(line, '\t') || strncmp(version + 1, "HTTP/", 5) != 0)
        return 400;
    *target++ = 0;
    *version++ = 0;
    for (const char *p = line; *p; p++)
        if (!is_name(*p))
            return 400;
    if (strcmp(version, "HTTP/1.1") != 0)
        return 505;
    head->target = target;
    head->method = HTTP_OTHER;
    head->bodiless = strcmp(line, "HEAD") == 0;
    for (int m = 0; m < HTTP_OTHER; m++)
        if (strcmp(line, methods[m]) == 0)
            head->method = (enum http_method)m;
    return 0;
}

/* ---- headers ---- */

const char *http_find(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->count; i++)
        if (strcmp(head->fields[i].name, name) == 0)
            return head->fields[i].value;
    return NULL;
}

/* Those whose value we act on. Twice is an error, also where both say the same: who forwarded it may have read the other. */
static bool once(const char *name)
{
    static const char *const names[] = {"host",           "origin",       "authorization",
                                        "content-length", "content-type", "transfer-encoding",
                                        "connection",     "expect",       "last-event-id",
                                        "accept",         "x-api-key"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "mcp-", 4) == 0;
}

static int parse_field(char *line, struct http_head *head)
{
    char *colon = strchr(line, ':');
    if (!colon || colon == line)
        return 400;
    *colon = 0;
    for (char *p = line; *p; p++) {
        if (!is_name(*p)) /* a space before the colon, a folded line */
            return 400;
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    }
    char *value = colon + 1, *end = value + strlen(value);
    while (*value == ' ' || *value == '\t')
        value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = 0;
    if (once(line) && http_find(head, line))
        return 400;
    if (head->count == LIMIT_HTTP_FIELDS)
        return 431;
    head->fields[head->count++] = (struct http_field){line, value};
    return 0;
}

static bool same_word(const char *a, const char *small)
{
    for (; *a && *small; a++, small++)
        if ((*a >= 'A' && *a <= 'Z' ? *a - 'A' + 'a' : *a) != *small)
            return false;
    return *a == *small;
}

/* Digits alone, and no more of them than a body may be long. */
static int parse_length(const char *value, uint64_t *ret)
{
    const size_t n = strspn(value, "0123456789");
    uint64_t length = 0;
    if (n == 0 || value[n])
        return 400;
    if (n > 12)
        return 413;
    for (const char *p = value; *p; p++)
        length = length * 10 + (uint64_t)(*p - '0');
    *ret = length;
    return 0;
}

/* How the body is framed, and what becomes of the connection. */
static int parse_framing(struct http_head *head)
{
    const char *length = http_find(head, "content-length"),
               *coding = http_find(head, "transfer-encoding"),
               *connection = http_find(head, "connection"), *expect = http_find(head, "expect");
    if (!http_find(head, "host") || (length && coding))
        return 400;
    if (coding && !same_word(coding, "chunked"))
        return 400;
    if (expect && !same_word(expect, "100-continue"))
        return 417;
    head->chunked = coding != NULL;
    head->expects = expect != NULL;
    head->close = connection && !same_word(connection, "keep-alive");
    return length ? parse_length(length, &head->length) : 0;
}

int http_parse(char *data, size_t len, struct http_head *head)
{
    int status = 0;
    bool first = true;
    *head = (struct http_head){.method = HTTP_OTHER};
    for (char *line = data, *stop = data + len - 2; line < stop && !status;) {
        char *end =
            memchr(line, '\r', (size_t)(stop - line)); /* one is there: the head was scanned */
        if (!end)
            return 400;
        *end = 0;
        status = first ? parse_first(line, head) : parse_field(line, head);
        first = false;
        line = end + 2;
    }
    return status ? status : parse_framing(head);
}
