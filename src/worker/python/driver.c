/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a worker, and what it may be told in each:
 *
 *   waiting   RULES, TOOLS, ENVIRON, INPUT, ARGV, JOB   -> collecting
 *   collecting SOURCE, what JOB itself did not bring      -> judged: FINDING*, REPORT
 *   judged    GO                        -> running, if the report was clean; JOB: another one
 *   running   ANSWER, to the guest's own calls (host.c)
 *   done      DONE said; a session waits again, a run ends the process
 *
 * Anything else is a supervisor that has lost its way, and the end of the process. The source is judged
 * as a tree, and that very tree is compiled: there is no second parser to differ from the first. */
#include "driver.h"

#include "base/limits.h"
#include "call.h"
#include "channel.h"
#include "check/report.h"
#include "check/ruleset.h"
#include "compute.h"
#include "fault.h"
#include "folder.h"
#include "guard.h"
#include "hook.h"
#include "host.h"
#include "interp.h"
#include "interrupt.h"
#include "jail/template.h"
#include "judge.h"
#include "names.h"
#include "stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum job_kind { JOB_CHECK, JOB_RUN, JOB_CALL, JOB_LINE, JOB_BLOCK, JOB_NAMES };
enum state { WAITING, COLLECTING, JUDGED };

static struct {
    enum state state;
    enum job_kind kind;
    struct check_ruleset *rules;
    char name[256]; /* what the source is called in a traceback */
    char *source;   /* as it came */
    size_t have, want;
    PyObject *tree;     /* what was judged; NULL unless the report was clean */
    PyObject *code;     /* made of it; NULL: nothing, or nothing yet */
    PyObject *last;     /* its last expression, by itself */
    PyObject *error[3]; /* why there is no code */
    bool made;          /* code and last, or the error, are the tree's */
    PyObject *globals;  /* the program's namespace; a session keeps it */
    bool typed;         /* a call that somebody typed at a prompt */
    PyObject *shown;    /* the value that `_` was bound to; NULL: none */
    bool spare;         /* the namespace is fresh: made ahead, for the first program */
} job;

/* ---- judging ---- */

static void send_finding(const struct check_finding *f)
{
    struct wire_writer w;
    py_channel_begin(&w, WIRE_FINDING);
    py_channel_text(&w, f->rule, strlen(f->rule), 64);
    py_channel_text(&w, f->layer, strlen(f->layer), 16);
    py_channel_text(&w, f->operand, strlen(f->operand), 200);
    py_channel_text(&w, f->message, strlen(f->message), 320);
    py_channel_text(&w, f->hint, strlen(f->hint), 240);
    wire_put_uint(&w, f->line);
    wire_put_uint(&w, f->column);
    (void)!py_channel_send(&w);
}

static int send_report(bool safe, uint64_t dropped)
{
    struct wire_writer w;
    py_channel_begin(&w, WIRE_REPORT);
    wire_put_uint(&w, safe);
    wire_put_uint(&w, dropped);
    job.state = JUDGED;
    return py_channel_send(&w);
}

/* A block that somebody is still typing. It is judged when it is whole. */
static int ask_for_more(void)
{
    const struct check_finding more = {.rule = CHECK_RULE_SYNTAX,
                                       .layer = "input",
                                       .operand = PY_CALL_INCOMPLETE,
                                       .message = "Syntax error: incomplete input",
                                       .hint = "go on; an empty line ends a block"};
    send_finding(&more);
    return send_report(false, 0);
}

/* ---- running ---- */

static void forget_program(void)
{
    Py_CLEAR(job.tree);
    Py_CLEAR(job.code);
    Py_CLEAR(job.last);
    for (int i = 0; i < 3; i++)
        Py_CLEAR(job.error[i]);
    job.made = false;
}

/* Rewritten and compiled; nothing of it runs. On return a Python exception may be pending. */
static void make_code(void)
{
    struct err err = ERR_INIT;
    PyObject *last = NULL;
    Py_ssize_t left = py_guard_split(job.tree, &last);
    if (left >= 0 && (py_guard_rewrite(job.tree, job.rules, &err) < 0 ||
                      (last && py_guard_rewrite(last, job.rules, &err) < 0))) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, err.msg);
    } else if (left > 0) {
        job.code = py_guard_compile(job.tree, job.name, "exec");
    }
    if (last && !PyErr_Occurred())
        job.last = py_guard_compile(last, job.name, "eval");
    Py_XDECREF(last);
}

static int fresh_globals(void);

