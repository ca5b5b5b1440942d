/* SPDX-License-Identifier: Apache-2.0 */
/* cordond: what `cordon serve` becomes. A program of its own, without a parser and without the flow: all that it does is
 * in src/serve/daemon.c. It gets paths and numbers as words, in an order that only `cordon serve` knows.
 *
 * Waits: write in complain; standard error; none (it ends then); nothing is held */
#include "base/units.h"
#include "programs.h"
#include "serve/daemon.h"
#include "sys/fd.h"
#include "sys/state.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where `cordon serve` puts what each way needs: src/prog/cordon/serve_socket.h and serve_http.h. */
enum { SOCKET = 3, FOLDER = 4, LISTENER = 6, TOKEN = 7, METRICS = 8 };
enum {
    CORDON = 2,
    PROFILE,
    ROLE,
    POLICY,
    GIVEN_TIMEOUT, /* as they were given, for when the policy is read again */
    GIVEN_MEMORY,
    GIVEN_OUTPUT,
    TIMEOUT,
    MEMORY,
    OUTPUT,
    ANSWER,
    DRAIN,
    WAYS, /* letters: i stdio, u a unix socket, a for all users, h HTTP, m metrics */
    NAME, /* of the unix socket in its folder; empty: it is not ours to remove */
    NAMES,
    WORKSPACES,
    ELICITS,
    QUESTION,
    APPROVES,
    COUNT
};

static int complain(const char *what, int status)
{
    char line[400];
    const int n = snprintf(line, sizeof line, "cordond: %s\n", what);
    return n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0 ? 3 : status;
}

static int take_words(int argc, char **argv, struct serve_config *c)
{
    if (argc != COUNT || strcmp(argv[1], "--from-cordon") != 0 ||
        units_count(argv[TIMEOUT], &c->limits.timeout_ms) < 0 ||
        units_count(argv[MEMORY], &c->limits.memory) < 0 ||
        units_count(argv[OUTPUT], &c->limits.output) < 0 ||
        units_count(argv[ANSWER], &c->answer_ms) < 0 || units_count(argv[DRAIN], &c->drain_ms) < 0)
        return -1;
    c->cordon = argv[CORDON];
    c->profile = argv[PROFILE];
    c->role = argv[ROLE];
    c->policy = argv[POLICY];
    c->timeout = argv[GIVEN_TIMEOUT];
    c->memory = argv[GIVEN_MEMORY];
    c->output = argv[GIVEN_OUTPUT];
    c->names = argv[NAMES];
    c->workspaces = argv[WORKSPACES];
    c->elicits = argv[ELICITS][0] != 0;
    c->question_ms = argv[QUESTION];
    c->approves = argv[APPROVES][0] != 0;
    return 0;
}

static bool has(const char *ways, char way)
{
    return strchr(ways, way) != NULL;
}

int main(int argc, char **argv)
{
    char front[4096];
    struct err err = ERR_INIT;
    struct serve_config config = {.front = front};
    if (take_words(argc, argv, &config) < 0)
        return complain("started by cordon serve only; see cordon-serve(1)", 2);
    const char *w = argv[WAYS];
    config.all_users = has(w, 'a');
    const struct serve_ways ways = {.stdio = has(w, 'i'),
                                    .sock = has(w, 'u') ? SOCKET : -1,
                                    .http = has(w, 'h') ? LISTENER : -1,
                                    .token = has(w, 'h') ? TOKEN : -1,
                                    .metrics = has(w, 'm') ? METRICS : -1};
    signal(SIGPIPE, SIG_IGN);
    close_range(SOCKET, ~0U, CLOSE_RANGE_CLOEXEC); /* for us alone: not for what we start */
    /* what is there at our end may be somebody else's: held open, the number of ours is not given again */
    FD_AUTO own = argv[NAME][0] ? openat(FOLDER, argv[NAME], O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
    int r = programs_find("cordon-front", front, sizeof front, &err);
    if (r == 0)
        r = serve_daemon(&config, &ways, &err);
    if (own >= 0 && state_is_same(FOLDER, argv[NAME], own))
        (void)unlinkat(FOLDER, argv[NAME], 0);
    return r < 0 ? complain(err.msg, 1) : 0;
}
