/* SPDX-License-Identifier: Apache-2.0 */
/* Tools that guest code made with CreateTool. The file of one is the guest's, and may be changed by it at any time; what was judged and
 * decided about is known by the sum of that file, which stands where no guest writes: in the broker for the run, in the audit
 * for the calls of a session that come later. A file with another sum is no tool. Each call is a nested run, which is judged again, with
 * the rights that the caller and the creator both have. */
#include "flow/steps.h"

#include "base/jsonw.h"
#include "base/limits.h"

#include <stdio.h>
#include <string.h>

/* ---- which there are ---- */

static struct flow_made *find_own(struct flow_mades *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    return NULL;
}

static struct flow_made *add(struct flow_mades *list, const struct flow_made *made)
{
    struct flow_made *at = find_own(list, made->name);
    if (!at && list->count == LIMIT_MADE)
        return NULL;
    at = at ? at : &list->items[list->count++];
    *at = *made;
    return at;
}

/* The text of a member of ours, as a record has it within the text of the arguments: up to the backslash before the quotation
 * mark that ends it. */
static const char *take_member(const char *at, const char *key, char *out, size_t size)
{
    char before[48];
    const int n = snprintf(before, sizeof before, "%s\\\": \\\"", key);
    if (!at || strncmp(at, before, (size_t)n) != 0)
        return NULL;
    at += n;
    const size_t len = strcspn(at, "\\");
    if (len >= size || strncmp(at + len, "\\\"", 2) != 0)
        return NULL;
    memcpy(out, at, len);
    out[len] = 0;
    at += len + 2;
    return strncmp(at, ", \\\"", 4) == 0 ? at + 4 : at;
}

/* A record of CreateTool, as record_text wrote its arguments. A worker's tools are its own: they went with it. */
static bool read_record(const char *line, struct flow_made *ret)
{
    static const char begin[] = "\"arguments\": \"{\\\"";
    const char *at = strstr(line, begin);
    if (!at || strstr(line, "\"workerId\": \"worker:"))
        return false;
    at = take_member(at + sizeof begin - 1, "name", ret->name, sizeof ret->name);
    at = take_member(at, "sum", ret->sum, sizeof ret->sum);
    at = take_member(at, "role", ret->role, sizeof ret->role);
    return take_member(at, "worker", ret->worker, sizeof ret->worker) != NULL;
}

/* Of a session, what calls before this one made: the last one of that name. */
static const struct flow_made *find_recorded(const struct flow *f, struct flow_mades *list,
                                             const char *name)
{
    struct flow_made one = {.name = ""}, found = {.name = ""};
    struct err err = ERR_INIT; /* what cannot be read is not there */
    struct buf lines;
    uint64_t count = 0;
    buf_init(&lines, LIMIT_MADE * LIMIT_CALL);
    const int r = flow_history(f, "CreateTool", LIMIT_MADE, &count, &lines, &err);
    for (char *at = r == 0 && lines.len ? lines.data : NULL, *next; at; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = 0;
        if (read_record(at, &one) && strcmp(one.name, name) == 0)
            found = one;
    }
    buf_done(&lines);
    return found.name[0] ? add(list, &found) : NULL;
}

const struct flow_made *flow_made_find(const struct flow *f, struct flow_mades *list,
                                       const char *name)
{
    const struct flow_made *made = NULL;
    struct flow_mades *l = list;
    do
        made = find_own(l, name);
    while (!made && (l = l->outer));
    if (!made && f->result->session[0] && strlen(name) <= TOOLS_MADE_NAME)
        made = find_recorded(f, list, name);
    return made;
}

/* ---- making one ---- */

/* cordon-tool has looked, and says why not; here it is what stands in a program and in a record of ours. */
static bool is_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const size_t n = strlen(name);
    return n && n <= TOOLS_MADE_NAME && strspn(name, letters) == n &&
           strchr(letters, name[0]) < letters + 26;
}

