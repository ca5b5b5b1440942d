/* SPDX-License-Identifier: Apache-2.0 */
/* One C hook for the whole process. CPython keeps such hooks in a list of its own that no Python code can
 * see, and calls them with the interpreter's lock held; it removes them only at the very end.
 *
 * Most events are nobody's business, and some come often (a read of __code__, id(), sleep), so what the
 * rules say of an event is remembered by the place its name lies at, and compared before it is believed:
 * a guest may raise events of its own with sys.audit, from memory that is used again.
 *
 * Where guards are on, the events of a module that may not be imported are refused with it: a program that got
 * hold of its functions all the same gets nothing from them.
 *
 * Three events are judged by more than their name: `open` by its path, `import` by who asks, and, where
 * guards are on, `compile` and `exec`: there only libraries that are known to make code may, and
 * only code of the form they are known to make (guard_code.c). */
#include "hook_inside.h"

#include "guard_own.h"

#include <string.h>

static struct {
    const struct check_ruleset *rules; /* NULL: asleep */
    py_report *report;
    void *ctx;
    uint64_t seen[PY_HOOK_REPORTS_MAX];
    uint64_t by_rule[PY_HOOK_REPORTS_MAX];
    size_t count;
} hook;

/* ---- reporting ---- */

static uint64_t hash(const char *s, uint64_t h)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
    return h;
}

