/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a source, under each profile: a verdict, always; a tree or a reason why there is none; places
 * that lie in the source; nothing left behind in the interpreter. The first byte chooses the profile. */
#include "test_start.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct check_ruleset *sets[4];

static void start(void)
{
    struct err err = ERR_INIT;
    base_assert(test_start(&err) == 0);
    for (size_t i = 0; i < 4; i++)
        base_assert(check_ruleset_new(policy_profiles()[i], &sets[i], &err) == 0);
}

static bool is_no_program(const char *rule)
{
    return strcmp(rule, CHECK_RULE_SYNTAX) == 0 || strcmp(rule, CHECK_RULE_SIZE) == 0 ||
           strcmp(rule, CHECK_RULE_ENCODING) == 0 || strcmp(rule, CHECK_RULE_NUL) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!sets[0])
        start();
    if (!size)
        return 0;
    struct check_report report;
    struct err err = ERR_INIT;
    PyObject *tree = NULL;
    struct buf out;
    check_report_init(&report);
    buf_init(&out, 1 << 22);
    base_assert(py_judge(sets[data[0] % 4], data + 1, size - 1, &report, &tree, &err) == 0);
    base_assert(!PyErr_Occurred());
    bool broken = false;
    for (size_t i = 0; i < report.count; i++) {
        const struct check_finding *f = &report.findings[i];
        broken |= is_no_program(f->rule);
        base_assert(f->rule[0] && f->message[0] && f->line <= size && f->column <= size + 1);
    }
    base_assert(broken == (tree == NULL));
    base_assert(check_report_print_json(&report, &out) == 0);
    buf_done(&out);
    Py_XDECREF(tree);
    check_report_done(&report);
    return 0;
}
