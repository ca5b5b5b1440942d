/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a guest that can open none. The supervisor counts its requests and the bytes that they move, and hands them on
 * as they are to cordon-tool, which is confined and resolves the paths; the answer goes back as it is. The process is started by the
 * first request, so that a run without files pays nothing, and ends with the run. The loop that keeps the guest's clocks waits for none of it.
 */
#include "flow/steps.h"

#include "base/limits.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "sys/lock.h"
#include "wire/files.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARTS 4 /* of the process in one run: each one before was killed */

/* ---- the process ---- */

static int open_program(struct flow *f, struct err *err)
{
    char path[4096];
    if (f->files_program >= 0)
        return 0;
    int r = f->req->find_program ? f->req->find_program("cordon-tool", path, sizeof path, err)
                                 : err_set(err, ERR_STATE, "nobody said where cordon-tool is");
    if (r < 0)
        return r;
    f->files_program = open(path, O_PATH | O_CLOEXEC);
    return f->files_program < 0 ? err_sys(err, "%s", path) : 0;
}

/* Root finds the program while it may still look into every folder. */
void flow_files_expect(struct flow *f)
{
    struct err none = ERR_INIT; /* a program without files does not need it; another is told then */
    if (f->req->profile->files && geteuid() == 0)
        (void)!open_program(f, &none);
}

void flow_files_stop(struct flow *f)
{
    f->files_stopped = f->files_asked && lock_process_state(f->files_process.pid) == 'T';
    tools_process_end(&f->files_process);
    fd_close(fd_take(&f->files_program));
    f->files_asked = false;
}

/* ---- answers ---- */

static bool say_failed(struct flow *f, uint64_t id, uint64_t why)
{
    char frame[64];
    struct buf b = {.data = frame, .cap = sizeof frame, .max = sizeof frame - 1};
    struct wire_writer m;
    wire_begin(&m, &b, WIRE_FILE_DONE);
    wire_put_uint(&m, id);
    wire_put_uint(&m, why);
    wire_put_uints(&m, NULL, 0);
    wire_put_bytes(&m, "", 0);
    return wire_end(&m) == 0 && flow_worker_file_done(&f->worker, id, b.data, b.len);
}

/* What a program tries outside its folders is told by name; whether something is there it may ask. */
static void tell_outside(struct flow *f)
{
    char text[320];
    snprintf(text, sizeof text, "%s: not in /workspace, /tmp or what --ro and --rw show",
             f->files_path);
    if (f->files_what != WIRE_FILES_STAT)
        jail_run_violation(f->run, "filesystem", "py.files.outside", text,
                           "a program has the files of /workspace and /tmp: copy others in with "
                           "--in, or show a folder with --ro PATH:DEST; write into /workspace",
                           0);
}

static void tell_unserved(struct flow *f, const struct err *err)
{
    jail_run_violation(f->run, "filesystem", "py.files.unserved", err->msg,
                       "keep the data in memory (io.StringIO, io.BytesIO), or use --profile "
                       "standard, which opens its files by itself",
                       0);
}

static void say_ended(int status, char out[FLOW_FILES_ENDED])
{
    char how[SYS_CHILD_TOLD];
    sys_child_tell(status, how);
    snprintf(out, FLOW_FILES_ENDED, "cordon-tool, which served the files, %s", how);
}

/* Dead, or not itself any more: what it was asked for has failed. One that a request crashed may be crashed again, and is not
 * started anew. One that somebody else killed, or that gave up because the host has no descriptor or memory for it, is: it
 * keeps nothing between two requests. What became of a request that was under way then nobody knows, and a program that
 * is told of a broken disk would be blamed for a fault of the host: so the run ends. A session has more to lose than a
 * call, and goes on. */
