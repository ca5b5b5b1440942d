/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon session fork`. While a session is forked its process and the new one are held in a system call by the process that
 * forks it (jail/supervisor/branch.c): if that process dies, the session dies with it. So the fork is made by a process of its own,
 * which no signal to the client and no key on its terminal reaches, and the client only waits for its word. A
 * client that is gone by then gets no branch; its session is as it was.
 *
 * Waits: write in be_forker; the client, or nobody: one word fits every pipe; at once; the branch is made or not
 *        poll in hear; the process that forks, whose own waits are shorter (five packets of the holder, 2 s each, 3 s for
 *          each hold of jail/supervisor/branch.c, FD_PATIENCE_MS for each helper there); WORD_MS; it says that nothing came
 *        read in hear; nobody: poll said that it is there; at once; its word */
#include "session.h"

#include "commands.h"
#include "result.h"
#include "session_workspace.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORD_MS = 40000 };

enum outcome {
    NOTHING, /* the process that forks said nothing: it was killed */
    MADE,
    DECLINED, /* by the holder */
    REFUSED,  /* the session cannot be forked as it is, and goes on */
    ENDED,    /* the session did something else than it was asked for, and was killed */
    LACKING,  /* descriptors or memory were used up; the session goes on */
    WRONG,    /* the request made no sense */
};

/* What goes through the pipe: both ends are this program. */
struct word {
    enum outcome outcome;
    char name[POOL_NAME + 1];               /* of the branch */
    char workspace[WORKSPACE_FULL_MAX + 1]; /* its clone; empty: it is in none */
    struct pool_answer answer;
    char text[POOL_REASON + 1];
};

static bool client_is_there(int pipe)
{
    struct pollfd p = {.fd = pipe};
    return poll(&p, 1, 0) == 0; /* POLLERR: nobody can read it any more */
}

static struct word failed(enum outcome outcome, const struct err *err)
{
    struct word w = {.outcome = outcome};
    snprintf(w.text, sizeof w.text, "%.190s", err->msg);
    return w;
}

/* NOTE: of the session. The branch's files are committed to a clone of its own. */
static struct word hand_in(struct pool_client *holder, const char *name, const char *note,
                           const struct jail_child *branch)
{
    struct word w = {.outcome = MADE};
    struct err err = ERR_INIT;
    char own[POOL_NOTE + 1] = "";
    int r = session_workspace_fork(note, own, &err);
    if (r < 0)
        return failed(REFUSED, &err);
    r = pool_client_branch(holder, name, own, branch, &w.answer, &err);
    if (r < 0 || w.answer.declined)
        session_workspace_unfork(own);
    if (r < 0)
        return failed(r == ERR_USAGE ? WRONG : REFUSED, &err);
    if (w.answer.declined)
        w.outcome = DECLINED;
    session_workspace_name(own, w.workspace);
    snprintf(w.name, sizeof w.name, "%s", w.answer.reply.name);
    return w;
}

static struct word fork_session(struct pool_client *holder, const char *from, const char *name,
                                int pipe)
{
    struct jail_child child = JAIL_CHILD_NONE, branch = JAIL_CHILD_NONE;
    const struct pool_use_numbers none = {0};
    struct pool_answer back;
    struct word w = {0};
    char note[POOL_NOTE + 1];
    struct err err = ERR_INIT, later = ERR_INIT;
    int r = pool_client_call(holder, from, true, &child, &w.answer, &err);
    if (r < 0)
        return failed(err_is_host(&err) ? LACKING : WRONG, &err);
    if (w.answer.declined) {
        w.outcome = DECLINED;
        return w;
    }
    snprintf(note, sizeof note, "%s", w.answer.reply.note);
    r = jail_branch(&child, &branch, &err);
    bool alive = r == 0 || r == ERR_STATE;
    if (r < 0)
        w = failed(!alive ? ENDED : err_is_host(&err) ? LACKING : REFUSED, &err);
    else if (client_is_there(pipe))
        w = hand_in(holder, name, note, &branch);
    jail_child_close(&branch); /* the holder has its own copies now; without them the branch dies */
    jail_child_close(&child);
    if (pool_client_back(holder, alive, alive ? "" : err.msg, "", &none, NULL, 0, &back, &later) <
        0)
        return failed(WRONG, &later);
    return w;
}

/* The process that forks. */
static _Noreturn void be_forker(struct pool_client *holder, const char *from, const char *name,
                                int pipe)
{
    static const int deadly[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    FD_AUTO null = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], SIG_IGN);
    for (int i = 0; i < 3 && null >= 0; i++) /* a reader of the client's output must see its end */
        dup2(null, i);
    struct word w = fork_session(holder, from, name, pipe);
    _exit(write(pipe, &w, sizeof w) != sizeof w);
}

static struct word hear(int pipe)
{
    struct word w = {0};
    struct pollfd p = {.fd = pipe, .events = POLLIN};
    int n;
    do
        n = poll(&p, 1, WORD_MS);
    while (n < 0 && errno == EINTR);
    if (n != 1 || read(pipe, &w, sizeof w) != sizeof w)
        w = (struct word){.outcome = NOTHING};
    return w;
}

static int tell(struct session_context *h, const char *from, const struct word *w)
{
    struct pool_answer no = {.declined = true, .reply.type = WIRE_DECLINED};
    struct err err = ERR_INIT;
    snprintf(no.reply.reason, sizeof no.reply.reason, "%s",
             w->outcome == NOTHING ? "the process that forked it was killed; cordon session list"
                                   : w->text);
    switch (w->outcome) {
    case MADE:
        if (session_note(h, "forked", w->name, from, NULL, &err) < 0) {
            result_complain(h->who, err.msg);
            return EXIT_FAILED;
        }
        if (h->json)
            printf("{\"session\": \"%s\", \"from\": \"%s\"%s%s%s}\n", w->name, from,
                   w->workspace[0] ? ", \"workspace\": \"" : "", w->workspace,
                   w->workspace[0] ? "\"" : "");
        else
            puts(w->name);
        return EXIT_DONE;
    case DECLINED:
        return session_declined(h, from, &w->answer);
    case REFUSED:
        (void)session_declined(h, from, &no);
        return EXIT_NEVER_RAN;
    case LACKING:
        (void)session_declined(h, from, &no);
        return EXIT_NEVER_RAN;
    case WRONG:
        err_set(&err, ERR_USAGE, "%s", w->text);
        return result_usage(h->who, &err);
    case ENDED:
        if (session_note(h, "ended", from, w->text, NULL, &err) < 0)
            result_complain(h->who, err.msg);
        break;
    case NOTHING:
        break;
    }
    (void)session_declined(h, from, &no);
    return EXIT_FAILED;
}

int session_fork(struct session_context *h, const char *from, const char *name)
{
    int ends[2];
    struct err err = ERR_INIT;
    if (session_note_room(h, from, &err) < 0) {
        const struct word no = failed(REFUSED, &err);
        return tell(h, from, &no);
    }
    if (pipe2(ends, O_CLOEXEC) < 0) {
        err_sys(&err, "pipe");
        return result_usage(h->who, &err);
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        fd_close(ends[0]);
        be_forker(&h->holder, from, name, ends[1]);
    }
    fd_close(ends[1]);
    pool_client_close(&h->holder); /* the other process has it */
    struct word w = pid < 0 ? (struct word){.outcome = REFUSED, .text = "no process for the fork"}
                            : hear(ends[0]);
    fd_close(ends[0]);
    return tell(h, from, &w);
}
