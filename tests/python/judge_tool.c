/* SPDX-License-Identifier: Apache-2.0 */
/* The judge without a jail, for tests: nothing that it is given is run. Reads from stdin, again and again, a
 * line `PROFILE LENGTH` and that many bytes; writes the report of each as a line of JSON. One process judges
 * many sources, so it also shows that none of them leaves anything behind. */
#include "worker/python/test_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int judge(const char *profile, const char *source, size_t len, struct buf *out,
                 struct err *err)
{
    struct check_ruleset *rules = NULL;
    struct check_report report;
    PyObject *tree = NULL;
    const struct policy_profile *p = policy_profile_find(profile);
    if (!p)
        return err_set(err, ERR_USAGE, "no profile %s", profile);
    int r = check_ruleset_new(p, &rules, err);
    check_report_init(&report);
    if (r == 0)
        r = py_judge(rules, source, len, &report, &tree, err);
    if (r == 0)
        r = check_report_print_json(&report, out);
    Py_XDECREF(tree);
    check_report_done(&report);
    check_ruleset_free(rules);
    return r;
}

int main(void)
{
    struct err err = ERR_INIT;
    if (test_start(&err) < 0) {
        fprintf(stderr, "judge_tool: %s\n", err.msg);
        return 1;
    }
    char profile[32];
    size_t len;
    struct buf out;
    buf_init(&out, 16 << 20);
    while (scanf("%31s %zu", profile, &len) == 2 && getchar() == '\n') {
        char *source = malloc(len ? len : 1);
        if (!source || fread(source, 1, len, stdin) != len)
            return 1;
        buf_reset(&out);
        if (judge(profile, source, len, &out, &err) < 0) {
            fprintf(stderr, "judge_tool: %s\n", err.msg);
            return 1;
        }
        free(source);
        puts(out.data);
        fflush(stdout);
    }
    buf_done(&out);
    return Py_FinalizeEx() < 0;
}
