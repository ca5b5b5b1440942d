/* SPDX-License-Identifier: Apache-2.0 */
/* Real folders, files and links: what others could change is refused, and the message names the very place. */
#include "base/tap.h"
#include "sys/fd.h"
#include "sys/owned.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];

static const char *at(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", top, name);
    return path;
}

static void file(const char *name)
{
    fd_close(open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/* While the mode of WRONG is MODE, PATH is refused, by the name of WRONG. */
static void refused(bool tree, const char *path, const char *wrong, mode_t mode, const char *what)
{
    struct stat st;
    struct err err = ERR_INIT;
    char wanted[256];
    tap_ok(stat(at(wrong), &st) == 0 && chmod(at(wrong), mode) == 0, "%s: the mode is changed",
           what);
    int r = tree ? owned_tree("--venv", at(path), &err) : owned_way("--venv", at(path), &err);
    snprintf(wanted, sizeof wanted, "--venv: it is writable for others: chmod go-w %s", at(wrong));
    tap_ok(r == ERR_USAGE && strcmp(err.msg, wanted) == 0, "%s is refused by its name: %s", what,
           err.msg);
    chmod(at(wrong), st.st_mode & 07777);
}

static void ways(void)
{
    struct err err = ERR_INIT;
    char cwd[PATH_MAX];
    tap_ok(owned_way("--venv", at("a/b/file"), &err) == 0,
           "a file that only we can write passes, also below /tmp: %s", err.msg);
    tap_ok(owned_way("--venv", at("link/b/file"), &err) == 0 &&
               owned_way("--venv", at("a/near/file"), &err) == 0 &&
               owned_way("--venv", at("a/b/../b/./file"), &err) == 0,
           "links, absolute and relative, and `..` on the way pass: %s", err.msg);
    refused(false, "a/b/file", "a/b/file", 0646, "a file that others may write");
    refused(false, "a/b/file", "a", 0775, "a folder on the way that the group may write");
    refused(false, "link/b/file", "a/b", 0757, "a folder behind a link that others may write");
    refused(false, "a/b", "a/b", 01777, "a folder with the sticky bit, as what is loaded,");
    tap_ok(owned_way("--venv", at("a/none"), &err) == ERR_SYS && err.sys_errno == ENOENT,
           "a file that is not there is ENOENT: %s", err.msg);
    tap_ok(owned_way("--venv", at("round"), &err) == ERR_USAGE && strstr(err.msg, "too many links"),
           "links in a circle are refused: %s", err.msg);
    tap_ok(getcwd(cwd, sizeof cwd) && chdir(top) == 0 &&
               owned_way("--venv", "a/b/file", &err) == 0 && chdir(cwd) == 0,
           "a relative path begins in the working folder: %s", err.msg);
}

static void trees(void)
{
    struct err err = ERR_INIT;
    tap_ok(owned_tree("--venv", at("a"), &err) == 0,
           "a tree that only we can write passes, also with links that lead nowhere: %s", err.msg);
    refused(true, "a", "a/b/file", 0666, "a file of a tree that others may write");
    refused(true, "link", "a/b", 0777, "a folder of a tree that others may write");
    refused(true, "a", "aside", 0777, "a folder that a link of a tree leads to");
    tap_ok(owned_tree("--venv", at("a/b/file"), &err) == ERR_SYS && err.sys_errno == ENOTDIR,
           "a file is no tree: %s", err.msg);
}

static void others(void)
{
    struct err err = ERR_INIT;
    char wanted[256];
    if (geteuid() != 0) {
        tap_skip("what belongs to somebody else is refused", "needs root");
        return;
    }
    snprintf(wanted, sizeof wanted, "--venv: %s belongs to somebody else; root or you must own it",
             at("a/b"));
    tap_ok(chown(at("a/b"), 54321, 54321) == 0 &&
               owned_way("--venv", at("a/b/file"), &err) == ERR_USAGE &&
               strcmp(err.msg, wanted) == 0,
           "what belongs to somebody else is refused by its name: %s", err.msg);
}

int main(void)
{
    static const char *const made[] = {"a/b/file", "a/b/dangling", "a/b/away", "a/near", "a/b",
                                       "a",        "aside",        "link",     "round"};
    snprintf(top, sizeof top, "/tmp/cordon-owned-XXXXXX");
    umask(022);
    if (!mkdtemp(top) || chmod(top, 0755) < 0 || mkdir(at("a"), 0755) < 0 ||
        mkdir(at("a/b"), 0755) < 0 || mkdir(at("aside"), 0755) < 0 ||
        symlink(at("a"), at("link")) < 0 || symlink("b", at("a/near")) < 0 ||
        symlink("round", at("round")) < 0 || symlink("nowhere", at("a/b/dangling")) < 0 ||
        symlink("../../aside", at("a/b/away")) < 0)
        return 1;
    file("a/b/file");
    ways();
    trees();
    others();
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        remove(at(made[i]));
    rmdir(top);
    return tap_done();
}