/* MODULES: what the program imports; NULL: a session's, whose later ones nobody knows. */
static int close_table(PyObject *modules)
{
    struct err err = ERR_INIT;
    return py_compute_close(check_ruleset_profile(job.rules), modules, job.code, job.last, &err);
}

/* Between REPORT and GO the supervisor decides and writes its record, and we would wait. A program that is
 * the first of its process is made ready meanwhile: there is no code of a guest yet that a compiler could
 * be made to call. For a cell of a session there may be, so it waits for GO. */
static int make_ready(void)
{
    if (!job.spare) {
        if (fresh_globals() < 0)
            return -1;
        job.spare = true;
    }
    make_code();
    PyErr_Fetch(&job.error[0], &job.error[1], &job.error[2]);
    job.made = true;
    return close_table(py_judge_modules());
}

static bool is_first(void)
{
    return job.spare || !job.globals;
}

static int judge(void)
{
    struct check_report report;
    struct err err = ERR_INIT;
    forget_program();
    job.source[job.have] = 0;
    if (job.kind == JOB_NAMES)
        return py_names_send(job.globals, job.source) < 0 ? -1 : send_report(true, 0);
    if (job.kind == JOB_LINE && !memchr(job.source, 0, job.have) && py_call_incomplete(job.source))
        return ask_for_more();
    check_report_init(&report);
    /* what earlier cells left is bound: a variable called `input` is not the builtin */
    PyObject *left = job.kind == JOB_CALL || job.kind == JOB_LINE ? job.globals : NULL;
    bool first = is_first();
    int r = py_judge_call(job.rules, left, job.source, job.have, &report, &job.tree, &err);
    if (r == 0) {
        for (size_t i = 0; i < report.count; i++)
            send_finding(&report.findings[i]);
        bool safe = check_report_safe(&report);
        if (!safe)
            Py_CLEAR(job.tree);
        r = send_report(safe, report.dropped);
        if (r == 0 && safe && job.kind == JOB_RUN && first)
            r = make_ready();
    }
    check_report_done(&report);
    return r; /* without a verdict our death is the refusal */
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
        py_channel_pieces(WIRE_VALUE, PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
    Py_XDECREF(text);
    Py_XDECREF(bytes);
}

/* `_` at a prompt, unless the program has one of its own. */
static void keep_value(PyObject *value)
{
    PyObject *bound = PyDict_GetItemString(job.globals, "_"); /* borrowed */
    if (!job.typed || value == Py_None || (bound && bound != job.shown))
        return;
    if (PyDict_SetItemString(job.globals, "_", value) < 0) {
        PyErr_Clear();
        return;
    }
    Py_XDECREF(job.shown);
    job.shown = Py_NewRef(value);
}

static PyObject *evaluate(PyObject *code)
{
    return PyEval_EvalCode(code, job.globals, job.globals);
}

/* The whole program. On return a Python exception may be pending. */
static void execute(void)
{
    if (!job.made)
        make_code();
    else if (job.error[0]) {
        PyErr_Restore(job.error[0], job.error[1], job.error[2]);
        job.error[0] = job.error[1] = job.error[2] = NULL;
    }
    if (PyErr_Occurred())
        return;
    PyObject *done = job.code ? evaluate(job.code) : Py_NewRef(Py_None);
    PyObject *value = done && job.last ? evaluate(job.last) : NULL;
    if (value) {
        send_value(value);
        if (!PyErr_Occurred())
            keep_value(value);
    }
    Py_XDECREF(done);
    Py_XDECREF(value);
}

/* A namespace that no program has seen: one that was made while the worker warmed itself, or a new one. */
static int fresh_globals(void)
{
    if (!job.spare) {
        Py_CLEAR(job.globals);
        job.globals = py_guard_globals(job.rules);
    }
    job.spare = false;
    return job.globals && py_host_bind(job.globals) == 0 ? 0 : -1;
}

static void say_done(int status)
{
    struct wire_writer w;
    py_channel_begin(&w, WIRE_DONE);
    wire_put_int(&w, status);
    (void)!py_channel_send(&w);
}

static int run(void)
{
    job.state = WAITING;
    bool fresh = job.kind == JOB_RUN || !job.globals || job.spare;
    if (fresh ? fresh_globals() < 0 : py_host_bind(job.globals) < 0)
        return -1; /* a later cell may have been given other functions of the host */
    if (job.kind == JOB_RUN && py_call_program(job.globals, job.name) < 0)
        return -1;
    if (!check_ruleset_profile(job.rules)->guards && py_folder_show() < 0)
        return -1;
    if (!job.made && close_table(NULL) < 0)
        return -1; /* nothing of a guest runs before; our death is the refusal */
    py_hook_arm(job.rules, job.name, py_event, NULL);
    py_stack_guest(true);
    if (job.kind == JOB_CALL)
        py_call_forget_input();
    if (job.kind == JOB_CALL)
        py_interrupt_let(true);
    py_compute_guest(true);
    execute();
    if (job.kind == JOB_CALL)
        py_interrupt_let(false);
    bool guarded = check_ruleset_profile(job.rules)->guards;
    const bool left = PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_SystemExit);
    py_compute_guest(false); /* a traceback looks for source lines on the disk */
    int status =
        PyErr_Occurred() ? py_fault_report(job.name, guarded ? NULL : job.source, job.have) : 0;
    py_compute_guest(true); /* exit functions are the guest's */
    if (job.kind == JOB_RUN)
        py_interp_finish();
    else
        py_interp_flush();
    py_compute_guest(false);
    py_stack_guest(false);
    say_done(status | (left ? WIRE_DONE_LEFT : 0));
    forget_program();
    return status;
}

