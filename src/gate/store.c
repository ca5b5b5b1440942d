/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite does what is hard here: one answer, one use, no half of either after a kill or a power cut. A
 * rollback journal, not a write-ahead log: each process makes one change and ends, so a log would be
 * written and copied back every time, and its shared index needs room on the disk even to read. With a
 * journal, listing and showing write nothing and work on a full or read-only disk. `synchronous = EXTRA`
 * syncs the folder too: a journal that comes back after a power cut would take a used yes back. It lives in a program of its own because linking it would cost every start
 * of `cordon` 45 us, and only a run that waits for a person needs it.
 *
 * A question is a row that is never changed but in its state, and the state only moves forward:
 * asked -> approved -> used, asked -> denied, asked or approved -> expired. Each move is one UPDATE
 * that names the state it moves from; whoever comes second changes no row. A question whose time is over
 * is shown as expired before anybody has written that down.
 *
 * Waits: sqlite3_step in *; another cordon-approvals; LIMIT_APPROVALS_BUSY_MS; refused, and the holder is named
 *        sqlite3_exec in run_sql; another cordon-approvals; LIMIT_APPROVALS_BUSY_MS; refused, and the holder is named */
#include "gate/store.h"

#include "base/limits.h"
#include "gate/record.h"
#include "sys/fd.h"
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KEEP_MS     (30ULL * 24 * 3600 * 1000) /* answered questions are forgotten after this */
#define WAITING_MAX 100                        /* unanswered questions of one client */
#define LIST_MAX    1000

struct gate_store {
    sqlite3 *db;
    const char *path;
};

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS approvals("
    " id TEXT PRIMARY KEY, state TEXT NOT NULL"
    "  CHECK(state IN ('asked','approved','denied','expired','used')),"
    " client TEXT NOT NULL, tool TEXT NOT NULL, run TEXT NOT NULL, because TEXT NOT NULL,"
    " binding TEXT NOT NULL, hash TEXT NOT NULL, arguments TEXT NOT NULL, code BLOB NOT NULL,"
    " lineage TEXT NOT NULL, expiry INTEGER NOT NULL, asked INTEGER NOT NULL,"
    " expires INTEGER NOT NULL, answered INTEGER NOT NULL DEFAULT 0,"
    " by TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', used INTEGER NOT NULL DEFAULT 0"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS bound ON approvals(client, binding, state);"
    "PRAGMA user_version = 1;";

/* SQLite's own locks are POSIX locks on bytes far behind the end of the file. */
enum { BYTE_PENDING = 0x40000000, BYTE_RESERVED, BYTE_SHARED };

static int busy(struct gate_store *s, struct err *err)
{
    char holder[160];
    /* O_PATH: closing any other descriptor of the file would drop the locks that we hold ourselves */
    FD_AUTO fd = open(s->path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    pid_t pid = 0;
    for (off_t byte = BYTE_PENDING; fd >= 0 && pid == 0 && byte <= BYTE_SHARED; byte++)
        pid = lock_holder(fd, byte);
    lock_describe(pid, holder, sizeof holder);
    return err_set(err, ERR_STATE, "the approvals' lock is held for more than %llu ms by %s",
                   LIMIT_APPROVALS_BUSY_MS, holder);
}

static int sql_error(struct gate_store *s, struct err *err)
{
    int code = sqlite3_errcode(s->db);
    if (code == SQLITE_BUSY)
        return busy(s, err);
    if (code == SQLITE_FULL || sqlite3_system_errno(s->db) == ENOSPC)
        return err_set(err, ERR_STATE,
                       "approvals: the disk of the state folder is full: make room, then ask or "
                       "answer again");
    return err_set(err, ERR_STATE, "approvals: %.160s", sqlite3_errmsg(s->db));
}

static int run_sql(struct gate_store *s, const char *sql, struct err *err)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sql_error(s, err);
}

static int version_of(struct gate_store *s)
{
    sqlite3_stmt *q = NULL;
    int version = 0;
    if (sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &q, NULL) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW)
        version = sqlite3_column_int(q, 0);
    sqlite3_finalize(q);
    return version;
}

int gate_store_open(const char *path, struct gate_store **ret_store, struct err *err)
{
    struct gate_store *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = 0;
    s->path = path;
    if (sqlite3_open_v2(path, &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
                        NULL) != SQLITE_OK)
        r = sql_error(s, err);
    if (r == 0) {
        sqlite3_busy_timeout(s->db, (int)LIMIT_APPROVALS_BUSY_MS);
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        r = run_sql(s,
                    "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA;"
                    "PRAGMA trusted_schema = OFF;",
                    err);
    }
    if (r == 0 && version_of(s) != 1) /* making what is there already would be a write */
        r = run_sql(s, schema, err);
    if (r < 0) {
        gate_store_close(s);
        return r;
    }
    *ret_store = s;
    return 0;
}

