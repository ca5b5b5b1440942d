/* SPDX-License-Identifier: Apache-2.0 */
/* The first step: of a text that a model wrote, only the program goes on. A text without one is no reason to stop here:
 * the attempt passes the gate and is recorded like any other, and flow_check gives the verdict. */
#include "flow/steps.h"

#include "base/limits.h"

#include <stdio.h>
#include <string.h>

static int refuse(struct flow *f, const char *rule, const char *message)
{
    f->no_program_rule = rule;
    snprintf(f->no_program, sizeof f->no_program, "%s", message);
    f->source = "";
    f->source_len = 0;
    return FLOW_GO_ON;
}

/* Before any rule is looked at: what is no method is none, whatever it does. */
static void check_structure(struct flow *f, const struct language *l)
{
    char message[200];
    const char *lacks = intake_lacks(l->name, f->source, f->source_len);
    if (!lacks)
        return;
    snprintf(message, sizeof message, "the text is not a method: it has no %s", lacks);
    (void)refuse(f, CHECK_RULE_STRUCTURE, message);
}

/* The default one's worker is known to the request. */
static int take_language(struct flow *f, const struct language *l, struct err *err)
{
    f->language = l;
    if (f->req->method && !l->methods)
        return err_set(err, ERR_USAGE, "--method is for Ruby, and the program is %s", l->title);
    if (f->req->method && !f->req->source_too_long)
        check_structure(f, l);
    if (l == language_default() || flow_in_session(f)) /* its process is there */
        return FLOW_GO_ON;
    int r = f->req->find(l->worker, f->worker_path, sizeof f->worker_path, err);
    if (r == ERR_MISSING) /* a package of its own */
        err_set(err, r, "%s needs %s, which is not installed (Debian: apt install %s)", l->title,
                l->worker, l->worker);
    return r;
}

static bool runs(const struct flow *f, const struct language *l)
{
    return l == language_default() || (l && l->worker && f->req->find);
}

int flow_intake(struct flow *f, struct err *err)
{
    const struct flow_request *req = f->req;
    struct intake_source *s = &f->result->intake;
    struct err why = ERR_INIT;
    char message[200];
    const struct language *said =
        req->language ? language_named(req->language) : language_default();
    f->language = language_default();
    f->source = req->source;
    f->source_len = req->source_len;
    if (req->kind == FLOW_EXEC || !req->raw || req->source_too_long ||
        req->source_len > LIMIT_SOURCE) /* the judge says so */
        return runs(f, said) ? take_language(f, said, err) : FLOW_GO_ON;
    const struct intake_text text = {
        .data = req->source, .len = req->source_len, .language = req->language};
    intake_source_init(s, LIMIT_SOURCE + 1); /* a last line end may be added */
    int r = intake_read(&text, s, &why);
    if (r == ERR_MEMORY)
        return err_set(err, r, "%s", why.msg);
    if (r < 0)
        return refuse(f,
                      s->has_nul    ? CHECK_RULE_NUL
                      : s->not_utf8 ? CHECK_RULE_ENCODING
                                    : CHECK_RULE_INTAKE,
                      why.msg);
    const struct language *l = s->language[0] ? language_named(s->language) : language_default();
    if (!runs(f, l)) {
        snprintf(message, sizeof message,
                 "the program is %s (line %zu), and no worker runs that here%s", s->language,
                 s->line,
                 strcmp(s->language, "expr") == 0 ? "; `cordon eval` evaluates conditions" : "");
        return refuse(f, CHECK_RULE_INTAKE, message);
    }
    f->source = s->code.data;
    f->source_len = s->code.len;
    return take_language(f, l, err);
}
