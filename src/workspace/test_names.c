/* SPDX-License-Identifier: Apache-2.0 */
/* The rules for names, by tables: each row a trick and its honest neighbour. */
#include "base/tap.h"
#include "workspace/names.h"

#include <stdint.h>

static void test_workspace_names(void)
{
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        {"demo", true},         {"a", true},    {"0-1._x", true},  {"", false},
        {".new-a", false},      {"-a", false},  {"A", false},      {"a/b", false},
        {"a..b", false},        {"a.", false},  {"a.lock", false}, {"a b", false},
        {"caf\303\251", false}, {"a\n", false}, {"lock", true},
    };
    char longest[WORKSPACE_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(workspace_name_good(rows[i].name) == rows[i].good, "'%s' %s name a workspace",
               rows[i].name[0] == 'a' && rows[i].name[1] == '\n' ? "a\\n" : rows[i].name,
               rows[i].good ? "may" : "may not");
    memset(longest, 'a', sizeof longest);
    longest[WORKSPACE_NAME_MAX] = 0;
    tap_ok(workspace_name_good(longest), "a name of 64 letters may name a workspace");
    longest[WORKSPACE_NAME_MAX] = 'a';
    longest[WORKSPACE_NAME_MAX + 1] = 0;
    tap_ok(!workspace_name_good(longest), "a name of 65 letters may not name a workspace");
    tap_ok(workspace_snapshot_name_good("before-fix"), "before-fix may name a snapshot");
    tap_ok(!workspace_snapshot_name_good("head"), "head may not name a snapshot");
    tap_ok(!workspace_snapshot_name_good("genesis"), "genesis may not name a snapshot");
    tap_ok(!workspace_snapshot_name_good("beef"), "what could be an id may not name a snapshot");
}

static void test_clone_names(void)
{
    static const struct {
        const char *name;
        bool good;
    } rows[] = {
        {"demo", true},   {"demo@try", true},   {"demo@", false},    {"@try", false},
        {"a@b@c", false}, {"demo@main", false}, {"demo@a/b", false}, {"demo@x.lock", false},
    };
    char base[WORKSPACE_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok(workspace_full_name_good(rows[i].name) == rows[i].good,
               "'%s' %s name a workspace or a clone", rows[i].name,
               rows[i].good ? "may" : "may not");
    workspace_base_part("demo@try", base);
    tap_eq_str(base, "demo", "the workspace of a clone is what stands before the @");
    tap_eq_str(workspace_clone_part("demo@try"), "try", "the clone is what stands behind the @");
    tap_ok(workspace_lock_change("demo@try") == workspace_lock_change("demo") &&
               workspace_lock_read("demo@try") == workspace_lock_read("demo"),
           "a clone has the lock of its workspace, whose store it is in");
}

static void test_git_names(void)
{
    static const struct {
        const char *name, *shown;
        bool bad;
    } rows[] = {
        {"x\\.git", ".git behind a backslash", true},
        {"a\\b\\.GIT ", ".GIT and a blank behind two backslashes", true},
        {"x\\git~1\\y", "git~1 between backslashes", true},
        {"x\\.gitmodules", ".gitmodules behind a backslash", true},
        {"x\\y", "y behind a backslash", false},
        {"\\", "a lone backslash", false},
        {"gi7eb~10", "gi7eb~10", true},
        {"GI7D2~99", "GI7D2~99", true},
        {"g~123456", "g~123456", true},
        {"~1000000", "~1000000", true},
        {"maba30~1", "maba30~1", true},
        {"mab~1000 ", "mab~1000 and a blank", true},
        {"mailma~1", "mailma~1", true},
        {"gi7eb~1", "gi7eb~1, which has seven letters", false},
        {"gi7eb~01", "gi7eb~01, whose number begins with 0", false},
        {"gi7eb~1x", "gi7eb~1x", false},
        {"gi7ec~10", "gi7ec~10", false},
        {"gi7eba12", "gi7eba12", false},
        {"gi250a~1", "gi250a~1, a short name of .gitignore", false},
        {".git", ".git", true},
        {".GIT", ".GIT", true},
        {".git.", ".git with a dot behind it", true},
        {".git ", ".git with a blank behind it", true},
        {".git . .", ".git with blanks and dots behind it", true},
        {".git::$INDEX_ALLOCATION", ".git as an NTFS stream", true},
        {".git\\config", ".git with a backslash", true},
        {"git~1", "git~1", true},
        {"GIT~2", "GIT~2", true},
        {".g\342\200\214it", ".git with a zero-width joiner (HFS+)", true},
        {"\357\273\277.GiT", ".git behind a byte order mark (HFS+)", true},
        {".gitmodules", ".gitmodules", true},
        {".GitModules ", ".GitModules with a blank", true},
        {"gi7eba~9", "gi7eba~9", true},
        {"gitmod~1", "gitmod~1", true},
        {".gitattributes", ".gitattributes", true},
        {".mailmap", ".mailmap", true},
        {".gitignore", ".gitignore", false},
        {".github", ".github", false},
        {"git", "git", false},
        {".gitx", ".gitx", false},
        {"a.git", "a.git", false},
        {"git~", "git~", false},
        {"\342\200\214", "a lone zero-width joiner", false},
        {"\377\376", "bytes that are not UTF-8", false},
        {".git\342\200", ".git and half a character", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok((workspace_name_fault(rows[i].name, false) != NULL) == rows[i].bad,
               "a file named %s is %s", rows[i].shown, rows[i].bad ? "left out" : "kept");
    static const char *const links[] = {".gitignore", ".GitIgnore.", "gi250a~1",
                                        "gi25~100",   "gitign~1",    ".gitmodules"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        tap_ok(workspace_name_fault(links[i], true), "a link named %s is left out", links[i]);
    tap_ok(!workspace_name_fault("ignore", true), "a link named ignore is kept");
}

static void test_links(void)
{
    static const struct {
        const char *target;
        size_t depth;
        bool bad;
    } rows[] = {
        {"a", 0, false},
        {"a/b/c", 0, false},
        {"./a", 0, false},
        {"../a", 1, false},
        {"../../a", 2, false},
        {"..", 1, false},
        {"a//b/", 0, false},
        {".", 0, false},
        {"/etc/passwd", 0, true},
        {"/etc/passwd", 3, true},
        {"/", 0, true},
        {"/", 9, true},
        {"", 0, true},
        {"../a", 0, true},
        {"../../a", 1, true},
        {"a/../b", 0, true},
        {"a/../../b", 5, true},
        {"./../a", 0, true},
        {"..//../a", 1, true},
        {".git/hooks", 0, true},
        {"a/.GIT/config", 0, true},
        {"...", 0, false},
        {"../...", 1, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_ok((workspace_link_fault(rows[i].target, strlen(rows[i].target), rows[i].depth) !=
                NULL) == rows[i].bad,
               "a link to '%s', %zu folders down, is %s", rows[i].target, rows[i].depth,
               rows[i].bad ? "left out" : "kept");
    tap_ok(workspace_link_fault("a\0b", 3, 0), "a link with a NUL in its target is left out");
}

int main(void)
{
    test_workspace_names();
    test_clone_names();
    test_git_names();
    test_links();
    tap_ok(workspace_lock_change("a") != workspace_lock_change("b") &&
               workspace_lock_change("a") != workspace_lock_read("a"),
           "each workspace has a lock for who changes it and one for who reads it");
    return tap_done();
}
