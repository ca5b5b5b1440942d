/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of tools: the names that this run has, and one question and answer at a time.
 *
 * Takes:   the names, from TOOLS; the arguments of a call, as JSON; requests for files, where the profile serves them.
 * Gives:   the answer as JSON; a call that waits suspends only the guest.
 * Never:   decides anything: whether a call is allowed, and how often, is the supervisor's to say.
 * Runs in: a worker, called by guest code through the language's own functions.
 */
#ifndef WORKER_FRAME_HOST_H
#define WORKER_FRAME_HOST_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

ERR_MUST_USE int worker_host_tools(const char *const *names, size_t count, struct err *err);
size_t worker_host_count(void);
const char *worker_host_name(size_t i);

/* From the question to the end of the answer's use: the channel has no other reader. */
void worker_host_lock(void);
void worker_host_unlock(void);

/* Sends CALL. Its number, for the answer; 0: it could not be sent. */
uint64_t worker_host_ask(const char *name, const char *json, size_t len);

struct worker_answer {
    bool good;        /* else the JSON is what went wrong */
    const char *json; /* until the next message */
    size_t len;
};
/* Waits for the answer to that question, until the run's own deadline ends the process. -1: the supervisor is gone. */
int worker_host_wait(uint64_t call, struct worker_answer *ret);

/* One request for a file (wire/files.h), asked and answered; from a thread that holds the lock. -1: the supervisor is gone. */
struct worker_file {
    uint64_t what;
    const char *path, *second, *bytes;
    size_t path_len, second_len, len;
    uint64_t numbers[2];
};
struct worker_file_done {
    uint64_t error; /* an errno, or 0 */
    uint64_t numbers[8];
    size_t count;
    const char *bytes; /* until the next message */
    size_t len;
};
int worker_host_file(const struct worker_file *f, struct worker_file_done *ret);

#endif