/* The line of the guest's own code that is running, the innermost. */
static unsigned own_line(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    int line = 0;
    Py_XINCREF(frame);
    while (frame && line <= 0) {
        if (guard_frame_globals(frame) == guard.globals)
            line = PyFrame_GetLineNumber(frame);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return line > 0 ? (unsigned)line : 0;
}

void py_hook_report(const char *layer, const char *rule, const char *detail, const char *hint)
{
    uint64_t by_rule = hash(rule, 0xcbf29ce484222325ULL), key = hash(detail, by_rule);
    size_t same = 0;
    if (!hook.report)
        return;
    for (size_t i = 0; i < hook.count; i++) {
        if (hook.seen[i] == key)
            return;
        same += hook.by_rule[i] == by_rule;
    }
    /* a flood of one kind leaves room for the others */
    if (hook.count == PY_HOOK_REPORTS_MAX || same >= PY_HOOK_REPORTS_MAX / 4)
        return;
    hook.seen[hook.count] = key;
    hook.by_rule[hook.count++] = by_rule;
    /* an exception that is under way stays so */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    hook.report(hook.ctx, layer, rule, detail, hint, own_line());
    PyErr_Restore(type, value, traceback);
}

static int refuse(const char *event, const char *id, const char *detail, const char *hint)
{
    py_hook_report(hook_layer(event), id, detail, hint);
    PyErr_Format(PyExc_PermissionError,
                 hint[0] ? "%s: refused by the rule %s; %s" : "%s: refused by the rule %s%s",
                 detail, id, hint);
    return -1;
}

/* ---- what the rules say of an event ---- */

struct verdict {
    const struct policy_rule *deny, *report;
    bool by_module; /* refused since its module is: libraries that are being loaded go free */
    int (*special)(const char *event, PyObject *args, const struct verdict *v);
};

#define CACHE 128
static struct {
    char event[40];
    struct verdict verdict;
} cache[CACHE];
static bool cached; /* something is in it */

/* An empty one is not written: each page of it that a child writes is a copy. */
static void forget_verdicts(void)
{
    if (cached)
        memset(cache, 0, sizeof cache);
    cached = false;
}

static int on_open(const char *event, PyObject *args, const struct verdict *v);
static int on_import(const char *event, PyObject *args, const struct verdict *v);
static int on_code(const char *event, PyObject *args, const struct verdict *v);
static int on_loading(const char *event, PyObject *args, const struct verdict *v);
static int on_hook(const char *event, PyObject *args, const struct verdict *v);
static int on_input(const char *event, PyObject *args, const struct verdict *v);

/* os.remove is what the module os does. Some events are named after no module, or after one that libraries
 * use on everybody's behalf. */
static const struct policy_rule true_files = {
    .name = "files",
    .id = "py.guard.files",
    .reason = "Python's own functions for files, which the process cannot use",
    .hint = "use open, os and pathlib as the program gets them"};

static const struct policy_rule *refused_with_module(const char *event)
{
    static const char *const free_events[] = {
        "builtins.",     "object.",        "cpython.",          "code.",
        "sys._getframe", "sys.excepthook", "sys.unraisablehook"};
    const char *dot = strchr(event, '.');
    for (size_t i = 0; i < sizeof free_events / sizeof *free_events; i++)
        if (strncmp(event, free_events[i], strlen(free_events[i])) == 0)
            return NULL;
    if (!guard.hidden || !dot)
        return NULL;
    if (check_ruleset_profile(hook.rules)->files &&
        guard_own_is_of_files(event, (size_t)(dot - event)))
        return &true_files; /* what the program imports by that name is ours, and asks elsewhere */
    const struct policy_rule *rule =
        check_ruleset_import(hook.rules, event, (size_t)(dot - event), NULL);
    return rule ? rule /* sys is listed, sys.settrace is not */
                : check_ruleset_member(hook.rules, event, (size_t)(dot - event), dot + 1,
                                       strlen(dot + 1));
}

static struct verdict judge(const char *event)
{
    static const struct {
        const char *event;
        int (*special)(const char *event, PyObject *args, const struct verdict *v);
    } specials[] = {
        {"open", on_open},
        {"import", on_import},
        {"compile", on_code},
        {"exec", on_code},
        {"marshal.loads", on_loading},
        {"marshal.load", on_loading},
        {"code.__new__", on_loading},
        {"os.listdir", on_loading},
        {"sys.addaudithook", on_hook},
        {"builtins.input", on_input},
    };
    size_t len = strlen(event);
    struct verdict v = {check_ruleset_match(hook.rules, POLICY_EVENT_DENY, event, len),
                        check_ruleset_match(hook.rules, POLICY_EVENT_REPORT, event, len), false,
                        NULL};
    if (!v.deny && !v.report) {
        v.deny = refused_with_module(event);
        v.by_module = v.deny != NULL;
    }
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        if (strcmp(event, specials[i].event) == 0)
            v.special = specials[i].special;
    return v;
}

static struct verdict remembered(const char *event)
{
    size_t i = ((uintptr_t)event >> 3) % CACHE;
    if (strncmp(cache[i].event, event, sizeof cache[i].event) == 0)
        return cache[i].verdict;
    struct verdict v = judge(event);
    if (strlen(event) < sizeof cache[i].event) {
        memcpy(cache[i].event, event, strlen(event) + 1);
        cache[i].verdict = v;
        cached = true;
    }
    return v;
}

static bool importer_runs(void);

static int by_rule(const char *event, PyObject *args, const struct verdict *v)
{
    char detail[HOOK_DETAIL];
    if (!v->deny && !v->report)
        return 0;
    if (!v->deny && hook_socket_is_local(event, args))
        return 0; /* asyncio's pair; a socket that is none of a pair the kernel refuses and reports */
    const bool asks = hook_asks_machine(event, args);
    if ((!v->deny || v->by_module) && (guard_asker() == GUARD_LOADING || importer_runs())) {
        if (!asks)
            return 0;
        /* a library asks about the machine; the program did not. Without a fork that would be refused */
        PyErr_SetString(PyExc_PermissionError, "there are no processes here");
        return -1;
    }
    hook_detail(event, args, detail, sizeof detail);
    if (asks)
        return refuse(event, v->deny ? v->deny->id : v->report->id, detail, "");
    if (v->deny)
        return refuse(event, v->deny->id, detail, v->deny->hint);
    py_hook_report(hook_layer(event), v->report->id, detail, v->report->hint);
    return 0;
}

/* ---- the special ones ---- */

/* The importer's own work: reading files, unpacking their code, running it. */
static bool importer_runs(void)
{
    return guard_runs_in("_frozen_importlib_external") || guard_runs_in("_frozen_importlib") ||
           guard_runs_in("zipimport");
}

static int on_loading(const char *event, PyObject *args, const struct verdict *v)
{
    return importer_runs() || guard.unpacking || guard_asker() == GUARD_LOADING
               ? 0
               : by_rule(event, args, v);
}

static int on_open(const char *event, PyObject *args, const struct verdict *v)
{
    char detail[HOOK_DETAIL];
    bool closed =
        guard.hidden && (check_ruleset_profile(hook.rules)->files ||
                         check_ruleset_match(hook.rules, POLICY_BUILTIN_REMOVE, "open", 4));
    if ((!v->deny && !v->report && !closed) || importer_runs() || guard_asker() == GUARD_LOADING)
        return 0;
    if (closed && !PyEval_GetFrame()) { /* nobody's code: the interpreter prints a traceback */
        PyErr_SetString(PyExc_PermissionError, "there are no files here");
        return -1;
    }
    if (closed && !hook_open_is_library(args, detail, sizeof detail))
        return refuse(event, v->report ? v->report->id : "py.guard.open", detail,
                      "there are no files here; keep the data in memory");
    if ((!v->deny && !v->report) || !hook_open_is_wrong(args, detail, sizeof detail))
        return 0;
    if (v->deny)
        return refuse(event, v->deny->id, detail, v->deny->hint);
    py_hook_report(hook_layer(event), v->report->id, detail, v->report->hint);
    return 0;
}

/* What the guest's own code loads is held against the import rules once more: a name that is put together
 * at run time passed the judge. What libraries load in turn is their affair, also when they are written
 * in C and have no frame of their own. Where guards are on, their __import__ has decided already. */
static bool loaded_by_c(const char *module)
{
    return strcmp(module, "_strptime") == 0 || strcmp(module, "encodings") == 0 ||
           strncmp(module, "encodings.", 10) == 0;
}

static int on_import(const char *event, PyObject *args, const struct verdict *v)
{
    PyObject *name = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    Py_ssize_t len;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &len) : NULL;
    if (!text) {
        PyErr_Clear();
        return by_rule(event, args, v);
    }
    if (guard.hidden || !guard.globals || PyEval_GetGlobals() != guard.globals || loaded_by_c(text))
        return 0;
    const struct policy_rule *rule = check_ruleset_import(hook.rules, text, (size_t)len, NULL);
    char detail[HOOK_DETAIL];
    snprintf(detail, sizeof detail, "import %.150s", text);
    return rule ? refuse(event, rule->id, detail, rule->hint) : by_rule(event, args, v);
}

