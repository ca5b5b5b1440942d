/* The Python module `cordon`: the seed's compile_condition and validate_condition over libcordon.
 *
 * The objects hold the caller's memory that the library asks for; a condition keeps its schema
 * alive by a reference. An evaluation copies nothing: the values of the dictionary are borrowed for
 * its duration. What an evaluation raises is Python's own class with Python's own words. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cordon.h"

#include <string.h>

static PyObject *UnsafeExpressionError, *LimitError;

typedef struct {
    PyObject_HEAD void *mem;
    struct cordon_schema *schema;
    PyObject *keys; /* tuple of interned names, by slot */
} Schema;

typedef struct {
    PyObject_HEAD Schema *schema;
    void *mem, *scratch, *ctx_mem;
    size_t scratch_size, ctx_size;
    struct cordon_program *program;
    PyObject *source;
    unsigned flags;
    int busy; /* an evaluation runs: a nested one takes its own memory */
} Condition;

static PyTypeObject SchemaType, ConditionType;
static PyObject *example_schema; /* the shipped keys */

static PyObject *raise_error(const struct cordon_error *err)
{
    PyObject *class = PyExc_ValueError;
    switch (err->status) {
    case CORDON_UNSAFE: {
        PyObject *e = PyObject_CallFunction(UnsafeExpressionError, "s", err->message);
        if (!e)
            return NULL;
        PyObject *line = PyLong_FromLong(err->line), *column = PyLong_FromLong(err->column);
        PyObject *hint = err->hint[0] ? PyUnicode_FromString(err->hint) : Py_NewRef(Py_None);
        if (line && column && hint && PyObject_SetAttrString(e, "line", line) == 0 &&
            PyObject_SetAttrString(e, "column", column) == 0 &&
            PyObject_SetAttrString(e, "hint", hint) == 0)
            PyErr_SetObject(UnsafeExpressionError, e);
        Py_XDECREF(line);
        Py_XDECREF(column);
        Py_XDECREF(hint);
        Py_DECREF(e);
        return NULL;
    }
    case CORDON_TYPE_ERROR:
        class = PyExc_TypeError;
        break;
    case CORDON_ZERO_DIVISION:
        class = PyExc_ZeroDivisionError;
        break;
    case CORDON_OVERFLOW:
        class = PyExc_OverflowError;
        break;
    case CORDON_LIMIT:
        class = LimitError;
        break;
    case CORDON_MEMORY:
        return PyErr_NoMemory();
    default:
        break;
    }
    PyErr_SetString(class, err->message);
    return NULL;
}

/* ---- Schema ---- */

static PyObject *schema_from_json(const char *text, Py_ssize_t len)
{
    struct cordon_error err = {0};
    Schema *s = PyObject_New(Schema, &SchemaType);
    if (!s)
        return NULL;
    s->keys = NULL;
    s->schema = NULL;
    size_t size = cordon_schema_size((size_t)len);
    s->mem = PyMem_Malloc(size);
    if (!s->mem) {
        Py_DECREF(s);
        return PyErr_NoMemory();
    }
    if (cordon_schema_read(text, (size_t)len, s->mem, size, &s->schema, &err)) {
        Py_DECREF(s);
        PyErr_Format(PyExc_ValueError, "schema: %s (line %u, column %u)", err.message, err.line,
                     err.column);
        return NULL;
    }
    size_t n = cordon_schema_count(s->schema);
    s->keys = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; s->keys && i < n; i++) {
        size_t key_len;
        const char *key = cordon_schema_key(s->schema, i, &key_len);
        PyObject *name = PyUnicode_DecodeUTF8(key, (Py_ssize_t)key_len, NULL);
        if (!name) {
            Py_DECREF(s);
            return NULL;
        }
        PyUnicode_InternInPlace(&name);
        PyTuple_SET_ITEM(s->keys, (Py_ssize_t)i, name);
    }
    if (!s->keys) {
        Py_DECREF(s);
        return NULL;
    }
    return (PyObject *)s;
}

/* A Schema, JSON text, or anything json.dumps turns into one: a dict, or an iterable of key names.
 */
static PyObject *schema_from(PyObject *from)
{
    if (Py_TYPE(from) == &SchemaType)
        return Py_NewRef(from);
    PyObject *text = NULL, *result = NULL, *dict = NULL;
    if (PyUnicode_Check(from)) {
        text = Py_NewRef(from);
    } else {
        PyObject *json = PyImport_ImportModule("json");
        if (PyDict_Check(from)) {
            dict = Py_NewRef(from);
        } else {
            PyObject *names = PySequence_List(from);
            dict = names ? Py_BuildValue("{s:N}", "keys", names) : NULL;
        }
        text = json && dict ? PyObject_CallMethod(json, "dumps", "O", dict) : NULL;
        Py_XDECREF(json);
        Py_XDECREF(dict);
    }
    if (text) {
        Py_ssize_t len;
        const char *s = PyUnicode_AsUTF8AndSize(text, &len);
        result = s ? schema_from_json(s, len) : NULL;
    }
    Py_XDECREF(text);
    return result;
}

