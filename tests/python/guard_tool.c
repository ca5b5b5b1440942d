/* SPDX-License-Identifier: Apache-2.0 */
/* The guards and the audit hook without a judge and without a driver, for tests.
 *
 *   guard_tool run PROFILE FILE        runs a program; what was reported comes on stderr, a line each
 *   guard_tool leaked PROFILE FILE     the same for a program that has escaped: leaked(module, name) gives
 *                                      it what it asks for, and the audit hook stands alone
 *   guard_tool serve [PROFILE]         reads `PROFILE LENGTH` and that many bytes, again and again; each
 *                                      program runs in a child of its own; answers with a line
 *                                      `STATUS STDOUT STDERR`, lengths in bytes, and the two texts. With
 *                                      PROFILE it is a template for that one: modules loaded, closed
 *   guard_tool rewrite PROFILE FILE... rewrites and compiles each and runs none; says which cannot be
 *   guard_tool crawl PROFILE SCRIPT    closes the interpreter, then runs SCRIPT unguarded with the
 *                                      guarded operations in its hands: it plays the guest
 *   guard_tool crawl-without-WHAT ...  the same with one guard taken out (init, set, hook, import, address):
 *                                      SCRIPT must find that
 *
 * PROFILE may be plain (no guards, no hook) or bare (guards and not one rule more). Attacks are run inside cordon exec only. */
#include "worker/python/files.h"
#include "worker/python/guard_inside.h"
#include "worker/python/hook.h"
#include "worker/python/opaque.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void report(void *ctx, const char *layer, const char *rule, const char *detail,
                   const char *hint, unsigned line)
{
    (void)ctx;
    (void)hint;
    fprintf(stderr, "report: %s %s line %u: %s\n", layer, rule, line, detail);
}

static int start(struct err *err)
{
    PyConfig config;
    PyPreConfig pre;
    if (py_opaque_start(err) < 0)
        return -1;
    PyPreConfig_InitIsolatedConfig(&pre);
    pre.utf8_mode = 1;
    if (getenv("GUARD_TOOL_MALLOC")) /* a sanitizer sees each object */
        pre.allocator = PYMEM_ALLOCATOR_MALLOC;
    PyStatus status = Py_PreInitialize(&pre);
    PyConfig_InitIsolatedConfig(&config);
    config.site_import = 0;
    config.write_bytecode = 0;
    config.buffered_stdio = 0;
    if (!PyStatus_Exception(status))
        status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status))
        return err_set(err, ERR_MISSING, "Python does not start");
    /* where Debian's packages are */
    PyRun_SimpleString("import sys; sys.path.append('/usr/lib/python3/dist-packages')");
    PyObject *path = PySys_GetObject("path"); /* borrowed */
    PyObject *more =
        getenv("GUARD_TOOL_PATH") ? PyUnicode_DecodeFSDefault(getenv("GUARD_TOOL_PATH")) : NULL;
    if (more && (!path || PyList_Insert(path, 0, more) < 0)) /* C modules of another interpreter */
        return err_set(err, ERR_MISSING, "Python has no path");
    Py_XDECREF(more);
    py_guard_files(&py_files_ask);
    return py_guard_init(err) < 0 || py_hook_install(err) < 0 ? -1 : 0;
}

static PyObject *parse(const char *source, const char *name)
{
    PyCompilerFlags flags = {.cf_flags = PyCF_ONLY_AST, .cf_feature_version = PY_MINOR_VERSION};
    return Py_CompileStringFlags(source, name, Py_file_input, &flags);
}

static int exit_status(void)
{
    if (!PyErr_Occurred())
        return 0;
    if (PyErr_ExceptionMatches(PyExc_SystemExit)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        PyObject *code = value ? PyObject_GetAttrString(value, "code") : NULL;
        long n = code && PyLong_Check(code) ? PyLong_AsLong(code) : code && code != Py_None;
        return (int)n;
    }
    PyErr_Print();
    return 1;
}

static bool has_members(const struct policy_profile *p, const char *module)
{
    size_t len = strlen(module);
    for (size_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].kind == POLICY_MEMBER_ALLOW &&
            strncmp(p->rules[i].name, module, len) == 0 && p->rules[i].name[len] == '.')
            return true;
    return false;
}

static bool is_listed(const struct policy_profile *p, const char *module)
{
    for (size_t i = 0; i < p->rule_count; i++)
        if (p->rules[i].kind == POLICY_IMPORT_ALLOW && strcmp(p->rules[i].name, module) == 0)
            return true;
    return false;
}

/* `bare`: guards on, the modules that strict shows whole and some that a careless operator would add, and not one
 * rule more: what the guards do by themselves. */
