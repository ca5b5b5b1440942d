/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client share: one connection, calls that wait for a reply, values of a JSON text.
 *
 * Takes:   what include/cordon.h says.
 * Gives:   replies, as the text that the server sent.
 * Never:   starts a thread, installs a signal handler, or keeps anything outside its objects.
 * Runs in: any process that links libcordon.
 */
#ifndef CLIENT_INSIDE_H
#define CLIENT_INSIDE_H

#include "base/buf.h"
#include "base/jsonw.h"
#include "expr/json.h"

#include <stdatomic.h>
#include <sys/types.h>

#define CLIENT_MESSAGE_MAX                                                                         \
    4194304u /* bytes that we may send at once: the server reads no longer message */
#define CLIENT_REPLY_MAX 67108864u /* and that we read */

/* A request that is not answered yet. They are on the stacks of their callers, the innermost first. */
struct client_call {
    uint64_t number;
    const struct cordon_run_options *watch; /* NULL: nobody wants progress */
    bool stopped;                           /* a callback said so */
    char *reply;
    size_t len;
    struct client_call *outer;
};

struct cordon_client {
    int fd, wake,
        words; /* the connection, what ends a wait, what a server that we started prints as errors; -1: none */
    pid_t pid;   /* 0: not started by us */
    pid_t owner; /* a forked copy would take its parent's answers, and end its server */
    uint64_t number, patience_ns;
    atomic_bool cancelled;
    bool gone, unheard; /* for good; because the server did not take that a call was given up */
    struct buf in;
    size_t looked; /* bytes of it that have no end of a line: a long one is looked through once */
    struct client_call *calls;
    char why[CORDON_WHY_MAX];
};

struct cordon_session {
    struct cordon_client *client;
    char id[80];
};

struct client_text {
    char *data;
    size_t len;
    struct client_text *next;
    char field[];
};

struct cordon_answer {
    char *reply;     /* what the server sent */
    struct buf own;  /* the fields, where it sent words alone */
    const char *raw; /* in the one or the other */
    size_t raw_len;
    struct buf text;
    bool is_error;
    struct client_text *texts; /* decoded for the caller */
};

/* A value in a JSON text; of a string what stands between the quotes. */
struct client_value {
    enum json_kind kind;
    bool escaped;
    const char *text;
    size_t len;
};

/* ---- values.c ---- */
/* Whether the object has the member. False also where it is no object. */
bool client_member(const char *text, size_t len, const char *key, struct client_value *ret);
bool client_integer(const struct client_value *v, int64_t *ret);
/* NULL: no memory, or an escape that is wrong. To be freed. */
char *client_decode(const struct client_value *v, size_t *ret_len);

/* ---- io.c ---- */
/* Waits for room, and reads what comes meanwhile. GIVING_UP: not for long, and no cancel ends it. */
int client_send(struct cordon_client *c, const struct buf *line, bool giving_up);
/* Whoever waits at the connection is told, a forked copy of it too, and what runs ends. */
void client_drop(struct cordon_client *c);
/* Reads until CALL is answered. */
int client_receive(struct cordon_client *c, struct client_call *call);
int client_fail(struct cordon_client *c, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The server is gone; what it said last is added. */
int client_lost(struct cordon_client *c, const char *why);

/* ---- answers.c ---- */
/* From CLIENT_FILE on a refusal is an error. */
enum client_kind {
    CLIENT_RESULT,
    CLIENT_REPORT,
    CLIENT_EVALUATION,
    CLIENT_FILES,
    CLIENT_FILE,
    CLIENT_SESSION
};
/* Takes REPLY over. RESULT: the member of it. NULL: no memory. */
struct cordon_answer *client_answer_new(char *reply, const struct client_value *result,
                                        enum client_kind kind);

/* ---- calls.c ---- */
struct client_arg {
    const char *name, *text; /* NULL: not sent */
    uint64_t number;         /* where TEXT is NULL; 0: not sent */
    bool flag;               /* true where it is to be sent */
};
/* One method: asks, follows a job to its end, tells O's callbacks. */
int client_do(struct cordon_client *c, const char *tool, const struct client_arg *args,
              size_t count, const struct cordon_run_options *o, enum client_kind kind,
              struct cordon_answer **ret);

#endif
