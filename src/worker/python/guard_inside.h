/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the guards share, and nobody else.
 *
 * Takes:   nothing: one state and the calls between the guards' own files.
 * Gives:   the marks that guards put on types, the refusal that they all end in.
 * Never:   is included outside guard*.c, facade*.c, builtins*.c, print*.c, hook*.c and their tests.
 * Runs in: cordon-python, in the jail.
 */
#ifndef WORKER_PYTHON_GUARD_INSIDE_H
#define WORKER_PYTHON_GUARD_INSIDE_H

#include "guard.h"

#if PY_VERSION_HEX < 0x030A0000 /* what 3.9 lacks */
static inline PyObject *Py_NewRef(PyObject *x)
{
    Py_INCREF(x);
    return x;
}
#endif
#include "facade.h"

/* Bits of tp_flags that CPython does not use (it ends at 31); they are not inherited. */
#define GUARD_OWN    (1UL << 48) /* a class statement of the guest made this type */
#define GUARD_CLOSED (1UL << 49) /* guest code has no business with values of this type */
#define GUARD_LOCKED (1UL << 50) /* a library's class, immutable by our doing */
_Static_assert(sizeof(unsigned long) == 8, "tp_flags has room for marks of our own");

/* The guarded operations. A rewritten tree names them by placeholder constants, and py_guard_compile
 * puts the functions in their place: they are constants of the code, which no name can shadow. */
#define GUARD_OPS(X)                                                                               \
    X(GET, "attribute")     /* (x, 'name'): x.name, for a name that no rule refuses */             \
    X(OWN_GET, "attribute") /* the same for a private name: only of the guest's own objects */     \
    X(SET, "attribute")     /* (x, 'name'): x, if its attribute may be set or deleted */           \
    X(OWN_SET, "attribute")                                                                        \
    X(AUG, "attribute") /* (x, 'name'): x, if its attribute may be read and set */                 \
    X(OWN_AUG, "attribute")                                                                        \
    X(ITEM, "item")          /* (x, key): x[key] */                                                \
    X(KEY, "item")           /* (key): key, if it may be used as one */                            \
    X(ITER, "iteration")     /* (x): x, or what gives its elements one by one, looked at */        \
    X(ITER_TUPLES, "unpack") /* (x): the same, and its elements are taken apart */                 \
    X(UNPACK, "unpack")      /* (x): x, or its elements, looked at */                              \
    X(REFUSE, "refusal")     /* (x, 'name'): refuses the name, once x is evaluated */

enum guard_op {
#define GUARD_ENUM(name, word) GUARD_##name,
    GUARD_OPS(GUARD_ENUM)
#undef GUARD_ENUM
        GUARD_OP_COUNT
};

struct guard_state {
    const struct check_ruleset *rules; /* of the profile in force; NULL: not guarding */
    PyObject *globals;        /* the guest's namespace; borrowed from sys.modules['__main__'] */
    PyObject *builtins;       /* its builtins: a dict of ours */
    PyObject *security_error; /* what a refusal raises */
    PyObject *compile;        /* Python's own, as it was before there was a guest */
    PyObject *ops[GUARD_OP_COUNT];   /* the functions */
    PyObject *marks[GUARD_OP_COUNT]; /* their placeholders: bytes that nobody can guess */
    PyTypeObject *field; /* dataclasses.Field, once it was seen: names that are read later */
    int building;        /* class statements of the guest that are under way */
    bool unpacking;      /* code that was compiled into the worker */
    bool hidden;         /* the interpreter has been closed */
};
extern struct guard_state guard;

/* ---- refusing: reports, raises, and returns NULL so that `return guard_refuse(...)` reads well ---- */

PyObject *guard_refuse(const struct policy_rule *rule, const char *detail);
/* By a rule that stands in no table: ID and HINT of ours. */
PyObject *guard_refuse_own(const char *id, const char *detail, const char *hint);

/* ---- names ---- */

enum guard_name {
    GUARD_NAME_FREE,    /* no rule refuses it */
    GUARD_NAME_PRIVATE, /* begins with one underscore: free on the guest's own objects alone */
    GUARD_NAME_REFUSED
};
/* *ret_rule is set unless it is free. */
enum guard_name guard_name(const char *name, size_t len, const struct policy_rule **ret_rule);
/* The same at run time; refuses (-1) what is not free, also private names of others than OBJECT, which
 * may be NULL. NAME may be of any type and any subclass of str; *ret_name: exact, interned. */