static const struct policy_profile *bare(void)
{
    static const char *const more[] = {
        "types",    "io",      "warnings",    "pprint",   "csv",         "weakref",
        "queue",    "html",    "html.parser", "secrets",  "uuid",        "struct",
        "zlib",     "reprlib", "sched",       "graphlib", "ipaddress",   "fnmatch",
        "colorsys", "keyword", "numpy",       "shlex",    "urllib.parse"};
    static struct policy_rule rules[256];
    static struct policy_profile p = {.name = "bare",
                                      .summary = "",
                                      .imports = POLICY_IMPORTS_LISTED,
                                      .guards = true,
                                      .source_max = 1 << 20,
                                      .rules = rules};
    const struct policy_profile *strict = policy_profile_find("strict");
    for (size_t i = 0; p.rule_count < 200 && i < strict->rule_count; i++)
        if (strict->rules[i].kind == POLICY_IMPORT_ALLOW &&
            (!has_members(strict, strict->rules[i].name) ||
             strcmp(strict->rules[i].name, "unittest") == 0))
            rules[p.rule_count++] = strict->rules[i];
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        if (!is_listed(&p, more[i]))
            rules[p.rule_count++] =
                (struct policy_rule){POLICY_IMPORT_ALLOW, more[i], "test", "", ""};
    return &p;
}

static PyObject *namespace_for(const char *profile, struct check_ruleset **ret_rules)
{
    struct err err = ERR_INIT;
    bool plain = strcmp(profile, "plain") == 0;
    const struct policy_profile *p =
        strcmp(profile, "bare") == 0 ? bare() : policy_profile_find(plain ? "open" : profile);
    if (!p || check_ruleset_new(p, ret_rules, &err) < 0)
        return NULL;
    PyObject *globals = py_guard_globals(*ret_rules);
    if (globals && !plain)
        py_hook_arm(*ret_rules, "<program>", report, NULL);
    return globals;
}

/* CPU time between the steps of a run; GUARD_TOOL_TIMES asks for it. */
static double times[6];

