/* SPDX-License-Identifier: Apache-2.0 */
/* Words for a report. Arguments of an event are the guest's objects, so only plain strings, bytes, numbers
 * and tuples or lists of them are spelled out; anything else is named by nothing at all. */
#include "hook_inside.h"

#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- layers ---- */

const char *hook_layer(const char *event)
{
    static const struct {
        const char *begins, *layer;
    } table[] = {
        {"open", "filesystem"},     {"socket.", "network"},        {"ssl.", "network"},
        {"http.", "network"},       {"urllib.", "network"},        {"ftplib.", "network"},
        {"smtplib.", "network"},    {"poplib.", "network"},        {"imaplib.", "network"},
        {"nntplib.", "network"},    {"telnetlib.", "network"},     {"webbrowser.", "network"},
        {"subprocess.", "process"}, {"os.system", "process"},      {"os.exec", "process"},
        {"os.fork", "process"},     {"os.posix_spawn", "process"}, {"os.spawn", "process"},
        {"os.kill", "process"},     {"os.startfile", "process"},   {"signal.", "process"},
        {"pty.", "process"},        {"ctypes.", "process"},        {"_thread.", "process"},
        {"mmap.", "process"},       {"resource.", "resources"},    {"os.", "filesystem"},
        {"shutil.", "filesystem"},  {"tempfile.", "filesystem"},   {"glob.", "filesystem"},
        {"pathlib.", "filesystem"}, {"sqlite3.", "filesystem"},    {"fcntl.", "filesystem"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strncmp(event, table[i].begins, strlen(table[i].begins)) == 0)
            return table[i].layer;
    return "input";
}

/* ---- details ---- */

struct words {
    char *out;
    size_t size, len;
};

/* Control characters become visible; what does not fit is cut at a whole character. */
static void add(struct words *w, const char *s, size_t len)
{
    size_t good = utf8_valid_prefix(s, len);
    for (size_t i = 0; i < good;) {
        uint32_t cp;
        int n = utf8_decode((const unsigned char *)s + i, good - i, &cp);
        if (n <= 0 || w->len + 5 >= w->size)
            return;
        if (cp < 32 || cp == 127 || (cp >= 0x80 && cp < 0xa0))
            w->len += (size_t)snprintf(w->out + w->len, w->size - w->len, "?");
        else {
            memcpy(w->out + w->len, s + i, (size_t)n);
            w->len += (size_t)n;
        }
        i += (size_t)n;
        w->out[w->len] = 0;
    }
}

static void add_str(struct words *w, const char *s)
{
    add(w, s, strlen(s));
}

/* True if there was something to say of X. */
static bool add_object(struct words *w, PyObject *x, int depth)
{
    Py_ssize_t len;
    if (PyUnicode_Check(x)) {
        const char *text = PyUnicode_AsUTF8AndSize(x, &len);
        if (!text)
            PyErr_Clear();
        add(w, text ? text : "?", text ? (size_t)len : 1);
        return true;
    }
    if (PyBytes_Check(x)) {
        add(w, PyBytes_AS_STRING(x), (size_t)PyBytes_GET_SIZE(x));
        return true;
    }
    if (PyLong_CheckExact(x)) {
        char number[32];
        int over;
        long long n = PyLong_AsLongLongAndOverflow(x, &over);
        snprintf(number, sizeof number, "%lld", n);
        add_str(w, over ? "a huge number" : number);
        return true;
    }
    bool list = PyList_CheckExact(x);
    if ((!list && !PyTuple_CheckExact(x)) || depth > 1)
        return false;
    add_str(w, "(");
    Py_ssize_t count = list ? PyList_GET_SIZE(x) : PyTuple_GET_SIZE(x);
    for (Py_ssize_t i = 0; i < count && i < 6; i++) {
        if (i > 0)
            add_str(w, ", ");
        if (!add_object(w, list ? PyList_GET_ITEM(x, i) : PyTuple_GET_ITEM(x, i), depth + 1))
            add_str(w, "...");
    }
    add_str(w, ")");
    return true;
}

void hook_detail(const char *event, PyObject *args, char *out, size_t size)
{
    struct words w = {out, size, 0};
    out[0] = 0;
    add_str(&w, event);
    int said = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args) && said < 2; i++) {
        size_t before = w.len;
        add_str(&w, said ? ", " : " ");
        if (add_object(&w, PyTuple_GET_ITEM(args, i), 0)) {
            said++;
        } else {
            w.len = before;
            out[before] = 0;
        }
    }
}

/* ---- opens ---- */

/* `..` and `.` by their words alone: what a link leads to is for the kernel to decide. */
static void plain_path(const char *path, char out[PATH_MAX])
{
    char whole[PATH_MAX * 2];
    size_t len = 0;
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char here[PATH_MAX];
        snprintf(whole, sizeof whole, "%s/%s", getcwd(here, sizeof here) ? here : "/", path);
    }
    out[0] = 0;
    for (const char *p = whole; *p;) {
        while (*p == '/')
            p++;
        size_t n = strcspn(p, "/");
        if (n == 2 && memcmp(p, "..", 2) == 0) {
            while (len > 0 && out[--len] != '/')
                ;
        } else if (n > 0 && !(n == 1 && p[0] == '.') && len + n + 2 < PATH_MAX) {
            out[len++] = '/';
            memcpy(out + len, p, n);
            len += n;
        }
        out[len] = 0;
        p += n;
    }
    if (len == 0)
        snprintf(out, PATH_MAX, "/");
}

