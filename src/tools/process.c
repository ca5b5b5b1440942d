/* SPDX-License-Identifier: Apache-2.0 */
/* The process has an empty environment, two or three descriptors and, as root, the id of the guest outside: what it could do
 * with the guest's files the guest can do itself. Its packets are typed by the wire's table and bounded; a process that
 * says anything else, or nothing in time, has failed, and is killed.
 *
 * Waits: poll in receive; cordon-tool; LIMIT_TOOL_MS; the call has failed, and it is killed
 *        fd_receive in receive; nobody: poll said that it is there; at once; the call has failed
 *        fd_send in send_with; nobody: it reads before it writes, and a packet fits the socket; at once; failed
 *        send in send_frame; nobody: it reads before it writes, and a packet fits the socket; at once; failed
 *        waitpid in tools_process_end; cordon-tool; none (the kernel's own: it was killed); reaped */
#include "tools/process.h"

#include "base/clock.h"
#include "base/limits.h"
#include "sys/fd.h"
#include "wire/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static int index_given = -1;
static const struct tools_share *shares_given;
static size_t nshares_given;

void tools_process_give_index(int fd)
{
    index_given = fd;
}

void tools_process_give_shares(const struct tools_share *shares, size_t count)
{
    shares_given = shares;
    nshares_given = count;
}

/* As root: whoever the guest is outside, or nobody. A supervisor that has given up root kept the guest's id as its saved one
 * (jail/supervisor/run.c): files are made with that, and the real id stays, or the supervisor could not end this process.
 * Anybody else stays who he is, and his guest is that, too. */
static int step_down(int files)
{
    struct stat st = {.st_uid = NOBODY, .st_gid = NOBODY};
    uid_t uid, euid, saved_uid;
    gid_t gid, egid, saved_gid;
    if (files >= 0 && fstat(files, &st) < 0)
        return -1;
    if (getresuid(&uid, &euid, &saved_uid) < 0 || getresgid(&gid, &egid, &saved_gid) < 0)
        return -1;
    if (euid != 0 && (saved_uid == euid || saved_uid != st.st_uid))
        return 0;
    if (euid != 0)
        return setresgid(gid, saved_gid, saved_gid) < 0 || setresuid(uid, saved_uid, saved_uid) < 0
                   ? -1
                   : 0;
    uid = st.st_uid ? st.st_uid : NOBODY;
    gid = st.st_gid ? st.st_gid : NOBODY;
    return setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0
               ? -1
               : 0;
}

/* FROM onto 0, 1, ..., first above what they are to become: none may lie in the way of another. -1 in it: there is none. */
static void place_descriptors(const int *from, int count)
{
    int high[TOOLS_SHARES + LIMIT_BINDS];
    for (int i = 0; i < count; i++)
        high[i] = from[i] < 0 ? -1 : fcntl(from[i], F_DUPFD_CLOEXEC, 16 + (int)nshares_given);
    for (int i = 0; i < count; i++)
        if (i >= TOOLS_FILES && i != TOOLS_PROGRAM && from[i] < 0)
            close(i);
        else if (high[i] < 0 || dup3(high[i], i, i == TOOLS_PROGRAM ? O_CLOEXEC : 0) < 0)
            _exit(127);
    syscall(SYS_close_range, (unsigned)count, ~0U, 0U);
}

_Noreturn static void become(int program, int sock, int files, enum tools_right right, pid_t parent)
{
    static const char *const words[] = {[TOOLS_READS] = "read",
                                        [TOOLS_WRITES] = "write",
                                        [TOOLS_INDEXES] = "index",
                                        [TOOLS_SERVES] = "serve"};
    const char *argv[4 + 2 * LIMIT_BINDS] = {"cordon-tool", "--from-cordon", words[right]};
    const char *const env[] = {NULL};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int from[TOOLS_SHARES + LIMIT_BINDS] = {null, null, null, sock, files, index_given, program};
    sigset_t none;
    sigemptyset(&none);
    setsid();
    for (size_t i = 0; i < nshares_given; i++) {
        from[TOOLS_SHARES + i] = shares_given[i].fd;
        argv[3 + 2 * i] = shares_given[i].writable ? "rw" : "ro";
        argv[4 + 2 * i] = shares_given[i].dest;
    }
    place_descriptors(from, TOOLS_SHARES + (int)nshares_given);
    if (step_down(files < 0 ? -1 : TOOLS_FILES) < 0)
        _exit(127);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of the id, which forgets it */
    if (getppid() != parent)
        _exit(127);
    sigprocmask(SIG_SETMASK, &none, NULL);
    syscall(SYS_execveat, TOOLS_PROGRAM, "", argv, env, AT_EMPTY_PATH);
    _exit(127);
}

