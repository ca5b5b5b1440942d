/* SPDX-License-Identifier: Apache-2.0 */
/* The walk. One stack of ours instead of the C stack: a tree may be as deep as the parser lets it. Nodes
 * come up in the order of the source, so that an import is seen before what it brings is used, and places
 * are looked up in one pass.
 *
 * Most nodes are plain: everything below them is put on the stack, whatever its field is called, so a new
 * version's new node hides nothing. The kinds that have a case of their own are those with an identifier
 * in a field, those that open a scope, and the few very common ones, for speed. */
#include "judge_inside.h"

#include <string.h>

/* ---- putting nodes on the stack ---- */

static void push(struct judge *j, PyObject *node, const struct tree_type *type,
                 const struct judge_entry *from, uint32_t scope, uint8_t flags)
{
    if (type->kind <= TREE_LEAF || type->kind >= TREE_Load ||
        !py_judge_reserve(j, &j->stack, &j->depth_cap, j->depth, sizeof *j->stack))
        return;
    /* The node's type was just read, and beside it lies where its fields are. Without this the judge takes 11.0 % beyond the
     * parse of 50 KB instead of 10.3 % (`make bench BENCH=judge`, x86-64). */
    if (py_tree_dict_at)
        __builtin_prefetch(*(void **)((char *)node + py_tree_dict_at));
    j->stack[j->depth++] =
        (struct judge_entry){node, from->stmt, from->block, scope, type->kind, flags};
}

static void push_list(struct judge *j, PyObject *list, const struct judge_entry *from,
                      uint32_t scope, uint8_t flags)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *node = PyList_GET_ITEM(list, i);
        const struct tree_type *type = py_tree_type(node);
        struct judge_entry in = *from;
        if (type->is_stmt) {
            in.stmt = node;
            in.block = list;
        }
        push(j, node, type, &in, scope, flags);
    }
}

/* A field that is a node or a list of them; anything else is passed over. */
static void push_any(struct judge *j, PyObject *value, const struct judge_entry *from,
                     uint32_t scope, uint8_t flags)
{
    if (value && PyList_CheckExact(value))
        push_list(j, value, from, scope, flags);
    else if (value)
        push(j, value, py_tree_type(value), from, scope, flags);
}

static void push_all(struct judge *j, PyObject *dict, const struct judge_entry *e, uint8_t flags)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        /* places are numbers: not to look at them saves a cache miss each */
        if (key == py_tree_names.lineno || key == py_tree_names.col_offset ||
            key == py_tree_names.end_lineno || key == py_tree_names.end_col_offset)
            continue;
        push_any(j, value, e, e->scope, flags);
    }
}

/* The stack gives back the last first: turn what was just put on it. */
static void turn(struct judge *j, size_t from)
{
    for (size_t a = from, b = j->depth; a + 1 < b; a++) {
        struct judge_entry swap = j->stack[--b];
        j->stack[b] = j->stack[a];
        j->stack[a] = swap;
    }
}

/* ---- the common kinds ---- */

static void name(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *id = py_tree_get(dict, py_tree_names.id);
    PyObject *ctx = py_tree_get(dict, py_tree_names.ctx);
    struct text_piece word = py_judge_text(id);
    uint8_t how = ctx ? py_tree_type(ctx)->kind : TREE_NONE;
    if (!word.at)
        return;
    check_row row = check_ruleset_row(j->rules, word.at, word.len);
    const struct policy_rule *denied = check_at(j->rules, row, POLICY_NAME_DENY);
    const struct policy_rule *call = check_at(j->rules, row, POLICY_CALL_DENY);
    const struct policy_rule *called = check_at(j->rules, row, POLICY_CALL_WORD_DENY);
    const struct policy_rule *method = check_at(j->rules, row, POLICY_METHOD_DENY);
    if (!denied)
        denied = check_ruleset_pattern(j->rules, POLICY_NAME_DENY, word.at, word.len);
    bool is_call = e->flags & JUDGE_CALLEE;
    if (denied) { /* whatever it is bound to */
        py_judge_find(j, call && how == TREE_Load ? call : denied,
                      is_call ? CHECK_SAY_FUNCTION : CHECK_SAY_NAME, word, e->node);
        return;
    }
    if (how == TREE_Store && method && j->scopes[e->scope].kind == JUDGE_CLASS)
        py_judge_find(j, method, CHECK_SAY_METHOD, word, e->node);
    if (called && is_call) /* of its own function, too: no builtin has that name */
        py_judge_find(j, called, CHECK_SAY_FUNCTION, word, e->node);
    if (!call)
        return;
    if (how == TREE_Load)
        py_judge_use(j, call, e);
    else if (how == TREE_Store)
        py_judge_bind(j, e, id, e->flags & JUDGE_SURE);
    else if (how == TREE_Del)
        py_judge_unbind(j, e->scope, id, JUDGE_DELETES);
}

