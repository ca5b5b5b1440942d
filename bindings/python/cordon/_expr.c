/* SPDX-License-Identifier: Apache-2.0 */
/* The C half of the Python package `cordon`: compile_condition and validate_condition over libcordon.
 *
 * The objects hold the caller's memory that the library asks for; a condition keeps its schema
 * alive by a reference. A context is read as the condition reaches its keys, each once, so what is
 * not reached is not looked at. Reading can run any Python code (a mapping's __getitem__, a key's
 * __eq__, a value's __del__), which may change or release everything it gets hold of: an evaluation
 * therefore has a reference to each value whose memory the engine borrows, and memory that a nested
 * evaluation of the same condition does not touch. What an evaluation raises is Python's own class
 * with Python's own words. */
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

/* What one evaluation needs. */
typedef struct {
    void *ctx, *scratch;
    size_t scratch_size;
    PyObject **held; /* what the engine borrows from, until the evaluation is over */
} Memory;

typedef struct {
    PyObject_HEAD Schema *schema;
    void *mem;
    size_t ctx_size, slot_count;
    size_t *slots; /* that the program reads */
    Memory memory;
    struct cordon_program *program;
    PyObject *source;
    unsigned flags;
    int busy; /* an evaluation uses `memory`: a nested one takes its own */
} Condition;

/* Most conditions need less than this; the others get all they can need when they first do. */
#define SCRATCH_FIRST 4096

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

/* An int past 64 bits: its words are copied to a bytes object, *RET_HELD. */
static int set_big(struct cordon_ctx *c, size_t slot, PyObject *v, PyObject **ret_held)
{
    size_t bits = _PyLong_NumBits(v), words = (bits + 63) / 64;
    if (bits == (size_t)-1 && PyErr_Occurred())
        return -1;
    if (bits > CORDON_BITS_MAX) {
        PyErr_Format(LimitError, "an integer of more than %u bits", CORDON_BITS_MAX);
        return -1;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(words * 8 + 8));
    /* int's own absolute value: a subclass may have another, which may return anything */
    PyObject *abs = PyLong_Type.tp_as_number->nb_absolute(v);
    int r = bytes && abs ? 0 : -1;
    if (r == 0) {
        unsigned char *at = (unsigned char *)PyBytes_AS_STRING(bytes);
        at += -(uintptr_t)at & 7; /* words are aligned */
        r = _PyLong_AsByteArray((PyLongObject *)abs, at, words * 8, 1, 0);
        if (r == 0)
            cordon_ctx_big(c, slot, (const uint64_t *)(const void *)at, words, _PyLong_Sign(v) < 0);
    }
    Py_XDECREF(abs);
    if (r)
        Py_XDECREF(bytes);
    else
        *ret_held = bytes;
    return r;
}

static int set_text(struct cordon_ctx *c, size_t slot, PyObject *v)
{
    Py_ssize_t len = 0;
    const char *text = NULL; /* kept by the string itself */
    if (PyUnicode_GET_LENGTH(v) <= (Py_ssize_t)CORDON_STRING_MAX &&
        !(text = PyUnicode_AsUTF8AndSize(v, &len)))
        return -1; /* UnicodeEncodeError: a lone surrogate */
    if (text && cordon_ctx_str(c, slot, text, (size_t)len))
        return 0;
    PyErr_Format(LimitError, "a string of more than %u bytes", CORDON_STRING_MAX);
    return -1;
}

/* Gives the engine the value V of a key; *RET_HELD is what must stay until it is done. */
static int set_slot(struct cordon_ctx *c, size_t slot, PyObject *key, PyObject *v,
                    PyObject **ret_held)
{
    if (v == Py_None) {
        cordon_ctx_none(c, slot);
    } else if (PyBool_Check(v)) {
        cordon_ctx_bool(c, slot, v == Py_True);
    } else if (PyLong_Check(v)) {
        int overflow;
        long long i = PyLong_AsLongLongAndOverflow(v, &overflow);
        if (overflow)
            return set_big(c, slot, v, ret_held);
        if (i == -1 && PyErr_Occurred())
            return -1;
        cordon_ctx_int(c, slot, i);
    } else if (PyFloat_Check(v)) {
        cordon_ctx_float(c, slot, PyFloat_AS_DOUBLE(v));
    } else if (PyUnicode_Check(v)) {
        if (set_text(c, slot, v))
            return -1;
        *ret_held = Py_NewRef(v);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "ctx[%R] holds a %.200s; conditions read int, float, str, bool and None", key,
                     Py_TYPE(v)->tp_name);
        return -1;
    }
    return 0;
}

