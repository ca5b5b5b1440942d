/* SPDX-License-Identifier: Apache-2.0 */
/* The approvals as people see it. Who may answer is decided here, from what the kernel says of
 * the two processes (gate/lineage.c); that a question is answered once, by the database. */
#include "gate/approval.h"

#include "gate/inside.h"
#include "gate/record.h"

#include <stdio.h>
#include <string.h>

static const char *const state_names[] = {"asked", "approved", "denied", "expired", "used"};

const char *gate_approval_state_name(enum gate_approval_state s)
{
    return state_names[s];
}

static int fill(const struct gate_field *f, struct arena *mem, struct gate_approval *a)
{
    const struct {
        const char *name;
        char *text;
        size_t size;
    } texts[] = {
        {"id", a->id, sizeof a->id},       {"client", a->client, sizeof a->client},
        {"tool", a->tool, sizeof a->tool}, {"run", a->run, sizeof a->run},
        {"hash", a->hash, sizeof a->hash}, {"because", a->because, sizeof a->because},
        {"by", a->by, sizeof a->by},       {"why", a->why, sizeof a->why},
    };
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"asked", &a->asked},
                   {"expires", &a->expires},
                   {"answered", &a->answered},
                   {"used", &a->used}};
#define IS(word) (f->name_len == strlen(word) && memcmp(f->name, word, f->name_len) == 0)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (IS(texts[i].name))
            snprintf(texts[i].text, texts[i].size, "%.*s", (int)f->len, f->data);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (IS(numbers[i].name)) {
            char digits[24] = "";
            memcpy(digits, f->data, f->len < sizeof digits - 1 ? f->len : sizeof digits - 1);
            unsigned long long n = 0;
            if (sscanf(digits, "%llu", &n) == 1)
                *numbers[i].number = n / 1000;
        }
    for (size_t i = 0; IS("state") && i < sizeof state_names / sizeof *state_names; i++)
        if (f->len == strlen(state_names[i]) && memcmp(f->data, state_names[i], f->len) == 0)
            a->state = (enum gate_approval_state)i;
    const char **keep = IS("arguments") ? &a->arguments : IS("code") ? &a->code : NULL;
    if (keep && !(*keep = arena_memdup(mem, f->data, f->len)))
        return ERR_MEMORY;
    if (keep == &a->code)
        a->code_len = f->len;
    return 0;
#undef IS
}

int gate_approvals_list(struct gate *g, bool waiting_only, struct arena *mem,
                        struct gate_approval **ret_items, size_t *ret_count, struct err *err)
{
    struct buf request, reply;
    buf_init(&request, 4096);
    size_t count = 0, at = 0;
    struct gate_approval *items = NULL;
    int r = gate_record_text(&request, "op", "list");
    if (r == 0)
        r = gate_record_number(&request, "waiting", waiting_only);
    if (r == 0) {
        r = gate_keeper_ask(g, &request, &reply, err);
        struct gate_record all = {reply.data, reply.data + reply.len};
        struct gate_field f;
        for (struct gate_record c = all; r == 0 && gate_record_next(&c, &f) == 1;)
            count += f.name_len == 2 && memcmp(f.name, "id", 2) == 0;
        if (r == 0 && !(items = arena_alloc(mem, (count + 1) * sizeof *items)))
            r = err_set(err, ERR_MEMORY, "no memory");
        while (r == 0 && gate_record_next(&all, &f) == 1) {
            at += f.name_len == 2 && memcmp(f.name, "id", 2) == 0;
            r = at ? fill(&f, mem, &items[at - 1]) : 0;
        }
        buf_done(&reply);
    }
    buf_done(&request);
    *ret_items = items;
    *ret_count = count;
    return r;
}

/* 1: REPLY holds the one. 0: none, or several. */
static int look_up(struct gate *g, const char *id, struct buf *reply, struct err *err)
{
    struct buf request;
    char result[16];
    buf_init(reply, 0);
    if (strlen(id) >= sizeof((struct gate_approval *)0)->id) /* longer than any that there is */
        return 0;
    buf_init(&request, 4096);
    int r = gate_record_text(&request, "op", "show");
    if (r == 0)
        r = gate_record_text(&request, "id", id);
    if (r == 0)
        r = gate_keeper_ask(g, &request, reply, err);
    buf_done(&request);
    if (r < 0)
        return r;
    gate_record_copy(reply->data, reply->len, "result", result, sizeof result);
    if (strcmp(result, "several") == 0)
        return err_set(err, ERR_USAGE, "'%.40s' begins more than one id; write more of it", id);
    return strcmp(result, "one") == 0;
}

int gate_approval_show(struct gate *g, const char *id, struct arena *mem, struct gate_approval *ret,
                       struct err *err)
{
    struct buf reply;
    int r = look_up(g, id, &reply, err);
    if (r == 1) {
        struct gate_record all = {reply.data, reply.data + reply.len};
        struct gate_field f;
        *ret = (struct gate_approval){.arguments = "", .code = ""};
        while (r == 1 && gate_record_next(&all, &f) == 1)
            if (fill(&f, mem, ret) < 0)
                r = err_set(err, ERR_MEMORY, "no memory");
    }
    buf_done(&reply);
    return r;
}

