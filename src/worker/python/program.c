/* SPDX-License-Identifier: Apache-2.0 */
/* One program at a time, from its verdict to its last value. What is judged is a tree, and that very tree is compiled:
 * there is no second parser to differ from the first. */
#include "program.h"

#include "call.h"
#include "check/report.h"
#include "compute.h"
#include "fault.h"
#include "folder.h"
#include "guard.h"
#include "hook.h"
#include "host.h"
#include "interp.h"
#include "judge.h"
#include "names.h"
#include "worker/frame/channel.h"
#include "worker/frame/host.h"

#include <string.h>

static struct {
    PyObject *tree;     /* what was judged; NULL unless the report was clean */
    PyObject *code;     /* made of it; NULL: nothing, or nothing yet */
    PyObject *last;     /* its last expression, by itself */
    PyObject *examples; /* of its docstrings, compiled: see py_guard_examples; NULL: none */
    PyObject *error[3]; /* why there is no code */
    bool made;          /* code and last, or the error, are the tree's */
    PyObject *globals;  /* the program's namespace; a session keeps it */
    PyObject *shown;    /* the value that `_` was bound to; NULL: none */
    bool spare;         /* the namespace is fresh: made ahead, for the first program */
} program;

void py_program_forget(void)
{
    Py_CLEAR(program.tree);
    Py_CLEAR(program.code);
    Py_CLEAR(program.last);
    Py_CLEAR(program.examples);
    for (int i = 0; i < 3; i++)
        Py_CLEAR(program.error[i]);
    program.made = false;
}

/* (source, code) of one example; new reference, or NULL with an exception. */
static PyObject *example_code(const struct worker_job *job, PyObject *one)
{
    struct err err = ERR_INIT;
    PyObject *tree = py_guard_interactive(PyTuple_GET_ITEM(one, 1)), *code = NULL;
    if (tree && py_guard_rewrite(tree, job->rules, &err) < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, err.msg);
    if (tree && !PyErr_Occurred())
        code = py_guard_compile(tree, job->name, "single");
    PyObject *both = code ? PyTuple_Pack(2, PyTuple_GET_ITEM(one, 0), code) : NULL;
    Py_XDECREF(tree);
    Py_XDECREF(code);
    return both;
}

/* The examples that were judged with the program, as py_guard_examples wants them. */
static int make_examples(const struct worker_job *job)
{
    PyObject *judged = py_judge_examples(), *text, *value; /* borrowed */
    Py_ssize_t at = 0;
    if (!judged || PyDict_GET_SIZE(judged) == 0)
        return 0;
    if (!(program.examples = PyDict_New()))
        return -1;
    while (PyDict_Next(judged, &at, &text, &value)) {
        PyObject *list = PyTuple_GET_ITEM(value, 1);
        PyObject *codes = PyTuple_New(PyList_GET_SIZE(list));
        for (Py_ssize_t i = 0; codes && i < PyList_GET_SIZE(list); i++) {
            PyObject *one = example_code(job, PyList_GET_ITEM(list, i));
            if (one)
                PyTuple_SET_ITEM(codes, i, one);
            else
                Py_CLEAR(codes);
        }
        PyObject *both = codes ? PyTuple_Pack(2, PyTuple_GET_ITEM(value, 0), codes) : NULL;
        int r = both ? PyDict_SetItem(program.examples, text, both) : -1;
        Py_XDECREF(codes);
        Py_XDECREF(both);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* Rewritten and compiled; nothing of it runs. On return a Python exception may be pending. */
static void make_code(const struct worker_job *job)
{
    struct err err = ERR_INIT;
    PyObject *last = NULL;
    Py_ssize_t left = py_guard_split(program.tree, &last);
    if (left >= 0 && (py_guard_rewrite(program.tree, job->rules, &err) < 0 ||
                      (last && py_guard_rewrite(last, job->rules, &err) < 0))) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, err.msg);
    } else if (left > 0) {
        program.code = py_guard_compile(program.tree, job->name, "exec");
    }
    if (last && !PyErr_Occurred())
        program.last = py_guard_compile(last, job->name, "eval");
    Py_XDECREF(last);
    if (!PyErr_Occurred() && check_ruleset_profile(job->rules)->guards)
        (void)make_examples(job); /* its exception is the program's */
}

