/* Read through stdio, since it may be a terminal or a pipe that comes in pieces. */
#include "source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A name that is wrong is the caller's; that no descriptor is left is not. */
static int unreadable(const char *path, struct err *err)
{
    err_sys(err, "%.200s", path);
    return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
}

int source_read(const char *path, size_t max, struct text *ret, struct err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "re");
    size_t cap = 65536;
    int r = 0;
    struct text t = {.data = malloc(cap)};
    if (!f)
        r = unreadable(path, err);
    else if (!t.data)
        r = err_set(err, ERR_MEMORY, "no memory");
    for (size_t n; r == 0 && (n = fread(t.data + t.len, 1, cap - t.len, f)) > 0;) {
        t.len += n;
        char *more = t.len == cap ? realloc(t.data, cap *= 2) : t.data;
        if (!more)
            r = err_set(err, ERR_MEMORY, "no memory");
        else
            t.data = more;
        if (t.len > max)
            r = err_set(err, ERR_LIMIT, "%.200s: more than %zu bytes", path, max);
    }
    if (r == 0 && ferror(f))
        r = unreadable(path, err);
    if (f && !is_stdin)
        fclose(f);
    if (r < 0)
        free(t.data);
    else
        *ret = t;
    return r;
}
