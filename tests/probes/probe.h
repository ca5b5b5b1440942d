/* SPDX-License-Identifier: Apache-2.0 */
/* One attack per probe: a program that tries one forbidden thing for real, from inside the jail.
 *
 * Takes:   a name of the table, and what the test planted outside (a path, a port, a key).
 * Gives:   one last line: `CONTAINED …` (exit 0), `REACHED …` (exit 10), `BROKEN …` (exit 20).
 * Never:   judges by the mere answer of a call where an effect can be looked for; runs outside a
 * jail. Runs in: the guest's place, under `cordon exec`.
 */
#ifndef PROBE_H
#define PROBE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_CONTAINED = 0, EXIT_REACHED = 10, EXIT_BROKEN = 20 };

/* The placeholders of `options` and `args` are filled by the test: {ro} {rw} the shared folders,
 * {secret} a file outside, {port} {udp} loopback listeners, {abstract} a socket name, {pid} a
 * sibling, {key} a System V key, {mq} a queue, {shm} a file of /dev/shm, {word} the secret word. */
struct probe {
    const char *name;
    const char *what;  /* the attack, in a phrase */
    const char *items; /* numbers of the operating-system list: "3,13" */
    int category; /* 1 code, 2 import, 3 resources, 4 network, 5 files, 6 descriptors, 7 output */
    const char *layer; /* the layer that should answer first */
    const char *twin;  /* the benign probe that walks the same ground */
    void (*run)(int argc, char **argv);
    const char *options; /* further options of `cordon exec` */
    const char *args;    /* further arguments of the probe */
    const char *ends;    /* status of the run, where it is not "ok": "timeout", "crashed 6" */
    const char *rule;    /* a rule that must be in `violations`, as a regular expression */
};

extern const struct probe probes_descriptors[], probes_processes[], probes_memory[],
    probes_namespaces[], probes_exec[], probes_files[], probes_network[], probes_ipc[],
    probes_limits[], probes_output[], probes_identity[], probes_kernel[], probes_notify[],
    probes_shared[], probes_benign[];

_Noreturn void contained(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void reached(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void broken(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* For plain "this call must not succeed": `result` is what the call returned. */
_Noreturn void must_fail(const char *what, long result);
/* For calls no guest may get into at all: an answer other than a refusal (EINVAL, EFAULT…) means
 * that the kernel's own code looked at our arguments. */
_Noreturn void must_be_refused(const char *what, long result);
bool is_refusal(int error);
/* Is there a filter? Where a test build runs without one, an attack is judged by its effect alone.
 */
bool filtered(void);
const char *error_name(int error);

/* Did any attempt succeed? Collects several tries of one attack. */
void tried(const char *what, long result);
_Noreturn void none_may_have_succeeded(void);

const char *need(int argc, char **argv, int i); /* argument i, or BROKEN */
long number(const char *text);
void keep_stdout(void); /* the verdict still gets out after the probe closed its stdout */
int file_holds(const char *path, const char *word); /* 1 yes, 0 read but no, -1 errno */

#endif
