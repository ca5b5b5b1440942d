/* SPDX-License-Identifier: Apache-2.0 */
/* A file is read again where its size, its times or its inode differ from what the index has; nothing is written where none does. A file
 * whose times lie within the last moment may change once more without a trace, so it is read again at the next call.
 * What is no text is found by its name alone.
 *
 * Documents have numbers in the order in which a walk met them, so the next walk meets most of them in the order of the table: the row after the
 * last one is looked at first, and only where that is another file its row is looked up by its path, which costs ten times as much.
 *
 * Waits: sqlite3_step in go_behind; nobody: it has the database alone, in memory; at once; the broker ends the call after LIMIT_TOOL_MS
 *        sqlite3_step in follow; the same; at once; the same
 *        sqlite3_step in find; nobody: it has the database alone, in memory; at once; the broker ends the call after LIMIT_TOOL_MS
 *        sqlite3_step in put; the same; at once; the same
 *        sqlite3_step in drop_rest; the same; at once; the same
 *        sqlite3_step in has_room; the same; at once; the same
 *        sqlite3_step in tools_index_documents; the same; at once; the same
 *        sqlite3_exec in tools_index_update; the same; at once; the same */
#include "tools/api.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PAGE        4096ULL /* of SQLite, unless it is told another */
#define FILES_MAX   200000
#define BODY_MAX    MIB
#define TEXT_HEAD   8192        /* bytes in which a NUL tells that a file is no text */
#define MOMENT_NS   100000000LL /* clocks of file systems are coarser than this */
#define INDEX_SPARE (64 * MIB)  /* for one more document, and what SQLite has not written yet */
#define TIME_MS     (LIMIT_TOOL_MS / 2) /* for indexing; the rest is the query's */

struct updating {
    struct tools_call *c;
    sqlite3 *db;
    sqlite3_stmt *find, *put, *put_words, *drop_words, *pages;
    sqlite3_stmt *rows;  /* of the table, in its order */
    bool at_row;         /* ROWS stands at one */
    uint64_t met;        /* documents that are as the index has them, or were put there */
    unsigned char *seen; /* by id, a bit each */
    size_t room;         /* bytes of it */
    uint64_t until;
    int64_t now;
    uint64_t most; /* bytes of the index */
    struct tools_indexed done;
    int r; /* the first error of SQLite */
    bool late;
};

static int64_t ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void note_seen(struct updating *u, sqlite3_int64 id)
{
    const size_t at = (size_t)id / 8;
    if (id < 0 || at >= (size_t)4 * FILES_MAX)
        return;
    if (at >= u->room) {
        const size_t room = (at + 1) * 2;
        unsigned char *more = realloc(u->seen, room);
        if (!more) {
            u->r = SQLITE_NOMEM;
            return;
        }
        memset(more + u->room, 0, room - u->room);
        u->seen = more;
        u->room = room;
    }
    u->seen[at] |= (unsigned char)(1 << (id % 8));
    u->met++;
}

static bool was_seen(const struct updating *u, sqlite3_int64 id)
{
    const size_t at = (size_t)id / 8;
    return at < u->room && (u->seen[at] >> (id % 8) & 1);
}

static void done_with(struct updating *u, sqlite3_stmt *s)
{
    const int r = sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    if (r != SQLITE_OK && u->r == SQLITE_OK)
        u->r = r;
}

static bool is_same(sqlite3_stmt *row, const struct stat *st)
{
    return sqlite3_column_int64(row, 1) == st->st_size &&
           sqlite3_column_int64(row, 2) == ns(st->st_mtim) &&
           sqlite3_column_int64(row, 3) == ns(st->st_ctim) &&
           sqlite3_column_int64(row, 4) == (sqlite3_int64)st->st_ino;
}

/* Before the table is written; a row is looked up by its path then, and those behind it are followed again. */
static void leave_rows(struct updating *u)
{
    if (u->at_row)
        done_with(u, u->rows);
    u->at_row = false;
}

static void go_behind(struct updating *u, sqlite3_int64 id)
{
    leave_rows(u);
    sqlite3_bind_int64(u->rows, 1, id);
    u->at_row = sqlite3_step(u->rows) == SQLITE_ROW;
    if (!u->at_row)
        done_with(u, u->rows);
}

