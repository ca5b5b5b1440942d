/* SPDX-License-Identifier: Apache-2.0 */
/* A key is read once, when the gateway starts, from a file that nobody else can read or from a variable, which is then wiped where it
 * lies: /proc/PID/environ shows it no more.
 *
 * Waits: read in read_file; a regular file; none (the kernel's own); holds no lock */
#include "proxy/keys/keys.h"

#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_file(const struct policy_upstream *u, char key[PROXY_KEY_MAX + 2], struct err *err)
{
    struct stat st;
    FD_AUTO fd = open(u->key_file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_set(err, ERR_USAGE, "upstream %s: key_file %.120s: %s", u->name, u->key_file,
                       strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) ||
        (st.st_mode & 077))
        return err_set(err, ERR_USAGE,
                       "upstream %s: key_file %.120s must be a file of yours, closed to others "
                       "(chmod 600)",
                       u->name, u->key_file);
    const ssize_t n = read(fd, key, PROXY_KEY_MAX + 1);
    if (n < 0)
        return err_sys(err, "upstream %s: key_file", u->name);
    key[n] = 0;
    return 0;
}

static int read_variable(const struct policy_upstream *u, char key[PROXY_KEY_MAX + 2],
                         struct err *err)
{
    const char *value = getenv(u->key_env);
    if (!value || !*value)
        return err_set(err, ERR_USAGE, "upstream %s: the variable %.60s of key_env is not set",
                       u->name, u->key_env);
    snprintf(key, PROXY_KEY_MAX + 2, "%s", value);
    return 0;
}

/* When all are read: two upstreams may name the same one. */
static void wipe_variables(const struct policy *p)
{
    for (size_t i = 0; i < p->nupstreams; i++) {
        char *value = *p->upstreams[i].key_env ? getenv(p->upstreams[i].key_env) : NULL;
        if (!value)
            continue;
        explicit_bzero(value, strlen(value)); /* where the kernel shows it */
        unsetenv(p->upstreams[i].key_env);
    }
}

/* What a header can carry, and no end of a line. */
static int judge(const struct policy_upstream *u, char *key, struct err *err)
{
    size_t len = strlen(key);
    while (len && (key[len - 1] == '\n' || key[len - 1] == '\r' || key[len - 1] == ' '))
        key[--len] = 0;
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] > '~')
            len = 0;
    if (len < 8 || len > PROXY_KEY_MAX)
        return err_set(err, ERR_USAGE,
                       "upstream %s: its key must have 8 to %d characters, no blanks", u->name,
                       PROXY_KEY_MAX);
    return 0;
}

static int keep(const struct policy_upstream *u, const char *key, struct proxy_key *to,
                struct err *err)
{
    const char *before = u->shape == POLICY_SHAPE_OPENAI ? "Authorization: Bearer " : "x-api-key: ";
    const size_t size = strlen(before) + strlen(key) + 1;
    to->header = malloc(size);
    if (!to->header || proxy_hidden_init(&to->hidden, key, strlen(key)) < 0)
        return err_set(err, ERR_MEMORY, "no memory");
    snprintf(to->header, size, "%s%s", before, key);
    return 0;
}

int proxy_keys_read(struct proxy_keys *k, struct err *err)
{
    char key[PROXY_KEY_MAX + 2] = "";
    const struct policy *p = k->policy;
    int r = 0;
    k->keys = calloc(p->nupstreams + 1, sizeof *k->keys);
    if (!k->keys)
        return err_set(err, ERR_MEMORY, "no memory");
    for (size_t i = 0; r == 0 && i < p->nupstreams; i++) {
        const struct policy_upstream *u = &p->upstreams[i];
        if (!*u->key_file && !*u->key_env)
            continue;
        r = *u->key_file ? read_file(u, key, err) : read_variable(u, key, err);
        if (r == 0)
            r = judge(u, key, err);
        if (r == 0)
            r = keep(u, key, &k->keys[i], err);
    }
    wipe_variables(p);
    explicit_bzero(key, sizeof key);
    return r;
}

void proxy_keys_wipe(struct proxy_keys *k)
{
    for (size_t i = 0; k->keys && i < k->policy->nupstreams; i++) {
        if (k->keys[i].header)
            explicit_bzero(k->keys[i].header, strlen(k->keys[i].header));
        free(k->keys[i].header);
        proxy_hidden_done(&k->keys[i].hidden);
    }
    free(k->keys);
    k->keys = NULL;
}