int tools_process_start(struct tools_process *p, int program, int files, int stop,
                        enum tools_right right, struct err *err)
{
    int ends[2];
    const pid_t self = getpid();
    *p = (struct tools_process){.sock = -1, .stop = stop};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return err_sys(err, "socketpair");
    p->sock = ends[0];
    p->pid = fork();
    if (p->pid == 0)
        become(program, ends[1], files, right, self);
    index_given = -1;
    nshares_given = 0;
    fd_close(ends[1]);
    if (p->pid > 0)
        return 0;
    p->pid = 0;
    err_sys(err, "fork");
    tools_process_end(p);
    return ERR_SYS;
}

int tools_process_end(struct tools_process *p)
{
    int status = 0;
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    fd_close(p->sock);
    for (size_t i = 0; i < p->nfiles; i++)
        fd_close(p->files[i]);
    buf_done(&p->source);
    *p = (struct tools_process){.sock = -1};
    return status;
}

static int send_frame(const struct tools_process *p, struct wire_writer *m, struct err *err)
{
    if (wire_end(m) < 0)
        return err_set(err, ERR_LIMIT, "the call does not fit a message");
    return send(p->sock, m->out->data, m->out->len, MSG_NOSIGNAL) == (ssize_t)m->out->len
               ? 0
               : err_sys(err, "send to cordon-tool");
}

/* The next packet into STORAGE, which R then lies in. */
static int receive(struct tools_process *p, char *storage, struct wire_reader *r, struct err *err)
{
    const uint64_t until = clock_now_ns() + LIMIT_TOOL_MS * CLOCK_NS_PER_MS;
    struct pollfd wait[] = {{.fd = p->sock, .events = POLLIN}, {.fd = p->stop, .events = POLLIN}};
    for (uint64_t now = clock_now_ns(); now < until; now = clock_now_ns()) {
        const int n = poll(wait, 2, (int)((until - now) / CLOCK_NS_PER_MS) + 1);
        if (n < 0 && errno != EINTR)
            return err_sys(err, "poll");
        if (n > 0 && wait[1].revents)
            return err_set(err, ERR_STATE, "nobody waits for the tool any more");
        if (n <= 0)
            continue;
        struct fd_packet packet = {.data = storage,
                                   .len = LIMIT_FRAME,
                                   .fds = p->files + p->nfiles,
                                   .nfds = LIMIT_TOOL_FILES - p->nfiles};
        if (fd_receive(p->sock, &packet) != 1)
            return err_set(err, ERR_STATE, "the process of the tool died");
        p->nfiles += packet.nfds;
        return wire_open(r, storage, packet.len, err);
    }
    return err_set(err, ERR_LIMIT, "the tool took longer than %llu s and was ended",
                   LIMIT_TOOL_MS / 1000);
}

static int take_source(struct tools_process *p, struct wire_reader *r)
{
    size_t len;
    wire_get_text(r, p->word, sizeof p->word);
    const void *source = wire_get_bytes(r, &len);
    buf_init(&p->source, LIMIT_FRAME);
    return len ? buf_add(&p->source, source, len) : 0;
}

/* Its word: WANTED is what it says where all is well, TOOL_SAID how it ended. */
static enum tools_end next(struct tools_process *p, enum wire_type wanted, struct buf *text,
                           struct err *err)
{
    struct wire_reader r = {.type = WIRE_NONE};
    size_t len;
    char *storage = malloc(LIMIT_FRAME);
    enum tools_end end = TOOLS_FAILED;
    int e = storage ? receive(p, storage, &r, err) : err_set(err, ERR_MEMORY, "no memory");
    if (e == 0 && r.type != WIRE_TOOL_SAID && r.type != wanted)
        e = err_set(err, ERR_FORMAT, "cordon-tool said what it may not say");
    if (e == 0) {
        const uint64_t said = r.type == WIRE_TOOL_SAID ? wire_get_uint(&r) : TOOLS_OK;
        const void *bytes = wire_get_bytes(&r, &len);
        if (r.type == WIRE_TOOL_CHECKED && take_source(p, &r) < 0)
            e = err_set(err, ERR_MEMORY, "no memory");
        end = e < 0                                       ? TOOLS_FAILED
              : said == TOOLS_OK || said == TOOLS_REFUSED ? (enum tools_end)said
                                                          : TOOLS_FAILED;
        buf_reset(text);
        if (buf_add(text, bytes, len) < 0) {
            end = TOOLS_FAILED;
            err_set(err, ERR_LIMIT, "the answer of the tool is too long");
        }
    }
    free(storage);
    return end;
}

