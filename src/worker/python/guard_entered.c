/* SPDX-License-Identifier: Apache-2.0 */
/* Types whose operations rest on their own inside while they run code of the guest (__eq__, __hash__, an iterator's __next__).
 * An operation that is under way is noted, and what would change the same object meanwhile is refused: as CPython does for a
 * generator that is asked for its next value while it makes one. An operation that only looks may be entered again. */
#include "guard_slots.h"

/* An operation that is under way: lives on the stack of the operation itself. */
struct under_way {
    PyObject *object;        /* held until the operation is over */
    struct under_way *outer; /* the one it was begun in */
    struct under_way *same;  /* the next one whose object has the same hash */
};

/* Iterators within iterators are as many operations within each other, 200,000 in tests/cases: a hash table finds those of
 * an object in any depth. It doubles with the depth and goes back to the small one when nothing is under way. */
#define SMALL 64 /* a power of two */
static _Thread_local struct {
    struct under_way *newest;
    struct under_way *small[SMALL];
    struct under_way **large; /* NULL: small is used */
    size_t size;              /* of large */
    size_t depth;
} now;

static struct under_way **bucket(const PyObject *object)
{
    size_t address = (uintptr_t)object >> 4, hash = address ^ (address >> 8) ^ (address >> 16);
    return now.large ? &now.large[hash & (now.size - 1)] : &now.small[hash & (SMALL - 1)];
}

static void put(struct under_way *op)
{
    struct under_way **b = bucket(op->object);
    op->same = *b;
    *b = op;
}

/* Without memory the old table serves on, more slowly. */
static void grow(void)
{
    size_t size = 4 * (now.large ? now.size : SMALL);
    struct under_way **large = calloc(size, sizeof(struct under_way *));
    if (!large)
        return;
    free((void *)now.large);
    now.large = large;
    now.size = size;
    for (struct under_way *x = now.newest; x; x = x->outer)
        put(x);
}

/* False, with an exception, if OBJECT is to be CHANGEd in the middle of one of its operations. */
static bool enter(struct under_way *op, PyObject *object, bool change)
{
    for (struct under_way *x = change ? *bucket(object) : NULL; x; x = x->same)
        if (x->object == object) {
            PyErr_Format(PyExc_RuntimeError,
                         "%.100s is changed while one of its operations is under way",
                         Py_TYPE(object)->tp_name);
            return false;
        }
    if (now.depth++ >= 2 * (now.large ? now.size : SMALL))
        grow();
    op->object = Py_NewRef(object);
    op->outer = now.newest;
    now.newest = op;
    put(op);
    return true;
}

static void leave(struct under_way *op)
{
    struct under_way **b = bucket(op->object);
    while (*b != op)
        b = &(*b)->same;
    *b = op->same;
    now.newest = op->outer;
    if (!--now.depth && now.large) {
        free((void *)now.large);
        now.large = NULL;
        memset((void *)now.small, 0, sizeof now.small);
    }
    Py_DECREF(op->object);
}

static PyObject *left(struct under_way *op, PyObject *result)
{
    leave(op);
    return result;
}

/* What an iterator goes over: the first object that it refers to which IS one. Borrowed, or NULL. */
struct wanted {
    bool (*is)(PyObject *x);
    PyObject *found;
};

static int look(PyObject *x, void *arg)
{
    struct wanted *wanted = arg;
    if (!wanted->found && wanted->is(x))
        wanted->found = x;
    return 0;
}

static PyObject *referent(PyObject *self, bool (*is)(PyObject *))
{
    struct wanted wanted = {is, NULL};
    traverseproc traverse = Py_TYPE(self)->tp_traverse;
    if (traverse)
        traverse(self, look, &wanted);
    return wanted.found;
}

/* ---- methods ---- */

/* Those of OrderedDict, those of dict when they are called on an OrderedDict (dict.clear(od)), and those of memoryview, which
 * release() makes a view of nothing while it hashes its object (gh-142664) or asks a separator for its length. */
