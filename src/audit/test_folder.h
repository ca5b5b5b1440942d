/* SPDX-License-Identifier: Apache-2.0 */
/* A state folder for a test, a clock that it turns by hand, a machine that was restarted.
 *
 * Takes:   nothing.
 * Gives:   a folder below /tmp, handles on it, records in it.
 * Never:   is part of the product.
 * Runs in: the tests of the audit.
 */
#ifndef AUDIT_TEST_FOLDER_H
#define AUDIT_TEST_FOLDER_H

#include "audit/inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER_DAY 86400000ULL

struct folder {
    char path[300];
    uint64_t now; /* noon of 2026-11-15 */
};

__attribute__((unused)) static uint64_t folder_now(void *ctx)
{
    return ((struct folder *)ctx)->now;
}

__attribute__((unused)) static bool folder_make(struct folder *p)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(p->path, sizeof p->path, "%s/cordon-audit-XXXXXX", tmp ? tmp : "/tmp");
    p->now = 1794744000000ULL;
    return mkdtemp(p->path) != NULL;
}

__attribute__((unused)) static bool folder_remove(struct folder *p)
{
    int status = 1;
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/rm", "rm", "-rf", p->path, (char *)NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* CONFIG may be NULL: the defaults. */
__attribute__((unused)) static struct audit *folder_open(struct folder *p,
                                                         const struct audit_config *config)
{
    struct audit_config c;
    struct audit *a = NULL;
    struct err err = ERR_INIT;
    audit_config_init(&c);
    if (config)
        c = *config;
    c.state = p->path;
    c.now_ms = folder_now;
    c.now_ctx = p;
    if (audit_open(&c, &a, &err) < 0)
        printf("# open: %s\n", err.msg);
    return a;
}

/* The process is as a supervisor of root's after it gave up root: it opens nothing in the folder. An ordinary user shuts the
 * folder itself. */
__attribute__((unused)) static void folder_rights(struct folder *p, bool has)
{
    char path[400];
    if (geteuid() == 0) {
        setfsuid(has ? 0 : 65534);
        return;
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", p->path, i ? AUDIT_LOG_DIR : AUDIT_SEAL_DIR);
        if (chmod(path, has ? 0700 : 0) < 0)
            printf("# chmod %s failed\n", path);
    }
}

/* Signs the head anew as that of another boot. */
__attribute__((unused)) static void folder_other_boot(struct folder *p)
{
    char path[400];
    uint8_t sets[AUDIT_HEAD_SETS * AUDIT_HEAD_SET] = {0};
    struct hmac_sha256_ctx key;
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/seal", p->path);
    int seal = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = openat(seal, "head", O_RDWR | O_CLOEXEC);
    bool fine = audit_key_load(seal, false, &key, &err) == 0 && pread(fd, sets, sizeof sets, 0) > 0;
    for (size_t i = 0; fine && i < 4; i++) {
        struct audit_head h;
        if (!audit_head_decode(sets + i * AUDIT_HEAD_SLOT, &key, &h))
            continue;
        h.boot[0] ^= 0x55;
        audit_head_encode(&h, &key, sets + i * AUDIT_HEAD_SLOT);
    }
    if (!fine || pwrite(fd, sets, sizeof sets, 0) != sizeof sets)
        printf("# the head could not be signed anew\n");
    close(fd);
    close(seal);
}

#endif