static bool lost(struct flow *f)
{
    struct pollfd end = {.fd = f->files_process.sock};
    const bool gone = poll(&end, 1, 0) == 1 && (end.revents & POLLHUP); /* before we killed it */
    const int status = tools_process_end(&f->files_process);
    const bool by_host =
        gone && (WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    const bool asked = f->files_asked;
    struct err err = ERR_INIT;
    char how[FLOW_FILES_ENDED];
    say_ended(status, how);
    f->files_asked = false;
    f->files_lost = !by_host;
    if (by_host && !asked)
        return false;
    if (by_host && !flow_in_session(f)) {
        memcpy(f->files_ended, how, sizeof how);
        jail_run_lost(f->run);
        return false;
    }
    (void)err_set(&err, ERR_STATE, "%s", how);
    tell_unserved(f, &err);
    if (asked)
        (void)!say_failed(f, f->files_id, EIO);
    return false;
}

void flow_files_explain(struct flow *f)
{
    char text[200];
    snprintf(text, sizeof text,
             "the jail was killed from outside: %s; run it again, or see `cordon doctor` and the "
             "kernel's log",
             f->files_ended);
    if (f->files_ended[0])
        flow_result_say(f->result, FLOW_CRASHED, "process", "CODE", "JailLost", text);
    else if (f->files_stopped && f->result->status == FLOW_TIMEOUT)
        flow_result_say(f->result, FLOW_CRASHED, "process", "CODE", "JailLost",
                        "cordon-tool, which served the program's files, was stopped from outside, "
                        "and the time ran out; run it again");
}

static bool on_answer(void *ctx)
{
    static char storage[LIMIT_FRAME]; /* one supervisor handles one packet at a time */
    struct flow *f = ctx;
    struct wire_reader r;
    size_t n;
    const int got = wire_take(f->files_process.sock, storage, &r, &n);
    if (got == 0)
        return true;
    if (got < 0 || r.type != WIRE_FILE_DONE || !f->files_asked || wire_get_uint(&r) != f->files_id)
        return lost(f);
    const uint64_t why = wire_get_uint(&r);
    f->files_asked = false;
    f->files_bytes += n;
    if (why == WIRE_FILES_OUTSIDE) {
        tell_outside(f);
        (void)!say_failed(f, f->files_id, EACCES);
    } else {
        (void)!flow_worker_file_done(&f->worker, f->files_id, storage, n);
    }
    return true;
}

/* ---- requests ---- */

static int start(struct flow *f, struct err *err)
{
    const int files = jail_run_files(f->run);
    if (f->files_process.pid > 0)
        return 0;
    if (f->files_lost || f->files_starts == STARTS)
        return err_set(err, ERR_STATE, "the process that served the files of this run died");
    if (files < 0)
        return err_set(err, ERR_STATE, "this run has no files that can be served");
    int r = open_program(f, err);
    tools_process_give_shares(f->shown, f->nshown);
    f->files_starts++;
    if (r == 0)
        r = tools_process_start(&f->files_process, f->files_program, files, -1, TOOLS_SERVES, err);
    if (r == 0)
        r = jail_run_also(f->run, f->files_process.sock, on_answer, f, err);
    return r;
}

static int hand_on(const struct flow *f, const void *frame, size_t len)
{
    ssize_t n;
    do
        n = send(f->files_process.sock, frame, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)len ? 0 : -1;
}

static bool is_over_budget(struct flow *f, size_t len)
{
    char text[120];
    f->files_bytes += len;
    if (++f->files_asks <= LIMIT_FILE_ASKS && f->files_bytes <= LIMIT_FILE_BYTES)
        return false;
    snprintf(text, sizeof text, "limit of %llu requests for files and %llu GB moved by them",
             LIMIT_FILE_ASKS, LIMIT_FILE_BYTES / GIB);
    if (f->run) /* NULL in the test alone */
        jail_run_violation(f->run, "resources", "limit.files", text,
                           "keep what is read in a variable, and write more at once", 0);
    return true;
}

/* For the report: printable, and no longer than a line. */
static void note_path(struct flow *f, const char *path, size_t len)
{
    const size_t most = sizeof f->files_path - 1, n = len < most ? len : most;
    for (size_t i = 0; i < n; i++)
        f->files_path[i] = path[i] >= ' ' && path[i] <= '~' ? path[i] : '?';
    f->files_path[n] = 0;
}

void flow_file(void *ctx, uint64_t id, const void *frame, size_t len)
{
    struct flow *f = ctx;
    struct wire_reader r;
    struct err err = ERR_INIT;
    size_t n;
    if (wire_open(&r, frame, len, &err) < 0)
        return; /* the caller has opened it before */
    (void)wire_get_uint(&r);
    f->files_what = wire_get_uint(&r);
    const char *path = wire_get_bytes(&r, &n);
    note_path(f, path, n);
    f->files_id = id;
    if (is_over_budget(f, len)) {
        (void)!say_failed(f, id, EDQUOT);
    } else if (start(f, &err) < 0) {
        tell_unserved(f, &err);
        (void)!say_failed(f, id, EIO);
    } else {
        f->files_asked = true;
        if (hand_on(f, frame, len) < 0 && errno != EPIPE && errno != ECONNRESET)
            (void)!lost(f); /* of one that is gone on_answer hears */
    }
}
