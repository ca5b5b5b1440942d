/* SPDX-License-Identifier: Apache-2.0 */
/* The guards' one state, the question whether a name may be used, and the refusal.
 *
 * A guard is only as good as what it cannot be talked out of. So the functions are constants of the
 * compiled code: there is no name to rebind, no namespace to look them up in, and replacing builtins
 * only hurts the one who does it. Names are decided when the tree is rewritten; at run time what is left
 * is one test of the object's type. And since there are ways to an attribute that no tree shows
 * (format fields, match arguments, look-ups inside libraries), the attributes that lead from a value
 * to the interpreter are closed in the types themselves (guard_hide.c). */
#include "guard_inside.h"
#include "guard_own.h"

#include "builtins.h"
#include "hook_inside.h"
#include "print.h"

#include <string.h>
#include <sys/random.h>

struct guard_state guard;

/* ---- refusing ---- */

static void raise_refusal(const char *id, const char *detail, const char *hint)
{
    py_hook_report("input", id, detail, hint);
    PyErr_Format(guard.security_error,
                 hint[0] ? "%.200s: refused by the rule %s; %s"
                         : "%.200s: refused by the rule %s%s",
                 detail, id, hint);
}

PyObject *guard_refuse(const struct policy_rule *rule, const char *detail)
{
    raise_refusal(rule->id, detail, rule->hint);
    return NULL;
}

PyObject *guard_refuse_own(const char *id, const char *detail, const char *hint)
{
    raise_refusal(id, detail, hint);
    return NULL;
}

bool py_guard_refused(void)
{
    return PyErr_ExceptionMatches(guard.security_error);
}

/* ---- names ---- */

/* What leads from any value to the interpreter; refused whatever a profile with guards forgets. */
static const char *const always[] = {
    "__builtins__", "__closure__", "__code__",         "__dict__",      "__func__",
    "__globals__",  "__loader__",  "__getattribute__", "__reduce__",    "__reduce_ex__",
    "__self__",     "__spec__",    "__subclasses__",   "__traceback__", "__wrapped__",
    "__base__",     "__bases__",   "__mro__",          "__class__",     "__setstate__",
    "__objclass__", "__import__",  "__setattr__",      "__delattr__",   "__match_args__",
    "ag_await",     "ag_code",     "ag_frame",         "cell_contents", "co_consts",
    "co_code",      "cr_await",    "cr_code",          "cr_frame",      "cr_origin",
    "f_back",       "f_builtins",  "f_code",           "f_globals",     "f_locals",
    "f_trace",      "gi_code",     "gi_frame",         "gi_yieldfrom",  "tb_frame",
    "tb_next",
};
static const struct policy_rule interpreter = {POLICY_ATTRIBUTE_DENY, "", "py.guard.interpreter",
                                               "leads from a value to the interpreter",
                                               "use the value itself"};

bool guard_is_dunder(const char *name, size_t len)
{
    return len > 4 && name[0] == '_' && name[1] == '_' && name[len - 1] == '_' &&
           name[len - 2] == '_';
}

/* Members of C types that show a pointer as a number: functools.partial has the first. */
static bool is_pointer(const char *name, size_t len)
{
    static const char *const pointers[] = {"__vectorcalloffset__", "__weaklistoffset__",
                                           "__dictoffset__"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (strlen(pointers[i]) == len && memcmp(pointers[i], name, len) == 0)
            return true;
    return false;
}

static bool is_always(const char *name, size_t len)
{
    if (name[0] != '_' && !memchr(name, '_', len < 5 ? len : 5))
        return false;
    if (is_pointer(name, len))
        return true;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strlen(always[i]) == len && memcmp(always[i], name, len) == 0)
            return true;
    return false;
}

/* Private names that are a class's public side. */
static bool is_offered(const char *name, size_t len)
{
    static const char *const offered[] = {"_asdict", "_replace", "_make", "_fields",
                                          "_field_defaults"};
    for (size_t i = 0; i < sizeof offered / sizeof *offered; i++)
        if (strlen(offered[i]) == len && memcmp(offered[i], name, len) == 0)
            return true;
    return false;
}

enum guard_name guard_name(const char *name, size_t len, const struct policy_rule **ret_rule)
{
    static const struct policy_rule private = {POLICY_ATTRIBUTE_DENY, "_*", "py.guard.private",
                                               "an object's inside",
                                               "use what the object offers by name"};
    const struct policy_rule *rule = check_ruleset_attribute(guard.rules, name, len);
    bool inside = name[0] == '_' && !guard_is_dunder(name, len);
    if (!rule && inside && !is_offered(name, len) &&
        !check_ruleset_match(guard.rules, POLICY_ATTRIBUTE_ALLOW, name, len))
        rule = &private;
    *ret_rule = rule;
    if (rule && inside && strchr(rule->name, '*'))
        return GUARD_NAME_PRIVATE; /* `_*` speaks of others' insides, not of the program's own */
    if (!rule && is_always(name, len))
        rule = *ret_rule = &interpreter;
    return rule ? GUARD_NAME_REFUSED : GUARD_NAME_FREE;
}

