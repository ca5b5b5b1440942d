/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon session put` and `get`, and --in for a session that was just made.
 *
 * Takes:   words of the command line, a session.
 * Gives:   a copy in /workspace of the session, or of a file there on the host; a record in the audit.
 * Never:   moves anything while a call of the session runs.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SESSION_FILES_H
#define PROG_CORDON_SESSION_FILES_H

#include "programs.h"
#include "session.h"

/* Copies each --in of SPEC into the file system FILES, if all of it keeps the policy's rules for names; WARNING as in naming_check.h. */
ERR_MUST_USE int session_files_put(const struct policy *policy, const struct jail_spec *spec,
                                   int files, char *warning, struct err *err);

/* WORD is PATH[:NAME]. Both return the exit status; everything has been printed. */
int session_files_in(struct session_context *h, const char *session, const char *word);
/* DEST: a file, a folder, - for standard output; NULL: a file of the same name here. */
int session_files_out(struct session_context *h, const char *session, const char *path,
                      const char *dest, bool replace);

#endif
