/* SPDX-License-Identifier: Apache-2.0 */
/* Names against the rules: identifiers, attributes, keys, strings that are formats or annotations, and
 * imports. Each finding carries the place of the word itself, not of the expression around it: in
 * `().__class__.__base__` both nodes begin at the same parenthesis. */
#include "judge_inside.h"

#include "check/closed_members.h"
#include "judge.h"

#include <string.h>

static struct text_piece piece(const char *s)
{
    return (struct text_piece){s, strlen(s)};
}

struct text_piece py_judge_text(PyObject *o)
{
    Py_ssize_t len = 0;
    const char *s = o && PyUnicode_Check(o) ? PyUnicode_AsUTF8AndSize(o, &len) : NULL;
    if (!s)
        PyErr_Clear();
    return (struct text_piece){s, (size_t)len};
}

/* ---- places ---- */

static judge_position position(PyObject *node, PyObject *line_name, PyObject *column_name)
{
    PyObject *line = py_tree_field(node, line_name), *column = py_tree_field(node, column_name);
    long l = line && PyLong_Check(line) ? PyLong_AsLong(line) : 0;
    long c = column && PyLong_Check(column) ? PyLong_AsLong(column) : 0;
    PyErr_Clear();
    if (l < 0 || l > INT32_MAX || c < 0 || c > INT32_MAX)
        return 0;
    return (judge_position)l << 32 | (judge_position)c;
}

judge_position py_judge_start(PyObject *node)
{
    return position(node, py_tree_names.lineno, py_tree_names.col_offset);
}

judge_position py_judge_end(PyObject *node)
{
    return position(node, py_tree_names.end_lineno, py_tree_names.end_col_offset);
}

void py_judge_find_at(struct judge *j, const char *rule, const char *hint, enum check_sentence what,
                      struct text_piece operand, struct text_place place)
{
    char word[200], message[400];
    check_operand(operand.at ? operand.at : "", operand.len, word, sizeof word);
    check_sentence(what, word, message, sizeof message);
    const uint32_t column = place.column ? place.column + j->column : 0;
    const struct check_finding f = {rule, "input", word, message, hint, place.line, column};
    int r = check_report_add(j->report, &f);
    if (r < 0 && !j->bad)
        j->bad = r;
}

static struct text_place place_of(struct judge *j, judge_position at, size_t *ret_offset)
{
    return py_text_node_place(&j->cursor, (uint32_t)(at >> 32), (uint32_t)at, ret_offset);
}

void py_judge_find(struct judge *j, const struct policy_rule *rule, enum check_sentence what,
                   struct text_piece operand, PyObject *node)
{
    struct text_place place = place_of(j, py_judge_start(node), NULL);
    py_judge_find_at(j, rule->id, rule->hint, what, operand, place);
}

void py_judge_find_last(struct judge *j, const struct policy_rule *rule, enum check_sentence what,
                        struct text_piece operand, PyObject *node)
{
    judge_position end = py_judge_end(node);
    size_t offset;
    if ((uint32_t)end >= operand.len) {
        struct text_place place = place_of(j, end - operand.len, &offset);
        if (j->cursor.len - offset >= operand.len &&
            memcmp(j->cursor.text + offset, operand.at, operand.len) == 0) {
            py_judge_find_at(j, rule->id, rule->hint, what, operand, place);
            return;
        }
    }
    py_judge_find(j, rule, what, operand, node); /* written otherwise than it is read: NFKC */
}

/* ---- words ---- */

void py_judge_identifier(struct judge *j, PyObject *name, PyObject *node)
{
    struct text_piece word = py_judge_text(name);
    const struct policy_rule *rule =
        word.at ? check_ruleset_match(j->rules, POLICY_NAME_DENY, word.at, word.len) : NULL;
    if (rule)
        py_judge_find(j, rule, CHECK_SAY_NAME, word, node);
}

void py_judge_attribute_word(struct judge *j, PyObject *name, PyObject *node)
{
    struct text_piece word = py_judge_text(name);
    const struct policy_rule *rule =
        word.at ? check_ruleset_attribute(j->rules, word.at, word.len) : NULL;
    if (rule)
        py_judge_find_last(j, rule, CHECK_SAY_ATTRIBUTE, word, node);
}

