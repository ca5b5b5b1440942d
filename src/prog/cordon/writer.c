/* SPDX-License-Identifier: Apache-2.0 */
/* Two queues, one a stream, for whatever is written to the caller: a guest's bytes as they come, a result, a
 * complaint, and stdio's stdout, which is redirected here so that the errno of a write that failed in the middle of a
 * listing is known at the end. A reader that stalls (a pager, a terminal after ^S) so holds up the last step alone:
 * the run has ended, its end is on record, its slot is free, and what is left is a process that holds bytes.
 *
 * How a write is kept from waiting, on pipes, terminals, sockets and files, is told in sys/nowait.c.
 *
 * Waits: poll in writer_wait; whoever reads what we write; none (nothing is held that others need: the command's last
 *          step, between two blocks of `repl`, stdio of commands that start nothing); a signal ends it
 *        sigtimedwait in restore_signals; nobody: its time is 0; at once; none is left */
#include "writer.h"

#include "base/limits.h"
#include "commands.h"
#include "result.h"
#include "sys/nowait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HELD_MAX (8 * MIB) /* before anybody says otherwise: complaints, listings */

static struct writer {
    int fd;
    struct buf held;
    size_t at; /* what lies before it was written */
    int error; /* the first errno; from then on everything is dropped */
} writers[2] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
static size_t ceiling = HELD_MAX;
static bool one_reader; /* of both (2>&1): one queue, so that what it reads is in order */

static struct writer *writer_of(enum jail_stream stream)
{
    return &writers[one_reader ? JAIL_STDOUT : stream];
}

static void drop_held(struct writer *w)
{
    buf_done(&w->held);
    buf_init(&w->held, ceiling);
    w->at = 0;
}

static void fail(struct writer *w, int error)
{
    w->error = w->error ? w->error : error;
    drop_held(w);
}

/* How many of the bytes were taken now. */
static size_t write_some(struct writer *w, const char *data, size_t len)
{
    size_t done = 0;
    while (done < len && !w->error) {
        ssize_t n = sys_write_now(w->fd, data + done, len - done);
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0)
            fail(w, errno);
        else
            done += (size_t)n;
    }
    return done;
}

static void push(struct writer *w)
{
    if (!w->held.len)
        return;
    size_t done = write_some(w, w->held.data + w->at, w->held.len - w->at);
    if (w->error) /* then nothing is held any more */
        return;
    w->at += done;
    if (w->at == w->held.len)
        drop_held(w);
}

static void hold(struct writer *w, const char *data, size_t len)
{
    if (w->at && w->at >= w->held.len / 2) {
        memmove(w->held.data, w->held.data + w->at, w->held.len - w->at);
        w->held.len -= w->at;
        w->at = 0;
    }
    if (len && !w->error && buf_add(&w->held, data, len) < 0)
        fail(w, ENOBUFS);
}

void writer_put(enum jail_stream stream, const void *data, size_t len)
{
    struct writer *w = writer_of(stream);
    const char *at = data;
    size_t done = 0;
    push(w);
    if (!w->held.len)
        done = write_some(w, at, len);
    hold(w, at + done, len - done);
}

void writer_take(enum jail_stream stream, struct buf *whole)
{
    struct writer *w = writer_of(stream);
    push(w);
    if (!w->held.len && !w->error) {
        buf_done(&w->held);
        w->held = *whole;
        w->held.max = whole->max > ceiling ? whole->max : ceiling; /* more may come after it */
        buf_init(whole, 0);
        push(w);
    } else {
        hold(w, whole->data, whole->len);
    }
    buf_done(whole);
}

void writer_push(enum jail_stream stream)
{
    push(writer_of(stream));
}

size_t writer_held(enum jail_stream stream)
{
    const struct writer *w = writer_of(stream);
    return w->held.len - w->at;
}

bool writer_gone(enum jail_stream stream)
{
    return writer_of(stream)->error == EPIPE;
}

void writer_ceiling(uint64_t bytes)
{
    ceiling = bytes = one_reader ? 2 * bytes : bytes;
    for (int i = 0; i < 2; i++)
        writers[i].held.max = bytes > writers[i].held.len ? bytes : writers[i].held.len;
}

bool writer_wait(int stop)
{
    for (;;) {
        struct pollfd p[3] = {{.fd = -1}, {.fd = -1}, {.fd = stop, .events = POLLIN}};
        for (int i = 0; i < 2; i++) {
            push(&writers[i]);
            if (writers[i].held.len) {
                p[i].fd = writers[i].fd;
                p[i].events = POLLOUT;
            }
        }
        if (p[0].fd < 0 && p[1].fd < 0)
            return true;
        int n = poll(p, 3, -1);
        if (n > 0 && p[2].revents)
            return false;
        for (int i = 0; n < 0 && errno != EINTR && i < 2; i++)
            if (p[i].fd >= 0)
                fail(&writers[i], errno); /* poll itself failed: without it the loop would spin */
    }
}

/* ---- stdio ---- */

/* Whoever prints with stdio runs nothing meanwhile: it may wait. */
static ssize_t take_printed(void *cookie, const char *data, size_t len)
{
    struct writer *w = cookie;
    writer_put(JAIL_STDOUT, data, len);
    if (w->held.len)
        (void)writer_wait(-1);
    if (!w->error)
        return (ssize_t)len;
    errno = w->error;
    return 0; /* a cookie's write function returns 0 for an error */
}

int writer_init(void)
{
    static char storage[16 * KIB];
    const cookie_io_functions_t functions = {.write = take_printed};
    struct stat out, err;
    for (int i = 0; i < 2; i++)
        buf_init(&writers[i].held, ceiling);
    /* Two descriptors of one file may have an offset each: those stay apart. */
    one_reader = fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
                 out.st_dev == err.st_dev && out.st_ino == err.st_ino && !S_ISREG(out.st_mode);
    FILE *to_writer = fopencookie(&writers[JAIL_STDOUT], "w", functions);
    if (!to_writer)
        return ERR_MEMORY;
    setvbuf(to_writer, storage, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof storage);
    stdout = to_writer;
    return 0;
}

/* ---- the end ---- */

/* A run's signals came over a descriptor. One that has ended it is used up; the next one ends us. */
static void restore_signals(void)
{
    const struct timespec now = {0};
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    while (sigtimedwait(&stop, NULL, &now) > 0)
        ;
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
}

static void deliver(void)
{
    if (!writers[0].held.len && !writers[1].held.len)
        return;
    restore_signals();
    (void)writer_wait(-1);
}

int writer_finish(int status)
{
    char line[128];
    int flushed = fflush(stdout); /* the writer has the errno of a write that failed */
    deliver();
    int why = writers[JAIL_STDOUT].error;
    if (why && why != EPIPE) { /* a reader that has enough says so by leaving */
        snprintf(line, sizeof line, "standard output: %s", strerror(why));
        result_complain("cordon", line);
        deliver();
    }
    bool lost = flushed != 0 || why || writers[JAIL_STDERR].error;
    if (why == EPIPE && (status == EXIT_DONE || status == EXIT_FAILED))
        return EXIT_SIGNAL + SIGPIPE; /* the pipe is the only thing that failed */
    return lost && status == EXIT_DONE ? EXIT_FAILED : status;
}
