/* SPDX-License-Identifier: Apache-2.0 */
/* The peers of the benches that start programs, each given the policy nearest to cordon's own.
 *
 * Takes:   a temporary folder that the caller removes.
 * Gives:   command lines to start, and what has to be inherited for them.
 * Never:   measures; a peer that cannot run here is found out by running it once.
 * Runs in: the bench only.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include <stdio.h>

#define PEER_FILTER_FD 9 /* where bubblewrap is told to find its filter */
#define PEER_WORDS     64

/* Copies the programs and folders PATHS (up to NULL) into INTO, as if installed: an ordinary user can
 * reach them wherever the tree was built, and they were written at once, like the peers', so that the
 * page cache holds them in large pieces (the linker writes here and there). 0 or -1. */
int peer_copy(const char *const *paths, const char *into);

/* bubblewrap with the policy; `seccomp` adds --seccomp PEER_FILTER_FD. */
void peer_bwrap(const char *argv[PEER_WORDS], int seccomp);

/* A file with cordon's `exec` filter as bubblewrap can take it, or -1. Read from its start each
 * time. */
int peer_filter(void);

/* Writes an OCI bundle with the same policy into `dir`; 0 or -1. crun as root gives its standard
 * streams to the container's user: start it with files of its own, never with /dev/null. */
int peer_crun_bundle(const char *dir);

/* A mount namespace without the unified cgroup tree, or -1 where crun needs none or it cannot be.
 */
int peer_crun_mounts(void);

#endif
