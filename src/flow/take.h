/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a guest left, copied to a folder of the host.
 *
 * Takes:   the guest's /workspace and the host's folder, both by descriptor; names that the guest chose.
 * Gives:   regular files, whole or not at all, with the caller's usual mode; never executable.
 * Never:   follows a link of either side, opens what is no regular file, makes a name that begins with a dot, or
 *          overwrites what is there unless it was told to.
 * Runs in: the supervisor.
 */
#ifndef FLOW_TAKE_H
#define FLOW_TAKE_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* What an image begins with, as a media type; NULL: it is none that is known. A few bytes are compared, none is decoded. */
#define FLOW_TYPE_HEAD 16
const char *flow_image_type(const unsigned char *head, size_t len);
/* The same of the file FROM below LEFT. */
const char *flow_take_type(int left, const char *from);

/* The file FROM below LEFT, for reading; ERR_USAGE: it is not there, or no regular file. */
ERR_MUST_USE int flow_take_open(int left, const char *from, struct stat *ret_st, struct err *err);

/* FROM below LEFT becomes TO below DIR. ROOM: bytes that may still be taken, holes counted; it is lessened. ERR_USAGE:
 * this one cannot be taken, and ERR says why. */
ERR_MUST_USE int flow_take_file(int left, const char *from, int dir, const char *to, bool replace,
                                uint64_t *room, struct err *err);

#endif
