/* SPDX-License-Identifier: Apache-2.0 */
/* What the launcher itself saw of its layers, after the last lock and before the program.
 *
 * Takes:   a locked process, its own status file, one forbidden act per layer.
 * Gives:   a judgement, layer by layer; a layer that was not seen stops the run.
 * Never:   believes what was asked for: only what was seen.
 * Runs in: the launcher; the supervisor looks at itself, to compare.
 */
#ifndef JAIL_ATTEST_H
#define JAIL_ATTEST_H

#include "base/err.h"
#include "jail/spec.h"

#include <stdbool.h>
#include <stdint.h>

/* The acts, in the order on the wire. Each holds the errno that the act ended with (0: it
 * succeeded). */
#define JAIL_ACTS(X)                                                                               \
    X(seal_open)   /* filesystem: a file that only Landlock keeps shut */                          \
    X(root_write)  /* filesystem: create a file in the root */                                     \
    X(host_file)   /* filesystem: a folder that is on every host and that nobody asked for */      \
    X(denied_call) /* syscalls: a call that no table allows */                                     \
    X(high_dup)    /* resources: a descriptor at the limit */                                      \
    X(udp)         /* network: an address to send to, asked for before seccomp forbids it */       \
    X(leftover)    /* process: a descriptor left open on purpose must not survive an exec */       \
    X(signal_up)   /* process: the null signal to the parent */                                    \
    X(queue)       /* process: a message queue that a child's template has made */

enum jail_act {
#define X(name) JAIL_ACT_##name,
    JAIL_ACTS(X)
#undef X
        JAIL_ACT_COUNT
};

#define JAIL_PROOF_NAMESPACES 7
#define JAIL_HOSTNAME         "cordon" /* what a jail of ours is called from inside */

struct jail_proof {
    uint64_t namespaces[JAIL_PROOF_NAMESPACES]; /* inode numbers, order of jail_namespaces; 0: not
                                                   looked */
    uint64_t acts[JAIL_ACT_COUNT];
    uint64_t pid, uid, root; /* its numbers, and which folder its root is */
    uint64_t quota;          /* bytes that it can hold in files */
    int queue;               /* of a template: a message queue, its number plus one; 0: none */
    char name[65];           /* the machine's, as it sees it */
    char status[1024];       /* the lines of its own /proc/PID/status that tell of locks */
};

/* Who and where the caller is. While /proc can still be opened. */
void jail_attest_before(struct jail_proof *proof, int proc, enum jail_kind kind);
/* The same of the supervisor, to compare: USER_NS is its user namespace. The builder adds
 * what it still shares with it. */
void jail_attest_own(struct jail_proof *proof, uint64_t user_ns);
void jail_attest_own_rest(struct jail_proof *proof, int proc);
/* While a socket can still be made and a signal be sent. OWN: the proof of the process that started it. */
void jail_attest_unfiltered(struct jail_proof *proof, const struct jail_proof *own);
void jail_attest_after(struct jail_proof *proof, const struct jail_spec *spec, int status_fd);
void jail_attest_descriptors(struct jail_proof *proof, const struct jail_spec *spec);

/* The layers of the result. */
enum jail_layer {
    JAIL_LAYER_PROCESS,
    JAIL_LAYER_SYSCALLS,
    JAIL_LAYER_RESOURCES,
    JAIL_LAYER_NETWORK,
    JAIL_LAYER_FILESYSTEM,
    JAIL_LAYER_COUNT
};
extern const char *const jail_layer_names[JAIL_LAYER_COUNT];

struct jail_layers {
    bool on[JAIL_LAYER_COUNT];
    char note[JAIL_LAYER_COUNT][96]; /* what makes it up, or what is missing */
};

/* As fields "uT" of a message. */
struct wire_writer;
struct wire_reader;
void jail_layers_write(struct wire_writer *w, const struct jail_layers *l);
void jail_layers_read(struct wire_reader *r, struct jail_layers *ret);

/* Judges PROOF against the specification. OWN: the same of the supervisor (namespaces, root). Returns 0 when
 * every layer that the mode promises is on; ERR_MISSING with the layer's name otherwise. */
ERR_MUST_USE int jail_attest_judge(const struct jail_proof *proof, const struct jail_spec *spec,
                                   const struct jail_proof *own, struct jail_layers *ret_layers,
                                   struct err *err);

#endif
