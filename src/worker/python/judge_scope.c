/* SPDX-License-Identifier: Apache-2.0 */
/* Whether `input` is the builtin or somebody's variable. A rule about a builtin must not refuse a
 * parameter of that name, and must not be fooled by a variable that is not bound yet: outside of
 * functions a name that is not bound *now* is looked up among the builtins.
 *
 * - In a function a name that is bound anywhere in it is local everywhere in it: for sure.
 * - In a module or class body a binding holds for sure from the end of its statement to the end of the
 *   block that the statement stands in: what comes before in a block has run. It holds nowhere if the name
 *   is ever deleted.
 * - Everything else is taken for the builtin.
 *
 * Only names that a call rule is about are written down, so this costs nothing for other programs. */
#include "judge_inside.h"

#include <stdlib.h>
#include <string.h>

bool py_judge_reserve(struct judge *j, void *list, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return true;
    size_t more = *cap ? *cap * 2 : 64;
    void **at = list, *grown = more <= SIZE_MAX / size / 2 ? realloc(*at, more * size) : NULL;
    if (!grown) {
        j->bad = j->bad ? j->bad : ERR_MEMORY;
        return false;
    }
    *at = grown;
    *cap = more;
    return true;
}

uint32_t py_judge_scope_new(struct judge *j, uint32_t parent, enum judge_scope_kind kind)
{
    if (j->scope_count == UINT32_MAX ||
        !py_judge_reserve(j, &j->scopes, &j->scope_cap, j->scope_count, sizeof *j->scopes))
        return parent; /* j->bad is set: nothing that follows counts */
    j->scopes[j->scope_count] = (struct judge_scope){parent, 0, kind};
    return (uint32_t)j->scope_count++;
}

/* The name as the rules have it, if a call rule is about it. */
static const char *ruled(const struct judge *j, PyObject *name)
{
    struct text_piece word = py_judge_text(name);
    check_row row = word.at ? check_ruleset_row(j->rules, word.at, word.len) : 0;
    const struct policy_rule *rule = check_at(j->rules, row, POLICY_CALL_DENY);
    return rule ? rule->name : NULL;
}

static void note(struct judge *j, uint32_t scope, struct judge_binding binding)
{
    if (j->binding_count >= UINT32_MAX - 1 ||
        !py_judge_reserve(j, &j->bindings, &j->binding_cap, j->binding_count, sizeof *j->bindings))
        return;
    binding.next = j->scopes[scope].bindings;
    j->bindings[j->binding_count++] = binding;
    j->scopes[scope].bindings = (uint32_t)j->binding_count;
}

static PyObject *item(PyObject *list, bool last)
{
    Py_ssize_t n = list && PyList_Check(list) ? PyList_GET_SIZE(list) : 0;
    return n ? PyList_GET_ITEM(list, last ? n - 1 : 0) : NULL;
}

/* Where a binding that STMT makes holds for sure. */
static void range(const struct judge_entry *e, judge_position *ret_from, judge_position *ret_to)
{
    uint8_t kind = e->stmt ? py_tree_type(e->stmt)->kind : TREE_NONE;
    PyObject *body = NULL, *last = item(e->block, true);
    *ret_from = JUDGE_FOREVER;
    *ret_to = 0;
    if (!e->stmt || !last)
        return;
    *ret_to = py_judge_end(last);
    switch (kind) {
    case TREE_For:
    case TREE_AsyncFor: /* only while it loops: there may be nothing to loop over */
    case TREE_With:
    case TREE_AsyncWith: /* only inside: the one before it may swallow what keeps this from happening */
        body = py_tree_field(e->stmt, py_tree_names.body);
        last = item(body, true);
        *ret_to = last ? py_judge_end(last) : 0;
        break;
    case TREE_FunctionDef:
    case TREE_AsyncFunctionDef: /* its body runs when it is bound, unless a decorator calls it first */
        if (!item(py_tree_field(e->stmt, py_tree_names.decorator_list), false))
            body = py_tree_field(e->stmt, py_tree_names.body);
        break;
    default:
        break;
    }
    PyObject *first = item(body, false);
    *ret_from = first ? py_judge_start(first) : py_judge_end(e->stmt);
}

