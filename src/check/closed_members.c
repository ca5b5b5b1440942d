/* SPDX-License-Identifier: Apache-2.0 */
/* A short list, walked from its beginning: the judge asks once for each name that is taken from a module, and only where
 * the module has a row. */
#include "check/closed_members.h"

#include <string.h>

static const struct {
    const char *module, *member, *hint;
} table[] = {
    {"contextlib", "chdir", "there are no folders to change to"},
    {"copy", "dispatch_table", "define __copy__"},
    {"datetime", "datetime_CAPI", "use the classes"},
    {"enum", "global_enum", "name the members through their class"}, /* writes into any module */
    {"enum", "EnumDict", "derive from Enum"},
    {"io", "FileIO", "keep the data in memory"},
    {"io", "open", "keep the data in memory"},
    {"io", "open_code", "keep the data in memory"},
    {"time", "pthread_getcpuclockid", "use time.thread_time"}, /* takes any number for an address */
    {"types", "CodeType", "write the function itself"},
    {"types", "FunctionType", "write the function itself"},
    {"types", "LambdaType", "write the function itself"},
    {"types", "CellType", "use a list of one element"},
    {"types", "FrameType", "print the exception"},
    {"types", "TracebackType", "print the exception"},
    {"types", "new_class", "write a class statement"},
    {"unittest", "IsolatedAsyncioTestCase", "use TestCase"},
    {"unittest", "TestLoader",
     "call unittest.main()"}, /* finds tests by import path, and calls them */
    {"unittest", "TestProgram", "call unittest.main()"},
    {"unittest", "defaultTestLoader", "call unittest.main()"},
    {"unittest", "findTestCases", "call unittest.main()"},
    {"unittest", "loader", "call unittest.main()"},
    {"unittest", "makeSuite", "call unittest.main()"},
    {"unittest", "mock", "pass a stand-in as an argument"}, /* patches by import path */
    {"unittest", "runner", "call unittest.main()"},
    {"unittest", "signals", "call unittest.main()"},
    {"types", "ModuleType", "use a class"},
    {"types", "coroutine", "use async def"},
};

static bool same(const char *text, const char *s, size_t len)
{
    return strncmp(text, s, len) == 0 && !text[len];
}

const char *check_closed_member(const char *module, size_t module_len, const char *member,
                                size_t len)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (same(table[i].module, module, module_len) && same(table[i].member, member, len))
            return table[i].hint;
    return NULL;
}

bool check_has_closed_members(const char *module, size_t len)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (same(table[i].module, module, len))
            return true;
    return false;
}