static PyObject *schema_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"keys", NULL};
    PyObject *from;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:Schema", names, &from))
        return NULL;
    return schema_from(from);
}

static void schema_dealloc(Schema *s)
{
    PyMem_Free(s->mem);
    Py_XDECREF(s->keys);
    PyObject_Free(s);
}

static PyObject *schema_prompt(Schema *s, PyObject *unused)
{
    (void)unused;
    size_t n = cordon_prompt(s->schema, NULL, 0);
    char *out = PyMem_Malloc(n + 1);
    if (!out)
        return PyErr_NoMemory();
    cordon_prompt(s->schema, out, n + 1);
    PyObject *r = PyUnicode_DecodeUTF8(out, (Py_ssize_t)n, NULL);
    PyMem_Free(out);
    return r;
}

static PyObject *schema_keys(Schema *s, void *unused)
{
    (void)unused;
    return Py_NewRef(s->keys);
}

static PyMethodDef schema_methods[] = {
    {"prompt", (PyCFunction)schema_prompt, METH_NOARGS, "The paragraph for a model's prompt."},
    {0}};
static PyGetSetDef schema_getset[] = {
    {"keys", (getter)schema_keys, NULL, "The declared keys, sorted.", NULL}, {0}};
static PyTypeObject SchemaType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cordon.Schema",
    .tp_basicsize = sizeof(Schema),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "Schema(keys): the declared keys, from names, a dict or JSON text.",
    .tp_new = schema_new,
    .tp_dealloc = (destructor)schema_dealloc,
    .tp_methods = schema_methods,
    .tp_getset = schema_getset,
};

/* ---- Condition ---- */

static PyObject *to_python(const struct cordon_value *v)
{
    switch (v->type) {
    case CORDON_NONE:
        Py_RETURN_NONE;
    case CORDON_BOOL:
        return PyBool_FromLong(v->i != 0);
    case CORDON_FLOAT:
        return PyFloat_FromDouble(v->f);
    case CORDON_STR:
        return PyUnicode_DecodeUTF8(v->s, (Py_ssize_t)v->len, NULL);
    default:
        break;
    }
    if (!v->words)
        return PyLong_FromLongLong(v->i);
    PyObject *m = _PyLong_FromByteArray((const unsigned char *)v->words, v->len * 8, 1, 0);
    if (!m || !v->negative)
        return m;
    PyObject *r = PyNumber_Negative(m);
    Py_DECREF(m);
    return r;
}

/* An int past 64 bits; its words go to HOLD, a list that keeps them until the evaluation is over.
 */
static int set_big(struct cordon_ctx *c, size_t slot, PyObject *v, PyObject **hold)
{
    size_t bits = _PyLong_NumBits(v);
    if (bits == (size_t)-1 && PyErr_Occurred())
        return -1;
    size_t words = bits / 64 + 1;
    if (bits > CORDON_BITS_MAX) {
        PyErr_Format(LimitError, "an integer of more than %u bits", CORDON_BITS_MAX);
        return -1;
    }
    if (!*hold && !(*hold = PyList_New(0)))
        return -1;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(words * 8 + 8));
    PyObject *abs = PyNumber_Absolute(v);
    int r = bytes && abs ? PyList_Append(*hold, bytes) : -1;
    if (r == 0) {
        unsigned char *at = (unsigned char *)PyBytes_AS_STRING(bytes);
        at += -(uintptr_t)at & 7; /* words are aligned */
        r = _PyLong_AsByteArray((PyLongObject *)abs, at, words * 8, 1, 0);
        if (r == 0 && !cordon_ctx_big(c, slot, (const uint64_t *)(const void *)at, words,
                                      _PyLong_Sign(v) < 0))
            r = -1;
    }
    Py_XDECREF(bytes);
    Py_XDECREF(abs);
    return r;
}

