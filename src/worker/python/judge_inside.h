/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Python judge share: the walk's state, and what it writes down on its way.
 *
 * Takes:   nothing: a layout.
 * Gives:   one struct for one judgement.
 * Never:   is included outside the judge.
 * Runs in: cordon-python.
 */
#ifndef WORKER_PYTHON_JUDGE_INSIDE_H
#define WORKER_PYTHON_JUDGE_INSIDE_H

#include "judge_tree.h"

#include "check/report.h"
#include "check/ruleset_inside.h"
#include "check/sentence.h"
#include "judge_text.h"

/* A node that is still to be looked at. Pointers are borrowed: the tree outlives the walk. */
struct judge_entry {
    PyObject *node;
    PyObject *stmt;  /* the statement it is in */
    PyObject *block; /* the list that statement is in */
    uint32_t scope;
    uint8_t kind;
    uint8_t flags;
};
enum {
    JUDGE_CALLEE = 1,     /* it is what a call calls, or a decorator */
    JUDGE_ANNOTATION = 2, /* it is (in) an annotation: strings are code */
    JUDGE_SURE = 4,       /* a target that the statement binds whenever it ends */
};

/* Scopes, as far as it takes to tell a builtin from a variable of the same name. */
enum judge_scope_kind { JUDGE_MODULE, JUDGE_CLASS, JUDGE_FUNCTION, JUDGE_COMPREHENSION };
struct judge_scope {
    uint32_t parent;
    uint32_t bindings; /* the last one written down, plus one; 0: none */
    enum judge_scope_kind kind;
};

/* Lines and byte columns in one number, so that they compare. */
typedef uint64_t judge_position;
#define JUDGE_FOREVER UINT64_MAX

/* What happened to a name that a call rule is about. */
enum judge_act { JUDGE_BINDS, JUDGE_DELETES, JUDGE_SAYS_GLOBAL, JUDGE_SAYS_NONLOCAL };
struct judge_binding {
    const char *name; /* the rule's */
    enum judge_act act;
    uint32_t next;           /* of the same scope, as above */
    judge_position from, to; /* where it holds for sure, outside of functions; from > to: nowhere */
};
struct judge_use {
    const struct policy_rule *rule;
    PyObject *node;
    uint32_t scope;
    bool called;
};

/* A name that an import bound. */
struct judge_import {
    PyObject *name;     /* ours; interned, as the parser's are: equal names are one object */
    const char *module; /* what it stands for, if any member of that is ruled; else NULL */
    bool is_module;     /* by `import`: what hangs on it are the module's own imports */
};

struct judge {
    const struct check_ruleset *rules;
    struct check_report *report;
    PyObject *globals; /* of a session, borrowed; or NULL */
    PyObject *body;    /* the statements of the program itself, borrowed; NULL: not known */
    struct text_cursor cursor;
    uint32_t
        column; /* of the program, where the text begins: examples in a docstring are indented */
    struct arena arena; /* for the lists' strings; small */
    struct judge_entry *stack;
    struct judge_scope *scopes;
    struct judge_binding *bindings;
    struct judge_use *uses;
    struct judge_import *imports;
    size_t depth, scope_count, binding_count, use_count, import_count;
    size_t depth_cap, scope_cap, binding_cap, use_cap, import_cap;
    int bad; /* the first error of ours; sticks */
};

/* judge_walk.c */
void py_judge_walk(struct judge *j, PyObject *tree);

/* judge_names.c: what is found, and where */
struct text_piece
py_judge_text(PyObject *o); /* of a str; at NULL when it is none, or cannot be had */
judge_position py_judge_start(PyObject *node);
judge_position py_judge_end(PyObject *node);
void py_judge_find(struct judge *j, const struct policy_rule *rule, enum check_sentence what,
                   struct text_piece operand, PyObject *node);
/* The same for a name at the end of NODE: the place is the name's own. */
void py_judge_find_last(struct judge *j, const struct policy_rule *rule, enum check_sentence what,
                        struct text_piece operand, PyObject *node);
void py_judge_find_at(struct judge *j, const char *rule, const char *hint, enum check_sentence what,
                      struct text_piece operand, struct text_place place);
/* An identifier in any of the fields that hold one. */
void py_judge_identifier(struct judge *j, PyObject *name, PyObject *node);
void py_judge_attribute_word(struct judge *j, PyObject *name, PyObject *node);
void py_judge_key(struct judge *j, PyObject *key, PyObject *node);
void py_judge_string(struct judge *j, PyObject *value, PyObject *node, bool annotation);
void py_judge_modules_begin(struct judge *j);
void py_judge_import(struct judge *j, const struct judge_entry *e);
void py_judge_import_from(struct judge *j, const struct judge_entry *e);
/* judge_missing.c: whether the import of MODULE, which no rule refuses, certainly runs and finds nothing; says so. */
void py_judge_missing(struct judge *j, const struct judge_entry *e, struct text_piece module,
                      PyObject *node);
/* ATTR of VALUE: whether VALUE is a module that does not show it. */
void py_judge_member(struct judge *j, PyObject *value, PyObject *attr, PyObject *node);

/* judge.c: parses and judges what the cursor has; the tree, or NULL with a finding. And what J holds is given back. */
PyObject *py_judge_piece(struct judge *j);
void py_judge_done(struct judge *j);

/* judge_examples.c: docstrings are noted while the tree is walked, and judged when it is known what is imported */
void py_judge_examples_begin(struct judge *j);
void py_judge_document(struct judge *j, PyObject *node);
void py_judge_documents(struct judge *j, PyObject *tree);

/* judge_scope.c */
uint32_t py_judge_scope_new(struct judge *j, uint32_t parent, enum judge_scope_kind kind);
/* NAME is bound in the entry's scope; SURE: whenever its statement ends. */
void py_judge_bind(struct judge *j, const struct judge_entry *e, PyObject *name, bool sure);
void py_judge_bind_in(struct judge *j, uint32_t scope, PyObject *name);
void py_judge_unbind(struct judge *j, uint32_t scope, PyObject *name, enum judge_act act);
void py_judge_use(struct judge *j, const struct policy_rule *rule, const struct judge_entry *e);
void py_judge_resolve(struct judge *j);

/* Room for one more of COUNT items; false without memory. */
bool py_judge_reserve(struct judge *j, void *list, size_t *cap, size_t count, size_t size);

#endif
