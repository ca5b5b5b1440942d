/* SPDX-License-Identifier: Apache-2.0 */
/* Plants the secret word where only the kernel keeps it (a System V segment, a queue, semaphores, a
 * POSIX queue, the session keyring), runs a command, and takes everything away again.
 *
 *     plant WORD KEY QUEUE -- COMMAND…      plant --check WORD KEY QUEUE
 *
 * Everything is open to all users: only the jail stands between a guest and the word. */
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "plant: %s: %s\n", what, strerror(errno));
    return 1;
}

static int check(const char *word, key_t key, const char *queue)
{
    int id = shmget(key, 0, 0);
    const char *at = id < 0 ? (void *)-1 : shmat(id, NULL, SHM_RDONLY);
    if (at == (void *)-1 || strcmp(at, word) != 0)
        return fail("the segment is spoilt");
    struct shmid_ds ds;
    if (shmctl(id, IPC_STAT, &ds) < 0 || ds.shm_nattch > 1)
        return fail("somebody else is attached to the segment");
    if (msgget(key, 0) < 0 || semget(key, 0, 0) < 0)
        return fail("a System V queue is gone");
    struct mq_attr attr;
    mqd_t mq = mq_open(queue, O_RDONLY | O_CLOEXEC);
    if (mq < 0 || mq_getattr(mq, &attr) < 0 || attr.mq_curmsgs != 1)
        return fail("the POSIX queue is spoilt");
    char text[256] = "";
    long k =
        syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "cordon-canary", 0);
    if (k >= 0 &&
        (syscall(SYS_keyctl, KEYCTL_READ, k, text, sizeof text - 1) < 0 || strcmp(text, word) != 0))
        return fail("the key is spoilt");
    if (k < 0 && errno != ENOSYS)
        return fail("the key is gone");
    if (syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user", "from-the-guest", 0) >= 0)
        return fail("a guest left a key");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "--check") == 0)
        return check(argv[2], (key_t)strtol(argv[3], NULL, 0), argv[4]);
    if (argc < 6 || strcmp(argv[4], "--") != 0) {
        fprintf(stderr, "usage: plant WORD KEY QUEUE -- COMMAND…\n");
        return 2;
    }
    const char *word = argv[1], *queue = argv[3];
    key_t key = (key_t)strtol(argv[2], NULL, 0);
    int shm = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
    if (shm < 0)
        return fail("shmget");
    char *at = shmat(shm, NULL, 0);
    if (at != (void *)-1) {
        snprintf(at, 4096, "%s", word);
        shmdt(at);
    }
    int msg = msgget(key, IPC_CREAT | 0666), sem = semget(key, 1, IPC_CREAT | 0666);
    struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 64};
    mqd_t mq = mq_open(queue, O_RDWR | O_CREAT | O_CLOEXEC, 0666, &attr);
    if (mq < 0 || fchmod(mq, 0666) < 0 || mq_send(mq, word, strlen(word), 0) < 0)
        fail("mq_open");
    /* a session of its own, so that nothing stays; kernels without keyrings have nothing to attack
     */
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0 &&
        syscall(SYS_add_key, "user", "cordon-canary", word, strlen(word),
                KEY_SPEC_SESSION_KEYRING) < 0)
        fail("add_key");
    int status = 1 << 8;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, 9);
        execvp(argv[5], argv + 5);
        _exit(fail(argv[5]));
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    shmctl(shm, IPC_RMID, NULL);
    msgctl(msg, IPC_RMID, NULL);
    semctl(sem, 0, IPC_RMID);
    mq_unlink(queue);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