/* The text of a node that is a constant string; an f-string of one constant is one too. */
static PyObject *constant_string(PyObject *node)
{
    for (int steps = 0; steps < 2; steps++) {
        uint8_t kind = py_tree_type(node)->kind;
        PyObject *value = kind == TREE_Constant    ? py_tree_field(node, py_tree_names.value)
                          : kind == TREE_JoinedStr ? py_tree_field(node, py_tree_names.values)
                                                   : NULL;
        if (!value || kind == TREE_Constant)
            return value && PyUnicode_Check(value) ? value : NULL;
        if (!PyList_Check(value) || PyList_GET_SIZE(value) != 1)
            return NULL;
        node = PyList_GET_ITEM(value, 0);
    }
    return NULL;
}

void py_judge_key(struct judge *j, PyObject *key, PyObject *node)
{
    PyObject *string = key ? constant_string(key) : NULL;
    struct text_piece word = py_judge_text(string);
    const struct policy_rule *rule =
        word.at ? check_ruleset_key(j->rules, word.at, word.len) : NULL;
    if (rule)
        py_judge_find(j, rule, CHECK_SAY_KEY, word, node);
}

/* ---- strings that something will read as code ---- */

static void format_fields(struct judge *j, const struct policy_rule *rule, struct text_piece text,
                          PyObject *node)
{
    struct text_fields fields = {text.at, text.at + text.len, NULL};
    struct text_piece name, field;
    enum text_field kind;
    while ((kind = py_text_next_field(&fields, &name, &field)) != TEXT_FIELD_NONE) {
        const struct policy_rule *refused =
            kind == TEXT_FIELD_ATTRIBUTE ? check_ruleset_attribute(j->rules, name.at, name.len)
                                         : check_ruleset_key(j->rules, name.at, name.len);
        if (refused)
            py_judge_find(j, rule, CHECK_SAY_FORMAT_FIELD, field, node);
    }
}

/* A forward reference ('Node', 'list[Node]') is fine: no call, and no word that is refused elsewhere. */
static void annotation_words(struct judge *j, const struct policy_rule *rule,
                             struct text_piece text, PyObject *node)
{
    struct text_piece rest = text, word;
    bool refused = memchr(text.at, '(', text.len) != NULL;
    while (!refused && py_text_next_word(&rest, &word)) {
        check_row row = check_ruleset_row(j->rules, word.at, word.len);
        refused = check_ruleset_attribute_row(j->rules, row, word.at, word.len) ||
                  check_at(j->rules, row, POLICY_CALL_DENY) ||
                  check_at(j->rules, row, POLICY_NAME_DENY);
    }
    if (refused)
        py_judge_find(j, rule, CHECK_SAY_ANNOTATION, text, node);
}