void gate_store_close(struct gate_store *s)
{
    if (s)
        sqlite3_close(s->db);
    free(s);
}

/* ---- small helpers over SQLite ---- */

struct args {
    const void *request;
    size_t len;
    uint64_t now;
};

static void bind_field(sqlite3_stmt *q, int at, const struct args *a, const char *name, bool blob)
{
    struct gate_field f = gate_record_find(a->request, a->len, name);
    if (blob)
        sqlite3_bind_blob64(q, at, f.data, f.len, SQLITE_STATIC);
    else
        sqlite3_bind_text64(q, at, f.data, f.len, SQLITE_STATIC, SQLITE_UTF8);
}

static sqlite3_stmt *prepare(struct gate_store *s, const char *sql)
{
    sqlite3_stmt *q = NULL;
    return sqlite3_prepare_v2(s->db, sql, -1, &q, NULL) == SQLITE_OK ? q : NULL;
}

/* Runs a statement that gives no row; returns how many rows it changed, or an error. */
static int change(struct gate_store *s, sqlite3_stmt *q, struct err *err)
{
    int done = q ? sqlite3_step(q) : SQLITE_ERROR;
    int rows = sqlite3_changes(s->db);
    sqlite3_finalize(q);
    return done == SQLITE_DONE ? rows : sql_error(s, err);
}

/* Of a question or a yes, in SQL: its time is over; or it is of a time to come, because the clock was set back since, and
 * nobody knows for how long it would count. A step of less than a minute is what time servers do. */
#define OVER(now) "(expires <= " now " OR max(asked, answered) > " now " + 60000)"

static int expire(struct gate_store *s, uint64_t now, struct err *err)
{
    static const char over[] = "UPDATE approvals SET state = 'expired' WHERE "
                               "state IN ('asked', 'approved') AND " OVER("?1");
    sqlite3_stmt *q = prepare(s, over);
    sqlite3_bind_int64(q, 1, (sqlite3_int64)now);
    int r = change(s, q, err);
    if (r < 0)
        return r;
    uint64_t old = now > KEEP_MS ? now - KEEP_MS : 0;
    q = prepare(s, "DELETE FROM approvals WHERE expires <= ?1");
    sqlite3_bind_int64(q, 1, (sqlite3_int64)old);
    r = change(s, q, err);
    return r < 0 ? r : 0;
}

#define COLUMNS_AFTER_STATE                                                                        \
    "client, tool, run, because, hash, arguments, code, lineage, asked, expires, answered, by, "   \
    "why, used"
static const char columns[] = "id, state, " COLUMNS_AFTER_STATE;
/* ?9 is now */
static const char columns_now[] = "id, CASE WHEN state IN ('asked', 'approved') AND " OVER(
    "?9") " THEN 'expired' ELSE state END AS state, " COLUMNS_AFTER_STATE;

/* One row of `columns` as fields. BRIEF leaves out what is long. */
static int put_row(sqlite3_stmt *q, bool brief, struct buf *out)
{
    int r = 0;
    for (int i = 0; i < sqlite3_column_count(q) && r == 0; i++) {
        const char *name = sqlite3_column_name(q, i);
        bool lengthy = strcmp(name, "code") == 0 || strcmp(name, "arguments") == 0 ||
                       strcmp(name, "lineage") == 0;
        if (brief && lengthy)
            continue;
        const void *data = sqlite3_column_type(q, i) == SQLITE_BLOB
                               ? sqlite3_column_blob(q, i)
                               : (const void *)sqlite3_column_text(q, i);
        r = gate_record_bytes(out, name, data ? data : "", (size_t)sqlite3_column_bytes(q, i));
    }
    return r;
}

/* ---- ask ---- */