void py_judge_bind(struct judge *j, const struct judge_entry *e, PyObject *name, bool sure)
{
    const char *word = ruled(j, name);
    if (!word)
        return;
    enum judge_scope_kind kind = j->scopes[e->scope].kind;
    struct judge_binding b = {word, JUDGE_BINDS, 0, JUDGE_FOREVER, 0};
    if (sure && (kind == JUDGE_MODULE || kind == JUDGE_CLASS))
        range(e, &b.from, &b.to);
    note(j, e->scope, b);
}

void py_judge_bind_in(struct judge *j, uint32_t scope, PyObject *name)
{
    const char *word = ruled(j, name);
    if (word)
        note(j, scope, (struct judge_binding){word, JUDGE_BINDS, 0, JUDGE_FOREVER, 0});
}

void py_judge_unbind(struct judge *j, uint32_t scope, PyObject *name, enum judge_act act)
{
    const char *word = ruled(j, name);
    if (word) /* deletions are the module's business wherever they stand: `global` may be in force */
        note(j, act == JUDGE_DELETES ? 0 : scope,
             (struct judge_binding){word, act, 0, JUDGE_FOREVER, 0});
}

void py_judge_use(struct judge *j, const struct policy_rule *rule, const struct judge_entry *e)
{
    if (py_judge_reserve(j, &j->uses, &j->use_cap, j->use_count, sizeof *j->uses))
        j->uses[j->use_count++] =
            (struct judge_use){rule, e->node, e->scope, (e->flags & JUDGE_CALLEE) != 0};
}

/* What is known of NAME in one scope. */
struct known {
    bool bound, is_global, is_nonlocal, sure, deleted;
};

static struct known look(const struct judge *j, const char *name, uint32_t scope, judge_position at)
{
    struct known k = {0};
    for (uint32_t i = j->scopes[scope].bindings; i; i = j->bindings[i - 1].next) {
        const struct judge_binding *b = &j->bindings[i - 1];
        if (b->name != name)
            continue;
        k.bound |= b->act == JUDGE_BINDS;
        k.is_global |= b->act == JUDGE_SAYS_GLOBAL;
        k.is_nonlocal |= b->act == JUDGE_SAYS_NONLOCAL;
        k.deleted |= b->act == JUDGE_DELETES;
        k.sure |= b->act == JUDGE_BINDS && b->from <= at && at < b->to;
    }
    return k;
}

/* Whether an earlier cell of the session left a variable of that name. Goes through the namespace by hand:
 * a look-up could meet a key of the guest's own making, and call it. */
static bool left_over(const struct judge *j, const char *name)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (j->globals && PyDict_Next(j->globals, &at, &key, &value))
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, name) == 0)
            return true;
    return false;
}

/* Whether a use is surely of the program's own variable. */
static bool is_own(const struct judge *j, const struct judge_use *use)
{
    const char *name = use->rule->name;
    judge_position at = py_judge_start(use->node);
    const struct known module = look(j, name, 0, at);
    for (uint32_t s = use->scope; s;) {
        const struct judge_scope *scope = &j->scopes[s];
        if (scope->kind == JUDGE_CLASS && s != use->scope) {
            s = scope->parent; /* not seen from the functions in it */
            continue;
        }
        struct known k = look(j, name, s, at);
        bool local = !k.is_global && !k.is_nonlocal;
        if (local && k.bound && scope->kind != JUDGE_CLASS)
            return true;
        if (local && k.sure && !module.deleted)
            return true;
        s = k.is_global ? 0 : scope->parent;
    }
    return !module.deleted && (module.sure || left_over(j, name));
}

void py_judge_resolve(struct judge *j)
{
    for (size_t i = 0; i < j->use_count; i++) {
        const struct judge_use *use = &j->uses[i];
        const struct policy_rule *rule = use->rule;
        if (is_own(j, use))
            rule = use->called ? check_ruleset_construct(j->rules, POLICY_CONSTRUCT_REBOUND_CALL)
                               : NULL;
        if (!rule)
            continue;
        const struct text_piece word = {use->rule->name, strlen(use->rule->name)};
        py_judge_find(j, rule, use->called ? CHECK_SAY_FUNCTION : CHECK_SAY_REFERENCE, word,
                      use->node);
    }
}
