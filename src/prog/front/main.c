/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-front: speaks JSON-RPC and MCP with one client. Started by cordond with the client as descriptors 0 and 1 (with
 * --http: a listening socket, and a file with the token) and cordond as 3; before it reads a byte it gives up files, programs, sockets and processes (src/jail/confine.c), and new
 * descriptors and most memory by rlimits. Whatever a client makes of it can ask cordond what the client could have asked.
 *
 * Waits: write in complain; standard error, where cordond's goes; none (it ends then); nothing is held
 *        pread in *; nobody: a sealed file in memory; at once; there is no token */
#include "base/sanitized.h"
#include "base/units.h"
#include "jail/confine.h"
#include "serve/front/front.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DESCRIPTORS                                                                                \
    5 /* 0 to 3, and one more until Landlock's rules hold; no call of the table makes another */

NO_SEARCH_FOR_LEAKS

static char token[LIMIT_HTTP_TOKEN + 1];

static int complain(const char *what)
{
    char line[400];
    const int n = snprintf(line, sizeof line, "cordon-front: %s\n", what);
    return n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0 ? 3 : 1;
}

static int limit(int what, uint64_t most, struct err *err)
{
    const struct rlimit l = {most, most};
    return setrlimit((__rlimit_resource_t)what, &l) < 0 ? err_sys(err, "limits of the front") : 0;
}

/* The rlimits first: setrlimit is not in the table of system calls. */
static int narrow(bool http, struct err *err)
{
    serve_front_prepare();
    int r = limit(RLIMIT_NOFILE, DESCRIPTORS + (http ? LIMIT_HTTP_CONNECTIONS : 0), err);
    if (r == 0)
        r = limit(RLIMIT_NPROC, 0, err);
    if (r == 0 && !SANITIZED) /* a sanitizer maps terabytes */
        r = limit(RLIMIT_DATA, 1 * GIB, err);
    return r < 0 ? r : jail_confine(-1, -1, http ? "front-http" : "front", err);
}

/* From the sealed file at descriptor 1, which every front of this server is started with. */
static int take_token(struct err *err)
{
    const ssize_t n = pread(STDOUT_FILENO, token, sizeof token - 1, 0);
    if (n != 0 && n < LIMIT_HTTP_TOKEN_MIN)
        return err_set(err, ERR_STATE, "there is no token");
    token[n] = 0;
    close(STDOUT_FILENO);
    return 0;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct serve_front_config config = {.version = CORDON_VERSION};
    struct stat st;
    if (argc < 11 || argc > 13 || strcmp(argv[1], "--from-cordond") != 0 || fstat(3, &st) < 0 ||
        !S_ISSOCK(st.st_mode) || units_count(argv[2], &config.limits.timeout_ms) < 0 ||
        units_count(argv[3], &config.limits.memory) < 0 ||
        units_count(argv[4], &config.limits.output) < 0 ||
        units_count(argv[5], &config.answer_ms) < 0 ||
        units_count(argv[9], &config.question_ms) < 0) {
        complain("started by cordon serve only; see cordon-serve(1)");
        return 2;
    }
    config.profile = argv[6];
    config.workspaces = argv[7];
    config.elicits = argv[8][0] != 0;
    config.approves = argv[10][0] != 0;
    signal(SIGPIPE, SIG_IGN);
    const bool http = argc >= 12, metrics = argc == 13;
    struct serve_http_config web = {
        .token = token, .names = http ? argv[11] : "", .metrics = metrics};
    int r = http ? take_token(&err) : 0;
    config.conformance = http && !token[0] && !metrics; /* who needs no token gets no runs */
    if (r == 0)
        r = narrow(http, &err);
    if (r == 0)
        r = http ? serve_front_http(&config, &web, &err) : serve_front_run(&config, &err);
    return r < 0 ? complain(err.msg) : 0;
}