static int find_bound(struct gate_store *s, const struct args *a, const char *state, char id[24],
                      struct buf *reply, struct err *err)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "SELECT %s FROM approvals WHERE client = ?1 AND binding = ?2 AND state = ?3 AND "
             "expires > ?4 ORDER BY asked DESC LIMIT 1",
             columns);
    sqlite3_stmt *q = prepare(s, sql);
    if (!q)
        return sql_error(s, err);
    bind_field(q, 1, a, "client", false);
    bind_field(q, 2, a, "binding", false);
    sqlite3_bind_text(q, 3, state, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 4, (sqlite3_int64)a->now);
    int step = sqlite3_step(q), r = 0;
    if (step == SQLITE_ROW) {
        snprintf(id, 24, "%s", (const char *)sqlite3_column_text(q, 0));
        r = put_row(q, true, reply);
        r = r < 0 ? err_set(err, r, "approvals: the reply is too long") : 1;
    } else if (step != SQLITE_DONE) {
        r = sql_error(s, err);
    }
    sqlite3_finalize(q);
    return r;
}

static int waiting_of(struct gate_store *s, const struct args *a, struct err *err)
{
    sqlite3_stmt *q =
        prepare(s, "SELECT count(*) FROM approvals WHERE client = ?1 AND state = 'asked'");
    if (!q)
        return sql_error(s, err);
    bind_field(q, 1, a, "client", false);
    int n = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int(q, 0) : sql_error(s, err);
    sqlite3_finalize(q);
    return n;
}

static int insert(struct gate_store *s, const struct args *a, char id[24], struct err *err)
{
    static const char *const texts[] = {"client",  "tool", "run",       "because",
                                        "binding", "hash", "arguments", "lineage"};
    unsigned char random[6];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return err_sys(err, "getrandom");
    snprintf(id, 24, "ap-%02x%02x%02x%02x%02x%02x", random[0], random[1], random[2], random[3],
             random[4], random[5]);
    sqlite3_stmt *q = prepare(
        s, "INSERT INTO approvals(client, tool, run, because, binding, hash, arguments, lineage, "
           "code, id, state, expiry, asked, expires) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,'asked',"
           "?11,?12,?13)");
    if (!q)
        return sql_error(s, err);
    for (int i = 0; i < 8; i++)
        bind_field(q, i + 1, a, texts[i], false);
    bind_field(q, 9, a, "code", true);
    sqlite3_bind_text(q, 10, id, -1, SQLITE_STATIC);
    uint64_t expiry = gate_record_count(a->request, a->len, "expiry"), end = a->now + expiry;
    sqlite3_bind_int64(q, 11, (sqlite3_int64)expiry);
    sqlite3_bind_int64(q, 12, (sqlite3_int64)a->now);
    sqlite3_bind_int64(q, 13, (sqlite3_int64)end);
    int r = change(s, q, err);
    return r < 0 ? r : 0;
}

static int mark_used(struct gate_store *s, const char *id, uint64_t now, struct err *err)
{
    sqlite3_stmt *q = prepare(s, "UPDATE approvals SET state = 'used', used = ?2 WHERE id = ?1 AND "
                                 "state = 'approved' AND expires > ?2");
    sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 2, (sqlite3_int64)now);
    return change(s, q, err);
}

/* The answer to a question that may have been asked before: granted (and with that used up), denied,
 * or waiting. One that was asked already, and is not there any more, is not asked anew: it has expired. */
static int op_ask(struct gate_store *s, const struct args *a, struct buf *reply, struct err *err)
{
    char id[24] = "";
    int r = find_bound(s, a, "approved", id, reply, err);
    if (r == 1) {
        r = mark_used(s, id, a->now, err);
        return r < 0 ? r : gate_record_text(reply, "result", r == 1 ? "granted" : "waiting");
    }
    if (r == 0)
        r = find_bound(s, a, "denied", id, reply, err);
    if (r == 1)
        return gate_record_text(reply, "result", "denied");
    if (r == 0)
        r = find_bound(s, a, "asked", id, reply, err);
    if (r == 1)
        return gate_record_text(reply, "result", "waiting");
    if (r == 0 && gate_record_count(a->request, a->len, "again"))
        return gate_record_text(reply, "result", "expired");
    if (r == 0)
        r = waiting_of(s, a, err);
    if (r >= WAITING_MAX)
        return gate_record_text(reply, "result", "full");
    if (r >= 0)
        r = insert(s, a, id, err);
    if (r == 0)
        r = find_bound(s, a, "asked", id, reply, err);
    if (r < 0)
        return r;
    r = gate_record_text(reply, "new", "1");
    return r < 0 ? r : gate_record_text(reply, "result", "waiting");
}

/* ---- answer, list, show ---- */