/* Whether the row at hand is that of PATH; if so, the one behind it is at hand. */
static bool follow(struct updating *u, const char *path, const struct stat *st,
                   sqlite3_int64 *ret_id, bool *ret_same)
{
    const size_t len = strlen(path);
    if (!u->at_row || (size_t)sqlite3_column_bytes(u->rows, 5) != len ||
        memcmp(sqlite3_column_blob(u->rows, 5), path, len) != 0)
        return false;
    *ret_id = sqlite3_column_int64(u->rows, 0);
    *ret_same = is_same(u->rows, st);
    u->at_row = sqlite3_step(u->rows) == SQLITE_ROW;
    if (!u->at_row)
        done_with(u, u->rows);
    return true;
}

/* 0: the index does not have it; *ret_same: as it is now. */
static sqlite3_int64 find(struct updating *u, const char *path, const struct stat *st,
                          bool *ret_same)
{
    sqlite3_int64 id = 0;
    *ret_same = false;
    if (follow(u, path, st, &id, ret_same))
        return id;
    sqlite3_bind_text(u->find, 1, path, -1, SQLITE_STATIC);
    if (sqlite3_step(u->find) == SQLITE_ROW) {
        id = sqlite3_column_int64(u->find, 0);
        *ret_same = is_same(u->find, st);
    }
    done_with(u, u->find);
    if (*ret_same)
        go_behind(u, id);
    return id;
}

