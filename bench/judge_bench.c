/* SPDX-License-Identifier: Apache-2.0 */
/* What the judge costs beside CPython's own parser and compiler, on one program of 3 KB and one of 50 KB.
 * Parse, judge and compile take turns, and time is the processor's, not the clock's, so that a busy machine
 * slows all three alike; the figure that counts is the ratio within a round. The judge switches the garbage
 * collector off while it parses, so it is held against a parse that does the same; Python's own is printed
 * beside it. The goal: everything that the judge does beyond the parse takes at most a tenth of it. */
#include "worker/python/judge.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 201

static const char *const piece[] = {
    "class Account{n}:\n"
    "    \"\"\"An account with a history of what was paid in and out.\"\"\"\n\n"
    "    def __init__(self, owner, balance=0, limit=1000):\n"
    "        self.owner = owner\n"
    "        self.balance = balance\n"
    "        self.limit = limit\n"
    "        self.history = []\n\n"
    "    def deposit(self, amount):\n"
    "        if amount <= 0:\n"
    "            raise ValueError(f'not a deposit: {amount!r} for {self.owner}')\n"
    "        self.balance += amount\n"
    "        self.history.append(('deposit', amount, self.balance))\n"
    "        return self.balance\n\n",
    "def group_{n}(rows, key):\n"
    "    groups = collections.defaultdict(list)\n"
    "    for row in rows:\n"
    "        groups[row[key]].append({k: v for k, v in row.items() if k != key})\n"
    "    return sorted(groups.items(), key=lambda item: (len(item[1]), item[0]))\n\n",
    "def mean_{n}(values):\n"
    "    total, count = 0.0, 0\n"
    "    for value in values:\n"
    "        try:\n"
    "            total += float(value)\n"
    "        except (TypeError, ValueError) as e:\n"
    "            print('skipped {}: {}'.format(value, e))\n"
    "            continue\n"
    "        count += 1\n"
    "    return math.sqrt(total / count) if count else None\n\n",
    "assert group_{n}([{'a': 1, 'b': 2}, {'a': 1, 'b': 3}], 'a') == [(1, [{'b': 2}, {'b': 3}])]\n"
    "assert mean_{n}(['4', 4, 'x']) == 2.0\n"
    "print(json.dumps({'n': {n}, 'balance': Account{n}('ann').deposit(10 * {n} + 1)}))\n\n",
};

/* Pieces with {n} replaced, until there are SIZE bytes; the rest is a comment. */
static char *program(size_t size)
{
    char *text = calloc(1, size + 1), number[16];
    size_t used = (size_t)snprintf(text, size, "import collections\nimport json\nimport math\n\n");
    for (int n = 0;; n++) {
        size_t before = used;
        snprintf(number, sizeof number, "%d", n);
        for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
            for (const char *s = piece[i]; *s;) {
                bool here = strncmp(s, "{n}", 3) == 0;
                const char *from = here ? number : s;
                size_t len = here ? strlen(number) : 1;
                if (used + len > size) { /* this round does not fit */
                    memset(text + before, '#', size - before);
                    return text;
                }
                memcpy(text + used, from, len);
                used += len;
                s += here ? 3 : 1;
            }
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

static int order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static double median_us(uint64_t *t)
{
    qsort(t, ROUNDS, sizeof *t, order);
    const size_t middle = ROUNDS / 2;
    return (double)t[middle] / 1e3;
}

static PyObject *parse(const char *text, PyObject *name)
{
    PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST | PyCF_IGNORE_COOKIE,
                             .cf_feature_version = PY_MINOR_VERSION};
    return Py_CompileStringObject(text, name, Py_file_input, &flags, -1);
}

/* Returns the judge's share beyond the parse. */
static double measure(const struct check_ruleset *rules, size_t size)
{
    static uint64_t python[ROUNDS], parsed[ROUNDS], judged[ROUNDS], compiled[ROUNDS];
    static uint64_t share[ROUNDS]; /* in millionths; a judge faster than the parse counts as none */
    char *text = program(size);
    PyObject *name = PyUnicode_FromString("<bench>");
    PyObject *builtins = PyImport_ImportModule("builtins");
    struct err err = ERR_INIT;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t start = now_ns();
        PyObject *usual = parse(text, name);
        python[i] = now_ns() - start;
        Py_XDECREF(usual);
        int collects = PyGC_Disable();
        uint64_t t0 = now_ns();
        PyObject *plain = parse(text, name);
        uint64_t t1 = now_ns();
        if (collects)
            PyGC_Enable();
        if (!plain) {
            PyErr_Print();
            exit(1);
        }
        Py_DECREF(plain);
        struct check_report report;
        PyObject *tree = NULL;
        check_report_init(&report);
        uint64_t t2 = now_ns();
        int r = py_judge(rules, text, size, &report, &tree, &err);
        uint64_t t3 = now_ns();
        if (r < 0 || !check_report_safe(&report)) {
            printf("the program of the bench is refused: %s\n",
                   r < 0 ? err.msg : report.findings[0].message);
            exit(1);
        }
        check_report_done(&report);
        uint64_t t4 = now_ns();
        PyObject *code = PyObject_CallMethod(builtins, "compile", "OOs", tree, name, "exec");
        uint64_t t5 = now_ns();
        Py_XDECREF(code);
        Py_DECREF(tree);
        parsed[i] = t1 - t0;
        judged[i] = t3 - t2;
        compiled[i] = t5 - t4;
        share[i] = judged[i] > parsed[i] ? (judged[i] - parsed[i]) * 1000000 / parsed[i] : 0;
    }
    double p = median_us(parsed), j = median_us(judged), c = median_us(compiled);
    double beyond = median_us(share) / 1e3;
    printf("%6zu bytes  ast.parse %8.1f us  parse %8.1f us  judge %8.1f us  compile %8.1f us  "
           "beyond the parse %4.1f %%\n",
           size, median_us(python), p, j, c, beyond * 100);
    Py_DECREF(name);
    Py_DECREF(builtins);
    free(text);
    return beyond;
}

int main(void)
{
    struct err err = ERR_INIT;
    struct check_ruleset *rules = NULL;
    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    PyStatus status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status) || py_judge_init(&err) < 0 ||
        check_ruleset_new(policy_profile_find("strict"), &rules, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    printf("judge of Python, profile strict, medians of %d rounds\n", ROUNDS);
    (void)measure(rules, 3000);
    double share = measure(rules, 50000);

    static uint64_t decoded[ROUNDS];
    struct buf wire;
    buf_init(&wire, CHECK_RULESET_MAX);
    int r = check_ruleset_encode(policy_profile_find("strict"), &wire, &err);
    for (int i = 0; r == 0 && i < ROUNDS; i++) {
        struct check_ruleset *set = NULL;
        uint64_t t0 = now_ns();
        r = check_ruleset_decode(wire.data, wire.len, &set, &err);
        decoded[i] = now_ns() - t0;
        check_ruleset_free(set);
    }
    printf("rule set of %zu bytes decoded in %.1f us\n", wire.len, median_us(decoded));
    bool met = share <= 0.10;
    printf("%s: walk of a 50 KB program beyond CPython's own parse, %.1f %% (goal 10 %%)\n",
           met ? "met" : "MISSED", share * 100);
    buf_done(&wire);
    check_ruleset_free(rules);
    const char *strict = getenv("BENCH_STRICT");
    return r < 0 || (!met && strict && strcmp(strict, "1") == 0);
}