static int record_answer(struct gate *g, const char *id, bool yes, const char *by, const char *why,
                         struct gate_refusal *r, struct err *err)
{
    struct buf request, reply;
    char result[16] = "";
    buf_init(&request, 4096);
    int e = gate_record_text(&request, "op", "answer");
    if (e == 0)
        e = gate_record_text(&request, "id", id);
    if (e == 0)
        e = gate_record_number(&request, "yes", yes);
    if (e == 0)
        e = gate_record_text(&request, "by", by);
    if (e == 0)
        e = gate_record_text(&request, "why", why);
    if (e == 0) {
        e = gate_keeper_ask(g, &request, &reply, err);
        if (e == 0)
            gate_record_copy(reply.data, reply.len, "result", result, sizeof result);
        buf_done(&reply);
    }
    buf_done(&request);
    if (e < 0)
        return err->code ? e : err_set(err, e, "the answer is too long");
    if (strcmp(result, "recorded") != 0)
        return gate_refuse(r, GATE_RULE_APPROVAL, 0, "see `cordon approve show`",
                           "approval %.20s is answered already, or its time is over", id);
    gate_bell_ring(&g->map.at->answers);
    char detail[320];
    snprintf(detail, sizeof detail, "%s by %s: %.200s", yes ? "yes" : "no", by, why);
    struct gate_noted *n = gate_note(g, GATE_EVENT_APPROVAL_ANSWERED, NULL, id, detail, 0);
    snprintf(n->client, sizeof n->client, "%.63s",
             by); /* who acted: here the person, not who asked */
    gate_tell(g);
    return 1;
}

/* 1: FULL is the whole id and ASKER who asked. */
static int find_asker(struct gate *g, const char *id, char full[24], struct gate_lineage *asker,
                      struct gate_refusal *r, struct err *err)
{
    struct buf reply;
    int e = look_up(g, id, &reply, err);
    struct gate_field chain = {0};
    if (e == 1) {
        gate_record_copy(reply.data, reply.len, "id", full, 24);
        chain = gate_record_find(reply.data, reply.len, "lineage");
        if (gate_lineage_parse(asker, chain.data, chain.len) < 0)
            e = err_set(err, ERR_STATE, "approval %s does not say who asked", full);
    } else if (e == 0) {
        gate_refuse(r, GATE_RULE_APPROVAL, 0, "see `cordon approve list`",
                    "there is no approval '%.40s'", id);
    }
    buf_done(&reply);
    return e;
}

int gate_approval_answer(struct gate *g, const char *id, const struct gate_lineage *self, bool yes,
                         const char *why, struct gate_refusal *r, struct err *err)
{
    struct gate_lineage asker;
    char full[24], obstacle[160], by[96];
    int e = find_asker(g, id, full, &asker, r, err);
    if (e != 1)
        return e;
    /* anybody may say no: that only stops things */
    if (yes &&
        !gate_lineage_may_answer(&asker, self, g->config->approval.approvers == GATE_OTHER_USER,
                                 obstacle, sizeof obstacle))
        return gate_refuse(r, GATE_RULE_APPROVAL, 0,
                           "answer from another terminal that did not start the run, or as another "
                           "user",
                           "who asks does not answer: %s", obstacle);
    gate_lineage_name(self, by, sizeof by);
    return record_answer(g, full, yes, by, why, r, err);
}

int gate_approval_elicited(struct gate *g, const char *id, const struct gate_lineage *self,
                           pid_t asked_by, bool yes, struct gate_refusal *r, struct err *err)
{
    struct gate_lineage asker;
    char full[24], name[64], by[96];
    int e = find_asker(g, id, full, &asker, r, err);
    if (e != 1)
        return e;
    if (!g->config->approval.elicitation || g->config->approval.approvers == GATE_OTHER_USER)
        return gate_refuse(r, GATE_RULE_APPROVAL, 0, "answer it with `cordon approve`",
                           "the policy lets nobody answer at a client (approval.elicitation, "
                           "approval.approvers)");
    if (!gate_lineage_siblings(&asker, asked_by, self))
        return gate_refuse(r, GATE_RULE_APPROVAL, 0, "answer it with `cordon approve`",
                           "approval %s was not asked by this client", full);
    gate_lineage_name(self, name, sizeof name);
    snprintf(by, sizeof by, "%s, elicitation", name);
    return record_answer(g, full, yes, by, "the person at the client answered", r, err);
}

int gate_approval_by_tool(struct gate *g, const char *id, const struct gate_lineage *self, bool yes,
                          const char *why, struct gate_refusal *r, struct err *err)
{
    struct gate_lineage asker;
    char full[24], obstacle[160], name[64], by[96];
    int e = find_asker(g, id, full, &asker, r, err);
    if (e != 1)
        return e;
    if (!g->config->approval.tool)
        return gate_refuse(r, GATE_RULE_APPROVAL, 0, "answer it with `cordon approve`",
                           "the policy lets no client answer by a tool (approval.tool)");
    if (yes && !gate_lineage_apart(&asker, self, g->config->approval.approvers == GATE_OTHER_USER,
                                   obstacle, sizeof obstacle))
        return gate_refuse(r, GATE_RULE_APPROVAL, 0,
                           "answer it with `cordon approve`, or at a server that did not pass the "
                           "question on",
                           "who asks does not answer: %s", obstacle);
    gate_lineage_name(self, name, sizeof name);
    snprintf(by, sizeof by, "%s, tool of a client", name);
    return record_answer(g, full, yes, by, why, r, err);
}