/* ctx[key], as the condition reached it. */
static int read_slot(Condition *self, struct cordon_ctx *c, PyObject *context, size_t slot,
                     PyObject **ret_held)
{
    PyObject *key = PyTuple_GET_ITEM(self->schema->keys, (Py_ssize_t)slot), *v;
    if (PyDict_CheckExact(context)) {
        v = PyDict_GetItemWithError(context, key);
        Py_XINCREF(v);
    } else {
        v = PyObject_GetItem(context, key);
        if (!v && PyErr_ExceptionMatches(PyExc_KeyError))
            PyErr_Clear();
    }
    if (!v && PyErr_Occurred())
        return -1;
    if (!v) {
        cordon_ctx_absent(c, slot);
        return 0;
    }
    int r = set_slot(c, slot, key, v, ret_held);
    Py_DECREF(v);
    if (r == 0 && self->flags & CORDON_STRICT && !cordon_ctx_conforms(c)) {
        PyErr_Format(PyExc_ValueError,
                     "ctx[%R]: a value that the schema does not allow for its key", key);
        return -1;
    }
    return r;
}

static void memory_done(Memory *m)
{
    PyMem_Free(m->ctx);
    PyMem_Free(m->scratch);
    PyMem_Free(m->held);
    *m = (Memory){0};
}

static int memory_init(const Condition *self, Memory *m)
{
    size_t most = cordon_scratch_size(self->program);
    m->scratch_size = most < SCRATCH_FIRST ? most : SCRATCH_FIRST;
    m->ctx = PyMem_Malloc(self->ctx_size);
    m->scratch = PyMem_Malloc(m->scratch_size);
    m->held = PyMem_Calloc(self->slot_count + 1, sizeof(void *));
    if (m->ctx && m->scratch && m->held)
        return 0;
    memory_done(m);
    PyErr_NoMemory();
    return -1;
}

/* All the scratch that any run needs, where the first was too small; -1 if that was it already. */
static int memory_grow(const Condition *self, Memory *m)
{
    size_t most = cordon_scratch_size(self->program);
    void *scratch = m->scratch_size < most ? PyMem_Malloc(most) : NULL;
    if (!scratch)
        return -1;
    PyMem_Free(m->scratch);
    m->scratch = scratch;
    m->scratch_size = most;
    return 0;
}

static PyObject *evaluate(Condition *self, PyObject *context, Memory *m)
{
    struct cordon_error err = {0};
    struct cordon_value value;
    struct cordon_ctx *c =
        cordon_ctx_init(m->ctx, self->ctx_size, self->schema->schema, self->flags);
    size_t slot = 0, held = 0;
    bool resume = false;
    if (!c)
        return PyErr_NoMemory();
    for (size_t i = 0; i < self->slot_count; i++)
        cordon_ctx_unread(c, self->slots[i]);
    for (;;) {
        int status = cordon_eval_lazy(self->program, c, m->scratch, m->scratch_size, resume, &slot,
                                      &value, &err);
        if (status == 0)
            return to_python(&value);
        if (status == CORDON_MEMORY && memory_grow(self, m) == 0) {
            resume = false; /* from the start; what was read stays read */
            continue;
        }
        if (status == CORDON_KEY_ERROR) { /* of the key that was read last */
            PyErr_SetObject(PyExc_KeyError, PyTuple_GET_ITEM(self->schema->keys, (Py_ssize_t)slot));
            return NULL;
        }
        if (status != CORDON_UNREAD)
            return raise_error(&err);
        if (read_slot(self, c, context, slot, &m->held[held++]))
            return NULL;
        resume = true;
    }
}

static PyObject *condition_call(Condition *self, PyObject *args, PyObject *kwargs)
{
    PyObject *context, *result = NULL;
    Memory own = {0}, *m = self->busy ? &own : &self->memory;
    if ((kwargs && PyDict_GET_SIZE(kwargs)) || !PyArg_ParseTuple(args, "O:condition", &context))
        return kwargs && !PyErr_Occurred()
                   ? PyErr_Format(PyExc_TypeError, "a condition takes one context")
                   : NULL;
    if (m == &own && memory_init(self, &own))
        return NULL;
    Py_INCREF(self); /* code of the context may drop every other reference */
    self->busy += m == &self->memory;
    result = evaluate(self, context, m);
    for (size_t i = 0; i < self->slot_count; i++)
        Py_CLEAR(m->held[i]); /* may run code, too */
    self->busy -= m == &self->memory;
    memory_done(&own);
    Py_DECREF(self);
    return result;
}

