/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of escalation, row by row; and that every status of a result has a category. */
#include "base/tap.h"
#include "gate/escalate.h"

static void test_rules(void)
{
    const struct {
        const char *category, *tier;
        uint64_t attempt;
        bool optional;
        const char *step, *next;
    } rows[] = {
        {"CODE", "worker", 1, false, "retry", "worker"},
        {"CODE", "worker", 2, false, "retry", "worker"},
        {"CODE", "worker", 3, false, "escalate", "coder"},
        {"CODE", "coder", 3, false, "escalate", "architect"},
        {"CODE", "architect", 2, false, "retry", "architect"},
        {"CODE", "architect", 3, false, "stop", "architect"},
        {"CODE", "ingest", 3, false, "escalate", "architect"},
        {"CODE", "worker", 1, true, "retry", "worker"},
        {"LOGIC", "worker", 2, false, "retry", "worker"},
        {"LOGIC", "worker", 3, false, "escalate", "coder"},
        {"FORMAT", "worker", 2, false, "retry", "worker"},
        {"FORMAT", "worker", 3, false, "stop", "worker"},
        {"FORMAT", "worker", 99, false, "stop", "worker"},
        {"SCHEMA", "coder", 1, false, "retry", "coder"},
        {"SCHEMA", "coder", 3, true, "stop", "coder"},
        {"TIMEOUT", "worker", 1, true, "skip", "worker"},
        {"TIMEOUT", "architect", 9, true, "skip", "architect"},
        {"TIMEOUT", "worker", 1, false, "retry", "worker"},
        {"TIMEOUT", "worker", 3, false, "escalate", "coder"},
        {"TIMEOUT", "architect", 3, false, "stop", "architect"},
        {"EARLY_ABORT", "worker", 1, false, "escalate", "coder"},
        {"EARLY_ABORT", "coder", 1, true, "escalate", "architect"},
        {"EARLY_ABORT", "architect", 1, false, "stop", "architect"},
        {"HOST", "worker", 2, false, "retry", "worker"},
        {"HOST", "worker", 3, false, "stop", "worker"},
        {"REFUSAL", "worker", 1, false, "stop", "worker"},
        {"REFUSAL", "coder", 3, true, "stop", "coder"},
        {"early_abort", "ingest", 1, false, "escalate", "architect"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gate_failure_report f = {
            .retries = GATE_RETRIES, .attempt = rows[i].attempt, .optional = rows[i].optional};
        int category = gate_error_category_find(rows[i].category),
            tier = gate_tier_find(rows[i].tier);
        struct gate_advice a = {0};
        if (category >= 0 && tier >= 0) {
            f.category = (enum gate_error_category)category;
            f.tier = (enum gate_tier)tier;
            gate_escalate(&f, &a);
        }
        tap_ok(category >= 0 && tier >= 0 && strcmp(gate_step_name(a.step), rows[i].step) == 0 &&
                   strcmp(gate_tier_name(a.next), rows[i].next) == 0 && a.reason[0],
               "%s, attempt %llu of %s%s: %s (%s)", rows[i].category,
               (unsigned long long)rows[i].attempt, rows[i].tier,
               rows[i].optional ? ", optional" : "", gate_step_name(a.step), a.reason);
    }
    struct gate_advice a;
    gate_escalate(&(struct gate_failure_report){.category = GATE_ERROR_CODE, .attempt = 1}, &a);
    tap_ok(a.step == GATE_STEP_ESCALATE, "with no retries the first failure goes up");
    gate_escalate(
        &(struct gate_failure_report){.category = GATE_ERROR_CODE, .attempt = 1, .retries = 2}, &a);
    tap_eq_int(a.retries_left, 1, "the advice says how many retries are left");
    tap_ok(gate_error_category_find("NONE") < 0 && gate_tier_find("Worker") < 0,
           "unknown names of a category or tier are not found");
}

static void test_categories(void)
{
    const struct {
        const char *status, *type, *category;
    } rows[] = {
        {"timeout", "TimeoutError", "TIMEOUT"},
        {"error", "NameError", "CODE"},
        {"error", "AssertionError", "LOGIC"},
        {"error", "ValueError", "LOGIC"},
        {"error", "JSONDecodeError", "FORMAT"},
        {"error", "SchemaError", "SCHEMA"},
        {"error", "Stopped", "EARLY_ABORT"},
        {"output", "OutputError", "CODE"},
        {"memory", "MemoryError", "CODE"},
        {"crashed", "Signal", "CODE"},
        {"crashed", "JailLost", "HOST"},
        {"error", "WorkspaceError", "HOST"},
        {"blocked", "ValidationError", "REFUSAL"},
        {"blocked", "SecurityError", "REFUSAL"},
        {"denied", "GateError", "REFUSAL"},
        {"refused", "JailError", "HOST"},
        {"refused", "UsageError", "REFUSAL"},
        {"refused", "AuditError", "HOST"},
        {"refused", "GateError", "HOST"},
        {"refused", "SessionError", "HOST"},
        {"crashed", "SessionError", "HOST"},
        {"error", NULL, "CODE"},
        {"blocked", "IntakeError", "FORMAT"},
        {"error", "ExitStatus", "CODE"},
        {"unheard-of", "What", "CODE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_eq_str(gate_error_category_name(gate_error_category_of(rows[i].status, rows[i].type)),
                   rows[i].category, "%s, %s", rows[i].status,
                   rows[i].type ? rows[i].type : "no type");
}

int main(void)
{
    test_rules();
    test_categories();
    return tap_done();
}