#define METHODS(X)                                                                                 \
    X(od_setdefault, PyODict_Type, "setdefault", true, true)                                       \
    X(od_clear, PyODict_Type, "clear", true, true)                                                 \
    X(od_move_to_end, PyODict_Type, "move_to_end", true, true)                                     \
    X(od_copy, PyODict_Type, "copy", false, true)                                                  \
    X(dict_pop, PyDict_Type, "pop", true, PyODict_Check(self))                                     \
    X(dict_popitem, PyDict_Type, "popitem", true, PyODict_Check(self))                             \
    X(dict_setdefault, PyDict_Type, "setdefault", true, PyODict_Check(self))                       \
    X(dict_clear, PyDict_Type, "clear", true, PyODict_Check(self))                                 \
    X(dict_update, PyDict_Type, "update", true, PyODict_Check(self))                               \
    X(view_release, PyMemoryView_Type, "release", true, true)                                      \
    X(view_exit, PyMemoryView_Type, "__exit__", true, true)                                        \
    X(view_hex, PyMemoryView_Type, "hex", false, true)

enum method {
#define NUMBER(id, type, name, change, only) METHOD_##id,
    METHODS(NUMBER)
#undef NUMBER
        METHOD_COUNT
};
static PyCFunction plain_methods[METHOD_COUNT];