enum tools_end flow_made_check(const struct flow_caller *c, const struct tools_process *process,
                               struct flow_made *ret, char why[320], struct err *err)
{
    const struct flow_request *req = c->f->req;
    const char *role = req->role ? req->role : c->context->gate_config.role;
    *ret = (struct flow_made){.name = ""};
    if (!is_name(process->word)) {
        snprintf(why, 320, "no name of a tool");
        return TOOLS_REFUSED;
    }
    snprintf(ret->name, sizeof ret->name, "%.*s", TOOLS_MADE_NAME, process->word);
    snprintf(ret->role, sizeof ret->role, "%s", role);
    snprintf(ret->worker, sizeof ret->worker, "%s", req->worker ? req->worker : "");
    gate_sha256_hex(process->source.data, process->source.len, ret->sum);
    if (policy_find_tool(c->context->policy, ret->name)) {
        snprintf(why, 320, "there is a tool %.40s already: choose another name", ret->name);
        return TOOLS_REFUSED;
    }
    if (c->f->language != language_default()) {
        snprintf(why, 320, "tools are made of Python, and this program is %s",
                 c->f->language->title);
        return TOOLS_REFUSED;
    }
    if (c->mades->count == LIMIT_MADE && !find_own(c->mades, ret->name)) {
        snprintf(why, 320, "this run has made %d tools already", LIMIT_MADE);
        return TOOLS_REFUSED;
    }
    return flow_nested_judge(c, ret->name, &process->source, why, err);
}

enum tools_end flow_module_check(const struct flow_caller *c, const struct tools_process *process,
                                 char why[320], struct err *err)
{
    const struct policy_profile *profile = c->f->req->profile;
    if (profile->guards) { /* they take code with globals of its own for a library's */
        snprintf(why, 320,
                 "a program of profile %.40s loads no modules: make a tool of it with CreateTool, "
                 "or use "
                 "--profile standard",
                 profile->name);
        return TOOLS_REFUSED;
    }
    if (c->f->language != language_default()) {
        snprintf(why, 320, "modules are loaded in Python, and this program is %s",
                 c->f->language->title);
        return TOOLS_REFUSED;
    }
    return flow_nested_judge(c, process->word, &process->source, why, err);
}

int flow_made_record(const struct flow_made *made, const void *args, size_t len, struct buf *out)
{
    struct jsonw j = {.out = out};
    jsonw_open(&j, NULL, '{');
    jsonw_string(&j, "name", made->name);
    jsonw_string(&j, "sum", made->sum);
    jsonw_string(&j, "role", made->role);
    jsonw_string(&j, "worker", made->worker);
    jsonw_close(&j, '}');
    return j.bad || buf_add(out, " ", 1) < 0 || buf_add(out, args, len) < 0 ? -1 : 0;
}

void flow_made_add(struct flow_mades *list, const struct flow_made *made)
{
    (void)add(list, made); /* there is room: flow_made_check has looked */
}

/* ---- calling one ---- */

/* Its file, and behind it the call: ARGS is JSON in ASCII, and so becomes a literal. */
static int write_program(const char *name, const struct buf *file, const struct buf *args,
                         struct buf *out)
{
    struct jsonw literal = {.out = out};
    if (buf_add(out, file->data, file->len) < 0 ||
        buf_printf(out, "\n\nimport json as _json\nFINAL(_json.dumps(%s(**_json.loads(", name) < 0)
        return -1;
    jsonw_bytes(&literal, NULL, args->data, args->len);
    return literal.bad ? -1 : buf_str(out, "))))\n");
}

enum tools_end flow_made_call(const struct flow_caller *c, const struct flow_made *made,
                              struct tools_process *process, struct buf *text, struct err *err)
{
    static const char changed[] =
        "the file of the tool is not the one that was made: make it again with CreateTool";
    const char *const bounds[] = {made->role, made->worker};
    char sum[65], file[TOOLS_MADE_NAME + 8];
    struct buf program;
    gate_sha256_hex(process->source.data ? process->source.data : "", process->source.len, sum);
    if (strcmp(sum, made->sum) != 0)
        return tools_process_wrote(process, TOOLS_WROTE_WRONG, changed, sizeof changed - 1, text,
                                   err);
    snprintf(file, sizeof file, "%s.py", made->name);
    buf_init(&program, LIMIT_SOURCE);
    enum tools_end end = TOOLS_FAILED;
    if (write_program(made->name, &process->source, text, &program) < 0)
        err_set(err, ERR_LIMIT, "the tool and its arguments are too long");
    else
        end = flow_nested_tool(c, file, bounds, sizeof bounds / sizeof *bounds, &program, process,
                               text, err);
    buf_done(&program);
    return end;
}