static void condition_dealloc(Condition *c)
{
    Py_XDECREF(c->schema);
    Py_XDECREF(c->source);
    PyMem_Free(c->mem);
    PyMem_Free(c->slots);
    memory_done(&c->memory);
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

/* One record for each refusal, to the logger `cordon`, at level DEBUG: the refusal itself is an
 * exception, so nobody who has not asked sees it twice. The module is not imported before that. */
static void log_refusal(const struct cordon_error *err, PyObject *source)
{
    static PyObject *logger;
    if (!logger) {
        PyObject *logging = PyImport_ImportModule("logging");
        logger = logging ? PyObject_CallMethod(logging, "getLogger", "s", "cordon") : NULL;
        Py_XDECREF(logging);
    }
    PyObject *r = logger ? PyObject_CallMethod(logger, "debug", "sIIsO",
                                               "refused: line %d, column %d: %s: %r", err->line,
                                               err->column, err->message, source)
                         : NULL;
    if (!r) /* a log that does not work does not change the answer */
        PyErr_WriteUnraisable(logger);
    Py_XDECREF(r);
}

/* Memory for the evaluations of a condition that was just compiled. */
static int prepare(Condition *c)
{
    size_t count = cordon_schema_count(c->schema->schema);
    c->ctx_size = cordon_ctx_size(c->schema->schema);
    for (size_t i = 0; i < count; i++)
        c->slot_count += cordon_uses(c->program, i);
    c->slots = PyMem_Calloc(c->slot_count + 1, sizeof *c->slots);
    if (!c->slots) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0, n = 0; i < count; i++)
        if (cordon_uses(c->program, i))
            c->slots[n++] = i;
    return memory_init(c, &c->memory);
}

static PyObject *compile_text(PyObject *source, const char *text, size_t len, PyObject *from,
                              unsigned flags)
{
    struct cordon_error err = {0};
    PyObject *schema = schema_from(from && from != Py_None ? from : example_schema);
    Condition *c = schema ? PyObject_New(Condition, &ConditionType) : NULL;
    if (!c) {
        Py_XDECREF(schema);
        return NULL;
    }
    size_t size = cordon_compile_size(len);
    *c = (Condition){.ob_base = c->ob_base,
                     .schema = (Schema *)schema,
                     .source = Py_NewRef(source),
                     .mem = PyMem_Malloc(size),
                     .flags = flags};
    int r = -1;
    if (!c->mem) {
        PyErr_NoMemory();
    } else if (cordon_compile(c->schema->schema, text, len, c->mem, size, &c->program, &err)) {
        if (err.status == CORDON_UNSAFE)
            log_refusal(&err, source);
        raise_error(&err);
    } else {
        r = prepare(c);
    }
    if (r)
        Py_CLEAR(c);
    return (PyObject *)c;
}

static PyObject *compile_condition(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"expression", "schema", "require_keys", "strict", NULL};
    PyObject *source, *from = NULL, *bytes = NULL;
    int require = 0, strict = 0;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O$pp:compile_condition", names, &source,
                                     &from, &require, &strict))
        return NULL;
    Py_ssize_t len;
    const char *text = PyUnicode_AsUTF8AndSize(source, &len);
    if (!text) { /* lone surrogates: let the engine refuse them, at their place */
        PyErr_Clear();
        bytes = PyUnicode_AsEncodedString(source, "utf-8", "surrogatepass");
        if (!bytes)
            return NULL;
        text = PyBytes_AS_STRING(bytes);
        len = PyBytes_GET_SIZE(bytes);
    }
    unsigned flags = (require ? CORDON_REQUIRE_KEYS : 0) | (strict ? CORDON_STRICT : 0);
    PyObject *c = compile_text(source, text, (size_t)len, from, flags);
    Py_XDECREF(bytes);
    return c;
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
    PyModuleDef_HEAD_INIT, .m_name = "cordon._expr", .m_size = -1, .m_methods = functions,
    .m_doc = "Conditions that a model wrote, evaluated safely and exactly."};

PyMODINIT_FUNC PyInit__expr(void);
PyMODINIT_FUNC PyInit__expr(void)
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
