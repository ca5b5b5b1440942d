/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: several judges who do not know of each other, all asked at once. One no is a no. A judge
 * that says something else than a verdict on this very code counts as hostile and as a no; one that
 * says nothing, too late, or dies, has not said yes. A yes needs the quorum (all of them, unless the
 * policy says fewer). Judges see code and arguments, not the files of a workspace: what a clone of one
 * changed is shown to them as a patch (`cordon workspace verify`, tool merge). */
#include "gate/child.h"
#include "gate/inside.h"
#include "gate/verdict.h"

#include "base/clock.h"
#include "sys/child.h"

#include <stdio.h>
#include <string.h>

/* PATH lies at or below PREFIX; both as the guest names them. */
static bool below(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);
    while (len > 1 && prefix[len - 1] == '/')
        len--;
    return strncmp(path, prefix, len) == 0 && (len == 1 || path[len] == 0 || path[len] == '/');
}

bool gate_arena_covers(const struct gate *g, const struct gate_ticket *t)
{
    const struct gate_config *c = g->config;
    if (!c->arena.on)
        return false;
    if (gate_tool_risk(c, t->tool) >= c->arena.risk)
        return true;
    for (size_t w = 0; w < t->request.nwrites; w++)
        for (size_t p = 0; p < c->arena.npaths; p++)
            if (below(t->request.writes[w], c->arena.paths[p]) ||
                below(c->arena.paths[p], t->request.writes[w]))
                return true; /* also a write above such a path: it can replace it */
    return false;
}

enum stance { APPROVES, REJECTS, LIES, SILENT, LATE, FAILS };
static const char *const stance_words[] = {"approves",  "rejects",      "gave no valid verdict",
                                           "is silent", "was too late", "failed"};

struct bench {
    struct gate_child child[GATE_JUDGES_MAX];
    uint64_t deadline[GATE_JUDGES_MAX];
    enum stance stance[GATE_JUDGES_MAX];
    char reason[GATE_JUDGES_MAX][401];
};

/* Why there is no verdict: the line that our own program wrote, or how a command ended. */
static void say_failure(const struct gate_judge *j, const struct gate_child *c, char reason[401])
{
    const size_t line = c->text.len ? strcspn(c->text.data, "\n") : 0;
    char how[SYS_CHILD_TOLD];
    sys_child_tell(c->status, how);
    if (j->kind == GATE_JUDGE_MODEL && line && line <= 400 &&
        gate_verdict_printable(c->text.data, line))
        snprintf(reason, 401, "%.*s", (int)line, c->text.data);
    else
        snprintf(reason, 401, "its program %s", how);
}

static void hear(const struct gate_judge *j, struct bench *b, size_t i, const char hash[65])
{
    struct gate_child *c = &b->child[i];
    struct gate_verdict v;
    struct err err = ERR_INIT;
    if (c->late) {
        b->stance[i] = LATE;
    } else if (c->flooded) {
        b->stance[i] = LIES;
        snprintf(b->reason[i], sizeof b->reason[i], "more than %d bytes", GATE_VERDICT_MAX);
    } else if (c->status != 0) {
        b->stance[i] = FAILS;
        say_failure(j, c, b->reason[i]);
    } else if (c->text.len == 0) {
        b->stance[i] = SILENT;
    } else if (gate_verdict_read(c->text.data, c->text.len, hash, &v, &err) < 0) {
        b->stance[i] = LIES;
        snprintf(b->reason[i], sizeof b->reason[i], "%s", err.msg);
    } else {
        b->stance[i] = v.approve ? APPROVES : REJECTS;
        snprintf(b->reason[i], sizeof b->reason[i], "%s", v.reason);
    }
}

static void call(struct gate_ticket *t, const char hash[65], struct bench *b)
{
    const struct gate_config *c = t->g->config;
    const struct gate_request *q = &t->request;
    static char args[32768]; /* one thread to a gate */
    char tool[64], client[96], code[96], risk[32];
    snprintf(tool, sizeof tool, "CORDON_TOOL=%s", q->tool);
    snprintf(client, sizeof client, "CORDON_CLIENT=%s", q->client.id);
    snprintf(code, sizeof code, "CORDON_CODE_SHA256=%s", hash);
    snprintf(risk, sizeof risk, "CORDON_RISK=%s", gate_risk_name(gate_tool_risk(c, t->tool)));
    snprintf(args, sizeof args, "CORDON_ARGUMENTS=%s", q->arguments ? q->arguments : "{}");
    const char *const env[] = {
        "PATH=/usr/bin:/bin", "LANG=C.UTF-8", tool, client, code, risk, args, NULL};
    uint64_t now = clock_now_ns();
    for (size_t i = 0; i < c->arena.njudges; i++) {
        const struct gate_judge *j = &c->arena.judges[i];
        struct err err = ERR_INIT;
        b->deadline[i] =
            now + (j->timeout_ms ? j->timeout_ms : c->arena.timeout_ms) * CLOCK_NS_PER_MS;
        if (gate_child_start(&b->child[i], j->argv, env, q->code, q->code_len, -1, GATE_VERDICT_MAX,
                             &err) < 0) {
            b->child[i].ended = true;
            b->child[i].status = 0x7f00;
        }
    }
    gate_children_wait(b->child, b->deadline, c->arena.njudges);
}

