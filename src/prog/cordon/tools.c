/* SPDX-License-Identifier: Apache-2.0 */
/* One table. `echo` is there to try the channel with: it gives back what it was given. */
#include "tools.h"

#include <string.h>

static bool echo(const char *args, size_t len, struct buf *answer)
{
    return buf_add(answer, args, len) == 0;
}

static const struct flow_tool tools[] = {
    {"echo", echo},
};

int tools_find(const struct option_list *names, const struct flow_tool **out, size_t cap,
               struct err *err)
{
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        const struct flow_tool *found = NULL;
        for (size_t k = 0; k < sizeof tools / sizeof *tools; k++)
            if (strcmp(names->items[i], tools[k].name) == 0)
                found = &tools[k];
        if (!found)
            return err_set(err, ERR_USAGE,
                           "--tool: there is no host function '%.40s'; there is: echo",
                           names->items[i]);
        if (count == cap)
            return err_set(err, ERR_USAGE, "--tool is given more than %zu times", cap);
        out[count++] = found;
    }
    out[count] = NULL;
    return 0;
}