static bool lies_in(const char *path, const char *const *places)
{
    for (; *places; places++) {
        size_t n = strlen(*places);
        if (strncmp(path, *places, n) == 0 && (path[n] == 0 || path[n] == '/'))
            return true;
    }
    return false;
}

static const char *text_of(PyObject *path)
{
    if (PyBytes_Check(path))
        return PyBytes_AS_STRING(path);
    if (!PyUnicode_Check(path))
        return NULL; /* a number is an open descriptor; an object of a class would run its code */
    const char *text = PyUnicode_AsUTF8(path);
    if (!text)
        PyErr_Clear();
    return text;
}

struct opening {
    char path[PATH_MAX]; /* plain; empty: not a path, or one that only its object knows */
    bool writes;
};

static struct opening opening_of(PyObject *args)
{
    struct opening o = {.path = ""};
    PyObject *path = PyTuple_GET_SIZE(args) > 0 ? PyTuple_GET_ITEM(args, 0) : NULL;
    PyObject *number = PyTuple_GET_SIZE(args) > 2 ? PyTuple_GET_ITEM(args, 2) : NULL;
    const char *text = path ? text_of(path) : NULL;
    int flags = number && PyLong_Check(number) ? (int)PyLong_AsLong(number) : 0;
    PyErr_Clear();
    o.writes = (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0;
    if (text)
        plain_path(text, o.path);
    return o;
}

static void tell(const struct opening *o, char *out, size_t size)
{
    struct words w = {out, size, 0};
    out[0] = 0;
    add_str(&w, o->writes ? "open for writing " : "open ");
    add_str(&w, o->path[0] ? o->path : "a file");
}

bool hook_open_is_library(PyObject *args, char *out, size_t size)
{
    static const char *const libraries[] = {"/usr/lib",  "/usr/share",   "/usr/local/lib",
                                            "/dev/null", "/dev/urandom", NULL};
    struct opening o = opening_of(args);
    tell(&o, out, size);
    return !o.writes && o.path[0] && lies_in(o.path, libraries);
}

/* Whether the program may do what it opens PATH for; a file that is not there yet is made in a folder that is. */
static bool may_open(const struct opening *o)
{
    char folder[PATH_MAX];
    if (access(o->path, o->writes ? W_OK : R_OK) == 0)
        return true;
    if (!o->writes || errno != ENOENT)
        return false;
    memcpy(folder, o->path, sizeof folder);
    *strrchr(folder, '/') = 0; /* a plain path has one */
    return folder[0] && access(folder, W_OK) == 0;
}

bool hook_open_is_wrong(PyObject *args, char *out, size_t size)
{
    static const char *const own[] = {"/workspace", "/tmp", "/live", "/dev", NULL};
    /* libraries look for these and do without */
    static const char *const probed[] = {"/etc/os-release",
                                         "/usr/lib/os-release",
                                         "/etc/localtime",
                                         "/etc/timezone",
                                         "/etc/mime.types",
                                         "/etc/fonts",
                                         "/usr/share",
                                         "/usr/lib",
                                         "/usr/local",
                                         "/etc/ssl",
                                         "/proc/cpuinfo",
                                         "/proc/meminfo",
                                         "/sys/devices",
                                         "/etc/matplotlibrc",
                                         NULL};
    /* there is one in the jail; who asks for it by name wants the host's */
    static const char *const accounts[] = {"/etc/passwd", "/etc/group", NULL};
    struct opening o = opening_of(args);
    char real[PATH_MAX];
    if (!o.path[0])
        return false;
    if (lies_in(o.path, own)) { /* unless a link leads out of it */
        if (!realpath(o.path, real) || lies_in(real, own))
            return false;
        memcpy(o.path, real, sizeof real);
    }
    if (may_open(&o) && !lies_in(o.path, accounts))
        return false;
    if (!o.writes && lies_in(o.path, probed) && PyEval_GetGlobals() != guard.globals)
        return false;
    tell(&o, out, size);
    return true;
}

/* ---- what libraries do when they start ---- */

static bool is_text(PyObject *o, const char *text)
{
    return o && PyUnicode_CheckExact(o) && PyUnicode_CompareWithASCIIString(o, text) == 0;
}

bool hook_asks_machine(const char *event, PyObject *args)
{
    static const char *const rows[][2] = {{"uname", "-p"}, {"fc-list", "--help"}};
    if (strcmp(event, "subprocess.Popen") != 0 || PyTuple_GET_SIZE(args) < 2)
        return false;
    PyObject *program = PyTuple_GET_ITEM(args, 0), *words = PyTuple_GET_ITEM(args, 1);
    if (!PyList_CheckExact(words) || PyList_GET_SIZE(words) != 2)
        return false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_text(program, rows[i][0]) && is_text(PyList_GET_ITEM(words, 0), rows[i][0]) &&
            is_text(PyList_GET_ITEM(words, 1), rows[i][1]))
            return true;
    return false;
}

bool hook_socket_is_local(const char *event, PyObject *args)
{
    if (strcmp(event, "socket.__new__") != 0 || PyTuple_GET_SIZE(args) < 2)
        return false;
    PyObject *family = PyTuple_GET_ITEM(args, 1);
    return PyLong_CheckExact(family) && PyLong_AsLong(family) == AF_UNIX;
}
