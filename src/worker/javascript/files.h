/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the workspace, for programs that import them.
 *
 * Takes:   a path that the judge made of an import: below /workspace, without `.` and `..`.
 * Gives:   its bytes, if they are UTF-8 and no more than a source may have.
 * Never:   opens another path; opens anything in a process that only computes.
 * Runs in: cordon-javascript, in the jail, before the program runs.
 */
#ifndef WORKER_JAVASCRIPT_FILES_H
#define WORKER_JAVASCRIPT_FILES_H

#include "base/buf.h"

#include <stdbool.h>

bool js_files_read(const char *path, struct buf *to);

#endif