/* ---- messages ---- */

/* Limits only ever get tighter: the hard ones stand since the lock. */
static int tighten(uint64_t cpu_ms, uint64_t memory)
{
    struct rlimit now;
    if (cpu_ms && getrlimit(RLIMIT_CPU, &now) == 0) {
        rlim_t s = (cpu_ms + 999) / 1000 + 1;
        if (s < now.rlim_cur) {
            now.rlim_cur = s;
            if (setrlimit(RLIMIT_CPU, &now) < 0)
                return -1;
        }
    }
    if (memory && getrlimit(RLIMIT_AS, &now) == 0 && memory < now.rlim_cur) {
        now.rlim_cur = now.rlim_max = memory;
        return setrlimit(RLIMIT_AS, &now);
    }
    return 0;
}

static int take_rules(struct wire_reader *r)
{
    struct err err = ERR_INIT;
    size_t len;
    const void *bytes = wire_get_bytes(r, &len);
    struct check_ruleset *rules, *before = job.rules;
    if (check_ruleset_is(before, bytes, len))
        return 0; /* the template was started with them */
    if (check_ruleset_decode(bytes, len, &rules, &err) < 0)
        return -1;
    job.rules = rules;
    forget_program();      /* it was judged by other rules, and */
    job.spare = false;     /* this was made by them */
    py_guard_rules(rules); /* guards and hook let go of the old one */
    check_ruleset_free(before);
    return 0;
}

static int take_tools(struct wire_reader *r)
{
    char names[LIMIT_HOST_TOOLS][64];
    const char *list[LIMIT_HOST_TOOLS];
    struct err err = ERR_INIT;
    size_t count = wire_get_list(r);
    if (count > LIMIT_HOST_TOOLS)
        return -1;
    for (size_t i = 0; i < count; i++) {
        size_t len;
        const char *name = wire_next(r, &len);
        if (len >= sizeof names[i])
            return -1;
        memcpy(names[i], name, len);
        names[i][len] = 0;
        list[i] = names[i];
    }
    return py_host_tools(list, count, &err);
}

static int take_piece(const void *bytes, size_t len)
{
    if (len > job.want - job.have)
        return -1;
    memcpy(job.source + job.have, bytes, len);
    job.have += len;
    return job.have == job.want ? judge() : 0;
}

static int take_job(struct wire_reader *r)
{
    uint64_t kind = wire_get_uint(r), cpu_ms = wire_get_uint(r), memory = wire_get_uint(r);
    wire_get_text(r, job.name, sizeof job.name);
    uint64_t want = wire_get_uint(r);
    size_t len;
    const void *bytes = wire_get_bytes(r, &len);
    if (kind > JOB_NAMES || want > LIMIT_SOURCE || tighten(cpu_ms, memory) < 0)
        return -1;
    if (kind >= JOB_CALL && py_interrupt_expect() < 0)
        return -1;
    if (kind == JOB_LINE || kind == JOB_NAMES)
        py_interrupt_drop();
    job.typed = kind == JOB_BLOCK;
    if (kind == JOB_BLOCK)
        kind = JOB_CALL;
    free(job.source);
    job.source = malloc((size_t)want + 1);
    job.kind = (enum job_kind)kind;
    job.want = (size_t)want;
    job.have = 0;
    job.state = COLLECTING;
    return job.source ? take_piece(bytes, len) : -1;
}

