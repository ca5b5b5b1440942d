/* SPDX-License-Identifier: Apache-2.0 */
/* Printing is kept apart from judging: the commands decide, this file only says it, to people or to
 * programs. Everything that came from outside is printed through the engine's own quoting.
 *
 * Waits: source_read in expr_read_file; whoever writes the file; LIMIT_WALL_MS; an error that names it */
#include "expr_common.h"

#include "base/limits.h"
#include "result.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int expr_read_file(const char *command, const char *path, size_t max, struct text *ret)
{
    struct err err = ERR_INIT;
    char who[32];
    if (source_read(path, max, LIMIT_WALL_MS, ret, &err) == 0)
        return 0;
    snprintf(who, sizeof who, "cordon %s", command);
    result_complain(who, err.msg);
    return 2;
}

struct cordon_schema *expr_open_schema(const char *command, const char *file, const char *context,
                                       size_t context_len, void **ret_mem)
{
    struct text t = {0};
    struct cordon_error err = {0};
    struct cordon_schema *s = NULL;
    *ret_mem = NULL;
    if (file && expr_read_file(command, file, CORDON_CONTEXT_MAX, &t))
        return NULL;
    const char *json = file ? t.data : cordon_schema_example;
    size_t len = file ? t.len : strlen(json), size;
    if (file || !context)
        context_len = 0;
    size = cordon_schema_size(len + context_len);
    *ret_mem = malloc(size);
    if (!*ret_mem || cordon_schema_read_with(json, len, file ? NULL : context, context_len,
                                             *ret_mem, size, &s, &err)) {
        fprintf(stderr, "cordon %s: %s: %s (line %u, column %u)\n", command,
                err.status == CORDON_CONTEXT ? "the context"
                : file                       ? file
                                             : "the shipped schema",
                *ret_mem ? err.message : "no memory", err.line, err.column);
        free(*ret_mem);
        *ret_mem = NULL;
        s = NULL;
    }
    free(t.data);
    return s;
}

void expr_print_error(FILE *to, const char *name, const struct cordon_error *err,
                      const char *source, size_t len)
{
    char caret[1024];
    fprintf(to, "%s%s%s: %s\n", name ? name : "", name ? ": " : "", cordon_class(err->status),
            err->message);
    if (err->line && cordon_caret(err, source, len, caret, sizeof caret))
        fprintf(to, "  line %u, column %u\n%s", err->line, err->column, caret);
    if (err->hint[0])
        fprintf(to, "  hint: %s\n", err->hint);
}

void expr_json_string(FILE *to, const char *s, size_t len)
{
    struct cordon_value v = {.type = CORDON_STR, .s = s, .len = len};
    expr_json_value(to, &v);
}

static void put(FILE *to, const struct cordon_value *v, bool json)
{
    char small[256], *out = small;
    void *work = malloc(cordon_print_size(v) + 1);
    size_t n = (json ? cordon_json : cordon_repr)(v, work, small, sizeof small);
    if (n >= sizeof small && (out = malloc(n + 1)))
        (json ? cordon_json : cordon_repr)(v, work, out, n + 1);
    if (work && out)
        fwrite(out, 1, n, to);
    if (out != small)
        free(out);
    free(work);
}

void expr_json_value(FILE *to, const struct cordon_value *v)
{
    if (v)
        put(to, v, true);
    else
        fputs("null", to);
}

void expr_print_value(FILE *to, const struct cordon_value *v)
{
    put(to, v, false);
}

const char *expr_type_word(enum cordon_type t)
{
    static const char *const words[] = {"None", "bool", "int", "float", "str"};
    return words[t];
}

void expr_json_error(FILE *to, const struct cordon_error *err)
{
    const char *class = cordon_class(err->status);
    fprintf(to, "{\"type\":\"%s\",\"message\":", class);
    expr_json_string(to, err->message, strlen(err->message));
    if (err->line)
        fprintf(to, ",\"line\":%u,\"column\":%u", err->line, err->column);
    else
        fprintf(to, ",\"line\":null,\"column\":null");
    if (err->hint[0]) {
        fprintf(to, ",\"hint\":");
        expr_json_string(to, err->hint, strlen(err->hint));
    }
    fputs("}", to);
}

void expr_log_refusal(const struct cordon_error *err, const char *source, size_t len)
{
    const char *log = getenv("CORDON_LOG");
    if (!log || !strstr(log, "expr"))
        return;
    fprintf(stderr, "cordon: expr: refused: line %u, column %u: %s: ", err->line, err->column,
            err->message);
    expr_json_string(stderr, source, len < 200 ? len : 200);
    fputs("\n", stderr);
}

bool expr_next_line(const struct text *t, size_t *at, unsigned *line, const char **ret,
                    size_t *ret_len)
{
    while (*at < t->len) {
        const char *s = t->data + *at, *end = memchr(s, '\n', t->len - *at);
        size_t n = end ? (size_t)(end - s) : t->len - *at, blank = 0;
        *at += n + (end != NULL);
        ++*line;
        if (n && s[n - 1] == '\r')
            n--;
        while (blank < n && (s[blank] == ' ' || s[blank] == '\t'))
            blank++;
        if (blank == n || s[blank] == '#')
            continue;
        *ret = s;
        *ret_len = n;
        return true;
    }
    return false;
}
