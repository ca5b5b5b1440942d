/* SPDX-License-Identifier: Apache-2.0 */
/* A session's folder is filled while a thread puts links in the place of its folders, and another one a hard link where a file is
 * about to be made, as often as the first argument says: what is written never lands where a link leads, nor in the file that has
 * the other name. A guest's interpreter seldom runs at that moment, so the threads are ours. */
#include "base/tap.h"
#include "jail/child.h"
#include "sys/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT "kept"
enum { FOLDERS = 12 };

static char top[64];
static atomic_bool done;
static unsigned long linked; /* of one thread, read when it has ended */

static void in_top(char *out, size_t size, const char *name, int i)
{
    snprintf(out, size, "%s/%s", top, name);
    if (i >= 0)
        snprintf(out + strlen(out), size - strlen(out), "/d%d", i);
}

static void *swap(void *ignored)
{
    char canary[128], path[128], link[128], old[160];
    unsigned long n = 0;
    in_top(canary, sizeof canary, "canary", -1);
    in_top(link, sizeof link, "link", -1);
    while (!done) {
        for (int i = 0; i < FOLDERS; i++) {
            in_top(path, sizeof path, "files/workspace", i);
            snprintf(old, sizeof old, "%s/old/%lu", top, n++);
            (void)!symlink(canary, link);
            (void)!renameat2(AT_FDCWD, link, AT_FDCWD, path, RENAME_EXCHANGE);
            (void)!rename(link, old); /* the folder that was there; or the link, back again */
        }
    }
    return ignored;
}

/* A name can be linked only while it is not there: in the instant before the copy makes it. */
static void *link_files(void *ignored)
{
    char kept[128], path[128];
    in_top(kept, sizeof kept, "kept", -1);
    while (!done) {
        for (int i = 0; i < FOLDERS; i++) {
            in_top(path, sizeof path, "files/workspace", i);
            FD_AUTO dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            linked += linkat(AT_FDCWD, kept, dir, "file", 0) == 0;
        }
    }
    return ignored;
}

static void make_source(int from)
{
    char name[32];
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "d%d", i);
        base_assert(mkdirat(from, name, 0755) == 0);
        snprintf(name, sizeof name, "d%d/file", i);
        FD_AUTO fd = openat(from, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        base_assert(fd >= 0 && write(fd, "another", 7) == 7);
    }
}

static int folder(const char *name)
{
    char path[128];
    in_top(path, sizeof path, name, -1);
    base_assert(mkdir(path, 0755) == 0);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_assert(fd >= 0);
    return fd;
}

static int open_kept(int flags)
{
    char path[128];
    in_top(path, sizeof path, "kept", -1);
    const int fd = open(path, flags | O_CLOEXEC, 0644);
    base_assert(fd >= 0);
    return fd;
}

static size_t entries(const char *name)
{
    char path[128];
    size_t count = 0;
    in_top(path, sizeof path, name, -1);
    DIR *d = opendir(path);
    base_assert(d);
    while (readdir(d))
        count++;
    closedir(d);
    return count - 2;
}

static void plain(int files, int from)
{
    struct err err = ERR_INIT;
    tap_eq_int(jail_child_fill(files, from, &err), 0, "a folder is filled");
    tap_eq_int((long)entries("files/workspace"), FOLDERS,
               "a folder that was filled has as many entries as its source");
    FD_AUTO extra = openat(files, "workspace/d0/extra", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    base_assert(extra >= 0 && fchmodat(files, "workspace/d0", 0, 0) == 0 &&
                symlinkat("/etc", files, "workspace/link") == 0);
    tap_eq_int(jail_child_fill(files, from, &err), 0, "a folder with shut folders is filled");
    tap_eq_int((long)entries("files/workspace"), FOLDERS,
               "a folder that is filled again loses what was in it");
    tap_eq_int((long)entries("files/workspace/d0"), 1,
               "a folder below one that is filled again loses what was in it, too");
}

static void race(int files, int from, long rounds)
{
    pthread_t thread, linker;
    long filled = 0;
    base_assert(pthread_create(&thread, NULL, swap, NULL) == 0 &&
                pthread_create(&linker, NULL, link_files, NULL) == 0);
    for (long i = 0; i < rounds; i++) {
        struct err err = ERR_INIT;
        filled += jail_child_fill(files, from, &err) == 0;
    }
    done = true;
    pthread_join(thread, NULL);
    pthread_join(linker, NULL);
    printf("#= %ld of %ld were filled whole, %lu hard links were made meanwhile\n", filled, rounds,
           linked);
    tap_eq_int(
        (long)entries("canary"), 0,
        "a folder filled while its folders are swapped for links: nothing lands where they lead");
    char text[16] = "";
    FD_AUTO kept = open_kept(O_RDONLY);
    tap_eq_int(read(kept, text, sizeof text), sizeof KEPT - 1,
               "a folder filled while hard links take its files' names: the other name's file has "
               "the length that it had");
    tap_eq_int(strcmp(text, KEPT), 0,
               "a folder filled while hard links take its files' names: the other name's file has "
               "the bytes that it had");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

int main(int argc, char **argv)
{
    const long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 150;
    snprintf(top, sizeof top, "/tmp/cordon-fill-XXXXXX");
    base_assert(mkdtemp(top));
    FD_AUTO files = folder("files"), from = folder("from");
    FD_AUTO canary = folder("canary"), old = folder("old"), workspace = folder("files/workspace");
    base_assert(canary >= 0 && old >= 0 && workspace >= 0);
    make_source(from);
    FD_AUTO kept = open_kept(O_WRONLY | O_CREAT | O_EXCL);
    base_assert(write(kept, KEPT, sizeof KEPT - 1) == sizeof KEPT - 1);
    plain(files, from);
    race(files, from, rounds);
    tap_eq_int(nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0, "what the test made is removed");
    return tap_done();
}