/* MODULES: what the program imports; NULL: a session's, whose later ones nobody knows. */
static int close_table(const struct check_ruleset *rules, PyObject *modules)
{
    struct err err = ERR_INIT;
    return py_compute_close(check_ruleset_profile(rules), modules, program.code, program.last,
                            &err);
}

/* A namespace that no program has seen: one that was made while the worker warmed itself, or a new one. */
static int fresh_globals(const struct check_ruleset *rules)
{
    const bool spare = program.spare;
    program.spare = false;
    if (spare && worker_host_count() == 0) /* bound when it was made, and no tool has come since */
        return 0;
    if (!spare) {
        Py_CLEAR(program.globals);
        program.globals = py_guard_globals(rules);
    }
    return program.globals && py_host_bind(program.globals, rules) == 0 ? 0 : -1;
}

int py_program_expect(const struct check_ruleset *rules)
{
    if (program.globals)
        return 0;
    if (fresh_globals(rules) < 0)
        return -1;
    program.spare = true;
    return 0;
}

int py_program_close(const struct check_ruleset *rules)
{
    return close_table(rules, NULL);
}

void py_program_rules(const struct check_ruleset *rules)
{
    program.spare = false; /* the spare namespace was made by the old rules */
    py_guard_rules(rules); /* guards and hook drop their references to those */
}

/* Between REPORT and GO the supervisor decides and writes its record, and we would wait. A program that is
 * the first of its process is made ready meanwhile: there is no code of a guest yet that a compiler could
 * be made to call. For a cell of a session there may be, so it waits for GO. */
int py_program_prepare(const struct worker_job *job)
{
    if (program.globals && !program.spare)
        return 0;
    if (py_program_expect(job->rules) < 0)
        return -1;
    make_code(job);
    PyErr_Fetch(&program.error[0], &program.error[1], &program.error[2]);
    program.made = true;
    return close_table(job->rules, py_judge_modules());
}

int py_program_judge(const struct worker_job *job, struct check_report *report, struct err *err)
{
    /* variables of earlier calls are bound: one called `input` is not the builtin */
    PyObject *left = job->kind == WORKER_CALL || job->kind == WORKER_LINE ? program.globals : NULL;
    int r = py_judge_call(job->rules, left, job->source, job->len, report, &program.tree, err);
    if (r == 0 && !program.tree && check_report_safe(report))
        return err_set(err, ERR_STATE, "a clean report on nothing");
    return r;
}

int py_program_names(const char *word)
{
    return py_names_send(program.globals, word);
}

/* The program has done its work; that its last value cannot be shown (2**20000, a __repr__ that raises) is
 * no failure of it. Said in words of ours: str() of the exception would be the guest's once more. What must
 * be seen stays pending: the end that a program asks for, no memory, a refusal. */
static PyObject *say_unshown(PyObject *value)
{
    PyObject *type, *error, *traceback;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError) ||
        py_guard_refused())
        return NULL;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *text = PyUnicode_FromFormat(
        "<%.100s object; its repr raised %.100s>", Py_TYPE(value)->tp_name,
        type && PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "an exception");
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return text;
}

static void send_value(PyObject *value)
{
    PyObject *text = value == Py_None ? NULL : PyObject_Repr(value);
    if (!text && value != Py_None)
        text = say_unshown(value);
    PyObject *bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "replace") : NULL;
    if (bytes)
        worker_channel_pieces(WIRE_VALUE, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    Py_XDECREF(text);
    Py_XDECREF(bytes);
}

