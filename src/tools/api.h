/* SPDX-License-Identifier: Apache-2.0 */
/* The tools behind the modules code_api.search, code_api.filtering and code_api.reranking: full text over the run's files, and what is done with its
 * results.
 *
 * Takes:   checked arguments; the descriptor of an index, which this program alone writes.
 * Gives:   results with where each comes from; texts in them are data.
 * Never:   takes a query, a condition or an expression for SQL or for code.
 * Runs in: cordon-tool, confined: it alone has SQLite.
 */
#ifndef TOOLS_API_H
#define TOOLS_API_H

#include "tools/inside.h"

#include <sqlite3.h>

/* ---- index.c: a database in one descriptor ---- */

/* An index that a process left half written, or that is none of this version's, is made anew: it can be built from the files. */
int tools_index_open(int fd, sqlite3 **ret_db); /* 0, or a code of SQLite */
void tools_index_close(sqlite3 *db, bool whole);

/* ---- current.c ---- */

/* Brings the index up to date with FOLDER. *ret_current: false where that was not finished in time; the next call goes on. */
int tools_index_update(struct tools_call *c, sqlite3 *db, int folder, const char *shown,
                       bool *ret_current);

/* ---- one function a tool ---- */

enum tools_end tools_do_search(struct tools_call *c);
enum tools_end tools_do_filter(struct tools_call *c);
enum tools_end tools_do_fuse(struct tools_call *c);
enum tools_end tools_do_diversify(struct tools_call *c);
enum tools_end tools_do_rescore(struct tools_call *c);

#endif