enum tools_end tools_process_check(struct tools_process *p, const char *tool, const char *schema,
                                   const void *args, size_t len,
                                   const uint64_t limits[TOOLS_LIMITS], const struct buf *naming,
                                   struct buf *named, struct buf *text, struct err *err)
{
    uint64_t with[TOOLS_LIMITS];
    struct wire_writer m;
    struct buf b;
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&m, &b, WIRE_TOOL_CHECK);
    wire_put_text(&m, tool);
    wire_put_text(&m, schema ? schema : "");
    wire_put_bytes(&m, args, len);
    memcpy(with, limits, sizeof with);
    with[TOOLS_NAMES] = named != NULL;
    wire_put_uints(&m, with, TOOLS_LIMITS);
    wire_put_bytes(&m, naming && naming->len ? naming->data : "", naming ? naming->len : 0);
    const int r = send_frame(p, &m, err);
    buf_done(&b);
    if (r < 0 || (named && next(p, WIRE_TOOL_NAMED, named, err) != TOOLS_OK))
        return TOOLS_FAILED;
    return next(p, WIRE_TOOL_CHECKED, text, err);
}

enum tools_end tools_process_wrote(struct tools_process *p, enum tools_wrote kind,
                                   const void *bytes, size_t len, struct buf *text, struct err *err)
{
    struct wire_writer m;
    struct buf b;
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&m, &b, WIRE_TOOL_OUTPUT);
    wire_put_uint(&m, kind);
    wire_put_bytes(&m, bytes ? bytes : "", len);
    const int r = send_frame(p, &m, err);
    buf_done(&b);
    return r < 0 ? TOOLS_FAILED : next(p, WIRE_TOOL_SAID, text, err);
}

enum tools_end tools_process_ran(struct tools_process *p, const struct tools_run *run,
                                 struct buf *text, struct err *err)
{
    struct wire_writer m;
    struct buf b;
    buf_init(&b, LIMIT_FRAME);
    wire_begin(&m, &b, WIRE_TOOL_RAN);
    wire_put_text(&m, run->which);
    wire_put_text(&m, run->status);
    wire_put_text(&m, run->why);
    wire_put_uint(&m, run->flags);
    wire_put_bytes(&m, run->final.data, run->final.len);
    wire_put_bytes(&m, run->value.data, run->value.len);
    for (int i = 0; i < 2; i++)
        wire_put_bytes(&m, run->streams[i].data, run->streams[i].len);
    const int r = send_frame(p, &m, err);
    buf_done(&b);
    return r < 0 ? TOOLS_FAILED : next(p, WIRE_TOOL_SAID, text, err);
}

/* A message, and a descriptor that rides along where there is one. */
static int send_with(const struct tools_process *p, struct wire_writer *m, int fd, struct err *err)
{
    if (fd < 0)
        return send_frame(p, m, err);
    if (wire_end(m) < 0)
        return err_set(err, ERR_LIMIT, "the call does not fit a message");
    const struct fd_packet packet = {
        .data = m->out->data, .len = m->out->len, .fds = &fd, .nfds = 1};
    return fd_send(p->sock, &packet) == 0 ? 0 : err_sys(err, "send to cordon-tool");
}

enum tools_end tools_process_go(struct tools_process *p, const struct tools_base *base,
                                struct buf *text, struct err *err)
{
    struct wire_writer m;
    struct buf b;
    uint64_t numbers[TOOLS_INDEXED_NUMBERS];
    buf_init(&b, 1024);
    if (base)
        tools_indexed_pack(&base->state, numbers);
    wire_begin(&m, &b, WIRE_TOOL_GO);
    wire_put_uints(&m, numbers, base ? TOOLS_INDEXED_NUMBERS : 0);
    wire_put_text(&m, base ? base->reason : "");
    const int r = send_with(p, &m, base ? base->fd : -1, err);
    buf_done(&b);
    return r < 0 ? TOOLS_FAILED : next(p, WIRE_TOOL_SAID, text, err);
}

int tools_process_index(struct tools_process *p, const char *shown, int base,
                        struct tools_indexed *ret, struct err *err)
{
    uint64_t numbers[TOOLS_INDEXED_NUMBERS];
    struct wire_reader reader = {.type = WIRE_NONE};
    struct wire_writer m;
    struct buf b;
    char *storage = malloc(LIMIT_FRAME);
    buf_init(&b, 256);
    wire_begin(&m, &b, WIRE_TOOL_INDEX);
    wire_put_text(&m, shown);
    int r = storage ? send_with(p, &m, base, err) : err_set(err, ERR_MEMORY, "no memory");
    if (r == 0)
        r = receive(p, storage, &reader, err);
    if (r == 0 &&
        (reader.type != WIRE_TOOL_INDEXED ||
         wire_get_uints(&reader, numbers, TOOLS_INDEXED_NUMBERS) != TOOLS_INDEXED_NUMBERS))
        r = err_set(err, ERR_FORMAT, "cordon-tool said what it may not say");
    if (r == 0)
        tools_indexed_unpack(numbers, ret);
    buf_done(&b);
    free(storage);
    return r;
}
