/* SPDX-License-Identifier: Apache-2.0 */
/* C types that call the guest's code in the middle of an operation: how their slots and methods are exchanged.
 *
 * Takes:   types of CPython and of its C modules.
 * Gives:   the same types; what they do while the guest's code runs no longer rests on what that code can change.
 * Never:   changes what an honest program sees.
 * Runs in: cordon-python, in the jail, before there is a guest.
 */
#ifndef WORKER_PYTHON_GUARD_SLOTS_H
#define WORKER_PYTHON_GUARD_SLOTS_H

#include "guard_inside.h"

/* Where a type has the pointer of one of its slots; NULL if it has no such table. */
typedef void **guard_slot_fn(PyTypeObject *type);
guard_slot_fn guard_slot_compare, guard_slot_contains, guard_slot_set_item, guard_slot_get_item,
    guard_slot_next, guard_slot_repr, guard_slot_str, guard_slot_hash, guard_slot_init,
    guard_slot_new, guard_slot_dealloc;

/* Puts MINE into the slot of TYPE, of those that inherited it, and into the wrappers NAMES (ended by NULL). *ret_before:
 * what was there; set before anything is exchanged. */
int guard_exchange_slot(PyTypeObject *type, guard_slot_fn *slot, void *mine, void **ret_before,
                        const char *const *names);
/* Puts a method of ours into TYPE; *ret_before: what was there. */
int guard_exchange_method(PyTypeObject *type, PyMethodDef *def, PyObject **ret_before);
/* The record that TYPE's own method NAME calls by: exchanging its function keeps flags, name and text. NULL with an exception. */
PyMethodDef *guard_method(PyTypeObject *type, const char *name);
/* The type NAME of a C module, borrowed; NULL without an exception if module or type is not there. */
PyTypeObject *guard_type_of(const char *module, const char *name);

/* What is loaded by now; whatever was closed already stays as it is. 0, or -1 with a Python exception. */
int guard_close_slots(void);
/* guard_held.c: converts first, or holds on to what is looked at */
int guard_close_held(void);
/* guard_entered.c: refuses to change what is in the middle of an operation */
int guard_close_entered(void);
/* guard_returned.c: looks at who makes what the operation is about to use */
int guard_close_returned(void);
/* guard_made.c: what is not made whole cannot be had */
int guard_close_made(void);
/* guard_texts.c: texts of exceptions hold what they are made of */
int guard_close_texts(void);
/* guard_struct.c: a format is set once */
int guard_close_struct(void);

#endif
