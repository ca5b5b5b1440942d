/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-proxy-front: reads what clients of the gateway and what models wrote. Started by cordon-proxy with a listening socket as
 * descriptor 0, its configuration as a sealed file at 1, and cordon-proxy as 3; before it reads a byte of either it gives up files,
 * programs, sockets and processes, as cordon-front does with --http (src/jail/confine.c). Whatever a client or a model makes of it
 * has no key: those are in cordon-proxy.
 *
 * Waits: write in complain; standard error, where cordon-proxy's goes; none (it ends then); nothing is held
 *        pread in *; nobody: a sealed file in memory; at once; an error */
#include "base/sanitized.h"
#include "jail/confine.h"
#include "proxy/front/front.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

NO_SEARCH_FOR_LEAKS

static int complain(const char *what)
{
    char line[400];
    const int n = snprintf(line, sizeof line, "cordon-proxy-front: %s\n", what);
    return n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0 ? 3 : 1;
}

static int limit(int what, uint64_t most, struct err *err)
{
    const struct rlimit l = {most, most};
    return setrlimit((__rlimit_resource_t)what, &l) < 0 ? err_sys(err, "limits of the front") : 0;
}

/* The rlimits first: setrlimit is not in the table of system calls. */
static int narrow(struct err *err)
{
    json_object_seed(0); /* from a file, where it must */
    int r = limit(RLIMIT_NOFILE, PROXY_CONNS + 6, err);
    if (r == 0)
        r = limit(RLIMIT_NPROC, 0, err);
    if (r == 0 && !SANITIZED) /* a sanitizer maps terabytes */
        r = limit(RLIMIT_DATA, 8 * GIB, err);
    return r < 0 ? r : jail_confine(-1, -1, "front-http", err);
}

static int take_config(struct proxy_front_config *c, struct err *err)
{
    struct stat st;
    if (fstat(STDOUT_FILENO, &st) < 0 || st.st_size <= 0 || st.st_size > (off_t)(4 * MIB))
        return err_set(err, ERR_STATE, "there is no configuration");
    char *text = malloc((size_t)st.st_size);
    if (!text)
        return err_set(err, ERR_MEMORY, "no memory");
    int r = pread(STDOUT_FILENO, text, (size_t)st.st_size, 0) == st.st_size
                ? proxy_front_config_read(text, (size_t)st.st_size, c, err)
                : err_sys(err, "the configuration");
    explicit_bzero(text, (size_t)st.st_size);
    free(text);
    close(STDOUT_FILENO);
    return r;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    struct proxy_front_config config = {0};
    struct stat st;
    if (argc != 2 || strcmp(argv[1], "--from-cordon-proxy") != 0 || fstat(3, &st) < 0 ||
        !S_ISSOCK(st.st_mode)) {
        complain("started by cordon proxy only; see cordon-proxy(1)");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int r = take_config(&config, &err);
    if (r == 0)
        r = narrow(&err);
    if (r == 0)
        r = proxy_front_run(&config, &err);
    proxy_front_config_done(&config);
    return r < 0 ? complain(err.msg) : 0;
}