static void attribute(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *attr = py_tree_get(dict, py_tree_names.attr);
    PyObject *value = py_tree_get(dict, py_tree_names.value);
    py_judge_attribute_word(j, attr, e->node);
    if (!value)
        return;
    const struct tree_type *type = py_tree_type(value);
    if (j->import_count)
        py_judge_member(j, value, attr, e->node);
    push(j, value, type, e, e->scope, 0);
}

static void call(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    push_any(j, py_tree_get(dict, py_tree_names.func), e, e->scope, JUDGE_CALLEE);
    push_any(j, py_tree_get(dict, py_tree_names.args), e, e->scope, 0);
    push_any(j, py_tree_get(dict, py_tree_names.keywords), e, e->scope, 0);
}

static void constant(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *value = py_tree_get(dict, py_tree_names.value);
    if (value && PyUnicode_CheckExact(value))
        py_judge_string(j, value, e->node, e->flags & JUDGE_ANNOTATION);
}

/* Literal['(x)'] and Annotated[int, 'a (note)'] hold data, not types. */
static bool holds_data(PyObject *value)
{
    static const char *const words[] = {"Literal", "Annotated"};
    PyObject *dict = value ? py_tree_dict(value) : NULL;
    uint8_t kind = value ? py_tree_type(value)->kind : TREE_NONE;
    PyObject *id = !dict                    ? NULL
                   : kind == TREE_Name      ? py_tree_get(dict, py_tree_names.id)
                   : kind == TREE_Attribute ? py_tree_get(dict, py_tree_names.attr)
                                            : NULL;
    struct text_piece word = py_judge_text(id);
    for (size_t i = 0; word.at && i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == word.len && memcmp(words[i], word.at, word.len) == 0)
            return true;
    return false;
}

static void subscript(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *value = py_tree_get(dict, py_tree_names.value);
    PyObject *slice = py_tree_get(dict, py_tree_names.slice);
    uint8_t flags = e->flags & JUDGE_ANNOTATION;
    if (slice)
        py_judge_key(j, slice, slice);
    push_any(j, value, e, e->scope, flags);
    push_any(j, slice, e, e->scope, flags && holds_data(value) ? 0 : flags);
}

/* ---- scopes ---- */

/* One parameter: its name is the function's, its annotation is evaluated outside. */
static void parameter(struct judge *j, const struct judge_entry *e, PyObject *arg, uint32_t inner)
{
    PyObject *dict = arg && arg != Py_None ? py_tree_dict(arg) : NULL;
    PyObject *word = dict ? py_tree_get(dict, py_tree_names.arg) : NULL;
    if (!word)
        return;
    py_judge_identifier(j, word, arg);
    py_judge_bind_in(j, inner, word);
    push_any(j, py_tree_get(dict, py_tree_names.annotation), e, e->scope, JUDGE_ANNOTATION);
}

static void parameters(struct judge *j, const struct judge_entry *e, PyObject *args, uint32_t inner)
{
    PyObject *dict = args ? py_tree_dict(args) : NULL;
    if (!dict)
        return;
    PyObject *const lists[3] = {py_tree_names.posonlyargs, py_tree_names.args,
                                py_tree_names.kwonlyargs};
    for (size_t k = 0; k < 3; k++) {
        PyObject *list = py_tree_get(dict, lists[k]);
        for (Py_ssize_t i = 0; list && PyList_Check(list) && i < PyList_GET_SIZE(list); i++)
            parameter(j, e, PyList_GET_ITEM(list, i), inner);
    }
    parameter(j, e, py_tree_get(dict, py_tree_names.vararg), inner);
    parameter(j, e, py_tree_get(dict, py_tree_names.kwarg), inner);
    push_any(j, py_tree_get(dict, py_tree_names.defaults), e, e->scope, 0);
    push_any(j, py_tree_get(dict, py_tree_names.kw_defaults), e, e->scope, 0);
}

