/* SPDX-License-Identifier: Apache-2.0 */
/* The database of Search in one descriptor: what it keeps between two processes, and what it does not believe. */
#include "base/tap.h"
#include "tools/api.h"

#include <fcntl.h>
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
    if (tools_index_open(fd, &db) != SQLITE_OK)
        return -1;
    base_assert(sqlite3_exec(db, "INSERT INTO docs(path) SELECT 'x' || count(*) FROM docs", NULL,
                             NULL, NULL) == SQLITE_OK);
    const long n = documents(db);
    tools_index_close(db, whole);
    return n;
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
    return tap_done();
}
