/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of escalation as tables; the function below only reads them. Attempts are counted from 1 within a
 * tier: with two retries, attempts 1 and 2 that failed are tried again and the third goes up. */
#include "gate/escalate.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum rule { RETRY_THEN_ESCALATE, RETRY_ONLY, SKIP_IF_OPTIONAL, ESCALATE_AT_ONCE, NEVER };

static const struct {
    const char *word;
    enum rule rule;
    const char *why;
} categories[] = {
#define X(name, word, rule, why) {word, rule, why},
    GATE_ERROR_CATEGORIES(X)
#undef X
};

static const struct {
    const char *word;
    enum gate_tier above;
} tiers[] = {
#define X(name, word, above) {word, GATE_TIER_##above},
    GATE_TIERS(X)
#undef X
};

/* What each rule allows: skip it if it is optional, try again, go up. */
static const struct {
    bool skip, retry, escalate;
} rules[] = {
    [RETRY_THEN_ESCALATE] = {false, true, true},
    [RETRY_ONLY] = {false, true, false},
    [SKIP_IF_OPTIONAL] = {true, true, true},
    [ESCALATE_AT_ONCE] = {false, false, true},
    [NEVER] = {false, false, false},
};

/* How a result is called an error of a category. The first row that fits decides; NULL fits all. */
static const struct {
    const char *status, *type;
    enum gate_error_category category;
} kinds[] = {
    {"timeout", NULL, GATE_ERROR_TIMEOUT},
    {"error", "TimeoutError", GATE_ERROR_TIMEOUT},
    {"error", "Stopped", GATE_ERROR_EARLY_ABORT},
    {"error", "AssertionError", GATE_ERROR_LOGIC},
    {"error", "ValueError", GATE_ERROR_LOGIC},
    {"error", "ZeroDivisionError", GATE_ERROR_LOGIC},
    {"error", "IndexError", GATE_ERROR_LOGIC},
    {"error", "KeyError", GATE_ERROR_LOGIC},
    {"error", "OverflowError", GATE_ERROR_LOGIC},
    {"error", "RecursionError", GATE_ERROR_LOGIC},
    {"error", "StopIteration", GATE_ERROR_LOGIC},
    {"error", "JSONDecodeError", GATE_ERROR_FORMAT},
    {"error", "json.decoder.JSONDecodeError", GATE_ERROR_FORMAT},
    {"error", "UnicodeDecodeError", GATE_ERROR_FORMAT},
    {"error", "UnicodeEncodeError", GATE_ERROR_FORMAT},
    {"blocked", "IntakeError", GATE_ERROR_FORMAT}, /* no program was found in the model's text */
    {NULL, "AuditError", GATE_ERROR_HOST}, /* the run could not be recorded, so it did not begin */
    {NULL, "SessionError", GATE_ERROR_HOST},   /* gone, busy, or ended by somebody else */
    {"refused", "GateError", GATE_ERROR_HOST}, /* the gate's own state cannot be used */
    {"crashed", "JailLost", GATE_ERROR_HOST},  /* its jail was killed, not the program */
    {NULL, "WorkspaceError", GATE_ERROR_HOST}, /* it ran, and its files could not be kept */
    {NULL, "SchemaError", GATE_ERROR_SCHEMA},
    {NULL, "jsonschema.exceptions.ValidationError", GATE_ERROR_SCHEMA},
    {"blocked", NULL, GATE_ERROR_REFUSAL},
    {"denied", NULL, GATE_ERROR_REFUSAL},
    {"refused", "UsageError", GATE_ERROR_REFUSAL}, /* what was asked for is not there */
    {"refused", NULL, GATE_ERROR_HOST},            /* no jail could be built */
    {NULL, NULL, GATE_ERROR_CODE},
};

const char *gate_error_category_name(enum gate_error_category c)
{
    return categories[c].word;
}

const char *gate_tier_name(enum gate_tier t)
{
    return tiers[t].word;
}

const char *gate_step_name(enum gate_step s)
{
    static const char *const names[] = {"retry", "escalate", "skip", "stop"};
    return names[s];
}

int gate_error_category_find(const char *word)
{
    for (int i = 0; i < GATE_ERROR_COUNT; i++)
        if (strcasecmp(categories[i].word, word) == 0)
            return i;
    return -1;
}

int gate_tier_find(const char *word)
{
    for (int i = 0; i < GATE_TIER_COUNT; i++)
        if (strcmp(tiers[i].word, word) == 0)
            return i;
    return -1;
}

enum gate_error_category gate_error_category_of(const char *status, const char *type)
{
    size_t i = 0;
    while ((kinds[i].status && strcmp(kinds[i].status, status) != 0) ||
           (kinds[i].type && (!type || strcmp(kinds[i].type, type) != 0)))
        i++; /* the last row fits all */
    return kinds[i].category;
}

void gate_escalate(const struct gate_failure_report *f, struct gate_advice *a)
{
    enum rule rule = categories[f->category].rule;
    const char *word = categories[f->category].word, *why = categories[f->category].why;
    enum gate_tier above = tiers[f->tier].above;
    *a = (struct gate_advice){.step = GATE_STEP_STOP, .next = f->tier};
    if (rules[rule].skip && f->optional) {
        a->step = GATE_STEP_SKIP;
        snprintf(a->reason, sizeof a->reason, "%s: %s", word, why);
    } else if (rules[rule].retry && f->attempt <= f->retries) {
        a->step = GATE_STEP_RETRY;
        a->retries_left = f->retries - f->attempt;
        snprintf(a->reason, sizeof a->reason, "%s: %s; retry %llu of %llu", word,
                 rules[rule].skip ? "the step is needed" : why, (unsigned long long)f->attempt,
                 (unsigned long long)f->retries);
    } else if (rule == NEVER) {
        snprintf(a->reason, sizeof a->reason, "%s: %s", word, why);
    } else if (!rules[rule].escalate) {
        snprintf(a->reason, sizeof a->reason, "%s: never escalated, %s; %llu retries are used up",
                 word, why, (unsigned long long)f->retries);
    } else if (above == f->tier) {
        snprintf(a->reason, sizeof a->reason, "%s: %s is the top tier and is exhausted", word,
                 tiers[f->tier].word);
    } else {
        a->step = GATE_STEP_ESCALATE;
        a->next = above;
        snprintf(a->reason, sizeof a->reason, "%s: %s%s", word, rules[rule].retry ? "" : why,
                 rules[rule].retry ? "the retries of this tier are used up" : "");
    }
}