static void method_rule(struct judge *j, PyObject *name, PyObject *node)
{
    struct text_piece word = py_judge_text(name);
    const struct policy_rule *rule =
        word.at ? check_ruleset_match(j->rules, POLICY_METHOD_DENY, word.at, word.len) : NULL;
    if (rule)
        py_judge_find(j, rule, CHECK_SAY_METHOD, word, node);
}

static void function(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *word = py_tree_get(dict, py_tree_names.name);
    uint32_t inner = py_judge_scope_new(j, e->scope, JUDGE_FUNCTION);
    method_rule(j, word, e->node);
    py_judge_identifier(j, word, e->node);
    py_judge_document(j, e->node);
    py_judge_bind(j, e, word, true);
    push_any(j, py_tree_get(dict, py_tree_names.decorator_list), e, e->scope, JUDGE_CALLEE);
    push_any(j, py_tree_get(dict, py_tree_names.type_params), e, e->scope, 0);
    parameters(j, e, py_tree_get(dict, py_tree_names.args), inner);
    push_any(j, py_tree_get(dict, py_tree_names.returns), e, e->scope, JUDGE_ANNOTATION);
    push_any(j, py_tree_get(dict, py_tree_names.body), e, inner, 0);
}

static void lambda(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    uint32_t inner = py_judge_scope_new(j, e->scope, JUDGE_FUNCTION);
    parameters(j, e, py_tree_get(dict, py_tree_names.args), inner);
    push_any(j, py_tree_get(dict, py_tree_names.body), e, inner, 0);
}

/* class A(metaclass=M), and class A(**kw), where nobody can see what is in it. */
static void class_keywords(struct judge *j, PyObject *list)
{
    const struct policy_rule *rule = check_ruleset_construct(j->rules, POLICY_CONSTRUCT_METACLASS);
    for (Py_ssize_t i = 0; rule && list && PyList_Check(list) && i < PyList_GET_SIZE(list); i++) {
        PyObject *node = PyList_GET_ITEM(list, i), *dict = py_tree_dict(node);
        PyObject *arg = dict ? py_tree_get(dict, py_tree_names.arg) : NULL;
        struct text_piece word = py_judge_text(arg);
        if (!word.at || (word.len == 9 && memcmp(word.at, "metaclass", 9) == 0))
            py_judge_find(j, rule, CHECK_SAY_METACLASS, (struct text_piece){"metaclass", 9}, node);
    }
}

static void class_def(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *word = py_tree_get(dict, py_tree_names.name);
    PyObject *keywords = py_tree_get(dict, py_tree_names.keywords);
    uint32_t inner = py_judge_scope_new(j, e->scope, JUDGE_CLASS);
    py_judge_identifier(j, word, e->node);
    py_judge_document(j, e->node);
    py_judge_bind(j, e, word, true);
    if (j->scopes[e->scope].kind == JUDGE_CLASS)
        method_rule(j, word, e->node);
    class_keywords(j, keywords);
    push_any(j, py_tree_get(dict, py_tree_names.decorator_list), e, e->scope, JUDGE_CALLEE);
    push_any(j, py_tree_get(dict, py_tree_names.type_params), e, e->scope, 0);
    push_any(j, py_tree_get(dict, py_tree_names.bases), e, e->scope, 0);
    push_any(j, keywords, e, e->scope, 0);
    push_any(j, py_tree_get(dict, py_tree_names.body), e, inner, 0);
}

/* A comprehension is a scope of its own, but for what it first iterates over. */
static void comprehension(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    uint32_t inner = py_judge_scope_new(j, e->scope, JUDGE_COMPREHENSION);
    PyObject *list = py_tree_get(dict, py_tree_names.generators);
    for (Py_ssize_t i = 0; list && PyList_Check(list) && i < PyList_GET_SIZE(list); i++) {
        PyObject *part = py_tree_dict(PyList_GET_ITEM(list, i));
        if (!part)
            continue;
        push_any(j, py_tree_get(part, py_tree_names.target), e, inner, JUDGE_SURE);
        push_any(j, py_tree_get(part, py_tree_names.iter), e, i ? inner : e->scope, 0);
        push_any(j, py_tree_get(part, py_tree_names.ifs), e, inner, 0);
    }
    push_any(j, py_tree_get(dict, py_tree_names.elt), e, inner, 0);
    push_any(j, py_tree_get(dict, py_tree_names.key), e, inner, 0);
    push_any(j, py_tree_get(dict, py_tree_names.value), e, inner, 0);
}