static void stamp(int step)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    times[step] = (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static PyObject *leak(PyObject *self, PyObject *args)
{
    const char *module, *name;
    (void)self;
    if (!PyArg_ParseTuple(args, "ss", &module, &name))
        return NULL;
    PyObject *m = PyImport_ImportModule(module);
    PyObject *value = m ? PyObject_GetAttrString(m, name) : NULL;
    Py_XDECREF(m);
    return value;
}

static bool leaks;

static int run(const char *profile, const char *source)
{
    static PyMethodDef def = {"leaked", leak, METH_VARARGS, NULL};
    struct check_ruleset *rules = NULL;
    struct err err = ERR_INIT;
    stamp(0);
    PyObject *globals = namespace_for(profile, &rules);
    PyObject *leaked = globals && leaks ? PyCFunction_New(&def, NULL) : NULL;
    if (leaked && PyDict_SetItemString(globals, def.ml_name, leaked) < 0)
        return 70;
    stamp(1);
    PyObject *tree = globals ? parse(source, "<program>") : NULL;
    stamp(2);
    if (tree && py_guard_rewrite(tree, rules, &err) < 0) {
        fprintf(stderr, "guard_tool: %s\n", err.msg);
        return 70;
    }
    stamp(3);
    PyObject *code = tree ? py_guard_compile(tree, "<program>", "exec") : NULL;
    stamp(4);
    PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    Py_XDECREF(done);
    int status = exit_status();
    fflush(stdout);
    stamp(5);
    if (getenv("GUARD_TOOL_TIMES"))
        fprintf(stderr, "times: namespace %.0f parse %.0f rewrite %.0f compile %.0f run %.0f us\n",
                times[1] - times[0], times[2] - times[1], times[3] - times[2], times[4] - times[3],
                times[5] - times[4]);
    return status;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rbe");
    char *text = calloc(1, 1 << 20);
    if (!f || !text || (fread(text, 1, (1 << 20) - 1, f) == 0 && ferror(f)))
        return NULL;
    fclose(f);
    return text;
}

/* ---- serve ---- */

static void answer(const char *profile, const char *source)
{
    FILE *texts[2] = {tmpfile(), tmpfile()};
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        PyOS_AfterFork_Child();
        dup2(fileno(texts[0]), 1);
        dup2(fileno(texts[1]), 2);
        FILE *none = freopen("/dev/null", "re", stdin);
        int status = none ? run(profile, source) : 71;
        fflush(NULL);
        _exit(status);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    long sizes[2];
    for (int i = 0; i < 2; i++) {
        fseek(texts[i], 0, SEEK_END);
        sizes[i] = ftell(texts[i]);
        rewind(texts[i]);
    }
    printf("%d %ld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), sizes[0],
           sizes[1]);
    for (int i = 0; i < 2; i++) {
        char piece[4096];
        size_t n;
        while ((n = fread(piece, 1, sizeof piece, texts[i])) > 0)
            fwrite(piece, 1, n, stdout);
        fclose(texts[i]);
    }
    fflush(stdout);
}

/* As the worker's template: every module that may be imported is. */
static int prepare(const char *name)
{
    struct check_ruleset *rules = NULL;
    struct err err = ERR_INIT;
    const struct policy_profile *p = policy_profile_find(name);
    for (size_t i = 0; p && i < p->rule_count; i++) {
        PyObject *module = p->rules[i].kind == POLICY_IMPORT_ALLOW
                               ? PyImport_ImportModule(p->rules[i].name)
                               : NULL;
        PyErr_Clear(); /* code_api is the host's */
        Py_XDECREF(module);
    }
    if (!p || check_ruleset_new(p, &rules, &err) < 0 || py_guard_close(rules, &err) < 0)
        return -1;
    return PyRun_SimpleString("import gc; gc.collect(); gc.freeze()");
}

static int serve(const char *only)
{
    char profile[32];
    size_t len;
    if (only && prepare(only) < 0)
        return 70;
    while (scanf("%31s %zu", profile, &len) == 2 && getchar() == '\n') {
        char *source = calloc(1, len + 1);
        if (!source || fread(source, 1, len, stdin) != len)
            return 1;
        answer(profile, source);
        free(source);
    }
    return 0;
}

/* ---- crawl ---- */

/* What rewritten code does for x.name, for a name that is not known before. */
static PyObject *attribute(PyObject *self, PyObject *args)
{
    PyObject *x, *raw, *name, *value = NULL;
    (void)self;
    if (PyArg_ParseTuple(args, "OO", &x, &raw) && guard_name_for(x, raw, &name) == 0) {
        value = guard_get(x, name);
        Py_DECREF(name);
    }
    return value;
}

/* Where an object truly is; id() does not say so here. */
static PyObject *address(PyObject *self, PyObject *x)
{
    (void)self;
    return PyLong_FromVoidPtr(x);
}

static PyObject *plain_attribute(PyObject *self, PyObject *args)
{
    PyObject *x, *name;
    (void)self;
    return PyArg_ParseTuple(args, "OO", &x, &name) ? PyObject_GetAttr(x, name) : NULL;
}

static PyObject *plain_set(PyObject *self, PyObject *args)
{
    PyObject *x, *name;
    (void)self;
    if (!PyArg_ParseTuple(args, "OO", &x, &name))
        return NULL;
    Py_INCREF(x);
    return x;
}

static PyObject *guarded_import;

/* As guards had it that knew nothing of private parts. */
static PyObject *import_private(PyObject *self, PyObject *args)
{
    PyObject *name = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    (void)self;
    if (!text)
        return NULL;
    return strstr(text, "._") ? PyImport_ImportModule(text)
                              : PyObject_CallObject(guarded_import, args);
}

/* The function that stands in the place of the guard WHAT, and where. */
static struct {
    const char *what;
    PyMethodDef def;
} taken_out[] = {
    {"init", {"guard_attribute", plain_attribute, METH_VARARGS, NULL}},
    {"set", {"guard_SET", plain_set, METH_VARARGS, NULL}},
    {"import", {"__import__", import_private, METH_VARARGS, NULL}},
    {"address", {"id", address, METH_O, NULL}},
};

/* Takes one guard out, so that a test sees whether its absence is found. */
static int take_out(const char *what, PyObject *own)
{
    for (size_t i = 0; i < sizeof taken_out / sizeof *taken_out; i++) {
        PyMethodDef *def = &taken_out[i].def;
        if (strcmp(taken_out[i].what, what) != 0)
            continue;
        guarded_import =
            PyDict_GetItemString(guard.builtins, "__import__"); /* borrowed; kept below */
        Py_XINCREF(guarded_import);
        if (strcmp(what, "set") == 0)
            PyFunction_Type.tp_setattro = PyObject_GenericSetAttr;
        PyObject *f = PyCFunction_New(def, NULL);
        PyObject *dict = PyDict_GetItemString(guard.builtins, def->ml_name) ? guard.builtins : own;
        int r = f ? PyDict_SetItemString(dict, def->ml_name, f) : -1;
        Py_XDECREF(f);
        return r;
    }
    PyObject *from = PyImport_ImportModule("_abc"), *to = PyImport_ImportModule("abc");
    PyObject *check = from ? PyObject_GetAttrString(from, "_abc_subclasscheck") : NULL;
    int r = strcmp(what, "hook") == 0 && check && to
                ? PyObject_SetAttrString(to, "_abc_subclasscheck", check)
                : -1;
    Py_XDECREF(from);
    Py_XDECREF(to);
    Py_XDECREF(check);
    return r;
}

static int crawl(const char *profile, const char *script, const char *without)
{
    struct check_ruleset *rules = NULL;
    PyObject *globals = namespace_for(profile, &rules);
    static const char *const names[GUARD_OP_COUNT] = {
#define TEXT(name, word) "guard_" #name,
        GUARD_OPS(TEXT)
#undef TEXT
    };
    PyObject *own = PyDict_New();
    PyObject *builtins = PyImport_ImportModule("builtins");
    py_hook_arm(NULL, NULL, NULL, NULL); /* the script's own acts are not the guest's */
    if (!globals || !own || PyDict_SetItemString(own, "__builtins__", builtins) < 0 ||
        PyDict_SetItemString(own, "guest_builtins", guard.builtins) < 0 ||
        PyDict_SetItemString(own, "guest_globals", globals) < 0)
        return exit_status() | 1;
    static PyMethodDef defs[] = {{"guard_attribute", attribute, METH_VARARGS, NULL},
                                 {"true_address", address, METH_O, NULL}};
    for (size_t i = 0; i < sizeof defs / sizeof *defs; i++) {
        PyObject *f = PyCFunction_New(&defs[i], NULL);
        if (!f || PyDict_SetItemString(own, defs[i].ml_name, f) < 0)
            return exit_status() | 1;
        Py_DECREF(f);
    }
    PyObject *modules = PyList_New(0);
    const struct policy_profile *p = check_ruleset_profile(rules);
    for (size_t i = 0; modules && i < p->rule_count; i++) {
        PyObject *m =
            p->rules[i].kind == POLICY_IMPORT_ALLOW ? PyUnicode_FromString(p->rules[i].name) : NULL;
        if (m && PyList_Append(modules, m) < 0)
            return 1;
        Py_XDECREF(m);
    }
    if (!modules || PyDict_SetItemString(own, "allowed", modules) < 0)
        return exit_status() | 1;
    for (int i = 0; i < GUARD_OP_COUNT; i++)
        if (PyDict_SetItemString(own, names[i], guard.ops[i]) < 0)
            return exit_status() | 1;
    if (without && take_out(without, own) < 0)
        return exit_status() | 1;
    PyObject *done = PyRun_String(script, Py_file_input, own, own);
    Py_XDECREF(done);
    return exit_status();
}

static int rewrite(const char *profile, char **files)
{
    struct check_ruleset *rules = NULL;
    int count = 0, bad = 0;
    PyObject *globals = namespace_for(profile, &rules);
    if (!globals)
        return exit_status() | 1;
    for (; *files; files++) {
        struct err err = ERR_INIT;
        char *text = read_file(*files);
        PyObject *tree = text ? parse(text, *files) : NULL;
        free(text);
        if (!tree) { /* its tests hold sources that are no Python */
            PyErr_Clear();
            continue;
        }
        PyObject *code = py_guard_rewrite(tree, rules, &err) == 0
                             ? py_guard_compile(tree, *files, "exec")
                             : NULL;
        count++;
        if (!code) {
            PyObject *type, *value, *traceback;
            PyErr_Fetch(&type, &value, &traceback);
            PyObject *said = value ? PyObject_Str(value) : NULL;
            printf("bad: %s: %s %s\n", *files, err.msg, said ? PyUnicode_AsUTF8(said) : "");
            bad++;
        }
        Py_XDECREF(code);
        Py_DECREF(tree);
    }
    printf("rewrote %d files, %d bad\n", count, bad);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc < 2 || start(&err) < 0) {
        fprintf(stderr, "guard_tool: %s\n", err.msg);
        return 70;
    }
    if (strcmp(argv[1], "serve") == 0)
        return serve(argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "rewrite") == 0 && argc > 3)
        return rewrite(argv[2], argv + 3);
    char *text = argc == 4 ? read_file(argv[3]) : NULL;
    if (!text)
        return 70;
    leaks = strcmp(argv[1], "leaked") == 0;
    if (strncmp(argv[1], "crawl", 5) == 0)
        return crawl(argv[2], text,
                     strncmp(argv[1], "crawl-without-", 14) == 0 ? argv[1] + 14 : NULL);
    return run(argv[2], text);
}