/* A function for each calling convention: the method keeps the one it has, and a plain dict passes by one comparison. */
#define TRAMPOLINE(id, suffix, change, only, parameters, type, arguments)                          \
    static PyObject *id##_##suffix parameters                                                      \
    {                                                                                              \
        type plain = (type)(void (*)(void))plain_methods[METHOD_##id];                             \
        struct under_way op;                                                                       \
        if (!(only))                                                                               \
            return plain arguments;                                                                \
        return enter(&op, self, change) ? left(&op, plain arguments) : NULL;                       \
    }
#define TRAMPOLINES(id, owner, name, change, only)                                                 \
    TRAMPOLINE(id, one, change, only, (PyObject * self, PyObject * x), PyCFunction, (self, x))     \
    TRAMPOLINE(id, keywords, change, only, (PyObject * self, PyObject * x, PyObject * names),      \
               PyCFunctionWithKeywords, (self, x, names))                                          \
    TRAMPOLINE(id, fast, change, only, (PyObject * self, PyObject *const *x, Py_ssize_t n),        \
               _PyCFunctionFast, (self, x, n))                                                     \
    TRAMPOLINE(id, fast_keywords, change, only,                                                    \
               (PyObject * self, PyObject *const *x, Py_ssize_t n, PyObject *names),               \
               _PyCFunctionFastWithKeywords, (self, x, n, names))
METHODS(TRAMPOLINES)
#undef TRAMPOLINES

struct trampolines {
    PyTypeObject *type;
    const char *name;
    PyCFunction one, keywords, fast, fast_keywords;
};

static int exchange_method(const struct trampolines *t, PyCFunction *ret_before)
{
    PyMethodDef *def = guard_method(t->type, t->name);
    PyCFunction mine = NULL;
    switch (def ? def->ml_flags & ~METH_COEXIST : 0) {
    case METH_NOARGS:
    case METH_O:
    case METH_VARARGS:
        mine = t->one;
        break;
    case METH_VARARGS | METH_KEYWORDS:
        mine = t->keywords;
        break;
    case METH_FASTCALL:
        mine = t->fast;
        break;
    case METH_FASTCALL | METH_KEYWORDS:
        mine = t->fast_keywords;
        break;
    }
    if (!mine) {
        if (def)
            PyErr_Format(PyExc_SystemError, "%s is called in a way that is not known", t->name);
        return -1;
    }
    *ret_before = def->ml_meth;
    def->ml_meth = mine;
    return 0;
}

static int close_methods(void)
{
#define FUNCTION(name) (PyCFunction)(void (*)(void)) name
#define ROW(id, type, name, change, only)                                                          \
    {&type,                                                                                        \
     name,                                                                                         \
     id##_one,                                                                                     \
     FUNCTION(id##_keywords),                                                                      \
     FUNCTION(id##_fast),                                                                          \
     FUNCTION(id##_fast_keywords)},
    static const struct trampolines table[] = {METHODS(ROW)};
#undef ROW
    for (int i = 0; i < METHOD_COUNT; i++)
        if (exchange_method(&table[i], &plain_methods[i]) < 0)
            return -1;
    return 0;
}

/* ---- OrderedDict.pop, popitem ---- */

/* CPython's own look a key up, and then again to give its node back: where __eq__ answers otherwise the second time, the
 * node that is freed is not the one that is forgotten, and the table goes on using it. Deleting looks once. */
static PyObject *take(PyObject *self, PyObject *key, PyObject *otherwise)
{
    PyObject *value = PyDict_GetItemWithError(self, key); /* borrowed */
    if (!value && PyErr_Occurred())
        return NULL;
    if (!value && otherwise)
        return Py_NewRef(otherwise);
    if (!value) {
        PyErr_SetObject(PyExc_KeyError, key);
        return NULL;
    }
    Py_INCREF(value);
    if (PyODict_DelItem(self, key) < 0)
        Py_CLEAR(value);
    return value;
}

static PyObject *od_pop(PyObject *self, PyObject *args, PyObject *names)
{
    static char *words[] = {(char *)"key", (char *)"default", NULL};
    PyObject *key, *otherwise = NULL;
    struct under_way op;
    if (!PyArg_ParseTupleAndKeywords(args, names, "O|O:pop", words, &key, &otherwise))
        return NULL;
    return enter(&op, self, true) ? left(&op, take(self, key, otherwise)) : NULL;
}

static PyObject *reversed_of; /* OrderedDict.__reversed__ */

static PyObject *end_of(PyObject *self, bool last)
{
    PyObject *keys = last ? PyObject_CallOneArg(reversed_of, self) : PyODict_Type.tp_iter(self);
    PyObject *key = keys ? PyIter_Next(keys) : NULL;
    if (keys && !key && !PyErr_Occurred())
        PyErr_SetString(PyExc_KeyError, "dictionary is empty");
    Py_XDECREF(keys);
    return key;
}

static PyObject *od_popitem(PyObject *self, PyObject *args, PyObject *names)
{
    static char *words[] = {(char *)"last", NULL};
    int last = true;
    struct under_way op;
    if (!PyArg_ParseTupleAndKeywords(args, names, "|p:popitem", words, &last) ||
        !enter(&op, self, true))
        return NULL;
    PyObject *key = end_of(self, last != 0), *value = key ? take(self, key, NULL) : NULL;
    PyObject *item = value ? PyTuple_Pack(2, key, value) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return left(&op, item);
}

static int close_pops(void)
{
    static PyMethodDef rows[] = {
        {"pop", (PyCFunction)(void (*)(void))od_pop, METH_VARARGS | METH_KEYWORDS, NULL},
        {"popitem", (PyCFunction)(void (*)(void))od_popitem, METH_VARARGS | METH_KEYWORDS, NULL}};
    reversed_of = PyDict_GetItemString(PyODict_Type.tp_dict, "__reversed__"); /* its own */
    Py_XINCREF(reversed_of);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        PyObject *before = NULL;
        const PyMethodDef *plain = guard_method(&PyODict_Type, rows[i].ml_name);
        if (!plain || !reversed_of)
            return -1;
        rows[i].ml_doc = plain->ml_doc;
        int r = guard_exchange_method(&PyODict_Type, &rows[i], &before);
        Py_XDECREF(before);
        if (r < 0)
            return -1;
    }
    return 0;
}

/* ---- slots of OrderedDict ---- */

static objobjargproc plain_od_set, plain_dict_set;
static richcmpfunc plain_od_compare;
static reprfunc plain_od_repr;
static iternextfunc plain_od_next;

static int od_set(PyObject *self, PyObject *key, PyObject *value)
{
    struct under_way op;
    if (!enter(&op, self, true))
        return -1;
    int r = plain_od_set(self, key, value);
    leave(&op);
    return r;
}

/* dict.__setitem__ and dict.__delitem__, called by their names. */
static int dict_set(PyObject *self, PyObject *key, PyObject *value)
{
    struct under_way op;
    if (!PyODict_Check(self))
        return plain_dict_set(self, key, value);
    if (!enter(&op, self, true))
        return -1;
    int r = plain_dict_set(self, key, value);
    leave(&op);
    return r;
}

static PyObject *od_compare(PyObject *v, PyObject *w, int how)
{
    struct under_way a, b;
    if (!enter(&a, v, false))
        return NULL;
    if (!enter(&b, w, false))
        return left(&a, NULL);
    return left(&a, left(&b, plain_od_compare(v, w, how)));
}

static PyObject *od_repr(PyObject *self)
{
    struct under_way op;
    return enter(&op, self, false) ? left(&op, plain_od_repr(self)) : NULL;
}

static bool is_od(PyObject *x)
{
    return PyODict_Check(x);
}

static PyObject *od_next(PyObject *self)
{
    struct under_way a, b;
    PyObject *od = referent(self, is_od);
    if (!enter(&a, self, true))
        return NULL;
    if (!od)
        return left(&a, plain_od_next(self));
    return enter(&b, od, false) ? left(&a, left(&b, plain_od_next(self))) : left(&a, NULL);
}

static int close_od(void)
{
    static const char *const compare[] = {"__lt__", "__le__", "__eq__", "__ne__",
                                          "__gt__", "__ge__", NULL};
    static const char *const set[] = {"__setitem__", "__delitem__", NULL};
    static const char *const repr[] = {"__repr__", NULL};
    static const char *const next[] = {"__next__", NULL};
    plain_dict_set = PyDict_Type.tp_as_mapping->mp_ass_subscript;
    for (const char *const *name = set; *name; name++) {
        PyObject *descr = PyDict_GetItemString(PyDict_Type.tp_dict, *name); /* borrowed */
        if (descr && Py_IS_TYPE(descr, &PyWrapperDescr_Type))
            ((PyWrapperDescrObject *)descr)->d_wrapped = (void *)dict_set;
    }
    if (guard_exchange_slot(&PyODict_Type, guard_slot_set_item, (void *)od_set,
                            (void **)&plain_od_set, set) < 0 ||
        guard_exchange_slot(&PyODict_Type, guard_slot_compare, (void *)od_compare,
                            (void **)&plain_od_compare, compare) < 0 ||
        guard_exchange_slot(&PyODict_Type, guard_slot_repr, (void *)od_repr,
                            (void **)&plain_od_repr, repr) < 0 ||
        guard_exchange_slot(&PyODictIter_Type, guard_slot_next, (void *)od_next,
                            (void **)&plain_od_next, next) < 0)
        return -1;
    return close_methods();
}

/* ---- slots of memoryview ---- */

static hashfunc plain_view_hash;
static binaryfunc plain_view_get;
static objobjargproc plain_view_set;

static Py_hash_t view_hash(PyObject *self)
{
    struct under_way op;
    if (!enter(&op, self, false))
        return -1;
    Py_hash_t hash = plain_view_hash(self);
    leave(&op);
    return hash;
}

static PyObject *view_get(PyObject *self, PyObject *key)
{
    struct under_way op;
    return enter(&op, self, false) ? left(&op, plain_view_get(self, key)) : NULL;
}

static int view_set(PyObject *self, PyObject *key, PyObject *value)
{
    struct under_way op;
    if (!enter(&op, self, false))
        return -1;
    int r = plain_view_set(self, key, value);
    leave(&op);
    return r;
}

static int close_view(void)
{
    static const char *const hash[] = {"__hash__", NULL};
    static const char *const get[] = {"__getitem__", NULL};
    static const char *const set[] = {"__setitem__", "__delitem__", NULL};
    PyTypeObject *type = &PyMemoryView_Type;
    if (guard_exchange_slot(type, guard_slot_hash, (void *)view_hash, (void **)&plain_view_hash,
                            hash) < 0 ||
        guard_exchange_slot(type, guard_slot_get_item, (void *)view_get, (void **)&plain_view_get,
                            get) < 0)
        return -1;
    return guard_exchange_slot(type, guard_slot_set_item, (void *)view_set,
                               (void **)&plain_view_set, set);
}

/* ---- iterators ---- */

/* Each keeps its iterator, its sentinel, its key or its last value while it runs code of the guest, which lets go of it by asking for the
 * next value (gh-143543, gh-146613, gh-149557). Those of itertools, and csv's reader, whose fields are gone when it is
 * entered again (gh-145105). */
#define ITERATORS(X)                                                                               \
    X(groupby, "itertools", "groupby")                                                             \
    X(pairwise, "itertools", "pairwise")                                                           \
    X(islice, "itertools", "islice")                                                               \
    X(zip_longest, "itertools", "zip_longest")                                                     \
    X(accumulate, "itertools", "accumulate")                                                       \
    X(chain, "itertools", "chain")                                                                 \
    X(cycle, "itertools", "cycle")                                                                 \
    X(count, "itertools", "count")                                                                 \
    X(reader, "_csv", "Reader")
static PyTypeObject *groupby;
static iternextfunc plain_grouper;

#define ITERATOR(name, module, type)                                                               \
    static iternextfunc plain_##name;                                                              \
    static PyObject *next_##name(PyObject *self)                                                   \
    {                                                                                              \
        struct under_way op;                                                                       \
        return enter(&op, self, true) ? left(&op, plain_##name(self)) : NULL;                      \
    }
ITERATORS(ITERATOR)
ITERATOR(sequence, , ) /* iter(x) of an x with __getitem__ */
ITERATOR(callable, , ) /* iter(f, sentinel) */
#undef ITERATOR

static bool is_groupby(PyObject *x)
{
    return PyObject_TypeCheck(x, groupby);
}

/* A group is made from the values that its groupby goes over. */
static PyObject *next_grouper(PyObject *self)
{
    struct under_way op;
    PyObject *parent = referent(self, is_groupby);
    if (!enter(&op, parent ? parent : self, true))
        return NULL;
    return left(&op, plain_grouper(self));
}

static int close_iterator(PyTypeObject *type, void *mine, iternextfunc *ret_before)
{
    static const char *const next[] = {"__next__", NULL};
    if (!type || *ret_before)
        return 0;
    return guard_exchange_slot(type, guard_slot_next, mine, (void **)ret_before, next);
}

int guard_close_entered(void)
{
    const struct {
        PyTypeObject *type;
        PyObject *(*mine)(PyObject *self);
        iternextfunc *before;
    } iterators[] = {
#define ROW(name, module, type) {guard_type_of(module, type), next_##name, &plain_##name},
        ITERATORS(ROW)
#undef ROW
            {guard_type_of("itertools", "_grouper"), next_grouper, &plain_grouper},
        {&PySeqIter_Type, next_sequence, &plain_sequence},
        {&PyCallIter_Type, next_callable, &plain_callable},
    };
    groupby = guard_type_of("itertools", "groupby");
    if (!plain_od_set && (close_pops() < 0 || close_od() < 0 || close_view() < 0))
        return -1;
    for (size_t i = 0; i < sizeof iterators / sizeof *iterators; i++)
        if (close_iterator(iterators[i].type, (void *)iterators[i].mine, iterators[i].before) < 0)
            return -1;
    return 0;
}