static int op_answer(struct gate_store *s, const struct args *a, struct buf *reply, struct err *err)
{
    uint64_t yes = gate_record_count(a->request, a->len, "yes");
    /* a yes is good for as long as the question was, from now on */
    sqlite3_stmt *q = prepare(
        s,
        "UPDATE approvals SET state = ?2, answered = ?3, by = ?4, why = ?5, expires = ?3 + expiry "
        "WHERE id = ?1 AND state = 'asked' AND expires > ?3");
    if (!q)
        return sql_error(s, err);
    bind_field(q, 1, a, "id", false);
    sqlite3_bind_text(q, 2, yes ? "approved" : "denied", -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, (sqlite3_int64)a->now);
    bind_field(q, 4, a, "by", false);
    bind_field(q, 5, a, "why", false);
    int r = change(s, q, err);
    return r < 0 ? r : gate_record_text(reply, "result", r == 1 ? "recorded" : "late");
}

static int op_list(struct gate_store *s, const struct args *a, struct buf *reply, struct err *err)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "SELECT * FROM (SELECT %s FROM approvals WHERE ?1 = 0 OR (state = 'asked' AND "
             "NOT " OVER("?9") ") ORDER BY asked DESC LIMIT %d) ORDER BY asked",
             columns_now, LIST_MAX);
    sqlite3_stmt *q = prepare(s, sql);
    if (!q)
        return sql_error(s, err);
    sqlite3_bind_int64(q, 1, (sqlite3_int64)gate_record_count(a->request, a->len, "waiting"));
    sqlite3_bind_int64(q, 9, (sqlite3_int64)a->now);
    int r = 0, step = 0;
    while (r == 0 && (step = sqlite3_step(q)) == SQLITE_ROW)
        r = put_row(q, true, reply);
    if (r == 0 && step != SQLITE_DONE)
        r = sql_error(s, err);
    sqlite3_finalize(q);
    return r;
}

/* By id, or by the beginning of one id. */
static int op_show(struct gate_store *s, const struct args *a, struct buf *reply, struct err *err)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "SELECT %s FROM approvals WHERE substr(id, 1, length(?1)) = ?1 OR "
             "substr(id, 4, length(?1)) = ?1 LIMIT 2",
             columns_now);
    struct gate_field id = gate_record_find(a->request, a->len, "id");
    sqlite3_stmt *q = prepare(s, sql);
    if (!q)
        return sql_error(s, err);
    bind_field(q, 1, a, "id", false);
    sqlite3_bind_int64(q, 9, (sqlite3_int64)a->now);
    size_t mark = reply->len;
    int r = 0, rows = 0, step = SQLITE_DONE;
    while (r == 0 && id.len && (step = sqlite3_step(q)) == SQLITE_ROW)
        r = rows++ == 0 ? put_row(q, false, reply) : 0;
    if (r == 0 && step != SQLITE_DONE && step != SQLITE_ROW)
        r = sql_error(s, err);
    sqlite3_finalize(q);
    if (r == 0 && rows != 1) {
        reply->len = mark;
        return gate_record_text(reply, "result", rows ? "several" : "none");
    }
    return r < 0 ? r : gate_record_text(reply, "result", "one");
}

int gate_store_handle(struct gate_store *s, const void *request, size_t len, uint64_t now,
                      struct buf *reply, struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(struct gate_store *, const struct args *, struct buf *, struct err *);
        bool reads; /* changes nothing, not even what has expired: it works on a full disk */
    } ops[] = {{"ask", op_ask, false},
               {"answer", op_answer, false},
               {"list", op_list, true},
               {"show", op_show, true}};
    char op[16];
    struct args a = {request, len, now};
    if (!gate_record_valid(request, len))
        return err_set(err, ERR_FORMAT, "approvals: the request is no record");
    gate_record_copy(request, len, "op", op, sizeof op);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(op, ops[i].name) != 0)
            continue;
        int r = run_sql(s, ops[i].reads ? "BEGIN" : "BEGIN IMMEDIATE", err);
        if (r < 0)
            return r;
        if (!ops[i].reads)
            r = expire(s, now, err);
        if (r == 0)
            r = ops[i].run(s, &a, reply, err);
        if (r == 0)
            r = gate_record_end(reply);
        if (r < 0 && err->code == 0)
            err_set(err, r, "approvals: the reply is too long");
        struct err ignored = ERR_INIT;
        if (run_sql(s, r == 0 ? "COMMIT" : "ROLLBACK", r == 0 ? err : &ignored) < 0 && r == 0)
            r = ERR_STATE;
        return r;
    }
    return err_set(err, ERR_USAGE, "approvals: there is no operation '%s'", op);
}