/* In a guarded interpreter code comes from the driver, from the importer, or from libraries that make it
 * for others: of these, what runs is looked at. typing and ast only ever compile. exec() gives a namespace
 * that has no builtins its caller's: should the guest's have come to that, it gets its own back. */
static int on_code(const char *event, PyObject *args, const struct verdict *v)
{
    PyObject *code = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    bool runs = strcmp(event, "exec") == 0;
    if (!PyEval_GetGlobals() || importer_runs())
        return 0;
    if (!guard.hidden)
        return by_rule(event, args, v);
    if (guard_asker() == GUARD_LOADING) /* numpy makes functions of text while it is loaded */
        return 0;
    bool maker = guard_runs_in("dataclasses") || guard_runs_in("collections");
    if (!runs && (maker || guard_runs_in("typing") || guard_runs_in("ast")))
        return 0;
    if (runs && maker && code && guard_code_is_plain(code))
        return guard.globals ? PyDict_SetItemString(guard.globals, "__builtins__", guard.builtins)
                             : 0;
    return refuse(event, runs ? "py.guard.exec" : "py.guard.compile",
                  runs ? "code that was made at run time" : "source that was made at run time",
                  "write the code itself");
}

static int on_hook(const char *event, PyObject *args, const struct verdict *v)
{
    (void)args;
    return refuse(event, v->deny ? v->deny->id : "py.event.sys.addaudithook", "sys.addaudithook",
                  v->deny ? v->deny->hint : "leave it out");
}

static void (*ask)(void);

void py_hook_input(void (*asks)(void))
{
    ask = asks;
}

static void (*note)(const char *id);
static bool in_order_said; /* the one note that there is, in this program */

void py_hook_notes(void (*notes)(const char *id))
{
    note = notes;
}

void py_hook_note(const char *id)
{
    if (note && !in_order_said)
        note(id);
    in_order_said = true;
}

static int on_input(const char *event, PyObject *args, const struct verdict *v)
{
    int r = by_rule(event, args, v);
    if (r == 0 && ask)
        ask();
    return r;
}

/* ---- the hook ---- */

static int on_event(const char *event, PyObject *args, void *ctx)
{
    (void)ctx;
    if (!hook.rules)
        return 0;
    struct verdict v = remembered(event);
    if (!args || !PyTuple_Check(args)) /* CPython gives a tuple, or nothing */
        return v.special == on_hook ? on_hook(event, args, &v) : 0;
    return v.special ? v.special(event, args, &v) : by_rule(event, args, &v);
}

int py_hook_install(struct err *err)
{
    if (PySys_AddAuditHook(on_event, NULL) < 0) {
        PyErr_Clear();
        return err_set(err, ERR_STATE, "this Python refuses an audit hook");
    }
    return 0;
}

void hook_rules(const struct check_ruleset *rules)
{
    forget_verdicts();
    if (hook.rules)
        hook.rules = rules;
}

void py_hook_arm(const struct check_ruleset *rules, const char *file, py_report *report, void *ctx)
{
    (void)file; /* the guest's code is known by its namespace */
    forget_verdicts();
    hook.rules = rules;
    hook.report = report;
    hook.ctx = ctx;
    hook.count = 0;
    in_order_said = false;
}
