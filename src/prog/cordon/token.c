/* SPDX-License-Identifier: Apache-2.0 */
/* A token that nobody chose has 260 random bits; it is written beside its name and linked into place, so that of two servers
 * that start at once both have the one that came first.
 *
 * Waits: read in read_open; the operator's file, which is regular; none (the kernel's own); holds no lock
 *        write in make_token; a new file; none (the kernel's own); holds no lock
 *        fsync in make_token; the disk, once for a new token; none (the kernel's own); holds no lock */
#include "token.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int judge(char *token, size_t len, const char *what, const char *file, struct err *err)
{
    while (len && (token[len - 1] == '\n' || token[len - 1] == '\r'))
        len--;
    token[len] = 0;
    if (len < LIMIT_HTTP_TOKEN_MIN || len > LIMIT_HTTP_TOKEN ||
        strspn(token, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=") !=
            len)
        return err_set(err, ERR_USAGE,
                       "%s: %.160s must hold one token of 32 to 512 letters, digits "
                       "and -._~+/=",
                       what, file);
    return 0;
}

static int read_open(int fd, const char *what, const char *file, char token[LIMIT_HTTP_TOKEN + 3],
                     struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
        (st.st_mode & 077))
        return err_set(err, ERR_USAGE,
                       "%s: %.160s must be a file of yours, closed to others (chmod 600)", what,
                       file);
    const ssize_t n = read(fd, token, LIMIT_HTTP_TOKEN + 2);
    return n < 0 ? err_sys(err, "%s: %.160s", what, file)
                 : judge(token, (size_t)n, what, file, err);
}

/* Where it is there by now, somebody else made it: that one counts. */
static int make_token(int dir, const char *name, struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[52];
    char line[sizeof bytes + 1], path[40];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return err_sys(err, "getrandom");
    for (size_t i = 0; i < sizeof bytes; i++)
        line[i] = letters[bytes[i] & 31];
    line[sizeof bytes] = '\n';
    FD_AUTO fd = openat(dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, line, sizeof line) != (ssize_t)sizeof line || fsync(fd) < 0 ||
        (linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST))
        return err_sys(err, "a new token in the state folder");
    return 0;
}

int token_own(const char *name, char *file, char token[LIMIT_HTTP_TOKEN + 3], bool *ret_made,
              struct err *err)
{
    FD_AUTO dir = -1;
    FD_AUTO fd = -1;
    char folder[STATE_PATH_MAX - 32];
    int r = state_path(folder, sizeof folder, err);
    if (r == 0)
        r = state_open(folder, true, &dir, err);
    if (r < 0)
        return r;
    *ret_made = faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
    if (*ret_made)
        r = make_token(dir, name, err);
    if (r == 0)
        r = state_file(dir, name, O_RDONLY, &fd, err);
    snprintf(file, STATE_PATH_MAX, "%s/%s", folder, name);
    return r < 0 ? r : read_open(fd, "the token", file, token, err);
}

int token_read(const char *what, const char *file, char token[LIMIT_HTTP_TOKEN + 3],
               struct err *err)
{
    FD_AUTO fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd < 0 ? err_set(err, ERR_USAGE, "%s: %.160s: %s", what, file, strerror(errno))
                  : read_open(fd, what, file, token, err);
}