static int set_slot(struct cordon_ctx *c, size_t slot, PyObject *key, PyObject *v, PyObject **hold)
{
    if (v == Py_None) {
        cordon_ctx_none(c, slot);
    } else if (PyBool_Check(v)) {
        cordon_ctx_bool(c, slot, v == Py_True);
    } else if (PyLong_Check(v)) {
        int overflow;
        long long i = PyLong_AsLongLongAndOverflow(v, &overflow);
        if (overflow)
            return set_big(c, slot, v, hold);
        if (i == -1 && PyErr_Occurred())
            return -1;
        cordon_ctx_int(c, slot, i);
    } else if (PyFloat_Check(v)) {
        cordon_ctx_float(c, slot, PyFloat_AS_DOUBLE(v));
    } else if (PyUnicode_Check(v)) {
        Py_ssize_t len;
        const char *s = PyUnicode_AsUTF8AndSize(v, &len); /* kept by the string itself */
        if (!s)
            return -1;
        if (!cordon_ctx_str(c, slot, s, (size_t)len)) {
            PyErr_SetString(LimitError, "a string longer than the limit");
            return -1;
        }
    } else {
        PyErr_Format(PyExc_TypeError,
                     "ctx[%R] holds a %s; conditions read int, float, str, bool and None", key,
                     Py_TYPE(v)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *condition_call(Condition *self, PyObject *args, PyObject *kwargs)
{
    PyObject *dict, *hold = NULL, *result = NULL;
    struct cordon_error err = {0};
    struct cordon_value value;
    if ((kwargs && PyDict_GET_SIZE(kwargs)) || !PyArg_ParseTuple(args, "O:condition", &dict))
        return kwargs && !PyErr_Occurred()
                   ? PyErr_Format(PyExc_TypeError, "a condition takes one context")
                   : NULL;
    bool nested = self->busy;
    void *mem = nested ? PyMem_Malloc(self->ctx_size) : self->ctx_mem;
    void *scratch = nested ? PyMem_Malloc(self->scratch_size) : self->scratch;
    struct cordon_ctx *c =
        mem && scratch ? cordon_ctx_init(mem, self->ctx_size, self->schema->schema, self->flags)
                       : NULL;
    self->busy = 1;
    if (!c) {
        PyErr_NoMemory();
        goto out;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(self->schema->keys);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!cordon_uses(self->program, (size_t)i))
            continue;
        PyObject *key = PyTuple_GET_ITEM(self->schema->keys, i), *v;
        if (PyDict_Check(dict)) {
            v = PyDict_GetItemWithError(dict, key);
            Py_XINCREF(v);
        } else {
            v = PyObject_GetItem(dict, key);
            if (!v && PyErr_ExceptionMatches(PyExc_KeyError))
                PyErr_Clear();
        }
        if (!v && PyErr_Occurred())
            goto out;
        if (!v)
            continue;
        if (!PyDict_Check(dict)) { /* a mapping may hand out what nobody else holds */
            if ((!hold && !(hold = PyList_New(0))) || PyList_Append(hold, v)) {
                Py_DECREF(v);
                goto out;
            }
        }
        int bad = set_slot(c, (size_t)i, key, v, &hold);
        Py_DECREF(v);
        if (bad)
            goto out;
    }
    if (self->flags & CORDON_STRICT && !cordon_ctx_conforms(c)) {
        PyErr_SetString(PyExc_ValueError, "a value that the schema does not allow for its key");
        goto out;
    }
    int status = cordon_eval(self->program, c, scratch, self->scratch_size, &value, &err);
    if (status == CORDON_KEY_ERROR) {
        /* KeyError shows repr() of its argument: give it the key itself */
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *key = PyTuple_GET_ITEM(self->schema->keys, i), *r = PyObject_Repr(key);
            const char *s = r ? PyUnicode_AsUTF8(r) : NULL;
            if (s && strcmp(s, err.message) == 0)
                PyErr_SetObject(PyExc_KeyError, key);
            Py_XDECREF(r);
        }
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_KeyError, err.message);
    } else {
        result = status ? raise_error(&err) : to_python(&value);
    }
out:
    if (nested) {
        PyMem_Free(mem);
        PyMem_Free(scratch);
    } else {
        self->busy = 0;
    }
    Py_XDECREF(hold);
    return result;
}

static void condition_dealloc(Condition *c)
{
    Py_XDECREF(c->schema);
    Py_XDECREF(c->source);
    PyMem_Free(c->mem);
    PyMem_Free(c->scratch);
    PyMem_Free(c->ctx_mem);
    PyObject_Free(c);
}

static PyObject *condition_repr(Condition *c)
{
    return PyUnicode_FromFormat("compile_condition(%R)", c->source);
}

static PyObject *condition_source(Condition *c, void *unused)
{
    (void)unused;
    return Py_NewRef(c->source);
}

static PyGetSetDef condition_getset[] = {
    {"source", (getter)condition_source, NULL, "The text.", NULL}, {0}};