void py_judge_string(struct judge *j, PyObject *value, PyObject *node, bool annotation)
{
    const struct policy_rule *format =
        check_ruleset_construct(j->rules, POLICY_CONSTRUCT_FORMAT_FIELD);
    const struct policy_rule *code =
        annotation ? check_ruleset_construct(j->rules, POLICY_CONSTRUCT_STRING_ANNOTATION) : NULL;
    if (!format && !code)
        return;
    PyObject *bytes = NULL;
    struct text_piece text = py_judge_text(value);
    if (!text.at) { /* a lone surrogate in it: no UTF-8, but a format string all the same */
        bytes = PyUnicode_AsEncodedString(value, "utf-8", "surrogatepass");
        if (!bytes) {
            PyErr_Clear();
            j->bad = j->bad ? j->bad : ERR_MEMORY;
            return;
        }
        text = (struct text_piece){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
    }
    if (format)
        format_fields(j, format, text, node);
    if (code)
        annotation_words(j, code, text, node);
    Py_XDECREF(bytes);
}

/* ---- imports ---- */

/* MODULE.MEMBER as one text; false when it is longer than any name of ours. */
static bool join(struct text_piece module, struct text_piece member, char *out, size_t size,
                 struct text_piece *ret_joined)
{
    if (module.len + 1 + member.len >= size)
        return false;
    memcpy(out, module.at, module.len);
    out[module.len] = '.';
    memcpy(out + module.len + 1, member.at, member.len);
    *ret_joined = (struct text_piece){out, module.len + 1 + member.len};
    return true;
}

/* Whether MEMBER of MODULE is one that is not shown; says so. */
static bool hidden_member(struct judge *j, struct text_piece module, struct text_piece member,
                          PyObject *node, bool last)
{
    char name[256];
    struct text_piece whole;
    const struct policy_rule *rule =
        check_ruleset_member(j->rules, module.at, module.len, member.at, member.len);
    const char *id = rule ? rule->id : CHECK_RULE_CLOSED_MEMBER;
    const char *hint = rule ? rule->hint : NULL;
    if (!rule && check_ruleset_profile(j->rules)->guards)
        hint = check_closed_member(module.at, module.len, member.at, member.len);
    if (!hint || !join(module, member, name, sizeof name, &whole))
        return false;
    if (last) { /* the place of the member, the whole as operand */
        judge_position end = py_judge_end(node);
        struct text_place place = place_of(
            j, (uint32_t)end >= member.len ? end - member.len : py_judge_start(node), NULL);
        py_judge_find_at(j, id, hint, CHECK_SAY_MEMBER, whole, place);
    } else {
        struct text_place place = place_of(j, py_judge_start(node), NULL);
        py_judge_find_at(j, id, hint, CHECK_SAY_MEMBER, whole, place);
    }
    return true;
}

/* The refusal of PART as a part of a module: an attribute's, or that of a module's inside. */
static const struct policy_rule *part_rule(struct judge *j, struct text_piece part)
{
    const struct policy_rule *rule = check_ruleset_attribute(j->rules, part.at, part.len);
    bool dunder = part.len > 4 && memcmp(part.at, "__", 2) == 0 &&
                  memcmp(part.at + part.len - 2, "__", 2) == 0;
    return rule || !part.len || part.at[0] != '_' || dunder
               ? rule
               : check_ruleset_construct(j->rules, POLICY_CONSTRUCT_PRIVATE_MEMBER);
}

/* Remembers that NAME stands for MODULE. */
static void remember(struct judge *j, PyObject *name, struct text_piece module, bool is_module)
{
    check_row row = check_ruleset_row(j->rules, module.at, module.len);
    bool is_ruled = check_at(j->rules, row, CHECK_ROW_MEMBERS) != NULL ||
                    check_has_closed_members(module.at, module.len);
    if ((!is_ruled && !is_module) ||
        !py_judge_reserve(j, &j->imports, &j->import_cap, j->import_count, sizeof *j->imports))
        return;
    const char *copy = is_ruled ? arena_memdup(&j->arena, module.at, module.len) : NULL;
    j->imports[j->import_count++] = (struct judge_import){Py_NewRef(name), copy, is_module};
}

static const struct judge_import *imported(const struct judge *j, PyObject *name)
{
    for (size_t i = j->import_count; i > 0; i--)
        if (j->imports[i - 1].name == name)
            return &j->imports[i - 1];
    return NULL;
}

/* m._x: what no rule for attributes refuses may still be a module's inside. */
static void module_inside(struct judge *j, const struct judge_import *m, struct text_piece member,
                          PyObject *node)
{
    const struct policy_rule *inside = m->is_module ? part_rule(j, member) : NULL;
    if (inside && inside->kind == POLICY_CONSTRUCT_DENY)
        py_judge_find_last(j, inside, CHECK_SAY_ATTRIBUTE, member, node);
}

void py_judge_member(struct judge *j, PyObject *value, PyObject *attr, PyObject *node)
{
    struct text_piece member = py_judge_text(attr);
    check_row row = member.at ? check_ruleset_row(j->rules, member.at, member.len) : 0;
    const struct policy_rule *denied = check_at(j->rules, row, POLICY_MODULE_DENY);
    uint8_t kind = py_tree_type(value)->kind;
    bool direct = kind == TREE_Name;
    while (denied && kind == TREE_Attribute && (value = py_tree_field(value, py_tree_names.value)))
        kind = py_tree_type(value)->kind; /* json.codecs.builtins: down to json */
    if (!member.at || !value || kind != TREE_Name)
        return;
    const struct judge_import *m = imported(j, py_tree_field(value, py_tree_names.id));
    if (m && m->is_module && denied) /* what a module imported itself */
        py_judge_find_last(j, denied, CHECK_SAY_IMPORT, member, node);
    else if (m && direct && !(m->module && hidden_member(j, piece(m->module), member, node, true)))
        module_inside(j, m, member, node);
}

/* The fields of one alias, borrowed. */
static void alias_fields(PyObject *alias, PyObject **ret_name, PyObject **ret_asname)
{
    *ret_name = py_tree_field(alias, py_tree_names.name);
    *ret_asname = py_tree_field(alias, py_tree_names.asname);
}

/* Where an alias stands; before 3.10 only the statement knows. */
static PyObject *alias_node(PyObject *alias, PyObject *stmt)
{
    return py_judge_start(alias) ? alias : stmt;
}

/* Every part of a.b.c is a member of the part before it. Says which one is refused; true: it did. */
static bool refused_part(struct judge *j, struct text_piece module, PyObject *node)
{
    const char *dot = memchr(module.at, '.', module.len);
    for (size_t from = dot ? (size_t)(dot - module.at) : module.len; from < module.len;) {
        const char *start = module.at + from + 1;
        const char *stop = memchr(start, '.', module.len - from - 1);
        size_t to = stop ? (size_t)(stop - module.at) : module.len;
        struct text_piece part = {start, to - from - 1};
        const struct policy_rule *refused = part_rule(j, part);
        if (hidden_member(j, (struct text_piece){module.at, from}, part, node, false))
            return true;
        if (refused) {
            py_judge_find(j, refused, CHECK_SAY_ATTRIBUTE, part, node);
            return true;
        }
        from = to;
    }
    return false;
}

/* ---- what the source imports ---- */

static PyObject *modules; /* list of str */

PyObject *py_judge_modules(void)
{
    return modules;
}

void py_judge_modules_begin(struct judge *j)
{
    Py_XSETREF(modules, PyList_New(0));
    if (!modules) {
        PyErr_Clear();
        j->bad = j->bad ? j->bad : ERR_MEMORY;
    }
}

static void note_module(struct judge *j, struct text_piece module, struct text_piece member)
{
    char text[512];
    int len =
        snprintf(text, sizeof text, "%.*s%s%.*s", (int)module.len, module.at, member.at ? ":" : "",
                 member.at ? (int)member.len : 0, member.at ? member.at : "");
    if (len < 0 || (size_t)len >= sizeof text)
        return; /* no module has such a name */
    PyObject *name = PyUnicode_FromStringAndSize(text, len);
    if (!modules || !name || PyList_Append(modules, name) < 0) {
        PyErr_Clear();
        j->bad = j->bad ? j->bad : ERR_MEMORY;
    }
    Py_XDECREF(name);
}

/* `from module import names`; UP: from a package that dots stand for. */
static void note_names(struct judge *j, struct text_piece module, PyObject *names, bool up)
{
    for (Py_ssize_t i = 0; names && PyList_Check(names) && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = py_tree_field(PyList_GET_ITEM(names, i), py_tree_names.name);
        struct text_piece member = py_judge_text(name);
        if (member.at)
            note_module(j, module, member);
    }
    if (module.len && !up)
        note_module(j, module, (struct text_piece){0});
}

/* import a.b.c: every part of it, and what the statement binds. */
static void import_module(struct judge *j, const struct judge_entry *e, PyObject *alias)
{
    PyObject *name, *asname, *node = alias_node(alias, e->node);
    alias_fields(alias, &name, &asname);
    struct text_piece module = py_judge_text(name);
    if (!module.at)
        return;
    note_module(j, module, (struct text_piece){0});
    const char *dot = memchr(module.at, '.', module.len);
    struct text_piece first = {module.at, dot ? (size_t)(dot - module.at) : module.len};
    bool renamed = asname && PyUnicode_Check(asname);
    const struct policy_rule *rule = check_ruleset_import(j->rules, module.at, module.len, NULL);
    if (!rule && !renamed && dot) { /* `import os.path` hands over os */
        rule = check_ruleset_import(j->rules, first.at, first.len, NULL);
        rule = rule && rule->kind == POLICY_MODULE_DENY ? rule : NULL;
    }
    if (rule)
        py_judge_find(j, rule, CHECK_SAY_IMPORT, module, node);
    else if (!refused_part(j, module, node))
        py_judge_missing(j, e, module, node);
    PyObject *bound =
        renamed ? Py_NewRef(asname) : PyUnicode_FromStringAndSize(first.at, (Py_ssize_t)first.len);
    if (!bound) {
        PyErr_Clear();
        j->bad = j->bad ? j->bad : ERR_MEMORY;
        return;
    }
    PyUnicode_InternInPlace(&bound);
    py_judge_identifier(j, bound, node);
    py_judge_bind(j, e, bound, true);
    if (!rule) /* what hangs on a module that is refused anyway needs no second finding */
        remember(j, bound, renamed ? module : first, true);
    Py_DECREF(bound);
}

void py_judge_import(struct judge *j, const struct judge_entry *e)
{
    PyObject *names = py_tree_field(e->node, py_tree_names.names);
    for (Py_ssize_t i = 0; names && PyList_Check(names) && i < PyList_GET_SIZE(names); i++)
        import_module(j, e, PyList_GET_ITEM(names, i));
}

/* The refusal that holds for NAME out of MODULE: a longer line for module.name has the say. */
static const struct policy_rule *import_rule(struct judge *j, struct text_piece module,
                                             struct text_piece name, bool *ret_own)
{
    char text[512];
    struct text_piece whole;
    const struct policy_rule *allowed = NULL;
    *ret_own = false;
    if (join(module, name, text, sizeof text, &whole)) {
        check_row row = check_ruleset_row(j->rules, whole.at, whole.len);
        const struct policy_rule *denied = check_at(j->rules, row, POLICY_MODULE_DENY);
        *ret_own = denied != NULL;
        if (denied || check_at(j->rules, row, POLICY_IMPORT_ALLOW))
            return denied;
    }
    return check_ruleset_import(j->rules, module.at, module.len, &allowed);
}

/* What is wrong with the module of `from m import ...`: said once for the statement, not for each name. */
static void refused_module(struct judge *j, const struct policy_rule *rule,
                           struct text_piece module, PyObject *stmt, bool *said)
{
    if (*said)
        return;
    *said = rule ? true : refused_part(j, module, stmt);
    if (rule)
        py_judge_find(j, rule, CHECK_SAY_IMPORT, module, stmt);
}

static void import_member(struct judge *j, struct text_piece module, struct text_piece word,
                          PyObject *node)
{
    const struct policy_rule *refused = part_rule(j, word);
    if (!hidden_member(j, module, word, node, false) && refused)
        py_judge_find(j, refused, CHECK_SAY_ATTRIBUTE, word, node);
}

static void import_name(struct judge *j, const struct judge_entry *e, struct text_piece module,
                        PyObject *alias, bool *said)
{
    PyObject *name, *asname, *node = alias_node(alias, e->node);
    alias_fields(alias, &name, &asname);
    struct text_piece word = py_judge_text(name);
    if (!word.at)
        return;
    bool renamed = asname && PyUnicode_Check(asname), star = word.len == 1 && word.at[0] == '*',
         own;
    const struct policy_rule *rule = import_rule(j, module, word, &own);
    char text[512];
    struct text_piece whole = module;
    if (rule && own) {
        if (join(module, word, text, sizeof text, &whole))
            py_judge_find(j, rule, CHECK_SAY_IMPORT, whole, node);
    } else {
        refused_module(j, rule, module, e->node, said);
    }
    const struct policy_rule *form =
        star ? check_ruleset_construct(j->rules, POLICY_CONSTRUCT_STAR_IMPORT) : NULL;
    if (form)
        py_judge_find(j, form, CHECK_SAY_STAR_IMPORT, module, node);
    if (star)
        return;
    if (!rule)
        import_member(j, module, word, node);
    py_judge_identifier(j, name, node);
    if (renamed)
        py_judge_identifier(j, asname, node);
    PyObject *bound = renamed ? asname : name;
    py_judge_bind(j, e, bound, true);
    if (join(module, word, text, sizeof text, &whole))
        remember(j, bound, whole, false);
}

/* from .. import a: UP dots, and what they are refused by. */
static void relative_import(struct judge *j, struct text_piece module, long up, PyObject *node)
{
    const struct policy_rule *rule =
        check_ruleset_construct(j->rules, POLICY_CONSTRUCT_RELATIVE_IMPORT);
    if (!rule) /* what `.` is, the program says itself by __package__: no list has it */
        rule = check_ruleset_import(j->rules, "", 0, NULL);
    if (!rule)
        return;
    char text[256];
    snprintf(text, sizeof text, "%.*s%.*s", up < 10 ? (int)up : 10, "..........",
             module.len < 200 ? (int)module.len : 200, module.at ? module.at : "");
    py_judge_find(j, rule, CHECK_SAY_RELATIVE_IMPORT, piece(text), node);
}

void py_judge_import_from(struct judge *j, const struct judge_entry *e)
{
    PyObject *names = py_tree_field(e->node, py_tree_names.names);
    PyObject *level = py_tree_field(e->node, py_tree_names.level);
    PyObject *from = py_tree_field(e->node, py_tree_names.module);
    struct text_piece module = from && PyUnicode_Check(from) ? py_judge_text(from) : piece("");
    long up = level && PyLong_Check(level) ? PyLong_AsLong(level) : 0;
    PyErr_Clear();
    module = module.at ? module : piece("");
    bool said = up != 0; /* the package that dots stand for is no module of a list */
    if (up)
        relative_import(j, module, up, e->node);
    for (Py_ssize_t i = 0; names && PyList_Check(names) && i < PyList_GET_SIZE(names); i++)
        import_name(j, e, module, PyList_GET_ITEM(names, i), &said);
    if (!said)
        py_judge_missing(j, e, module, e->node);
    note_names(j, module, names, up != 0);
    if (from && PyUnicode_Check(from))
        py_judge_identifier(j, from, e->node);
}
