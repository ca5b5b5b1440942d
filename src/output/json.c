/* A writer only, and by hand: a library would want the ten megabytes of a run's output copied into
 * a tree of its own first, and refuses strings that are not UTF-8, which is just what a guest
 * writes. */
#include "output/json.h"

#include "base/utf8.h"

#include <string.h>

static void note(struct output_json *j, int r)
{
    if (r < 0 && !j->bad)
        j->bad = r;
}

static void quoted(struct output_json *j, const unsigned char *s, size_t len)
{
    note(j, buf_str(j->out, "\""));
    for (size_t i = 0; i < len && !j->bad;) {
        size_t plain = 0;
        while (i + plain < len && s[i + plain] >= 0x20 && s[i + plain] < 0x7f &&
               s[i + plain] != '"' && s[i + plain] != '\\')
            plain++;
        if (plain) {
            note(j, buf_add(j->out, s + i, plain));
            i += plain;
            continue;
        }
        uint32_t cp;
        int n = utf8_decode(s + i, len - i, &cp);
        if (n <= 0) {
            cp = 0xfffd;
            n = 1;
        }
        i += (size_t)n;
        if (cp == '"' || cp == '\\')
            note(j, buf_printf(j->out, "\\%c", (int)cp));
        else if (cp == '\n' || cp == '\t' || cp == '\r')
            note(j, buf_str(j->out, cp == '\n' ? "\\n" : cp == '\t' ? "\\t" : "\\r"));
        else if (cp >= 0x10000)
            note(j, buf_printf(j->out, "\\u%04x\\u%04x", 0xd800 + ((cp - 0x10000) >> 10),
                               0xdc00 + (cp & 0x3ff)));
        else
            note(j, buf_printf(j->out, "\\u%04x", cp));
    }
    note(j, buf_str(j->out, "\""));
}

static void item(struct output_json *j, const char *key)
{
    if (j->comma)
        note(j, buf_str(j->out, ", "));
    j->comma = true;
    if (key) {
        quoted(j, (const unsigned char *)key, strlen(key));
        note(j, buf_str(j->out, ": "));
    }
}

void output_json_open(struct output_json *j, const char *key, char bracket)
{
    item(j, key);
    note(j, buf_add(j->out, &bracket, 1));
    j->comma = false;
}

void output_json_close(struct output_json *j, char bracket)
{
    note(j, buf_add(j->out, &bracket, 1));
    j->comma = true;
}

void output_json_bytes(struct output_json *j, const char *key, const void *s, size_t len)
{
    item(j, key);
    quoted(j, s, len);
}

void output_json_string(struct output_json *j, const char *key, const char *s)
{
    if (s)
        output_json_bytes(j, key, s, strlen(s));
    else
        output_json_null(j, key);
}

void output_json_int(struct output_json *j, const char *key, int64_t n)
{
    item(j, key);
    note(j, buf_printf(j->out, "%lld", (long long)n));
}

void output_json_decimal(struct output_json *j, const char *key, double n)
{
    item(j, key);
    note(j, buf_printf(j->out, "%.3f", n));
}

void output_json_bool(struct output_json *j, const char *key, bool b)
{
    item(j, key);
    note(j, buf_str(j->out, b ? "true" : "false"));
}

void output_json_null(struct output_json *j, const char *key)
{
    item(j, key);
    note(j, buf_str(j->out, "null"));
}