/* ---- bindings ---- */

/* := binds in the function around a comprehension, and may never be reached. */
static void named(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    uint32_t scope = e->scope;
    while (j->scopes[scope].kind == JUDGE_COMPREHENSION)
        scope = j->scopes[scope].parent;
    push_any(j, py_tree_get(dict, py_tree_names.target), e, scope, 0);
    push_any(j, py_tree_get(dict, py_tree_names.value), e, e->scope, 0);
}

static void annotated(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *target = py_tree_get(dict, py_tree_names.target);
    PyObject *value = py_tree_get(dict, py_tree_names.value);
    bool assigns = value && value != Py_None;
    if (target && py_tree_type(target)->kind == TREE_Name) {
        PyObject *below = py_tree_dict(target);
        PyObject *id = below ? py_tree_get(below, py_tree_names.id) : NULL;
        if (j->scopes[e->scope].kind == JUDGE_CLASS) /* a field: dataclasses and patterns read it */
            py_judge_attribute_word(j, id, target);
    }
    /* without a value it binds nothing outside of functions */
    if (assigns || j->scopes[e->scope].kind == JUDGE_FUNCTION ||
        (target && py_tree_type(target)->kind != TREE_Name))
        push_any(j, target, e, e->scope, assigns ? JUDGE_SURE : 0);
    push_any(j, py_tree_get(dict, py_tree_names.annotation), e, e->scope, JUDGE_ANNOTATION);
    push_any(j, value, e, e->scope, 0);
}

static void handler(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *word = py_tree_get(dict, py_tree_names.name);
    py_judge_identifier(j, word, e->node);
    py_judge_bind(j, e, word, false);
    if (j->scopes[e->scope].kind != JUDGE_FUNCTION) /* the handler's end deletes it */
        py_judge_unbind(j, e->scope, word, JUDGE_DELETES);
    push_all(j, dict, e, 0);
}

/* What a group's split() returns is used unseen: any object is taken for a tuple of two groups. */
static void try_star(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    const struct policy_rule *rule =
        check_ruleset_construct(j->rules, POLICY_CONSTRUCT_EXCEPT_STAR);
    if (rule)
        py_judge_find(j, rule, CHECK_SAY_EXCEPT_STAR, (struct text_piece){"except*", 7}, e->node);
    push_all(j, dict, e, 0);
}

static void declared(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *names = py_tree_get(dict, py_tree_names.names);
    for (Py_ssize_t i = 0; names && PyList_Check(names) && i < PyList_GET_SIZE(names); i++) {
        PyObject *word = PyList_GET_ITEM(names, i);
        py_judge_identifier(j, word, e->node);
        py_judge_unbind(j, e->scope, word,
                        e->kind == TREE_Global ? JUDGE_SAYS_GLOBAL : JUDGE_SAYS_NONLOCAL);
    }
}

/* MatchAs, MatchStar, MatchMapping, and the type parameters of 3.12: a capture in a field. */
static void capture(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *word =
        py_tree_get(dict, e->kind == TREE_MatchMapping ? py_tree_names.rest : py_tree_names.name);
    PyObject *keys = e->kind == TREE_MatchMapping ? py_tree_get(dict, py_tree_names.keys) : NULL;
    py_judge_identifier(j, word, e->node);
    py_judge_bind(j, e, word, false);
    for (Py_ssize_t i = 0; keys && PyList_Check(keys) && i < PyList_GET_SIZE(keys); i++)
        py_judge_key(j, PyList_GET_ITEM(keys, i), PyList_GET_ITEM(keys, i));
    push_all(j, dict, e, 0);
}

