/* SPDX-License-Identifier: Apache-2.0 */
/* A denied call in one line that people can read: `connect AF_INET 8.8.8.8:53`.
 *
 * Takes:   the registers of a notified call, its name, and a way to read the caller's memory.
 * Gives:   one line of printable ASCII, bounded by the buffer; what cannot be read is `?`.
 * Never:   decides anything (the memory may change while it is read, and the answer is EPERM
 *          anyway), trusts a length of the guest, or reads memory except through the reader.
 * Runs in: the supervisor, tests.
 */
#ifndef JAIL_DECODE_H
#define JAIL_DECODE_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JAIL_DECODE_PATH 256 /* bytes of a string looked at */
#define JAIL_DECODE_ADDR 128 /* bytes of a socket address looked at */
#define JAIL_DECODE_LINE 512 /* a buffer of this size is enough for most lines */

/* Reads LEN bytes at ADDR of the caller into BUF: how many could be read, or negative. */
typedef struct jail_decode_reader {
    ssize_t (*read)(void *ctx, uint64_t addr, void *buf, size_t len);
    void *ctx;
} jail_decode_reader;

/* OUT is always NUL-terminated when SIZE > 0; a line that does not fit ends in `...`. */
void jail_decode(const struct seccomp_data *call, const char *name, jail_decode_reader *rd,
                 char *out, size_t size);

/* True for a line that says nothing of the guest: glibc asking nscd, which every getpwuid does. It
 * is denied like the rest, but is no violation to report. */
bool jail_decode_routine(const char *line);

#endif
