/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and queues that have names, and the kernel's key store. The test plants the secret word
 * in each of them. */
#include "probe.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void shm(int argc, char **argv)
{
    key_t key = (key_t)number(need(argc, argv, 0));
    const char *word = need(argc, argv, 1);
    int id = shmget(key, 0, 0);
    if (id >= 0)
        reached("the segment %d by its key", id);
    const char *why = error_name(errno);
    for (int i = 0; i < 1024; i++) {
        struct shmid_ds ds;
        int found = shmctl(i, SHM_STAT, &ds);
        const char *at = shmat(found >= 0 ? found : i, NULL, SHM_RDONLY);
        if (at != (void *)-1)
            reached("a segment holds %s",
                    memmem(at, 64, word, strlen(word)) ? "the secret" : "something");
    }
    contained("shmget by key: %s, and no segment can be attached: %s", why, error_name(errno));
}

static void sysv(int argc, char **argv)
{
    key_t key = (key_t)number(need(argc, argv, 0));
    tried("msgget", msgget(key, 0));
    tried("semget", semget(key, 0, 0));
    none_may_have_succeeded();
}

static void mq(int argc, char **argv)
{
    tried("mq_open", mq_open(need(argc, argv, 0), O_RDONLY | O_CLOEXEC));
    none_may_have_succeeded();
}

static void posix_shm(int argc, char **argv)
{
    char path[256];
    snprintf(path, sizeof path, "/dev/shm/%s", need(argc, argv, 0));
    /* a /dev/shm of its own is the guest's good right; the test looks for this name outside */
    int mine = open("/dev/shm/from-the-guest", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (open(path, O_RDONLY | O_CLOEXEC) >= 0)
        reached("%s", path);
    contained("%s: %s; one of its own: %s", path, error_name(errno), mine < 0 ? "no" : "yes");
}

static void keyring(int argc, char **argv)
{
    const char *word = need(argc, argv, 0);
    static const int rings[] = {KEY_SPEC_SESSION_KEYRING, KEY_SPEC_USER_SESSION_KEYRING,
                                KEY_SPEC_USER_KEYRING, KEY_SPEC_PROCESS_KEYRING};
    char text[256] = "";
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        long id = syscall(SYS_keyctl, KEYCTL_SEARCH, rings[i], "user", "cordon-canary", 0);
        if (id < 0)
            id = syscall(SYS_request_key, "user", "cordon-canary", NULL, 0);
        if (id < 0)
            continue;
        syscall(SYS_keyctl, KEYCTL_READ, id, text, sizeof text - 1);
        reached("key %ld holds %s", id, strstr(text, word) ? "the secret" : "something unreadable");
    }
    contained("no key of the caller: %s", error_name(errno));
}

static void add_key(int argc, char **argv)
{
    (void)argc, (void)argv;
    long id = syscall(SYS_add_key, "user", "from-the-guest", "x", 1, KEY_SPEC_USER_KEYRING);
    if (id < 0)
        contained("add_key: %s", error_name(errno));
    if (filtered())
        reached("key %ld, past the filter", id);
    contained("a key; the test looks whether it can be found outside");
}

const struct probe probes_ipc[] = {
    {"sysv-shm", "a System V segment outside", "26", 5, "process", "benign-memory", shm,
     .args = "{key} {word}"},
    {"sysv-other", "System V queues and semaphores outside", "26", 5, "process", "benign-memory",
     sysv, .args = "{key}"},
    {"posix-mq", "a POSIX queue outside", "26", 5, "process", "benign-memory", mq, .args = "{mq}"},
    {"posix-shm", "POSIX shared memory outside", "26", 5, "filesystem", "benign-memory", posix_shm,
     .args = "{shm}"},
    {"keyring", "a key of the caller", "27", 5, "syscalls", "benign-memory", keyring,
     .args = "{word}"},
    {"add-key", "a key that outlives the run", "27", 5, "syscalls", "benign-memory", add_key,
     .rule = "add_key|key"},
    {0},
};
