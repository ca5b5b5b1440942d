/* Two processes that take turns, on two processors.
 *
 * A new process starts on the processor of its parent and waits there until that one sleeps; one that is woken
 * over a socket goes, as the kernel sees it, best where its waker is about to sleep. Where both have work at the
 * same time that is the wrong place: one waits, and the other processor is idle. All here are hints: what cannot
 * be done changes nothing.
 *
 * Takes:   the pid of the other one.
 * Gives:   nothing that anybody has to look at.
 * Never:   leaves a process bound: what a step takes away its twin gives back. No errno, and no memory of the C
 *          library, for the builder shares its memory.
 * Runs in: whoever waits for a worker; the builder.
 */
#ifndef SYS_APART_H
#define SYS_APART_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/* A process that has run after run has the other processors busy as it is: what it will need next is being made
 * there. Whether it is worth while: it noted no end of a run for a few milliseconds. */
void sys_apart_note_end(void);
bool sys_apart_worth(void);

struct sys_apart {
    bool on;       /* there is another processor, and the other one is ours to place */
    bool asked;    /* what we may use ourselves */
    unsigned here; /* where we were */
    cpu_set_t theirs, ours;
};

/* The other one sleeps. Between the two it is kept off this processor: for the call that wakes it. */
void sys_apart_begin(struct sys_apart *a, pid_t other);
void sys_apart_begun(const struct sys_apart *a, pid_t other);

/* We are about to sleep until the other one has something for us. Between the two we are bound to this processor.
 * Nothing else may happen there: a thread or a process made between them would be bound for good. */
void sys_apart_stay(struct sys_apart *a);
void sys_apart_stayed(const struct sys_apart *a);

/* One that runs already, or was just made: moved to another processor, and not bound to it. */
void sys_apart_move(pid_t pid);

#endif
