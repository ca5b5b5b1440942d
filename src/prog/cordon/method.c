/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments are the caller's own word, so they are parsed here: a slip in them is told before a jail is built. */
#include "method.h"

#include "base/limits.h"

#include <jansson.h>
#include <string.h>

static bool is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz_",
                      rest[] = "abcdefghijklmnopqrstuvwxyz_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const size_t len = strspn(name, rest);
    if (!*name || !strchr(first, *name) || len >= 63)
        return false;
    return !name[len] || (strchr("?!", name[len]) && !name[len + 1]);
}

int method_check(const char *name, const char *args, struct err *err)
{
    json_error_t where;
    if (!is_name(name))
        return err_set(err, ERR_USAGE, "--method: '%.60s' is no name of a method", name);
    if (strlen(args) > LIMIT_CALL)
        return err_set(err, ERR_USAGE, "--args: more than %d KiB", (int)(LIMIT_CALL / KIB));
    json_t *value = json_loads(args, JSON_REJECT_DUPLICATES, &where);
    if (!value) /* only an array or an object is taken for JSON here */
        return err_set(err, ERR_USAGE, "--args: neither a JSON array nor an object: %.100s",
                       where.text);
    json_decref(value);
    return 0;
}

int method_check_path(const char *path, struct err *err)
{
    bool good = *path && strlen(path) < 256;
    for (const char *at = path; good && at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        good = *at && *at != '.' && *at != '/';
    return good ? 0
                : err_set(err, ERR_USAGE,
                          "--save: '%.80s' is no path of a file below /workspace (no part of it "
                          "begins with a dot)",
                          path);
}
