/* SPDX-License-Identifier: Apache-2.0 */
/* The database of Search in one descriptor: what it keeps between two processes, and what it does not believe. */
#include "base/clock.h"
#include "base/tap.h"
#include "tools/api.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long documents(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    long n = -1;
    if (sqlite3_prepare_v2(db, "SELECT count(*) FROM docs", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        n = (long)sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return n;
}

/* One document more; WHOLE: the process that put it there came to its end. */
static long add(int fd, bool whole)
{
    sqlite3 *db = NULL;
    if (tools_index_open(-1, fd, &db) != SQLITE_OK)
        return -1;
    base_assert(sqlite3_exec(db, "INSERT INTO docs(path) SELECT 'x' || count(*) FROM docs", NULL,
                             NULL, NULL) == SQLITE_OK);
    const long n = documents(db);
    tools_index_close(db, whole);
    return n;
}

static int memory(void)
{
    const int fd = memfd_create("index", MFD_CLOEXEC);
    base_assert(fd >= 0);
    return fd;
}

static off_t size_of(int fd)
{
    return lseek(fd, 0, SEEK_END);
}

/* An index that outlives its run is read by many. */
static void based(void)
{
    const int base = memory(), fresh = memory();
    sqlite3 *db = NULL;
    base_assert(add(base, true) == 1);
    const off_t before = size_of(base);
    base_assert(tools_index_open(base, fresh, &db) == SQLITE_OK);
    tap_eq_int(documents(db), 1, "an index is read from its base");
    tap_ok(!tools_index_close(db, true) && size_of(fresh) == 0,
           "where nothing is written, nothing is copied");
    base_assert(tools_index_open(base, fresh, &db) == SQLITE_OK);
    base_assert(sqlite3_exec(db, "INSERT INTO docs(path) VALUES('y')", NULL, NULL, NULL) ==
                SQLITE_OK);
    tap_ok(tools_index_close(db, true) && size_of(fresh) > 0, "the first write copies the base");
    base_assert(tools_index_open(base, -1, &db) == SQLITE_OK);
    tap_ok(documents(db) == 1 && size_of(base) == before,
           "a base is not changed by what is written");
    tap_eq_int(sqlite3_exec(db, "INSERT INTO docs(path) VALUES('z')", NULL, NULL, NULL),
               SQLITE_READONLY, "who has a base alone cannot write");
    tools_index_close(db, true);
    base_assert(tools_index_open(base, fresh, &db) == SQLITE_OK);
    tap_eq_int(documents(db), 2, "what was written once is read instead of the base");
    tools_index_close(db, true);
    tap_eq_int(tools_index_open(-1, -1, &db), SQLITE_CANTOPEN,
               "without a descriptor there is none");
    close(base);
    close(fresh);
}

/* Ten files of 100 KB, and an index of 400 KB: MOST is looked at before each of them. */
static void bounded(void)
{
    static char text[100000];
    char top[] = "/tmp/cordon-index-XXXXXX", name[32];
    struct tools_call c = {.name = "index"};
    struct tools_indexed got = {.documents = 0};
    sqlite3 *db = NULL;
    const int fresh = memory();
    base_assert(mkdtemp(top));
    const int folder = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 10; i++) {
        for (size_t k = 0; k < sizeof text; k++)
            text[k] = (char)(k % 9 == 8 ? ' ' : 'a' + (k * 7 + k / 9 * (size_t)(i + 3)) % 26);
        snprintf(name, sizeof name, "f%d", i);
        const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        base_assert(fd >= 0 && write(fd, text, sizeof text) == (ssize_t)sizeof text);
        close(fd);
    }
    base_assert(tools_index_open(-1, fresh, &db) == SQLITE_OK);
    tap_ok(tools_index_update(&c, db, folder, "x:", 400000, &got) == SQLITE_OK && got.full &&
               !got.current && got.documents > 0 && got.documents < 10,
           "an index that is as large as it may be takes no further document, and says so");
    tap_ok(tools_index_update(&c, db, folder, "x:", 100000000, &got) == SQLITE_OK && !got.full &&
               got.current && got.documents == 10,
           "an index that was full is whole, and takes the rest where it may be larger");
    tools_index_close(db, true);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "f%d", i);
        unlinkat(folder, name, 0);
    }
    rmdir(top);
    close(folder);
    close(fresh);
}

