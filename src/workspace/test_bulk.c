/* SPDX-License-Identifier: Apache-2.0 */
/* How many times a commit waits for the disk, and what has a name by then: fsync and syncfs are this test's own, for libgit2, too. */
#include "workspace/inside.h"

#include "base/tap.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OBJECTS "w/store.git/objects"

static unsigned fsyncs, syncfss;
static size_t named[2]; /* objects that had a name at each syncfs */

/* Objects by their names, in folders of two digits. */
static size_t objects(void)
{
    size_t n = 0;
    FD_AUTO top = open(OBJECTS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = entries_of(top);
    for (const char *name; d && (name = entries_next(d));) {
        DIR *below = strlen(name) == 2
                         ? entries_take(openat(top, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
                         : NULL;
        while (below && entries_next(below))
            n++;
        if (below)
            closedir(below);
    }
    if (d)
        closedir(d);
    return n;
}

int fsync(int fd)
{
    fsyncs++;
    return (int)syscall(SYS_fsync, fd);
}

int syncfs(int fd)
{
    if (syncfss < 2)
        named[syncfss] = objects();
    syncfss++;
    return (int)syscall(SYS_syncfs, fd);
}

static void put_file(const char *name, int i, int salt)
{
    char text[48];
    const int n = snprintf(text, sizeof text, "%d %d", salt, i);
    FD_AUTO fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    base_assert(fd >= 0 && write(fd, text, (size_t)n) == n);
}

/* COUNT files with new bytes, imported: whether that was a commit. */
static bool import(int count, int salt)
{
    static struct workspace_left left;
    struct workspace *w = NULL;
    struct err err = ERR_INIT;
    char id[WORKSPACE_ID], name[32];
    bool new = false;
    const struct workspace_author author = {.message = "import"};
    base_assert(mkdir("in", 0700) == 0);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "in/%d", i);
        put_file(name, i, salt);
    }
    FD_AUTO in = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_assert(workspace_open("w", true, &w, &err) == 0);
    fsyncs = syncfss = 0;
    const int r = workspace_import(w, in, &author, &left, id, &new, &err);
    workspace_left_done(&left);
    workspace_close(w);
    base_assert(workspace_remove(AT_FDCWD, "in", &err) == 0);
    return r == 0 && new;
}

static bool incoming(void)
{
    return access("w/store.git/" WORKSPACE_INCOMING, F_OK) == 0;
}

static void counts(void)
{
    base_assert(import(10, 1));
    tap_ok(syncfss == 0 && fsyncs >= 20, "a commit of 10 files syncs each object and its folder");
    const size_t before = objects();
    const bool done = import(500, 2);
    tap_ok(done && objects() == before + 500 + 2, "a commit of 500 files has all of its objects");
    tap_ok(syncfss == 2 && fsyncs < 300,
           "a commit of 500 files waits for the disk twice, beside its first objects and its end");
    tap_ok(named[0] < before + 100 && named[1] == before + 501,
           "no object of many has its name before it is synced, and all have before the commit is "
           "made");
    tap_ok(!incoming(), "the folder of new objects is gone when they have their names");
}

static void left_behind(void)
{
    struct workspace *w = NULL;
    struct err err = ERR_INIT;
    base_assert(mkdir("w/store.git/" WORKSPACE_INCOMING, 0700) == 0 &&
                mkdir("w/store.git/" WORKSPACE_INCOMING "/ab", 0700) == 0);
    put_file("w/store.git/" WORKSPACE_INCOMING "/ab/half", 1, 1);
    base_assert(workspace_open("w", false, &w, &err) == 0);
    workspace_close(w);
    tap_ok(incoming(), "who only reads leaves the new objects of another process alone");
    base_assert(workspace_open("w", true, &w, &err) == 0);
    workspace_close(w);
    tap_ok(!incoming(), "what a process that was killed left is gone before the next change");
    tap_ok(import(500, 3), "the next commit of many files is made");
}

int main(void)
{
    char top[] = "/tmp/cordon-bulk-XXXXXX";
    struct err err = ERR_INIT;
    base_assert(mkdtemp(top) && chdir(top) == 0 && workspace_init(&err) == 0 &&
                workspace_create("w", &err) == 0);
    counts();
    left_behind();
    FD_AUTO above = open("..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_assert(workspace_remove(above, strrchr(top, '/') + 1, &err) == 0);
    return tap_done();
}
