/* SPDX-License-Identifier: Apache-2.0 */
/* One file's tree laid over a policy: what several files of this room share while they do that.
 *
 * Takes:   a tree, and a policy that is still being made.
 * Gives:   the values in it, with their origins; everything that is wrong.
 * Never:   is included from outside this room.
 * Runs in: the supervisor; `cordon policy`.
 */
#ifndef POLICY_LOAD_H
#define POLICY_LOAD_H

#include "policy/policy.h"
#include "policy/schema.h"
#include "policy/tree.h"

/* A policy with the memory that holds it. Its parts are writable while it is made. */
struct policy_box {
    struct policy p; /* first: a policy in force is found in its box */
    struct arena mem;
    size_t refs;
    struct policy_origin *origins;
    struct policy_role *roles;
    struct policy_tool *tools;
    struct policy_upstream *upstreams;
    const struct policy_profile **profiles;
    struct policy_profile_origin *profile_origins;
    size_t nprofiles;
    const char **files;
    bool later; /* the file that is read now is not the machine's: it cannot make anything final */
};

/* A copy of the built-in policy with room for files. NULL without memory. */
struct policy_box *policy_box_new(void);
void policy_box_free(struct policy_box *box);

/* Reads DATA as the file NAME over BOX. ERR_MEMORY, or 0: look at PROBLEMS. */
ERR_MUST_USE int policy_box_load(struct policy_box *box, const char *name, const void *data,
                                 size_t len, struct policy_problems *problems);
/* What is only wrong, or unwise, in the policy as a whole. */
void policy_box_check(const struct policy_box *box, struct policy_problems *problems);

struct policy_loader {
    struct policy_box *box;
    struct policy_problems *problems;
    const char *file;
    uint16_t number; /* of the file, in origins */
    bool no_memory;
};

void policy_load_problem(struct policy_loader *l, const struct policy_node *at, const char *fmt,
                         ...) __attribute__((format(printf, 3, 4)));
struct policy_origin policy_load_origin(const struct policy_loader *l,
                                        const struct policy_node *at);
void *policy_load_alloc(struct policy_loader *l, size_t size); /* NULL: no_memory is set */

/* The checks that every map needs: it is one, its keys are among KEYS (ended by NULL; NULL: any), none twice.
 * False: not a map, or empty; then there is nothing to walk. */
bool policy_load_map(struct policy_loader *l, const struct policy_node *map, const char *what,
                     const char *const *keys);
const struct policy_node *policy_load_get(const struct policy_node *map, const char *key);

/* A scalar's text, or NULL and a problem. The same for a list of words of at most MAX. */
const char *policy_load_text(struct policy_loader *l, const struct policy_node *n, const char *what,
                             size_t max);
bool policy_load_words(struct policy_loader *l, const struct policy_node *n,
                       const struct policy_key *key, struct policy_words *ret);

bool policy_load_name_good(struct policy_loader *l, const struct policy_node *n, const char *what);
const char *policy_load_keep(struct policy_loader *l,
                             const char *s); /* a copy; "" without memory */

void policy_load_roles(struct policy_loader *l, const struct policy_node *map);
void policy_load_tools(struct policy_loader *l, const struct policy_node *map);
void policy_load_judges(struct policy_loader *l, const struct policy_node *list);
void policy_load_naming(struct policy_loader *l, const struct policy_node *list);
void policy_load_upstreams(struct policy_loader *l, const struct policy_node *map);
void policy_load_clients(struct policy_loader *l, const struct policy_node *list);
void policy_load_profiles(struct policy_loader *l, const struct policy_node *map);

#endif