static int count_lookups(unsigned what, void *ctx, void *statement, void *text)
{
    (void)what;
    (void)text;
    const char *sql = sqlite3_sql(statement);
    *(int *)ctx += sql && strstr(sql, "WHERE path=") != NULL;
    return 0;
}

/* A file that is as new as the look at it is read once more: until none is. */
static struct tools_indexed settle(sqlite3 *db, int folder, int *lookups)
{
    struct tools_call c = {.name = "index"};
    struct tools_indexed got = {.read = 1};
    for (const uint64_t until = clock_now_ns() + 20 * CLOCK_NS_PER_S;
         got.read && clock_now_ns() < until;) {
        *lookups = 0;
        base_assert(tools_index_update(&c, db, folder, "x:", 100000000, &got) == SQLITE_OK);
    }
    return got;
}

static void put_file(int folder, const char *name)
{
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    base_assert(fd >= 0 && write(fd, "word ", 5) == 5);
    close(fd);
}

/* Files of a folder that did not change are not looked up by their names; of others few are. */
static void followed(void)
{
    char top[] = "/tmp/cordon-index-XXXXXX", name[32];
    sqlite3 *db = NULL;
    int lookups = 0;
    const int fresh = memory();
    base_assert(mkdtemp(top));
    const int folder = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_assert(mkdirat(folder, "a", 0700) == 0);
    for (int i = 0; i < 200; i++) { /* `a-1` is before `a/1` in bytes, and behind it in a walk */
        snprintf(name, sizeof name, "a%c%d", i % 2 ? '/' : '-', i);
        put_file(folder, name);
    }
    base_assert(tools_index_open(-1, fresh, &db) == SQLITE_OK);
    sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_lookups, &lookups);
    struct tools_indexed got = settle(db, folder, &lookups);
    tap_ok(got.documents == 200 && got.current && lookups == 0,
           "a look at 200 files that did not change looks up none of them by its name");
    base_assert(unlinkat(folder, "a/7", 0) == 0);
    put_file(folder, "a-8");
    put_file(folder, "a-new");
    struct tools_call c = {.name = "index"};
    lookups = 0;
    base_assert(tools_index_update(&c, db, folder, "x:", 100000000, &got) == SQLITE_OK);
    tap_ok(got.documents == 200 && got.read == 2 && got.removed == 1 && lookups < 10,
           "of 200 files three changed, and few are looked up by their names");
    got = settle(db, folder, &lookups);
    tap_ok(got.documents == 200 && got.removed == 0 && documents(db) == 200,
           "what was added and removed is counted");
    tools_index_close(db, true);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "a%c%d", i % 2 ? '/' : '-', i);
        unlinkat(folder, name, 0);
    }
    unlinkat(folder, "a-new", 0);
    unlinkat(folder, "a", AT_REMOVEDIR);
    rmdir(top);
    close(folder);
    close(fresh);
}

int main(void)
{
    const int fd = memfd_create("index", MFD_CLOEXEC);
    base_assert(fd >= 0);
    tap_eq_int(add(fd, true), 1, "an empty descriptor becomes an index");
    tap_eq_int(add(fd, true), 2, "the next process finds what the one before it put there");
    tap_eq_int(add(fd, false), 3, "a process may die before its writes have ended");
    tap_eq_int(add(fd, true), 1, "an index that was left half written is made anew");
    base_assert(pwrite(fd, "cordon index 0\n", 15, 0) == 15);
    tap_eq_int(add(fd, true), 1, "an index of another version is made anew");
    char noise[8192];
    memset(noise, 'x', sizeof noise);
    base_assert(pwrite(fd, noise, sizeof noise, 4096) == (ssize_t)sizeof noise);
    tap_eq_int(add(fd, true), -1, "a database that is none is an error, and no crash");
    close(fd);
    based();
    bounded();
    followed();
    return tap_done();
}
