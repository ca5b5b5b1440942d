/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite opens files by name; this program may open none but the guest's, and gets its index as descriptors. So SQLite is given a file system
 * of one file. It keeps no journal: an index is a copy of what the files say. Its first page is ours and tells whether
 * every write since has ended; one that a killed process left is thrown away.
 *
 * An index that outlives its run is never changed: it is read until the first write, and that copies it to a file that nobody else has yet.
 * So any number of processes may read it, and what a process that was killed leaves is not an index.
 *
 * Waits: sqlite3_exec in tools_index_open; nobody: it has the database alone, in memory; at once; the broker ends the call
 *        after LIMIT_TOOL_MS
 *        pread in *; the file of the index; none (the kernel's own); it is made anew
 *        pwrite in *; the same; none (the kernel's own); the search does without it */
#include "tools/api.h"

#include "base/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define HEAD 4096 /* bytes before the database */

static const char magic[16] = "cordon index 1\n";

#define PIECE 65536

static struct {
    int fd;    /* that is read: the base until the first write */
    int fresh; /* that is written; -1: none */
    bool dirty, written;
} store;

static int mark(bool whole)
{
    char head[sizeof magic + 1];
    memcpy(head, magic, sizeof magic);
    head[sizeof magic] = whole ? 'w' : 'h';
    store.dirty = !whole;
    return pwrite(store.fd, head, sizeof head, 0) == (ssize_t)sizeof head ? 0 : -1;
}

static bool is_whole(int fd)
{
    char head[sizeof magic + 1];
    return fd >= 0 && pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head &&
           memcmp(head, magic, sizeof magic) == 0 && head[sizeof magic] == 'w';
}

/* Before a write: what is read becomes what is written. */
static int own_it(void)
{
    static char piece[PIECE];
    off_t at = 0;
    ssize_t n = 0;
    if (store.fd == store.fresh)
        return 0;
    if (store.fresh < 0 || ftruncate(store.fresh, 0) < 0)
        return -1;
    for (; (n = pread(store.fd, piece, sizeof piece, at)) > 0; at += n)
        if (pwrite(store.fresh, piece, (size_t)n, at) != n)
            return -1;
    if (n == 0)
        store.fd = store.fresh;
    return (int)n;
}

/* Marked before the first byte changes. */
static int begin_write(void)
{
    store.written = true;
    return own_it() < 0 || (!store.dirty && mark(false) < 0) ? -1 : 0;
}

static bool no_room(void)
{
    return errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
}

/* ---- the file ---- */

static int close_file(sqlite3_file *f)
{
    (void)f;
    return SQLITE_OK;
}

static int read_page(sqlite3_file *f, void *to, int len, sqlite3_int64 at)
{
    (void)f;
    const ssize_t n = pread(store.fd, to, (size_t)len, at + HEAD);
    if (n < 0)
        return SQLITE_IOERR_READ;
    if (n == len)
        return SQLITE_OK;
    memset((char *)to + n, 0, (size_t)(len - n));
    return SQLITE_IOERR_SHORT_READ;
}

static int write_page(sqlite3_file *f, const void *from, int len, sqlite3_int64 at)
{
    (void)f;
    if (begin_write() == 0 && pwrite(store.fd, from, (size_t)len, at + HEAD) == len)
        return SQLITE_OK;
    return no_room() ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int truncate_file(sqlite3_file *f, sqlite3_int64 size)
{
    (void)f;
    return begin_write() == 0 && ftruncate(store.fd, size + HEAD) == 0 ? SQLITE_OK
                                                                       : SQLITE_IOERR_TRUNCATE;
}

static int sync_file(sqlite3_file *f, int flags)
{
    (void)f;
    (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    struct stat st;
    (void)f;
    if (fstat(store.fd, &st) < 0)
        return SQLITE_IOERR_FSTAT;
    *ret = st.st_size > HEAD ? st.st_size - HEAD : 0;
    return SQLITE_OK;
}

static int lock(sqlite3_file *f, int level) /* nobody else has it */
{
    (void)f;
    (void)level;
    return SQLITE_OK;
}

static int is_locked(sqlite3_file *f, int *ret)
{
    (void)f;
    *ret = 0;
    return SQLITE_OK;
}

static int control(sqlite3_file *f, int what, void *arg)
{
    (void)f;
    (void)what;
    (void)arg;
    return SQLITE_NOTFOUND;
}

static int sector(sqlite3_file *f)
{
    (void)f;
    return HEAD;
}

static int traits(sqlite3_file *f)
{
    (void)f;
    return 0;
}

/* ---- the file system that has it ---- */

static int open_it(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    static const sqlite3_io_methods methods = {.iVersion = 1,
                                               .xClose = close_file,
                                               .xRead = read_page,
                                               .xWrite = write_page,
                                               .xTruncate = truncate_file,
                                               .xSync = sync_file,
                                               .xFileSize = file_size,
                                               .xLock = lock,
                                               .xUnlock = lock,
                                               .xCheckReservedLock = is_locked,
                                               .xFileControl = control,
                                               .xSectorSize = sector,
                                               .xDeviceCharacteristics = traits};
    (void)v;
    (void)name;
    f->pMethods = NULL;
    if (!(flags & SQLITE_OPEN_MAIN_DB))
        return SQLITE_CANTOPEN;
    f->pMethods = &methods;
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int delete_it(sqlite3_vfs *v, const char *name, int sync)
{
    (void)v;
    (void)name;
    (void)sync;
    return SQLITE_OK;
}

static int access_it(sqlite3_vfs *v, const char *name, int how, int *ret)
{
    (void)v;
    (void)name;
    (void)how;
    *ret = 0;
    return SQLITE_OK;
}

static int full_name(sqlite3_vfs *v, const char *name, int size, char *out)
{
    (void)v;
    sqlite3_snprintf(size, out, "%s", name);
    return SQLITE_OK;
}

static int randomness(sqlite3_vfs *v, int len, char *out)
{
    (void)v;
    return (int)getrandom(out, (size_t)len, 0);
}

static int sleep_not(sqlite3_vfs *v, int microseconds)
{
    (void)v;
    return microseconds;
}

static int now(sqlite3_vfs *v, double *ret)
{
    (void)v;
    *ret = (double)time(NULL) / 86400 + 2440587.5; /* Julian days */
    return SQLITE_OK;
}

static int last_error(sqlite3_vfs *v, int size, char *out)
{
    (void)v;
    if (size > 0)
        *out = 0;
    return 0;
}

static sqlite3_vfs file_system = {.iVersion = 1,
                                  .szOsFile = sizeof(sqlite3_file),
                                  .mxPathname = 64,
                                  .zName = "one",
                                  .xOpen = open_it,
                                  .xDelete = delete_it,
                                  .xAccess = access_it,
                                  .xFullPathname = full_name,
                                  .xRandomness = randomness,
                                  .xSleep = sleep_not,
                                  .xCurrentTime = now,
                                  .xGetLastError = last_error};

/* ---- the index ---- */

static const char settings[] =
    "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY; "
    "PRAGMA locking_mode=EXCLUSIVE; PRAGMA cache_size=-32768; "
    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON;";
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS docs(id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, bytes "
    "INTEGER, modified INTEGER, changed INTEGER, inode INTEGER);"
    "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(path, body, tokenize='unicode61');";

/* Which of the two is read first. An index that is not whole is none. */
static int choose(int base, int fresh)
{
    store.fresh = fresh;
    store.dirty = store.written = false;
    store.fd = is_whole(fresh) ? fresh : is_whole(base) ? base : fresh;
    if (store.fd < 0)
        return SQLITE_CANTOPEN;
    if (store.fd == base || is_whole(store.fd))
        return SQLITE_OK;
    return ftruncate(fresh, 0) == 0 && mark(true) == 0 ? SQLITE_OK : SQLITE_IOERR;
}

int tools_index_open(int base, int fresh, sqlite3 **ret_db)
{
    sqlite3 *db = NULL;
    const int flags = fresh < 0 ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int r = choose(base, fresh);
    if (r == SQLITE_OK)
        r = sqlite3_vfs_register(&file_system, 1);
    if (r == SQLITE_OK)
        r = sqlite3_open_v2("index", &db, flags, "one");
    if (r == SQLITE_OK)
        r = sqlite3_exec(db, settings, NULL, NULL, NULL);
    if (r == SQLITE_OK && fresh >= 0)
        r = sqlite3_exec(db, tables, NULL, NULL, NULL);
    if (r != SQLITE_OK)
        sqlite3_close(db);
    else
        *ret_db = db;
    return r;
}

bool tools_index_close(sqlite3 *db, bool whole)
{
    const bool closed = sqlite3_close(db) == SQLITE_OK;
    if (store.dirty && closed && whole && mark(true) < 0)
        return false;
    return store.written && closed && whole;
}