static int take_source(struct wire_reader *r)
{
    size_t len;
    const void *bytes = wire_get_bytes(r, &len);
    return take_piece(bytes, len);
}

/* Asked to branch. What the branch is and has is the jail's business; here it only is an interpreter that
 * was copied. */
static int branch(void)
{
    if (job.state == COLLECTING)
        return -1;
    int r = jail_branch_here();
    if (r == 1)
        py_interp_after_fork();
    return 0; /* a refusal is told by the jail */
}

/* One message. 1: go on; 0: the process is done, *ret_status tells; -1: the supervisor lost its way. */
static int handle(struct wire_reader *r, int *ret_status)
{
    switch (r->type) {
    case WIRE_RULES:
        return job.state != COLLECTING && take_rules(r) == 0 ? 1 : -1;
    case WIRE_TOOLS:
        return job.state != COLLECTING && take_tools(r) == 0 ? 1 : -1;
    case WIRE_ENVIRON:
        return job.state != COLLECTING && py_call_environ(r) == 0 ? 1 : -1;
    case WIRE_INPUT:
        py_interrupt_drop();
        return job.state != COLLECTING && py_call_input(r, py_channel_descriptor()) == 0 ? 1 : -1;
    case WIRE_ARGV:
        return job.state != COLLECTING && py_call_argv(r) == 0 ? 1 : -1;
    case WIRE_JOB:
        return job.state != COLLECTING && job.rules && take_job(r) == 0 ? 1 : -1;
    case WIRE_SOURCE:
        return job.state == COLLECTING && take_source(r) == 0 ? 1 : -1;
    case WIRE_FORK:
        return branch() == 0 ? 1 : -1;
    case WIRE_GO:
        if (job.state != JUDGED || !job.tree || job.kind == JOB_CHECK || job.kind == JOB_LINE ||
            job.kind == JOB_NAMES)
            return -1;
        *ret_status = run();
        return *ret_status < 0 ? -1 : job.kind == JOB_CALL;
    default:
        return -1;
    }
}

int py_driver_close(void)
{
    const bool closes = check_ruleset_profile(job.rules)->compute_only;
    if (closes &&
        py_interrupt_expect() < 0) /* it may become a session, and a handler is not set later */
        return -1;
    return close_table(NULL);
}

int py_driver_profile(const char *name, struct err *err)
{
    const struct policy_profile *profile = policy_profile_find(name);
    if (!profile)
        return err_set(err, ERR_USAGE, "there is no profile '%.40s'", name);
    return check_ruleset_new(profile, &job.rules, err);
}

const struct check_ruleset *py_driver_rules(void)
{
    return job.rules;
}

void py_driver_ready(void)
{
    py_channel_say(WIRE_READY);
}

int py_driver_serve(void)
{
    struct wire_reader r;
    int status = 0, go_on = 1;
    py_stack_watch();
    /* the supervisor is only waking up: time for what the first program will need */
    if (job.rules && !job.globals) {
        if (fresh_globals() < 0)
            return 70;
        job.spare = true;
    }
    while (go_on > 0) {
        int got = py_channel_next(&r);
        if (got <= 0)
            return got < 0;
        go_on = handle(&r, &status);
    }
    return go_on < 0 ? 70 : status;
}

/* The same way that a program goes, from the channel's room to the last flush, in a namespace that is then
 * thrown away: what a run writes to is so copied before there is one. Only nothing is said on the channel,
 * and the hook has nobody to report to; it sleeps again afterwards. */
int py_driver_warm(void)
{
    static const char program[] = PY_DRIVER_PROGRAM "print('', end='')\n";
    struct check_report report;
    struct err err = ERR_INIT;
    py_channel_warm();
    check_report_init(&report);
    int r = py_judge(job.rules, program, sizeof program - 1, &report, &job.tree, &err);
    if (r == 0 && (!job.tree || !check_report_safe(&report) || fresh_globals() < 0))
        r = -1;
    check_report_done(&report);
    if (r == 0) {
        snprintf(job.name, sizeof job.name, "<warm>");
        py_hook_arm(job.rules, job.name, NULL, NULL);
        execute();
        py_interp_flush();
        py_hook_arm(NULL, "", NULL, NULL);
    }
    forget_program();
    if (PyErr_Occurred()) {
        PyErr_Print();
        r = -1;
    }
    if (r == 0)
        r = fresh_globals();
    if (r == 0)
        r = py_judge_init(&err); /* no guest has run yet: it need not look for one's traces */
    job.spare = r == 0;
    return r;
}
