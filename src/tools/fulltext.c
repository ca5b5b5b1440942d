/* SPDX-License-Identifier: Apache-2.0 */
/* The query is the guest's, and FTS5 has a language of its own: columns, NEAR, prefixes, brackets. So each word of the query becomes a string of that
 * language, in which a doubled quote is the only thing that means anything, and is bound as a value. A hit needs one of the words; BM25
 * ranks those with more of the rarer ones first.
 *
 * Waits: sqlite3_step in hits; nobody: it has the database alone, in memory; at once; the broker ends the call after LIMIT_TOOL_MS */
#include "tools/api.h"

#include "base/limits.h"
#include "sys/fd.h"

#include <stdio.h>
#include <string.h>

#define QUERY_WORDS 64
#define HITS_MAX    100

/* "word" OR "word"; 0: there is no word in it. */
static size_t quote(const char *query, struct buf *out)
{
    size_t words = 0;
    for (const char *at = query; *at && words < QUERY_WORDS;) {
        const size_t blank = strspn(at, " \t\r\n\f\v");
        const size_t len = strcspn(at + blank, " \t\r\n\f\v");
        at += blank;
        if (!len)
            break;
        int r = buf_str(out, words ? " OR \"" : "\"");
        for (size_t i = 0; i < len && r == 0; i++)
            r = buf_add(out, at[i] == '"' ? "\"\"" : at + i, at[i] == '"' ? 2 : 1);
        if (r < 0 || buf_str(out, "\"") < 0)
            return 0;
        words++;
        at += len;
    }
    return words;
}

static json_t *mark_column(struct tools_call *c, sqlite3_stmt *s, int column)
{
    const void *text = sqlite3_column_blob(s, column);
    const int len = sqlite3_column_bytes(s, column);
    return tools_mark(c, text ? text : "", text ? (size_t)len : 0);
}

static int hits(struct tools_call *c, sqlite3 *db, const struct buf *query, json_t *results)
{
    static const char sql[] =
        "SELECT docs.path, -bm25(words, 2.0, 1.0) AS score, snippet(words, 1, '', '', ' ... ', 32),"
        " docs.bytes FROM words JOIN docs ON docs.id = words.rowid WHERE words MATCH ?1"
        " ORDER BY score DESC, docs.path LIMIT ?2";
    const uint64_t limit = tools_number(c, "limit", 10);
    sqlite3_stmt *s = NULL;
    int r = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (r == SQLITE_OK)
        r = sqlite3_bind_text(s, 1, query->data, (int)query->len, SQLITE_STATIC);
    if (r == SQLITE_OK)
        r = sqlite3_bind_int64(s, 2, (sqlite3_int64)(limit < HITS_MAX ? limit : HITS_MAX));
    for (json_int_t rank = 1; r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW; rank++) {
        json_t *hit =
            json_pack("{s:I, s:o?, s:f, s:o?, s:I}", "rank", rank, "source", mark_column(c, s, 0),
                      "score", sqlite3_column_double(s, 1), "snippet", mark_column(c, s, 2),
                      "bytes", (json_int_t)sqlite3_column_int64(s, 3));
        r = json_array_append_new(results, hit) < 0 ? SQLITE_NOMEM : SQLITE_OK;
    }
    sqlite3_finalize(s);
    return r == SQLITE_DONE ? SQLITE_OK : r;
}

/* Where a search looks: the files of the run, whose index is brought up to date first; or a collection, whose index somebody else has brought up
 * to date (src/flow/search.c), and which is only read here. So is the index of a workspace while it is in the making: what would be read here
 * twice goes on there at the next call. */
struct looking {
    const char *shown, *collection; /* NULL: the run's files */
    int folder;
};

static int ask(struct tools_call *c, const struct looking *l, const struct buf *query,
               json_t *results, struct tools_indexed *state)
{
    struct tools_indexed own = *state;
    const bool grows = c->base >= 0 && !state->current && !state->full && state->read;
    const bool reads = l->collection || grows;
    sqlite3 *db = NULL;
    int r = tools_index_open(c->base, reads ? -1 : TOOLS_INDEX, &db);
    if (r != SQLITE_OK)
        return r;
    r = reads ? tools_index_documents(db, &own.documents)
              : tools_index_update(c, db, l->folder, l->shown, LIMIT_INDEX / 2, &own);
    if (r == SQLITE_OK)
        r = hits(c, db, query, results);
    tools_index_close(db, r == SQLITE_OK);
    own.read += reads ? 0 : state->read;
    own.removed += reads ? 0 : state->removed;
    *state = own;
    return r;
}

static enum tools_end search(struct tools_call *c, const struct looking *l, const struct buf *query)
{
    json_t *results = json_array();
    struct tools_indexed state = c->indexed;
    const int r = ask(c, l, query, results, &state);
    if (r == SQLITE_OK)
        c->answer =
            json_pack("{s:O, s:s, s:s?, s:I, s:I, s:I, s:b, s:b, s:s?}", "results", results,
                      "source", l->shown, "collection", l->collection, "documents",
                      (json_int_t)state.documents, "indexed", (json_int_t)state.read, "removed",
                      (json_int_t)state.removed, "current", state.current, "full", state.full,
                      "reason", l->collection && c->reason[0] ? c->reason : NULL);
    json_decref(results);
    return r == SQLITE_OK ? TOOLS_OK : tools_fail(c, "the index: %s", sqlite3_errstr(r));
}

static enum tools_end search_files(struct tools_call *c, const struct buf *query)
{
    struct tools_place p;
    FD_AUTO fd = -1;
    enum tools_end end = tools_place_open(c, ".", false, &p);
    if (end == TOOLS_OK)
        end = tools_open_folder(c, &p, &fd);
    if (end == TOOLS_OK)
        end = search(c, &(struct looking){.shown = p.shown, .folder = fd}, query);
    tools_place_close(&p);
    return end;
}

enum tools_end tools_do_search(struct tools_call *c)
{
    const char *collection = tools_text(c, "collection", NULL);
    char shown[TOOLS_COLLECTION + 2];
    struct buf query;
    enum tools_end end;
    buf_init(&query, 3 * LIMIT_CALL);
    snprintf(shown, sizeof shown, "%s:", collection ? collection : "");
    if (!quote(tools_text(c, "query", ""), &query))
        end = tools_refuse(c, "the query has no word in it");
    else if (!collection)
        end = search_files(c, &query);
    else
        end = search(c, &(struct looking){.shown = shown, .collection = collection, .folder = -1},
                     &query);
    buf_done(&query);
    return end;
}
