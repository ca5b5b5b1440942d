/* SPDX-License-Identifier: Apache-2.0 */
/* cordond: what `cordon serve` becomes. A program of its own, without a parser and without the flow: all that it does is
 * in src/serve/daemon.c. It gets paths and numbers as words, in an order that only `cordon serve` knows.
 *
 * Waits: write in complain; standard error; none (it ends then); nothing is held */
#include "base/units.h"
#include "programs.h"
#include "serve/daemon.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SOCKET = 3, FOLDER = 4 };  /* where --socket was given: src/prog/cordon/serve_socket.h */
enum { LISTENER = 3, TOKEN = 4 }; /* where --http was given: src/prog/cordon/serve_http.h */
enum {
    CORDON = 2,
    PROFILE,
    ROLE,
    POLICY,
    TIMEOUT,
    MEMORY,
    OUTPUT,
    ANSWER,
    NAME,
    HTTP,
    NAMES,
    COUNT
};

static int complain(const char *what, int status)
{
    char line[400];
    const int n = snprintf(line, sizeof line, "cordond: %s\n", what);
    return n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0 ? 3 : status;
}

int main(int argc, char **argv)
{
    char front[4096];
    struct err err = ERR_INIT;
    struct serve_config config = {.front = front};
    if (argc != COUNT || strcmp(argv[1], "--from-cordon") != 0 ||
        units_count(argv[TIMEOUT], &config.limits.timeout_ms) < 0 ||
        units_count(argv[MEMORY], &config.limits.memory) < 0 ||
        units_count(argv[OUTPUT], &config.limits.output) < 0 ||
        units_count(argv[ANSWER], &config.answer_ms) < 0)
        return complain("started by cordon serve only; see cordon-serve(1)", 2);
    config.cordon = argv[CORDON];
    config.profile = argv[PROFILE];
    config.role = argv[ROLE];
    config.policy = argv[POLICY];
    config.names = argv[NAMES];
    signal(SIGPIPE, SIG_IGN);
    if (argv[NAME][0] || argv[HTTP][0]) /* for us alone: not for what we start */
        close_range(SOCKET, ~0U, CLOSE_RANGE_CLOEXEC);
    int r = programs_find("cordon-front", front, sizeof front, &err);
    if (r == 0)
        r = argv[NAME][0]   ? serve_daemon_socket(&config, SOCKET, &err)
            : argv[HTTP][0] ? serve_daemon_http(&config, LISTENER, TOKEN, &err)
                            : serve_daemon_stdio(&config, &err);
    if (argv[NAME][0]) /* the lock is still ours: it can be nobody else's socket */
        (void)unlinkat(FOLDER, argv[NAME], 0);
    return r < 0 ? complain(err.msg, 1) : 0;
}
