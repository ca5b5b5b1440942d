/* SPDX-License-Identifier: Apache-2.0 */
/* A module that is not there is found before the run, with its line, and not after half of the work is done. Only what certainly
 * fails is said: an import among the program's own statements, not one in a function, a condition or a `try`. A program may
 * make the module first; one that names the module's file, or the list of folders that modules are looked for in, is believed. */
#include "judge.h"
#include "judge_inside.h"

#include <string.h>

static bool (*exists)(const char *module, size_t len, bool files);

void py_judge_look_up(bool (*how)(const char *module, size_t len, bool files))
{
    exists = how;
}

static bool mentions(const struct judge *j, const char *text, size_t len)
{
    return memmem(j->cursor.text, j->cursor.len, text, len) != NULL;
}

/* NAME.py or NAME/ in the source: it may be made, or fetched, by the program. */
static bool may_make(const struct judge *j, struct text_piece module)
{
    static const char *const words[] = {"sys.path", "importlib", "meta_path", "sys.modules"};
    const char *dot = memchr(module.at, '.', module.len);
    const size_t len = dot ? (size_t)(dot - module.at) : module.len;
    char name[260];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (mentions(j, words[i], strlen(words[i])))
            return true;
    if (len + 4 > sizeof name)
        return false;
    memcpy(name, module.at, len);
    memcpy(name + len, ".py", 3);
    if (mentions(j, name, len + 3))
        return true;
    name[len] = '/';
    return mentions(j, name, len + 1);
}

void py_judge_missing(struct judge *j, const struct judge_entry *e, struct text_piece module,
                      PyObject *node)
{
    static const struct policy_rule missing = {
        .name = "missing-import",
        .id = "py.form.missing-import",
        .reason = "neither the workspace nor the library has it",
        .hint = "write the module into the workspace, or use one that is there"};
    if (!exists || !module.len || e->block != j->body ||
        exists(module.at, module.len, !check_ruleset_profile(j->rules)->guards) ||
        may_make(j, module))
        return;
    py_judge_find(j, &missing, CHECK_SAY_MISSING, module, node);
}
