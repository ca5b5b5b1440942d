/* SPDX-License-Identifier: Apache-2.0 */
/* An alert is a record first; then it is told to whoever the policy names. The command gets no shell, no
 * descriptor of ours, no environment but a PATH, and a time to live; nobody waits for it. What it could
 * not be told is a record too. The alert file is opened when the audit is, before a guest of this process has run and
 * before root is given up: whoever replaces its folder later leads no alert elsewhere.
 *
 * Waits: sendto in to_syslog; the system's log: a socket that does not wait; at once; a record says that it was
 *          not delivered
 *        write in to_file; the alert file: opened non-blocking; at once; a record says that it was not
 *          delivered
 *        fdatasync in to_file; the disk; none (the kernel's own); holds no lock
 *        write in exec_command; a pipe that has room; at once; the command did not start
 *        write in to_command; memory; at once; the alert is not delivered, on record
 *        sys_child_wait in to_command; a child that forks and ends; FD_PATIENCE_MS; it is killed: not delivered,
 *          on record
 *        poll in to_command; execve of the command; FD_PATIENCE_MS; not delivered, on record
 *        read in to_command; nobody: poll said that it is there; at once; the command runs */
#include "audit/inside.h"

#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define COMMAND_SECONDS 30
#define WORDS_MAX       64

/* One datagram, as syslog(3) would send it, but without waiting. A machine without a system log has nobody there
 * to tell. */
static int to_syslog(const struct audit_sample *s, const char *text, struct err *err)
{
    static const struct sockaddr_un log = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
    char when[32] = "", line[512];
    time_t now = (time_t)(s->ms / 1000);
    struct tm tm;
    if (localtime_r(&now, &tm))
        strftime(when, sizeof when, "%b %e %T ", &tm);
    int n = snprintf(line, sizeof line, "<%d>%scordon[%d]: alert: %s (client %.100s)",
                     LOG_AUTHPRIV | LOG_WARNING, when, (int)getpid(), text,
                     s->client ? s->client : "unknown");
    FD_AUTO fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_sys(err, "socket");
    size_t len = n < (int)sizeof line ? (size_t)n : sizeof line - 1;
    if (sendto(fd, line, len, MSG_NOSIGNAL, (const struct sockaddr *)&log, sizeof log) < 0)
        return errno == ENOENT || errno == ECONNREFUSED ? 0 : err_sys(err, "write to /dev/log");
    return 0;
}

/* ---- the alert file ---- */

static int open_beneath(int folder, const char *path)
{
    const char *slash = strrchr(path, '/');
    return openat(folder, slash ? slash + 1 : path,
                  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK,
                  0600);
}

/* The folder of PATH, by its name. With a `/` at its end it is no link to follow but what the link leads to. */
static int folder_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const int n = slash ? snprintf(out, PATH_MAX, "%.*s/", (int)(slash - path), path)
                        : snprintf(out, PATH_MAX, "./");
    return n < PATH_MAX ? 0 : -1;
}

void audit_alert_open(struct audit *a)
{
    char name[PATH_MAX];
    const char *path = a->config.alert_file;
    if (!path || folder_of(path, name) < 0)
        return;
    a->alert_folder = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (a->alert_folder >= 0)
        a->alert_fd = open_beneath(a->alert_folder, path);
}

/* A file with a second name may lie anywhere by the other one. */
static int check_file(int fd, const char *path, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "look at %.100s", path);
    if (S_ISREG(st.st_mode) && st.st_nlink != 1)
        return err_set(err, ERR_STATE, "%.100s %s", path,
                       st.st_nlink ? "has a second name (hard link): write alerts to a file of "
                                     "their own"
                                   : "was removed, and cannot be made again by this process");
    return 0;
}

/* The name of the folder may lead elsewhere by now: somebody replaced it, or a folder above it. */
static int check_folder(const struct audit *a, struct err *err)
{
    char name[PATH_MAX];
    struct stat held, now;
    if (folder_of(a->config.alert_file, name) < 0 || fstat(a->alert_folder, &held) < 0 ||
        stat(name, &now) < 0)
        return 0; /* not for us to see any more: root was given up */
    if (held.st_dev == now.st_dev && held.st_ino == now.st_ino)
        return 0;
    return err_set(err, ERR_STATE,
                   "the folder of %.100s was replaced during the run; the alert was written into "
                   "the one before",
                   a->config.alert_file);
}

/* A file that was rotated is made anew; where this process may not do that any more (root was given up), the one that
 * it opened at first is written. */
static int to_file(const struct audit *a, const struct buf *line, struct err *err)
{
    struct stat st;
    const char *path = a->config.alert_file;
    if (a->alert_folder < 0)
        return err_set(err, ERR_STATE,
                       "%.100s: its folder was not there, or could not be opened, when this "
                       "process began",
                       path);
    FD_AUTO again = open_beneath(a->alert_folder, path);
    const int fd = again >= 0 ? again : a->alert_fd;
    if (fd < 0)
        return err_sys(err, "open %.100s", path);
    int r = check_file(fd, path, err);
    if (r < 0)
        return r;
    ssize_t n = write(fd, line->data, line->len);
    if (n != (ssize_t)line->len) {
        errno = n < 0 ? errno : ENOSPC;
        return err_sys(err, "write %.100s", path);
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fdatasync(fd) < 0)
        return err_sys(err, "sync %.100s", path);
    return check_folder(a, err);
}