int guard_name_for(PyObject *object, PyObject *name, PyObject **ret_name)
{
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'",
                     Py_TYPE(name)->tp_name);
        return -1;
    }
    /* of a subclass the characters count: what it says of itself is the guest's word */
    PyObject *exact = PyUnicode_FromObject(name);
    if (exact) /* before its characters are looked at: an equal one may take its place, and free it */
        PyUnicode_InternInPlace(&exact);
    Py_ssize_t len;
    const char *text = exact ? PyUnicode_AsUTF8AndSize(exact, &len) : NULL;
    const struct policy_rule *rule;
    if (!text) {
        Py_XDECREF(exact);
        return -1;
    }
    if (!object && guard_is_init(exact)) { /* on whatever object: nobody looks at it */
        guard_refuse_own("py.guard.write", "__init__ by its name as text", "call the class");
        Py_DECREF(exact);
        return -1;
    }
    enum guard_name kind = guard_name(text, (size_t)len, &rule);
    if (kind == GUARD_NAME_FREE ||
        (kind == GUARD_NAME_PRIVATE && object && guard_owns(object, exact))) {
        *ret_name = exact;
        return 0;
    }
    guard_refuse(rule, text);
    Py_DECREF(exact);
    return -1;
}

/* ---- start ---- */

static int make_marks(void)
{
    unsigned char secret[24];
    for (int i = 0; i < GUARD_OP_COUNT; i++) {
        if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
            return -1;
        guard.marks[i] = PyBytes_FromStringAndSize((const char *)secret, sizeof secret);
        if (!guard.marks[i])
            return -1;
    }
    return 0;
}

static int take_compile(void)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    guard.compile = builtins ? PyObject_GetAttrString(builtins, "compile") : NULL;
    Py_XDECREF(builtins);
    return guard.compile ? 0 : -1;
}

int py_guard_init(struct err *err)
{
    guard.security_error = PyErr_NewExceptionWithDoc(
        "cordon.SecurityError", "The program reached for something that its profile refuses.", NULL,
        NULL);
    if (!guard.security_error || take_compile() < 0 || make_marks() < 0 || guard_ops_init() < 0 ||
        guard_iter_init() < 0 || guard_class_init() < 0 || facade_init() < 0 || print_init() < 0) {
        PyErr_Clear();
        return err_set(err, ERR_MEMORY, "no memory for the guards");
    }
    return guard_tree_init(err);
}

/* ---- the interpreter ---- */

static int close_interpreter(void)
{
    if (guard.hidden)
        return 0;
    if (guard_hide() < 0 || print_streams() < 0 || guard_collect_start() < 0)
        return -1;
    guard.hidden = true;
    return 0;
}

int py_guard_close(const struct check_ruleset *rules, struct err *err)
{
    if (!check_ruleset_profile(rules)->guards || close_interpreter() == 0)
        return 0;
    PyErr_Print();
    return err_set(err, ERR_MISSING, "the interpreter cannot be closed for guards");
}

/* ---- the namespace ---- */

/* A session may be told its rules again; what was shown by the old ones is forgotten. */
void guard_use_rules(const struct check_ruleset *rules)
{
    if (guard.rules != rules)
        facade_forget();
    guard.rules = rules;
    guard_own_serve_files(rules && check_ruleset_profile(rules)->files);
}

static int fill_globals(PyObject *globals, PyObject *builtins)
{
    if (PyDict_SetItemString(globals, "__builtins__", builtins) < 0)
        return -1;
    /* the importer's own words about a module lead to the importer */
    static const char *const gone[] = {"__loader__", "__spec__", "__package__"};
    for (size_t i = 0; guard.rules && i < sizeof gone / sizeof *gone; i++)
        if (PyDict_DelItemString(globals, gone[i]) < 0)
            PyErr_Clear();
    return 0;
}

static PyObject *fresh_main(PyObject *builtins)
{
    PyObject *module = PyModule_New("__main__");
    PyObject *globals = module ? PyModule_GetDict(module) : NULL; /* borrowed */
    if (!globals || fill_globals(globals, builtins) < 0 ||
        PyDict_SetItemString(PyImport_GetModuleDict(), "__main__", module) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    Py_INCREF(globals);
    Py_DECREF(module); /* sys.modules holds it */
    return globals;
}

void py_guard_rules(const struct check_ruleset *rules)
{
    if (guard.rules)
        guard_use_rules(rules);
    hook_rules(rules);
}

PyObject *py_guard_globals(const struct check_ruleset *rules)
{
    bool on = check_ruleset_profile(rules)->guards;
    if (!on && guard.hidden) {
        PyErr_SetString(PyExc_RuntimeError, "a guarded interpreter serves no other profile");
        return NULL;
    }
    guard_use_rules(on ? rules : NULL);
    if (!on) {
        PyObject *builtins = PyImport_ImportModule("builtins");
        PyObject *globals = builtins ? fresh_main(builtins) : NULL;
        Py_XDECREF(builtins);
        return guard.globals = globals;
    }
    Py_XSETREF(guard.builtins, builtins_restricted());
    PyObject *globals = guard.builtins ? fresh_main(guard.builtins) : NULL;
    guard.globals = globals; /* before the hide: it asks whose code is running */
    if (globals && close_interpreter() < 0) {
        Py_DECREF(globals);
        return guard.globals = NULL;
    }
    return globals;
}
