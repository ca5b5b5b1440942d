/* SPDX-License-Identifier: Apache-2.0 */
/* Who may ask, by the head alone. A page of a browser reaches loopback as well as anybody, by a name that resolves to it: so the
 * host and the origin must be names that the operator knows, byte for byte. */
#include "http/http.h"

#include <string.h>

/* ---- names ---- */

/* One of ours: loopback's, or one of NAMES, which have commas between them. */
static bool known_name(const char *names, const char *name, size_t len)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        if (strlen(loopback[i]) == len && memcmp(loopback[i], name, len) == 0)
            return true;
    for (const char *p = names; *p;) {
        const size_t n = strcspn(p, ",");
        if (n == len && memcmp(p, name, n) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}

/* NAME or NAME:PORT. */
static bool known_host(const char *names, const char *host)
{
    const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;
    const size_t len = bracket ? (size_t)(bracket - host) + 1 : strcspn(host, ":");
    const char *port = host + len;
    if (*port &&
        (*port != ':' || !port[1] || strlen(port) > 6 || port[1 + strspn(port + 1, "0123456789")]))
        return false;
    return known_name(names, host, len);
}

static bool known_origin(const char *names, const char *origin)
{
    const size_t scheme = strncmp(origin, "http://", 7) == 0    ? 7
                          : strncmp(origin, "https://", 8) == 0 ? 8
                                                                : 0;
    return scheme && known_host(names, origin + scheme);
}

bool http_is_ours(const struct http_head *q, const char *names)
{
    const char *origin = http_find(q, "origin");
    return known_host(names, http_find(q, "host")) && (!origin || known_origin(names, origin));
}

/* ---- the token ---- */

/* Takes as long whether the first character differs or the last. */
bool http_same_token(const char *got, const char *token)
{
    const size_t n = strlen(token), m = strlen(got);
    volatile unsigned char differ = n != m;
    for (size_t i = 0; i < n; i++)
        differ |= (unsigned char)(token[i] ^ got[i < m ? i : 0]);
    return !differ;
}

const char *http_bearer(const struct http_head *q)
{
    const char *value = http_find(q, "authorization");
    if (!value || strlen(value) < 8 || (value[0] | 32) != 'b' ||
        strncmp(value + 1, "earer ", 6) != 0)
        return NULL;
    value += 7;
    while (*value == ' ')
        value++;
    return value;
}

/* ---- what it asks for ---- */

bool http_is_path(const struct http_head *q, const char *path)
{
    const size_t n = strcspn(q->target, "?");
    return n == strlen(path) && memcmp(q->target, path, n) == 0;
}

/* TYPE is one of ours; ranges of types count, weights do not: nobody asks for what it weighs with 0. */
bool http_accepts(const struct http_head *q, const char *type)
{
    const char *p = http_find(q, "accept");
    const size_t family = strcspn(type, "/") + 1;
    if (!p)
        return true;
    while (*p) {
        p += strspn(p, " \t,");
        const size_t n = strcspn(p, " \t,;");
        if ((n == 3 && memcmp(p, "*/*", 3) == 0) ||
            (n == strlen(type) && memcmp(p, type, n) == 0) ||
            (n == family + 1 && memcmp(p, type, family) == 0 && p[family] == '*'))
            return true;
        p += n;
        p += strcspn(p, ",");
    }
    return false;
}

bool http_is_json(const struct http_head *q)
{
    static const char want[] = "application/json";
    const char *type = http_find(q, "content-type");
    const size_t n = type ? strcspn(type, "; \t") : 0;
    if (n != sizeof want - 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if ((type[i] | 32) != (want[i] | 32))
            return false;
    return true;
}

/* ---- what a status is called ---- */

const char *http_phrase(int status)
{
    static const struct {
        int status;
        const char *text;
    } rows[] = {{200, "OK"},
                {202, "Accepted"},
                {400, "Bad Request"},
                {401, "Unauthorized"},
                {402, "Payment Required"},
                {403, "Forbidden"},
                {404, "Not Found"},
                {405, "Method Not Allowed"},
                {406, "Not Acceptable"},
                {408, "Request Timeout"},
                {409, "Conflict"},
                {413, "Content Too Large"},
                {415, "Unsupported Media Type"},
                {417, "Expectation Failed"},
                {429, "Too Many Requests"},
                {431, "Request Header Fields Too Large"},
                {500, "Internal Server Error"},
                {502, "Bad Gateway"},
                {503, "Service Unavailable"},
                {504, "Gateway Timeout"},
                {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status == status)
            return rows[i].text;
    return "Error";
}