/* The arena's word, and the sentence that says why. */
static bool weigh(const struct gate_config *c, const struct bench *b, char *why, size_t size,
                  const char **ret_hint)
{
    uint64_t yes = 0, quorum = c->arena.quorum ? c->arena.quorum : c->arena.njudges;
    int worst = -1;
    for (size_t i = 0; i < c->arena.njudges; i++) {
        yes += b->stance[i] == APPROVES;
        /* a no first, then a lie, then those who said nothing */
        if (b->stance[i] != APPROVES && (worst < 0 || b->stance[i] < b->stance[worst]))
            worst = (int)i;
    }
    bool against = worst >= 0 && (b->stance[worst] == REJECTS || b->stance[worst] == LIES);
    if (!against && yes >= quorum) {
        snprintf(why, size, "%llu of %zu judges approve", (unsigned long long)yes,
                 c->arena.njudges);
        return true;
    }
    *ret_hint = against ? "answer the judges' reasons in new code"
                        : "a person looks after the judge that did not answer: arena.judges of the "
                          "policy, or the gateway that it asks (cordon proxy)";
    snprintf(why, size, "judge %.40s %s%s%.240s; %llu of %zu approve, %llu are needed",
             c->arena.judges[worst].name, stance_words[b->stance[worst]],
             b->reason[worst][0] ? ": " : "", b->reason[worst], (unsigned long long)yes,
             c->arena.njudges, (unsigned long long)quorum);
    return false;
}

/* An arena that cannot sit blocks what it covers, and says why; nothing else is concerned. */
static int can_sit(const struct gate_config *c, struct gate_refusal *r)
{
    static const char hint[] = "a person mends arena.judges of the policy";
    if (c->arena.njudges == 0)
        return gate_refuse(
            r, GATE_RULE_ARENA, 0,
            "a person names programs that judge, in a policy file: arena: {judges: [{name: "
            "reviewer, "
            "command: [/path/of/program]}]}; docs/gate.md says what they are asked",
            "the arena is on (arena.enabled) and has no judges: arena.judges is missing");
    if (c->arena.njudges > GATE_JUDGES_MAX)
        return gate_refuse(r, GATE_RULE_ARENA, 0, hint, "the arena has %zu judges; at most %d",
                           c->arena.njudges, GATE_JUDGES_MAX);
    if (c->arena.quorum > c->arena.njudges)
        return gate_refuse(
            r, GATE_RULE_ARENA, 0, hint,
            "the arena cannot reach its quorum: it wants %llu of %zu judges (arena.quorum)",
            (unsigned long long)c->arena.quorum, c->arena.njudges);
    for (size_t i = 0; i < c->arena.njudges; i++) {
        const struct gate_judge *j = &c->arena.judges[i];
        if (j->kind == GATE_JUDGE_MODEL && !j->argv)
            return gate_refuse(r, GATE_RULE_ARENA, 0, "a person installs all of Cordon's programs",
                               "judge %.40s is a model, and cordon-ask, which asks it, is missing",
                               j->name);
        if (!j->argv || !j->argv[0] || j->argv[0][0] != '/')
            return gate_refuse(r, GATE_RULE_ARENA, 0, hint,
                               "judge %.40s has no command with an absolute path", j->name);
    }
    return 1;
}

int gate_arena_ask(struct gate_ticket *t, const char hash[65], struct gate_refusal *r,
                   struct err *err)
{
    struct gate *g = t->g;
    const struct gate_config *c = g->config;
    struct bench b = {0};
    char why[400];
    const char *hint = "";
    if (can_sit(c, r) == 0)
        return 0;
    if (t->request.arguments && strlen(t->request.arguments) > 32000)
        return gate_refuse(r, GATE_RULE_ARENA, 0, "pass long values in files",
                           "the arguments are too long for a judge to see");
    call(t, hash, &b);
    for (size_t i = 0; i < c->arena.njudges; i++) {
        char detail[320];
        hear(&c->arena.judges[i], &b, i, hash);
        snprintf(detail, sizeof detail, "%s%s%.280s", stance_words[b.stance[i]],
                 b.reason[i][0] ? ": " : "", b.reason[i]);
        gate_note(g, GATE_EVENT_ARENA_VERDICT, t, c->arena.judges[i].name, detail, 0);
        gate_tell(g);
        gate_child_done(&b.child[i]);
    }
    bool pass = weigh(c, &b, why, sizeof why, &hint);
    gate_note(g, GATE_EVENT_ARENA, t, pass ? "passed" : "blocked", why, 0);
    int e = gate_map_lock(&g->map, err);
    if (e < 0)
        return e;
    gate_count(g, pass ? GATE_COUNTER_arena_passed : GATE_COUNTER_arena_blocked);
    gate_map_unlock(&g->map);
    gate_tell(g);
    return pass ? 1 : gate_refuse(r, GATE_RULE_ARENA, 0, hint, "%s", why);
}
