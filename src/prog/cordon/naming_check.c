/* SPDX-License-Identifier: Apache-2.0 */
/* What is copied is looked at before, where it lies: a copy is refused as a whole, so that no half of a folder is there. The
 * folder is the caller's own, and who changes it meanwhile breaks a convention, and gets round no lock: what runs is judged when
 * it runs. A file's bytes are read only where a rule asks what it exports.
 *
 * Waits: read in check_file; regular files only, opened without waiting; none (the kernel's own); an error */
#include "naming_check.h"

#include "base/limits.h"
#include "base/naming.h"
#include "sys/entries.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 64

struct checking {
    const struct policy *policy;
    char path[4096];
    char *warning;
    char *text; /* room for one file */
};

static int broke(const struct policy *p, const char *path, const struct naming_rule *rule,
                 char *warning, struct err *err)
{
    if (p->verification == POLICY_VERIFY_STRICT)
        return err_set(err, ERR_USAGE,
                       "/workspace%.120s: %.180s (naming of the policy; rename it, or let "
                       "verification warn)",
                       path, rule->message);
    if (!*warning)
        snprintf(warning, NAMING_WARNING, "/workspace%.160s: %.280s", path, rule->message);
    return 0;
}

int naming_check_text(const struct policy *policy, const char *path, const char *text, size_t len,
                      char warning[NAMING_WARNING], struct err *err)
{
    const struct naming_rule *rule =
        naming_broken(policy->naming, policy->nnaming, path, text, len);
    warning[0] = 0;
    return rule ? broke(policy, path, rule, warning, err) : 0;
}

/* FD: the regular file that becomes K->path; -1: it could not be opened, which the copy says. */
static int check_file(struct checking *k, int fd, struct err *err)
{
    const struct policy *p = k->policy;
    size_t len = 0;
    if (fd < 0 || !naming_broken(p->naming, p->nnaming, k->path, "", 0))
        return 0; /* it keeps them, whatever is in it */
    for (ssize_t n; len < LIMIT_SOURCE && (n = read(fd, k->text + len, LIMIT_SOURCE - len)) != 0;) {
        if (n < 0 && errno != EINTR)
            return err_sys(err, "read %.160s", k->path);
        len += n > 0 ? (size_t)n : 0;
    }
    const struct naming_rule *rule = naming_broken(p->naming, p->nnaming, k->path, k->text, len);
    return rule ? broke(p, k->path, rule, k->warning, err) : 0;
}

static int check_folder(struct checking *k, int folder, unsigned depth, struct err *err);

static int check_entry(struct checking *k, int folder, const char *name, unsigned depth,
                       struct err *err)
{
    struct stat st;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return 0; /* gone, or nothing that has a text */
    FD_AUTO fd = openat(folder, name,
                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                            (S_ISDIR(st.st_mode) ? O_DIRECTORY : 0));
    if (fd < 0 || S_ISDIR(st.st_mode))
        return fd < 0 || depth == DEPTH_MAX ? 0 : check_folder(k, fd, depth + 1, err);
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? check_file(k, fd, err) : 0;
}

static int check_folder(struct checking *k, int folder, unsigned depth, struct err *err)
{
    const size_t before = strlen(k->path);
    DIR *d = entries_of(folder);
    int r = 0;
    if (!d)
        return 0; /* the copy says why */
    for (const char *name; r == 0 && (name = entries_next(d));) {
        const int n = snprintf(k->path + before, sizeof k->path - before, "/%s", name);
        if (n > 0 && (size_t)n < sizeof k->path - before)
            r = check_entry(k, folder, name, depth, err);
        k->path[before] = 0;
    }
    closedir(d);
    return r;
}

int naming_check_copy(const struct policy *policy, int source, const char *path,
                      char warning[NAMING_WARNING], struct err *err)
{
    struct checking k = {.policy = policy, .warning = warning, .text = malloc(LIMIT_SOURCE)};
    struct stat st;
    char self[40];
    warning[0] = 0;
    snprintf(k.path, sizeof k.path, "%s", path);
    snprintf(self, sizeof self, "/proc/self/fd/%d", source);
    int r = k.text ? 0 : err_set(err, ERR_MEMORY, "no memory");
    if (r == 0 && fstat(source, &st) < 0)
        r = err_sys(err, "look at what is copied");
    if (r == 0 && S_ISDIR(st.st_mode)) {
        FD_AUTO folder = openat(source, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = folder < 0 ? 0 : check_folder(&k, folder, 0, err);
    } else if (r == 0 && S_ISREG(st.st_mode)) {
        FD_AUTO fd = open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* SOURCE may be O_PATH */
        r = check_file(&k, fd, err);
    }
    free(k.text);
    return r;
}
