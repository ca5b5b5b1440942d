/* SPDX-License-Identifier: Apache-2.0 */
/* The functions in C that the library in JavaScript stands on: output, input, clock, chance, tools, the end of the program.
 *
 * Takes:   calls by the library, which the program calls.
 * Gives:   an object with one function each.
 * Never:   decides anything: whether a call of a tool is allowed, and how often, is the supervisor's to say.
 * Runs in: cordon-javascript, called by the program.
 */
#ifndef WORKER_JAVASCRIPT_HOST_H
#define WORKER_JAVASCRIPT_HOST_H

#include "engine_first.h"

#include <setjmp.h>
#include <stdbool.h>

JSObjectRef js_host_object(JSContextRef ctx);

/* What a program asked for while it ran. */
struct js_host_end {
    jmp_buf back; /* where the end of a run goes, from any depth: the engine is not entered again */
    bool stays;   /* a call of a session: the engine is left by an exception instead */
    bool left;    /* it asked for its end */
    int status;   /* and for this one */
    JSValueRef
        failed; /* protected: what nobody caught in a microtask or a promise; NULL: nothing */
};
extern struct js_host_end js_host_end;

void js_host_asks(bool typed); /* a person is asked before a line is read */
void js_host_drop_input(void); /* what was read and not asked for */
void js_host_other_chance(
    void); /* other random numbers than the process that this one was forked from */

/* Waits for MS milliseconds. -1: an interrupt ended it. */
int js_host_sleep(double ms);
/* An interrupt that came becomes an exception. */
JSValueRef js_host_interrupted(JSContextRef ctx);
int js_host_set_interrupt(void);
void js_host_drop_interrupt(void);

/* Tells FD and writes LEN bytes to it. */
void js_host_write(int fd, const char *text, size_t len);

/* The callback for promises whose rejection nobody handles. */
JSObjectRef js_host_unhandled(JSContextRef ctx);

#endif
