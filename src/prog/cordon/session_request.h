/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon session files`: one request of `cordon serve` about the files of a session or the snapshots of its workspace.
 *
 * Takes:   a session, an action, and its words from standard input, each with a NUL behind it.
 * Gives:   one JSON object on standard output; a record in the audit.
 * Never:   parses a file of a guest's (cordon-tool and cordon-image do); leaves /workspace; passes the gate by.
 * Runs in: `cordon`.
 */
#ifndef PROG_CORDON_SESSION_REQUEST_H
#define PROG_CORDON_SESSION_REQUEST_H

#include "session.h"
#include "workspace/names.h"

/* Returns the exit status; everything has been printed. */
int session_request(struct session_context *h, const char *session, const char *action);

/* ---- what its files share ---- */

#define SESSION_REQUEST_WORDS 4
struct session_request {
    struct session_context *h;
    const char *session;
    const char *words[SESSION_REQUEST_WORDS]; /* the action's, in its order */
    const char *rest;                         /* of write: what is written */
    size_t rest_len;
    const char *path; /* of the action's path, below /workspace; "." for the folder itself */
    struct session_call *call;
    char workspace[WORKSPACE_FULL_MAX + 1]; /* that the session is in; empty: none */
    struct buf answer;                      /* JSON, an object; of what was refused, a string */
    bool lent;                              /* else what was declined is printed already */
    int status;                             /* ERR_USAGE: ERR says what the client did wrong */
    struct err err;
};

/* session_request_files.c: with the session lent. */
void session_request_read(void *request, int files, uint64_t disk);
void session_request_write(void *request, int files, uint64_t disk);
void session_request_list(void *request, int files, uint64_t disk);
void session_request_search(void *request, int files, uint64_t disk);
/* Whether a search is for names, and not for lines. */
bool session_request_by_name(const struct session_request *q);

/* session_snapshot.c: create, list, diff and restore. */
void session_snapshot_create(struct session_request *q);
void session_snapshot_list(struct session_request *q);
void session_snapshot_diff(struct session_request *q);
void session_snapshot_restore(struct session_request *q);

/* Lends the session for WHAT (NULL: only so that it follows its workspace, and commits what it has not). False: it was
 * not lent, and that was printed. */
bool session_request_lend(struct session_request *q,
                          void (*what)(void *request, int files, uint64_t disk));

#endif
