/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is one socket, also to a server that we start: so no write of ours can raise SIGPIPE in the caller's program,
 * and its end is the server's.
 *
 * Waits: connect in connect_to; a server whose queue is full; 10 s; the server counts as gone
 *        posix_spawnp in spawn; the new process, until it executes; none (the C library's own); the start fails
 *        poll in end_server; a server that we started, whose client is gone; 15 s; it is killed
 *        waitpid in end_server; a process that ended or was killed; none (it is dead); it is reaped
 *        write in cordon_client_cancel; an eventfd that never blocks; none (EFD_NONBLOCK); the flag is set all the same */
#include "client/inside.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_MS 120000
#define CONNECT_S   10
#define END_MS      15000 /* cordond takes at most 10 s to leave */
#define WORDS       64    /* of the command line of a server that we start */

extern char **environ;

static struct cordon_client *client_new(void)
{
    struct cordon_client *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->fd = c->words = -1;
    c->owner = getpid();
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->patience_ns = PATIENCE_MS * CLOCK_NS_PER_MS;
    atomic_init(&c->cancelled, false);
    buf_init(&c->in, CLIENT_REPLY_MAX);
    return c;
}

/* Gives the client, or why there is none. */
static int made(struct cordon_client *c, int status, struct cordon_client **ret, char *why)
{
    if (why)
        snprintf(why, CORDON_WHY_MAX, "%s", c ? c->why : "no memory");
    if (status && c)
        cordon_client_close(c);
    *ret = status ? NULL : c;
    return status;
}

static int connect_to(struct cordon_client *c, const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (!path)
        return client_fail(c, CORDON_CLIENT_ARGUMENT, "no path of a socket");
    if (strlen(path) >= sizeof at.sun_path)
        return client_fail(c, CORDON_CLIENT_ARGUMENT, "%.200s: longer than a socket's path", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    const struct timeval most = {.tv_sec = CONNECT_S};
    const uint64_t end = clock_now_ns() + CONNECT_S * CLOCK_NS_PER_S;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd >= 0)
        setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most); /* connect obeys it */
    int r = c->fd < 0 || c->wake < 0 ? -1 : 0;
    if (r == 0) /* a signal of the caller's program is no answer; with a time it restarts no call */
        while ((r = connect(c->fd, (struct sockaddr *)&at, sizeof at)) < 0 && errno == EINTR &&
               clock_now_ns() < end)
            ;
    if (r < 0)
        return client_fail(c, CORDON_CLIENT_GONE, "%s: %s; start it: cordon serve --socket %s",
                           path, strerror(errno), path);
    return 0;
}

int cordon_client_connect(const char *path, struct cordon_client **ret_client, char *why)
{
    struct cordon_client *c = client_new();
    return made(c, c ? connect_to(c, path) : CORDON_CLIENT_MEMORY, ret_client, why);
}

/* ---- a server of our own ---- */

/* The command line. A server that we start answers every second how a run stands, unless the caller says otherwise. */
static bool command(const char *program, const char *const *options, char *argv[WORDS + 1])
{
    static const char *const own[] = {"serve", "--stdio", "--answer", "1s"};
    size_t count = 0, i;
    bool answers = false;
    argv[count++] = (char *)program;
    for (i = 0; options && options[i]; i++)
        answers = answers || strncmp(options[i], "--answer", 8) == 0;
    for (size_t k = 0; k < (answers ? 2 : 4); k++)
        argv[count++] = (char *)own[k];
    for (i = 0; options && options[i] && count < WORDS; i++)
        argv[count++] = (char *)options[i];
    argv[count] = NULL;
    return !options || !options[i];
}

/* In a session of its own: Control-C is for the caller's program. */
static int spawn(struct cordon_client *c, const char *program, char *argv[], int theirs)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    sigemptyset(&none);
    sigemptyset(&all);
    sigaddset(&all, SIGPIPE);
    sigaddset(&all, SIGINT);
    sigaddset(&all, SIGTERM);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    int r = posix_spawn_file_actions_adddup2(&files, theirs, 0);
    r = r ? r : posix_spawn_file_actions_adddup2(&files, theirs, 1);
    r = r ? r : posix_spawn_file_actions_adddup2(&files, c->words, 2);
    r = r ? r : posix_spawnp(&c->pid, program, &files, &how, argv, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    if (r)
        c->pid = 0;
    return r;
}

static int start_server(struct cordon_client *c, const char *program, const char *const *options)
{
    char *argv[WORDS + 1];
    int pair[2];
    if (!command(program, options, argv))
        return client_fail(c, CORDON_CLIENT_ARGUMENT, "too many options");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return client_fail(c, CORDON_CLIENT_GONE, "no socket: %s", strerror(errno));
    c->fd = pair[0];
    c->words = memfd_create("cordon-client", MFD_CLOEXEC);
    int r = c->words < 0 || c->wake < 0 ? errno : spawn(c, program, argv, pair[1]);
    close(pair[1]);
    if (r)
        return client_fail(c, CORDON_CLIENT_GONE, "%s: %s; is Cordon installed?", program,
                           strerror(r));
    return 0;
}

int cordon_client_start(const char *program, const char *const *options,
                        struct cordon_client **ret_client, char *why)
{
    struct cordon_client *c = client_new();
    const int r = c ? start_server(c, program ? program : "cordon", options) : CORDON_CLIENT_MEMORY;
    return made(c, r, ret_client, why);
}

/* It ends by itself once its client is gone. The caller's program may have reaped it (SIGCHLD that is ignored, a loop over all
 * children): its number is another's then. */
static void end_server(struct cordon_client *c)
{
    if (waitpid(c->pid, NULL, WNOHANG) != 0)
        return;
    struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, c->pid, 0), .events = POLLIN};
    const uint64_t until = clock_now_ns() + END_MS * CLOCK_NS_PER_MS;
    while (end.fd >= 0 && clock_now_ns() < until && poll(&end, 1, 1000) <= 0)
        ;
    if (end.fd < 0 || !(end.revents & POLLIN))
        kill(c->pid, SIGKILL);
    while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (end.fd >= 0)
        close(end.fd);
}

void cordon_client_close(struct cordon_client *c)
{
    if (!c)
        return;
    client_drop(c);
    if (c->fd >= 0)
        close(c->fd);
    if (c->pid && c->owner == getpid())
        end_server(c);
    if (c->words >= 0)
        close(c->words);
    if (c->wake >= 0)
        close(c->wake);
    buf_done(&c->in);
    free(c);
}

void cordon_client_patience(struct cordon_client *c, unsigned ms)
{
    c->patience_ns = ms * CLOCK_NS_PER_MS;
}

void cordon_client_cancel(struct cordon_client *c)
{
    const int saved = errno;
    const uint64_t one = 1;
    atomic_store(&c->cancelled, true);
    (void)!write(c->wake, &one, sizeof one);
    errno = saved;
}

const char *cordon_client_why(const struct cordon_client *c)
{
    return c->why;
}
