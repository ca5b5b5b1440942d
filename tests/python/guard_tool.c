/* The guards and the audit hook without a judge and without a driver, for tests.
 *
 *   guard_tool run PROFILE FILE        runs a program; what was reported comes on stderr, a line each
 *   guard_tool serve                   reads `PROFILE LENGTH` and that many bytes, again and again; each
 *                                      program runs in a child of its own; answers with a line
 *                                      `STATUS STDOUT STDERR`, lengths in bytes, and the two texts
 *   guard_tool crawl PROFILE SCRIPT    closes the interpreter, then runs SCRIPT unguarded with the
 *                                      guarded operations in its hands: it plays the guest
 *
 * PROFILE may be plain: no guards, no hook. Attacks are run inside cordon exec only. */
#include "worker/python/guard_inside.h"
#include "worker/python/hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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
    PyPreConfig_InitIsolatedConfig(&pre);
    pre.utf8_mode = 1;
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

static PyObject *namespace_for(const char *profile, struct check_ruleset **ret_rules)
{
    struct err err = ERR_INIT;
    bool plain = strcmp(profile, "plain") == 0;
    const struct policy_profile *p = policy_profile_find(plain ? "open" : profile);
    if (!p || check_ruleset_new(p, ret_rules, &err) < 0)
        return NULL;
    PyObject *globals = py_guard_globals(*ret_rules);
    if (globals && !plain)
        py_hook_arm(*ret_rules, "<program>", report, NULL);
    return globals;
}

static int run(const char *profile, const char *source)
{
    struct check_ruleset *rules = NULL;
    struct err err = ERR_INIT;
    PyObject *globals = namespace_for(profile, &rules);
    PyObject *tree = globals ? parse(source, "<program>") : NULL;
    if (tree && py_guard_rewrite(tree, rules, &err) < 0) {
        fprintf(stderr, "guard_tool: %s\n", err.msg);
        return 70;
    }
    PyObject *code = tree ? py_guard_compile(tree, "<program>", "exec") : NULL;
    PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;
    Py_XDECREF(done);
    int status = exit_status();
    fflush(stdout);
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

static int serve(void)
{
    char profile[32];
    size_t len;
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

static int crawl(const char *profile, const char *script)
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
        PyDict_SetItemString(own, "guest_builtins", guard.builtins) < 0)
        return exit_status() | 1;
    for (int i = 0; i < GUARD_OP_COUNT; i++)
        if (PyDict_SetItemString(own, names[i], guard.ops[i]) < 0)
            return exit_status() | 1;
    PyObject *done = PyRun_String(script, Py_file_input, own, own);
    Py_XDECREF(done);
    return exit_status();
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    if (argc < 2 || start(&err) < 0) {
        fprintf(stderr, "guard_tool: %s\n", err.msg);
        return 70;
    }
    if (strcmp(argv[1], "serve") == 0)
        return serve();
    char *text = argc == 4 ? read_file(argv[3]) : NULL;
    if (!text)
        return 70;
    return strcmp(argv[1], "crawl") == 0 ? crawl(argv[2], text) : run(argv[2], text);
}
