/* SPDX-License-Identifier: Apache-2.0 */
/* What FILE_ASK may ask for, and what the numbers of FILE_DONE are. Each request names a path and stands alone: nothing
 * is open between two of them, so a session and its branches, whose supervisors change with every call, need no more.
 *
 * Takes:   nothing: it is a list of words.
 * Gives:   the numbers that worker and cordon-tool agree on.
 * Never:   names what is not offered: links, modes, owners, descriptors, mappings.
 * Runs in: a worker, and cordon-tool.
 */
#ifndef WIRE_FILES_H
#define WIRE_FILES_H

enum wire_files {
    WIRE_FILES_STAT,     /* -> WIRE_FILES_NUMBERS */
    WIRE_FILES_OPEN,     /* flags -> its size: what open() does once; no descriptor is kept */
    WIRE_FILES_READ,     /* offset, count -> bytes */
    WIRE_FILES_WRITE,    /* offset (WIRE_FILES_END: at its end), bytes -> offset behind them */
    WIRE_FILES_TRUNCATE, /* size */
    WIRE_FILES_LIST,     /* names to skip -> names that were listed, 1 if that is all; for each: its
                            kind, a letter, its name, a NUL */
    WIRE_FILES_MKDIR,
    WIRE_FILES_RMDIR,
    WIRE_FILES_UNLINK,
    WIRE_FILES_RENAME, /* to the second path */
    WIRE_FILES_TOUCH,  /* its times are now */
    WIRE_FILES_COUNT
};

/* of OPEN */
#define WIRE_FILES_FOR_WRITING 1U
#define WIRE_FILES_CREATE      2U
#define WIRE_FILES_EXCLUSIVE   4U
#define WIRE_FILES_EMPTY       8U

#define WIRE_FILES_END     UINT64_MAX
#define WIRE_FILES_NUMBERS 7 /* mode, size, inode, links, times of access, change, status in ns */

/* In the place of an errno: the path lies outside /workspace and /tmp. The supervisor reports it, the guest gets EACCES. */
#define WIRE_FILES_OUTSIDE 0xffffU

#endif