int guard_name_for(PyObject *object, PyObject *name, PyObject **ret_name);
/* A name that looks like __x__. */
bool guard_is_dunder(const char *name, size_t len);

/* ---- objects ---- */

static inline bool guard_is_closed(PyObject *x)
{
    return (Py_TYPE(x)->tp_flags & GUARD_CLOSED) != 0;
}
/* A class of the guest, also one whose class statement is still running. */
bool guard_is_own_type(PyTypeObject *type);
/* A function that the guest's code defines. */
bool guard_is_own_function(PyObject *x);
/* The private NAME on X is the guest's to use: X is an object or class of its own, and no library class
 * that it inherits from uses that name. */
bool guard_owns(PyObject *x, PyObject *name);
/* May attributes of X be set at all? 0, or -1 after refusing. */
int guard_may_set(PyObject *x, PyObject *name);
/* X, or NULL after refusing: what no guest code should hold. Steals nothing. */
PyObject *guard_closed(PyObject *x);

PyObject *guard_get(PyObject *x, PyObject *name); /* by a name that was checked */

/* ---- frames ---- */

PyObject *guard_frame_globals(PyFrameObject *frame); /* borrowed */
/* Whose doing is this: the guest's, or that of a library module which is being loaded? */
enum guard_asker { GUARD_NOBODY, GUARD_GUEST, GUARD_LOADING };
enum guard_asker guard_asker(void);
/* The namespace of the running Python function is that of MODULE. */
bool guard_runs_in(const char *module);

/* ---- parts ---- */

void guard_use_rules(const struct check_ruleset *rules);

int guard_ops_init(void);             /* guard_ops.c */
int guard_tree_init(struct err *err); /* guard_tree.c */
int guard_class_init(void);           /* guard_class.c */
int guard_class_close(void);          /* from now on libraries' classes stay as they are */
int guard_learn_classes(void);        /* what an import has loaded is a library's */
void guard_lock_classes(bool lock);   /* unlocked while a library is loaded */
void guard_learn_if_loaded(void);     /* libraries load others, too */
bool guard_is_library_type(PyTypeObject *type);
void guard_mark_own(PyObject *type);
int guard_iter_init(void); /* guard_iter.c */
int guard_hide(void);      /* guard_hide.c: 0, or -1 with a Python exception */

/* guard_collect.c */
int guard_collect_start(
    void); /* from now on cyclic garbage is collected between two instructions */
/* guard_library.c: closes the ways round the guards that MODULE offers, before a guest sees it */
int guard_library(PyObject *module, const char *name);
/* guard_buffers.c: values are converted before a buffer is looked at */
void guard_close_bytearray(void);
int guard_close_array(PyObject *module);
/* guard_change.c: what a library made stays as it is */
bool guard_is_init(PyObject *name); /* `__init__` */
PyObject *
guard_init_of(PyObject *init); /* one that makes only the guest's objects again; steals INIT */
PyObject *guard_set_target(PyObject *x);      /* X, or what it hands attributes on to; borrowed */
bool guard_is_library_function(PyObject *x);  /* one that stands in a library's module or class */
bool guard_is_namedtuple(PyObject *function); /* guard_hide.c: the one that a namedtuple makes */
void guard_close_functions(void);
int guard_close_hooks(void); /* guard_hooks.c: which classes a __subclasshook__ is asked about */
int guard_close_copy(PyObject *module);
int guard_close_dataclasses(PyObject *module);
int guard_close_unittest(PyObject *module);
/* Checks a dotted name, part by part. TEXT may be a subclass of str; *ret_exact: a plain copy. */
int guard_check_dotted(PyObject *text, PyObject **ret_exact);
/* Puts the function of DEF into MODULE under its name; *ret_before: what was there. */
int guard_exchange(PyObject *module, PyMethodDef *def, PyObject **ret_before);
int guard_check_format(PyObject *format); /* the fields of a str: 0, or -1 after refusing */
PyObject *guard_iter(PyObject *x, bool tuples);
PyObject *guard_build_class(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                            PyObject *kwnames);
/* Is CODE, which a library made at run time, of the few forms that dataclasses and namedtuple make? */
bool guard_code_is_plain(PyObject *code);

#endif