/* `_` at a prompt, unless the program has one of its own. */
static void keep_value(const struct worker_job *job, PyObject *value)
{
    PyObject *bound = PyDict_GetItemString(program.globals, "_"); /* borrowed */
    if (!job->typed || value == Py_None || (bound && bound != program.shown))
        return;
    if (PyDict_SetItemString(program.globals, "_", value) < 0) {
        PyErr_Clear();
        return;
    }
    Py_XDECREF(program.shown);
    program.shown = Py_NewRef(value);
}

static PyObject *evaluate(PyObject *code)
{
    return PyEval_EvalCode(code, program.globals, program.globals);
}

/* The whole program. On return a Python exception may be pending. */
void py_program_execute(const struct worker_job *job)
{
    if (!program.made)
        make_code(job);
    else if (program.error[0]) {
        PyErr_Restore(program.error[0], program.error[1], program.error[2]);
        program.error[0] = program.error[1] = program.error[2] = NULL;
    }
    if (PyErr_Occurred())
        return;
    py_guard_examples(program.examples, program.globals);
    PyObject *done = program.code ? evaluate(program.code) : Py_NewRef(Py_None);
    PyObject *value = done && program.last ? evaluate(program.last) : NULL;
    if (value) {
        send_value(value);
        if (!PyErr_Occurred())
            keep_value(job, value);
    }
    Py_XDECREF(done);
    Py_XDECREF(value);
}

int py_program_begin(const struct worker_job *job)
{
    const bool fresh = job->kind == WORKER_RUN || !program.globals || program.spare;
    if (fresh ? fresh_globals(job->rules) < 0 : py_host_bind(program.globals, job->rules) < 0)
        return -1; /* a later cell may have been given other functions of the host */
    if (job->kind == WORKER_RUN && py_call_program(program.globals, job->name) < 0)
        return -1;
    if (!check_ruleset_profile(job->rules)->guards && py_folder_show() < 0)
        return -1;
    if (!program.made && close_table(job->rules, NULL) < 0)
        return -1;
    py_hook_arm(job->rules, job->name, worker_event, NULL);
    py_hook_notes(worker_note);
    return 0;
}

int py_program_report(const struct worker_job *job, bool *ret_left)
{
    const bool guarded = check_ruleset_profile(job->rules)->guards;
    if (!PyErr_Occurred())
        return 0;
    *ret_left = PyErr_ExceptionMatches(PyExc_SystemExit);
    /* of a guarded session the lines of earlier calls are gone, and have the same name */
    const bool lines = !guarded || job->kind == WORKER_RUN;
    return py_fault_report(job->name, lines ? job->source : NULL, job->len, guarded);
}

void py_program_finish(const struct worker_job *job)
{
    if (job->kind == WORKER_RUN)
        py_interp_finish();
    else
        py_interp_flush();
    py_guard_save_files();
}

/* Runs a small program as a job would be run, from the channel's buffer to the last flush, in a namespace that is then
 * thrown away: so the pages that a run writes are copied before there is a job. Nothing is sent on the channel, and
 * the hook is off again afterwards. */
int py_program_warm(const struct check_ruleset *rules)
{
    static const char text[] = PY_PROGRAM_SAMPLE "print('', end='')\n";
    struct check_report report;
    struct err err = ERR_INIT;
    check_report_init(&report);
    int r = py_judge(rules, text, sizeof text - 1, &report, &program.tree, &err);
    if (r == 0 && (!program.tree || !check_report_safe(&report) || fresh_globals(rules) < 0))
        r = -1;
    check_report_done(&report);
    if (r == 0) {
        const struct worker_job job = {.kind = WORKER_RUN, .rules = rules, .name = "<warm>"};
        py_hook_arm(rules, job.name, NULL, NULL);
        py_program_execute(&job);
        py_interp_flush();
        py_hook_arm(NULL, "", NULL, NULL);
    }
    py_program_forget();
    if (PyErr_Occurred()) {
        PyErr_Print();
        r = -1;
    }
    if (r == 0)
        r = fresh_globals(rules);
    if (r == 0)
        r = py_judge_init(&err); /* no guest has run yet: it need not look for one's traces */
    program.spare = r == 0;
    return r;
}