/* ---- the alert command ---- */

/* In the grandchild; ends in execve or tells why not. */
static _Noreturn void exec_command(const char *const *argv, int input, int report)
{
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", *env[] = {path, NULL};
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &plain, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(COMMAND_SECONDS); /* outlives execve */
    if (null >= 0 && dup2(input, 0) >= 0 && dup2(null, 1) >= 0 && dup2(null, 2) >= 0 &&
        dup2(report, 3) >= 0 && fcntl(3, F_SETFD, FD_CLOEXEC) == 0 && close_range(4, ~0U, 0) == 0)
        execve(argv[0], (char *const *)argv, env);
    int why = errno;
    if (write(3, &why, sizeof why) < 0)
        _exit(126);
    _exit(127);
}

static int to_command(const struct audit_config *c, const struct buf *line, struct err *err)
{
    int ends[2], why = 0;
    const char *argv[WORDS_MAX + 1] = {0};
    if (c->nalert_command > WORDS_MAX)
        return err_set(err, ERR_LIMIT, "the alert command has more than %d words", WORDS_MAX);
    memcpy(argv, c->alert_command, c->nalert_command * sizeof *argv);
    if (argv[0][0] != '/')
        return err_set(err, ERR_USAGE, "the alert command %.100s has no absolute path", argv[0]);
    FD_AUTO input = memfd_create("cordon-alert", MFD_CLOEXEC);
    if (input < 0 || write(input, line->data, line->len) != (ssize_t)line->len ||
        lseek(input, 0, SEEK_SET) != 0)
        return err_sys(err, "hand over the alert");
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_sys(err, "hand over the alert");
    pid_t child = fork();
    if (child == 0) {
        setsid();
        pid_t grandchild = fork();
        if (grandchild == 0)
            exec_command(argv, input, ends[1]);
        _exit(grandchild < 0);
    }
    int saved = errno;
    fd_close(ends[1]);
    int status = 0, r = child > 0 ? sys_child_wait(child, FD_PATIENCE_MS, &status) : 0;
    ssize_t n = 0;
    struct pollfd told = {.fd = ends[0], .events = POLLIN};
    if (child > 0 && r == 0 && status == 0) {
        r = poll(&told, 1, FD_PATIENCE_MS) == 1 ? 0 : -1;
        n = r < 0 ? 0 : read(ends[0], &why, sizeof why); /* ends when the command runs */
    }
    fd_close(ends[0]);
    if (child > 0 && r < 0)
        return err_set(err, ERR_STATE, "%.100s did not start within 10 seconds", argv[0]);
    if (child < 0 || status != 0) {
        errno = child < 0 ? saved : EAGAIN;
        return err_sys(err, "start %.100s", argv[0]);
    }
    if (n > 0) {
        errno = why;
        return err_sys(err, "start %.100s", argv[0]);
    }
    return 0;
}

static int record(struct audit *a, const struct audit_sample *s, const char *status,
                  const char *text, struct err *err)
{
    const struct audit_outcome o = {.status = status, .reason = text};
    const struct audit_facts facts = {
        .tool = "audit", .execution_id = s->execution_id, .client_id = s->client, .outcome = &o};
    int r = audit_lock(a, err);
    if (r < 0)
        return r;
    r = audit_append_own(a, AUDIT_ALERT, &facts, err);
    audit_unlock(a);
    return r == 0 && a->config.sync == AUDIT_SYNC_ON ? audit_sync_to(a, a->last_seq, err) : r;
}

static void tell(struct audit *a, const struct audit_sample *s, size_t which)
{
    const char *text = a->alerts[which];
    struct err why = ERR_INIT, err = ERR_INIT;
    struct buf line;
    int r = record(a, s, "alert", text, &why);
    buf_init(&line, AUDIT_RECORD_MAX);
    struct jsonw j = {.out = &line};
    jsonw_open(&j, NULL, '{');
    jsonw_int(&j, "ts", (int64_t)s->ms);
    jsonw_string(&j, "client_id", s->client);
    jsonw_string(&j, "execution_id", s->execution_id);
    jsonw_string(&j, "alert", text);
    jsonw_int(&j, "seq", r == 0 ? (int64_t)a->last_seq : 0);
    jsonw_close(&j, '}');
    r = j.bad < 0 ? j.bad : buf_str(&line, "\n");
    if (a->config.alert_stderr && a->config.announce && !a->alert_quiet[which])
        a->config.announce(text);
    if (r == 0 && a->config.alert_syslog && to_syslog(s, text, &why) < 0)
        r = record(a, s, "error", why.msg, &err);
    if (r == 0 && a->config.alert_file && to_file(a, &line, &why) < 0)
        r = record(a, s, "error", why.msg, &err);
    if (r == 0 && a->config.nalert_command && to_command(&a->config, &line, &why) < 0 &&
        record(a, s, "error", why.msg, &err) < 0)
        a->broken = a->broken || err.code == ERR_STATE; /* nothing is left to tell it to */
    buf_done(&line);
}

void audit_alert_raise(struct audit *a, const struct audit_sample *s, size_t from)
{
    for (size_t i = from; i < a->nalerts; i++)
        tell(a, s, i);
}