static PyTypeObject ConditionType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "cordon.Condition",
    .tp_basicsize = sizeof(Condition),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A compiled condition; call it with a context.",
    .tp_dealloc = (destructor)condition_dealloc,
    .tp_call = (ternaryfunc)condition_call,
    .tp_repr = (reprfunc)condition_repr,
    .tp_getset = condition_getset,
};

static PyObject *compile_condition(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"expression", "schema", "require_keys", "strict", NULL};
    PyObject *source, *from = NULL;
    int require = 0, strict = 0;
    struct cordon_error err = {0};
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O$pp:compile_condition", names, &source,
                                     &from, &require, &strict))
        return NULL;
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(source, &len);
    if (!text) { /* lone surrogates */
        PyErr_Clear();
        PyErr_SetString(UnsafeExpressionError,
                        "Invalid expression syntax: the source is not valid UTF-8");
        return NULL;
    }
    PyObject *schema = schema_from(from && from != Py_None ? from : example_schema);
    Condition *c = schema ? PyObject_New(Condition, &ConditionType) : NULL;
    if (!c) {
        Py_XDECREF(schema);
        return NULL;
    }
    size_t size = cordon_compile_size((size_t)len);
    void *mem = PyMem_Malloc(size);
    *c = (Condition){.ob_base = c->ob_base,
                     .schema = (Schema *)schema,
                     .source = Py_NewRef(source),
                     .mem = mem,
                     .flags = (require ? CORDON_REQUIRE_KEYS : 0) | (strict ? CORDON_STRICT : 0)};
    if (!mem) {
        Py_DECREF(c);
        return PyErr_NoMemory();
    }
    if (cordon_compile(c->schema->schema, text, (size_t)len, mem, size, &c->program, &err)) {
        raise_error(&err);
        Py_DECREF(c);
        return NULL;
    }
    c->scratch_size = cordon_scratch_size(c->program);
    c->ctx_size = cordon_ctx_size(c->schema->schema);
    c->scratch = PyMem_Malloc(c->scratch_size);
    c->ctx_mem = PyMem_Malloc(c->ctx_size);
    if (!c->scratch || !c->ctx_mem) {
        Py_DECREF(c);
        return PyErr_NoMemory();
    }
    return (PyObject *)c;
}

static PyObject *validate_condition(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *c = compile_condition(module, args, kwargs);
    if (c) {
        Py_DECREF(c);
        return Py_BuildValue("(OO)", Py_True, Py_None);
    }
    if (!PyErr_ExceptionMatches(UnsafeExpressionError))
        return NULL;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = PyObject_Str(value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return text ? Py_BuildValue("(ON)", Py_False, text) : NULL;
}

static PyMethodDef functions[] = {
    {"compile_condition", (PyCFunction)(void (*)(void))compile_condition,
     METH_VARARGS | METH_KEYWORDS,
     "compile_condition(expression, schema=None, *, require_keys=False, strict=False) -> "
     "callable\n\n"
     "schema: a Schema, an iterable of key names, a dict or JSON text; the shipped keys if None."},
    {"validate_condition", (PyCFunction)(void (*)(void))validate_condition,
     METH_VARARGS | METH_KEYWORDS,
     "validate_condition(expression, schema=None) -> (is_valid, error or None)"},
    {0}};
static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT, .m_name = "cordon", .m_size = -1, .m_methods = functions,
    .m_doc = "Conditions that a model wrote, evaluated safely and exactly."};

PyMODINIT_FUNC PyInit_cordon(void);
PyMODINIT_FUNC PyInit_cordon(void)
{
    PyObject *m = PyModule_Create(&module_def);
    if (!m || PyType_Ready(&SchemaType) || PyType_Ready(&ConditionType))
        return NULL;
    UnsafeExpressionError = PyErr_NewExceptionWithDoc(
        "cordon.UnsafeExpressionError",
        "An expression outside the language; has line, column and hint.", PyExc_ValueError, NULL);
    LimitError = PyErr_NewExceptionWithDoc(
        "cordon.LimitError", "A limit of the engine was reached.", PyExc_RuntimeError, NULL);
    example_schema =
        schema_from_json(cordon_schema_example, (Py_ssize_t)strlen(cordon_schema_example));
    if (!UnsafeExpressionError || !LimitError || !example_schema ||
        PyModule_AddObjectRef(m, "UnsafeExpressionError", UnsafeExpressionError) ||
        PyModule_AddObjectRef(m, "LimitError", LimitError) ||
        PyModule_AddObjectRef(m, "Schema", (PyObject *)&SchemaType) ||
        PyModule_AddObjectRef(m, "ALLOWED_CTX_KEYS", ((Schema *)example_schema)->keys))
        return NULL;
    return m;
}
