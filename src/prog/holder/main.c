/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-holder: keeps templates, warm children and sessions of one user. A program of its own, so that it
 * has none of the caller's memory, terminal or environment, and can narrow itself before it serves. It is
 * started by `cordon session new`, `cordon repl` and `cordon pool start`, not by hand.
 *
 * Waits: write in main; stderr, where it was started by hand; none (nothing runs); ends
 *        write in complain; an empty pipe, which takes a line whole; 0; ends */
#include "pool/holder.h"

#include "base/languages.h"
#include "programs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIR = 3, READY = 4 }; /* see pool/start.c */

/* One write, so that whoever started us reads the letter and the sentence together. */
static int complain(const struct err *err)
{
    char line[1 + sizeof err->msg];
    int n = snprintf(line, sizeof line, "E%s", err->msg[0] ? err->msg : "it gave no reason");
    return write(READY, line, (size_t)n) == n ? 0 : -1;
}

/* A language whose worker is not there has no template; that is told to whoever asks for one. */
static size_t find_workers(struct pool_worker *workers, char paths[][4096], size_t max)
{
    size_t n = 0;
    struct err not_there = ERR_INIT;
    for (const struct language *l = language_next(NULL); l && n < max; l = language_next(l))
        if (l != language_default() && l->worker &&
            programs_find(l->worker, paths[n], sizeof paths[n], &not_there) == 0) {
            workers[n] = (struct pool_worker){l, paths[n]};
            n++;
        }
    return n;
}

int main(int argc, char **argv)
{
    static const char usage[] = "cordon-holder: started by cordon only; see cordon-pool(1)\n";
    enum { OTHERS = 4 };
    static char nest[4096], python[4096], others[OTHERS][4096];
    static struct pool_worker workers[OTHERS];
    struct stat dir, ready;
    struct pool_environment environment;
    struct err err = ERR_INIT;
    if (argc != 5 || strcmp(argv[1], "--from-cordon") != 0 || fstat(DIR, &dir) < 0 ||
        !S_ISDIR(dir.st_mode) || fstat(READY, &ready) < 0 || !S_ISFIFO(ready.st_mode))
        return write(STDERR_FILENO, usage, sizeof usage - 1) < 0 ? 3 : 2;
    signal(SIGPIPE, SIG_IGN); /* whoever started us may be gone already */
    signal(SIGXFSZ, SIG_IGN); /* a file past `ulimit -f` is a failed call that is reported */
    struct pool_holder_start start = {.dir = DIR,
                                      .ready = READY,
                                      .nest = nest,
                                      .python = python,
                                      .workers = workers,
                                      .worker_count = find_workers(workers, others, OTHERS),
                                      .version = CORDON_VERSION,
                                      .environment = &environment};
    int r = pool_environment_words(&environment, argv[2], argv[3], argv[4], &err);
    if (r == 0)
        r = programs_find("cordon-nest", nest, sizeof nest, &err);
    if (r == 0)
        r = programs_find(language_default()->worker, python, sizeof python, &err);
    if (r == 0)
        r = pool_holder_run(&start, &err);
    return r < 0 && complain(&err) < 0 ? 3 : r < 0;
}