/* case A(x=y) reads the attribute x, with no Attribute node. */
static void class_pattern(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    PyObject *words = py_tree_get(dict, py_tree_names.kwd_attrs);
    for (Py_ssize_t i = 0; words && PyList_Check(words) && i < PyList_GET_SIZE(words); i++) {
        py_judge_attribute_word(j, PyList_GET_ITEM(words, i), e->node);
        py_judge_identifier(j, PyList_GET_ITEM(words, i), e->node);
    }
    push_all(j, dict, e, 0);
}

/* ---- one node ---- */

static void visit(struct judge *j, const struct judge_entry *e, PyObject *dict)
{
    switch (e->kind) {
    case TREE_Name:
        name(j, e, dict);
        break;
    case TREE_Attribute:
        attribute(j, e, dict);
        break;
    case TREE_Call:
        call(j, e, dict);
        break;
    case TREE_Constant:
        constant(j, e, dict);
        break;
    case TREE_Subscript:
        subscript(j, e, dict);
        break;
    case TREE_FunctionDef:
    case TREE_AsyncFunctionDef:
        function(j, e, dict);
        break;
    case TREE_Lambda:
        lambda(j, e, dict);
        break;
    case TREE_ClassDef:
        class_def(j, e, dict);
        break;
    case TREE_ListComp:
    case TREE_SetComp:
    case TREE_DictComp:
    case TREE_GeneratorExp:
        comprehension(j, e, dict);
        break;
    case TREE_Import:
        py_judge_import(j, e);
        break;
    case TREE_ImportFrom:
        py_judge_import_from(j, e);
        break;
    case TREE_Assign:
        push_any(j, py_tree_get(dict, py_tree_names.targets), e, e->scope, JUDGE_SURE);
        push_any(j, py_tree_get(dict, py_tree_names.value), e, e->scope, 0);
        break;
    case TREE_For:
    case TREE_AsyncFor:
        push_any(j, py_tree_get(dict, py_tree_names.target), e, e->scope, JUDGE_SURE);
        push_any(j, py_tree_get(dict, py_tree_names.iter), e, e->scope, 0);
        push_any(j, py_tree_get(dict, py_tree_names.body), e, e->scope, 0);
        push_any(j, py_tree_get(dict, py_tree_names.orelse), e, e->scope, 0);
        break;
    case TREE_withitem:
        push_any(j, py_tree_get(dict, py_tree_names.context_expr), e, e->scope, 0);
        push_any(j, py_tree_get(dict, py_tree_names.optional_vars), e, e->scope, JUDGE_SURE);
        break;
    case TREE_NamedExpr:
        named(j, e, dict);
        break;
    case TREE_AnnAssign:
        annotated(j, e, dict);
        break;
    case TREE_TryStar:
        try_star(j, e, dict);
        break;
    case TREE_ExceptHandler:
        handler(j, e, dict);
        break;
    case TREE_Global:
    case TREE_Nonlocal:
        declared(j, e, dict);
        break;
    case TREE_MatchAs:
    case TREE_MatchStar:
    case TREE_MatchMapping:
    case TREE_TypeVar:
    case TREE_TypeVarTuple:
    case TREE_ParamSpec:
        capture(j, e, dict);
        break;
    case TREE_MatchClass:
        class_pattern(j, e, dict);
        break;
    case TREE_keyword:
        py_judge_identifier(j, py_tree_get(dict, py_tree_names.arg), e->node);
        push_any(j, py_tree_get(dict, py_tree_names.value), e, e->scope, 0);
        break;
    case TREE_Tuple: /* a target of parts binds each of them; an annotation of parts has each in it */
    case TREE_List:
    case TREE_Starred:
        push_all(j, dict, e, e->flags & (JUDGE_SURE | JUDGE_ANNOTATION));
        break;
    default:
        push_all(j, dict, e, e->flags & JUDGE_ANNOTATION);
        break;
    }
}

void py_judge_walk(struct judge *j, PyObject *tree)
{
    const struct judge_entry root = {0};
    (void)py_judge_scope_new(j, 0, JUDGE_MODULE);
    py_judge_document(j, tree);
    push(j, tree, py_tree_type(tree), &root, 0, 0);
    while (j->depth && !j->bad) {
        struct judge_entry e = j->stack[--j->depth];
        PyObject *dict = py_tree_dict(e.node);
        size_t before = j->depth;
        if (!dict) {
            j->bad = ERR_MEMORY;
            return;
        }
        visit(j, &e, dict);
        turn(j, before);
    }
}