static void put(struct updating *u, sqlite3_int64 id, const char *path, const struct stat *st,
                const struct buf *body)
{
    const bool fresh = ns(st->st_ctim) > u->now - MOMENT_NS;
    leave_rows(u);
    if (id) {
        sqlite3_bind_int64(u->drop_words, 1, id);
        (void)sqlite3_step(u->drop_words);
        done_with(u, u->drop_words);
        sqlite3_bind_int64(u->put, 1, id);
    }
    sqlite3_bind_text(u->put, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_int64(u->put, 3, st->st_size);
    sqlite3_bind_int64(u->put, 4, ns(st->st_mtim));
    sqlite3_bind_int64(u->put, 5, fresh ? 0 : ns(st->st_ctim));
    sqlite3_bind_int64(u->put, 6, (sqlite3_int64)st->st_ino);
    (void)sqlite3_step(u->put);
    done_with(u, u->put);
    id = id ? id : sqlite3_last_insert_rowid(u->db);
    sqlite3_bind_int64(u->put_words, 1, id);
    sqlite3_bind_text(u->put_words, 2, path, -1, SQLITE_STATIC);
    sqlite3_bind_text(u->put_words, 3, body->len ? body->data : "", (int)body->len, SQLITE_STATIC);
    (void)sqlite3_step(u->put_words);
    done_with(u, u->put_words);
    note_seen(u, id);
}

/* Asked before a document is put there: SQLite without a journal cannot take back half of one. */
static bool has_room(struct updating *u)
{
    const bool row = sqlite3_step(u->pages) == SQLITE_ROW;
    const uint64_t bytes = row ? (uint64_t)sqlite3_column_int64(u->pages, 0) * PAGE : UINT64_MAX;
    done_with(u, u->pages);
    u->done.full = u->done.full || bytes > u->most;
    return bytes <= u->most;
}

static bool look_at(void *ctx, int dir, const char *name, const char *shown, const struct stat *st)
{
    struct updating *u = ctx;
    struct stat now;
    struct buf body;
    bool same;
    if (!S_ISREG(st->st_mode))
        return true;
    const sqlite3_int64 id = find(u, shown, st, &same);
    if (same) {
        note_seen(u, id);
        return u->r == SQLITE_OK;
    }
    u->late = clock_now_ns() > u->until || !has_room(u);
    if (u->late)
        return false;
    FD_AUTO fd = tools_open_beneath(dir, name, O_RDONLY);
    if (fd < 0 || fstat(fd, &now) < 0 || !S_ISREG(now.st_mode))
        return true; /* it was swapped meanwhile; what the index has of it goes */
    buf_init(&body, BODY_MAX + 1);
    if (tools_read(u->c, fd, 0, BODY_MAX, &body) != TOOLS_OK ||
        (body.len && memchr(body.data, 0, body.len < TEXT_HEAD ? body.len : TEXT_HEAD)))
        buf_reset(&body);
    put(u, id, shown, &now, &body);
    u->done.read++;
    buf_done(&body);
    return u->r == SQLITE_OK;
}

/* What the walk did not meet is not there any more. */
static void drop_rest(struct updating *u)
{
    sqlite3_stmt *all = NULL, *drop = NULL;
    u->r = sqlite3_prepare_v2(u->db, "SELECT id FROM docs", -1, &all, NULL);
    if (u->r == SQLITE_OK)
        u->r = sqlite3_prepare_v2(u->db, "DELETE FROM docs WHERE id=?1", -1, &drop, NULL);
    while (u->r == SQLITE_OK && sqlite3_step(all) == SQLITE_ROW) {
        const sqlite3_int64 id = sqlite3_column_int64(all, 0);
        if (was_seen(u, id))
            continue;
        sqlite3_bind_int64(u->drop_words, 1, id);
        (void)sqlite3_step(u->drop_words);
        done_with(u, u->drop_words);
        sqlite3_bind_int64(drop, 1, id);
        (void)sqlite3_step(drop);
        done_with(u, drop);
        u->done.removed++;
    }
    sqlite3_finalize(all);
    sqlite3_finalize(drop);
}

static int prepare(struct updating *u)
{
    const struct {
        sqlite3_stmt **to;
        const char *sql;
    } rows[] = {
        {&u->find, "SELECT id, bytes, modified, changed, inode FROM docs WHERE path=?1"},
        {&u->rows,
         "SELECT id, bytes, modified, changed, inode, path FROM docs WHERE id>?1 ORDER BY id"},
        {&u->put, "INSERT OR REPLACE INTO docs VALUES(?1, ?2, ?3, ?4, ?5, ?6)"},
        {&u->put_words, "INSERT INTO words(rowid, path, body) VALUES(?1, ?2, ?3)"},
        {&u->drop_words, "DELETE FROM words WHERE rowid=?1"},
        {&u->pages, "PRAGMA page_count"},
    };
    int r = SQLITE_OK;
    for (size_t i = 0; r == SQLITE_OK && i < sizeof rows / sizeof *rows; i++)
        r = sqlite3_prepare_v2(u->db, rows[i].sql, -1, rows[i].to, NULL);
    return r;
}

int tools_index_documents(sqlite3 *db, uint64_t *ret)
{
    sqlite3_stmt *s = NULL;
    int r = sqlite3_prepare_v2(db, "SELECT count(*) FROM docs", -1, &s, NULL);
    if (r == SQLITE_OK && (r = sqlite3_step(s)) == SQLITE_ROW) {
        *ret = (uint64_t)sqlite3_column_int64(s, 0);
        r = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return r;
}

int tools_index_update(struct tools_call *c, sqlite3 *db, int folder, const char *shown,
                       uint64_t most, struct tools_indexed *ret)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct updating u = {.c = c,
                         .db = db,
                         .until = clock_now_ns() + TIME_MS * CLOCK_NS_PER_MS,
                         .now = ns(now),
                         .most = most};
    struct tools_walk w = {.ctx = &u, .visit = look_at, .left = FILES_MAX};
    u.r = prepare(&u);
    if (u.r == SQLITE_OK)
        u.r = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
    if (u.r == SQLITE_OK) {
        go_behind(&u, 0);
        tools_walk(&w, folder, shown);
        leave_rows(&u);
        u.done.current = !u.late && !w.cut;
        if (u.r == SQLITE_OK)
            u.r = tools_index_documents(db, &u.done.documents);
        if (u.r == SQLITE_OK && u.done.current && u.met != u.done.documents)
            drop_rest(&u);
        const int ended = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        u.r = u.r == SQLITE_OK ? ended : u.r;
    }
    u.done.documents -= u.done.removed;
    sqlite3_finalize(u.find);
    sqlite3_finalize(u.rows);
    sqlite3_finalize(u.put);
    sqlite3_finalize(u.put_words);
    sqlite3_finalize(u.drop_words);
    sqlite3_finalize(u.pages);
    free(u.seen);
    if (u.r == SQLITE_OK)
        *ret = u.done;
    return u.r;
}

static int update_folder(int base, int fresh, int folder, const char *shown,
                         struct tools_indexed *ret)
{
    struct tools_call c = {.name = "index", .files = folder};
    sqlite3 *db = NULL;
    int r = tools_index_open(base, fresh, &db);
    if (r == SQLITE_OK) {
        r = tools_index_update(&c, db, folder, shown, LIMIT_INDEX - INDEX_SPARE, ret);
        ret->written = tools_index_close(db, r == SQLITE_OK);
    }
    return r;
}

/* A base that SQLite cannot read is as good as none. */
int tools_index_folder(int base, int fresh, int folder, const char *shown,
                       struct tools_indexed *ret)
{
    const int r = update_folder(base, fresh, folder, shown, ret);
    return r == SQLITE_CORRUPT || r == SQLITE_NOTADB ? update_folder(-1, fresh, folder, shown, ret)
                                                     : r;
}
