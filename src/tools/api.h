/* SPDX-License-Identifier: Apache-2.0 */
/* The tools behind the modules code_api.search, code_api.filtering and code_api.reranking: full text over the run's files, and what is done with its
 * results.
 *
 * Takes:   checked arguments; descriptors of indexes, which this program alone writes.
 * Gives:   results with where each comes from; texts in them are data.
 * Never:   takes a query, a condition or an expression for SQL or for code.
 * Runs in: cordon-tool, confined: it alone has SQLite.
 */
#ifndef TOOLS_API_H
#define TOOLS_API_H

#include "tools/inside.h"

#include <sqlite3.h>

/* ---- index.c: a database in one descriptor ---- */

/* FRESH is written, and read where it has an index already; until then BASE is read, which is never written. Either may be -1, FRESH where
 * nothing is written. An index that a process left half written, or that is none of this version's, is made anew: it can be built from the
 * files. 0, or a code of SQLite. */
int tools_index_open(int base, int fresh, sqlite3 **ret_db);
bool tools_index_close(sqlite3 *db, bool whole); /* whether FRESH is an index that differs */

/* ---- current.c ---- */

/* Brings the index up to date with FOLDER, whose files it calls SHOWN/... It takes at most MOST bytes. */
int tools_index_update(struct tools_call *c, sqlite3 *db, int folder, const char *shown,
                       uint64_t most, struct tools_indexed *ret);
int tools_index_documents(sqlite3 *db, uint64_t *ret); /* how many it has */
/* The same for an index that outlives the run, with nothing of a guest's: FRESH becomes it, where something differs. */
int tools_index_folder(int base, int fresh, int folder, const char *shown,
                       struct tools_indexed *ret);

/* ---- one function a tool ---- */

enum tools_end tools_do_search(struct tools_call *c);
enum tools_end tools_do_filter(struct tools_call *c);
enum tools_end tools_do_fuse(struct tools_call *c);
enum tools_end tools_do_diversify(struct tools_call *c);
enum tools_end tools_do_rescore(struct tools_call *c);

#endif
