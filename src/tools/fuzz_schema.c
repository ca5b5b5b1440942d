/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of a guest's call against a schema: before a NUL the schema, which an operator may have written wrong, behind it the
 * arguments. Without a NUL all of it is arguments, for each schema of the table and for a tool that is to be made. */
#include "tools/inside.h"

#include <stdlib.h>
#include <string.h>

/* What fits, fits again by its names, and is on record so; what does not has a reason. */
static void check(const char *schema, const char *given, size_t len)
{
    char why[300] = "";
    json_t *args = NULL, *again = NULL, *kept = tools_named(schema, given, len);
    base_assert(!kept || json_is_object(kept));
    if (tools_check(schema, given, len, &args, why, sizeof why) < 0) {
        base_assert(why[0] && memchr(why, 0, sizeof why) && !args);
        json_decref(kept);
        return;
    }
    base_assert(json_is_object(args) && kept && (!schema || json_equal(args, kept)));
    json_decref(kept);
    json_t *named = json_pack("{s:O}", "kwargs", args);
    char *text = json_dumps(named, JSON_COMPACT);
    base_assert(text &&
                (!schema || tools_check(schema, text, strlen(text), &again, why, sizeof why) == 0));
    base_assert(!schema || json_equal(args, again));
    free(text);
    json_decref(named);
    json_decref(again);
    json_decref(args);
}

/* Arguments of CreateTool: what is made of them is one line of a comment and the source, or they have a reason. */
static void make(const char *given, size_t len)
{
    struct tools_call c = {.name = "CreateTool", .files = -1};
    struct tools_program made;
    if (tools_check(tools_find(c.name)->schema, given, len, &c.args, c.refusal, sizeof c.refusal) <
        0)
        return;
    if (tools_program(&c, &made) == TOOLS_OK)
        base_assert(made.len > 2 && memcmp(made.source, "# {", 3) == 0 &&
                    memchr(made.source, '\n', made.len));
    else
        base_assert(c.refusal[0]);
    buf_done(&c.text);
    json_decref(c.args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size ? memchr(text, 0, size) : NULL;
    if (end) {
        check(text, end + 1, size - (size_t)(end - text) - 1);
        return 0;
    }
    for (size_t i = 0; i < tools_count; i++)
        check(tools_table[i].schema, text, size);
    make(text, size);
    return 0;
}
