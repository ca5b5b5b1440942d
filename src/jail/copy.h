/* SPDX-License-Identifier: Apache-2.0 */
/* A guest's files, copied into another file system as they are.
 *
 * Takes:   two folders by descriptor. What lies in the first is hostile, and must not change meanwhile.
 * Gives:   folders, files with their holes, links, pipes and sockets; modes and times.
 * Never:   follows a link, copies a device (a whiteout of a layer apart), or goes deeper than JAIL_COPY_DEPTH folders.
 * Runs in: the builder (a copy instead of an overlay); a helper of the process that forks or fills a session.
 */
#ifndef JAIL_COPY_H
#define JAIL_COPY_H

#include "base/err.h"

#include <sys/types.h>

#define JAIL_COPY_DEPTH 64

/* SIZE bytes from the beginning, only where there is data: TO is new, and its holes are holes. 0, or -1 with errno. */
int jail_copy_data(int from, int to, off_t size);

/* ERR_STATE names what cannot be copied. */
ERR_MUST_USE int jail_copy_tree(int from, int to, struct err *err);

/* The same of a session's file system whose /workspace is an overlay: what lies beside it, and its upper layer from the folder
 * LAYERS with whiteouts and opaque folders. TO is empty; its /workspace is, too, until an overlay is mounted there. */
ERR_MUST_USE int jail_copy_layered(int files, int layers, int to, struct err *err);

#endif
