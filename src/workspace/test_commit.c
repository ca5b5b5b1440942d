/* SPDX-License-Identifier: Apache-2.0 */
/* A commit that libgit2 says was made, and whose ref did not reach the disk: rename is this test's own, for libgit2, too. And the most that a commit holds. */
#include "workspace/inside.h"

#include "base/tap.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REF "refs/heads/main"

static bool full;      /* a ref is lost as it gets its name, and nobody is told */
static unsigned named; /* refs that got it */

int rename(const char *from, const char *to)
{
    const size_t len = strlen(to), n = sizeof REF - 1;
    const bool ref = len > n && strcmp(to + len - n, REF) == 0;
    named += ref && !full;
    return ref && full ? unlink(from)
                       : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* One file with TEXT, imported after BEFORE bytes of other files: the head that was told, or why not. */
static int import_after(uint64_t before, const char *text, char ret_id[WORKSPACE_ID],
                        struct err *err)
{
    static struct workspace_left left;
    static const struct workspace_author author = {.message = "import"};
    struct workspace *w = NULL;
    bool new = false;
    FD_AUTO in = open("in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    FD_AUTO file = openat(in, "file", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    base_assert(write(file, text, strlen(text)) == (ssize_t)strlen(text));
    left.bytes = before;
    int r = workspace_open("w", true, &w, err);
    if (r == 0)
        r = workspace_import(w, in, &author, &left, ret_id, &new, err);
    workspace_left_done(&left);
    workspace_close(w);
    return r;
}

static int import(const char *text, char ret_id[WORKSPACE_ID], struct err *err)
{
    return import_after(0, text, ret_id, err);
}

static void head_of(char ret_id[WORKSPACE_ID])
{
    struct workspace *w = NULL;
    struct workspace_facts facts;
    struct err err = ERR_INIT;
    base_assert(workspace_open("w", false, &w, &err) == 0 &&
                workspace_describe(w, &facts, &err) == 0);
    memcpy(ret_id, facts.head, WORKSPACE_ID);
    workspace_close(w);
}

/* The files of a commit take 4096 MB at most. To store that many would take minutes, so the bytes of all files but one are only counted. */
static void bound(void)
{
    char fits[WORKSPACE_ID], none[WORKSPACE_ID], now[WORKSPACE_ID];
    struct err err = ERR_INIT;
    tap_eq_int(import_after(4096 * MIB - 5, "whole", fits, &err), 0,
               "a commit whose files take 4096 MB is made");
    const int r = import_after(4096 * MIB - 5, "beyond", none, &err);
    head_of(now);
    tap_ok(r < 0 && strstr(err.msg, "more than 4096 MB of files: a commit holds no more"),
           "one byte more than 4096 MB in the files of a commit is refused by name");
    tap_eq_str(now, fits, "the head is where it was when the files of a commit took too much");
}

int main(void)
{
    char top[] = "/tmp/cordon-commit-XXXXXX", first[WORKSPACE_ID], second[WORKSPACE_ID],
         now[WORKSPACE_ID];
    struct err err = ERR_INIT;
    base_assert(mkdtemp(top) && chdir(top) == 0 && mkdir("in", 0700) == 0 &&
                workspace_init(&err) == 0 && workspace_create("w", &err) == 0);
    tap_ok(import("one", first, &err) == 0 && named, "a commit whose ref is there is told");
    full = true;
    const int lost = import("two", second, &err);
    head_of(now);
    tap_ok(lost < 0 && strstr(err.msg, "it is not on the disk"),
           "a commit whose ref did not reach the disk is an error, whatever libgit2 says");
    tap_eq_str(now, first, "the head is where it was when the ref of a commit was lost");
    full = false;
    err = (struct err)ERR_INIT;
    tap_ok(import("two", second, &err) == 0, "the next commit is made where a ref was lost");
    head_of(now);
    tap_eq_str(now, second, "the head is the next commit where a ref was lost");
    bound();
    FD_AUTO above = open("..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    base_assert(workspace_remove(above, strrchr(top, '/') + 1, &err) == 0);
    return tap_done();
}
