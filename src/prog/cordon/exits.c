/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller's `$?` means. A program's own status passes through, so that `cordon exec -- make` can stand where
 * `make` stood; the statuses that mean Cordon itself are those of timeout(1), which a program may use, too: a caller
 * that must tell the two apart reads `status` of --json.
 *
 * Waits: read in exits_signal; nobody: the signalfd is non-blocking; at once; no signal came
 *        write in on_early; whoever reads standard error; none (nothing runs, nothing is held); it ends */
#include "exits.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define EXITS_RUNS (EXITS_RUN | EXITS_SESSION)

static const struct {
    int status;
    unsigned of;
    const char *meaning;
} table[] = {
    {EXIT_DONE, EXITS_RUNS, "the program ended with 0"},
    {EXIT_DONE, EXITS_CHECK, "nothing was found"},
    {EXIT_DONE, EXITS_EVAL, "evaluated"},
    {EXIT_DONE, EXITS_OTHER, "done; the answer is yes"},
    {EXIT_DONE, EXITS_ADVICE, "done, whatever the advice is"},
    {EXIT_DONE, EXITS_MONITOR, "the generation came to its end"},
    {EXIT_FAILED, EXITS_SESSION, "it raised an exception"},
    {EXIT_FAILED, EXITS_CHECK, "something was found"},
    {EXIT_FAILED, EXITS_EVAL, "it raised an exception"},
    {EXIT_FAILED, EXITS_MONITOR, "abort: it went bad"},
    {EXIT_FAILED, EXITS_OTHER, "it did not work; the answer is no"},
    {EXIT_USAGE, EXITS_CHECK, "no verdict: usage, or no jail to judge in (run `cordon doctor`)"},
    {EXIT_USAGE, EXITS_EVAL | EXITS_OTHER | EXITS_ADVICE | EXITS_MONITOR, "usage"},
    {EXIT_UNSAFE, EXITS_EVAL, "UnsafeExpressionError"},
    {EXIT_BUSY, EXITS_SESSION, "the session is in another call: try again"},
    {EXIT_LIMIT, EXITS_RUNS, "a limit ended it: time, memory or output"},
    {EXIT_NEVER_RAN, EXITS_RUNS, "it never ran: usage, blocked, denied or refused"},
    {EXIT_SIGNAL + SIGINT, EXITS_RUNS | EXITS_CHECK, "interrupted: Ctrl-C"},
};

void exits_print(enum exits_of of)
{
    puts("\nExit status:");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].of & of)
            printf("  %-5d %s\n", table[i].status, table[i].meaning);
    if (of & EXITS_RUNS)
        puts("  else  the program's own; 128 + N if signal N ended it");
    if (of & EXITS_CHECK)
        puts("  else  128 + N: signal N ended it before a verdict");
}

static int of_signal(int n)
{
    return EXIT_SIGNAL + n;
}

static bool was_stopped(const struct flow_result *r)
{
    return r->status == FLOW_ERROR && strcmp(r->type, "Stopped") == 0;
}

int exits_status(const struct flow_result *r, int signal)
{
    switch (r->status) {
    case FLOW_OK:
        return EXIT_DONE;
    case FLOW_ERROR:
        if (was_stopped(r)) /* `cordon stop` is a SIGTERM of its kind */
            return of_signal(signal ? signal : SIGTERM);
        return r->ran && r->exit_code > 0 && r->exit_code < 256 ? r->exit_code : EXIT_FAILED;
    case FLOW_CRASHED: /* a lost jail has no signal: its processes were killed */
        return of_signal(r->signal > 0 ? r->signal : SIGKILL);
    case FLOW_TIMEOUT:
    case FLOW_MEMORY:
    case FLOW_OUTPUT:
        return EXIT_LIMIT;
    case FLOW_BLOCKED:
    case FLOW_DENIED:
    case FLOW_REFUSED:
        break;
    }
    return signal ? of_signal(signal) : EXIT_NEVER_RAN;
}

int exits_verdict(enum flow_status status)
{
    return status == FLOW_OK ? EXIT_DONE : status == FLOW_BLOCKED ? EXIT_FAILED : EXIT_USAGE;
}

int exits_signal(int stop)
{
    struct signalfd_siginfo info;
    if (stop < 0 || read(stop, &info, sizeof info) != (ssize_t)sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

bool exits_say_signal(struct flow_result *r, int signal)
{
    char text[80];
    const char *name = sigabbrev_np(signal);
    const bool waited = r->status == FLOW_DENIED || r->status == FLOW_REFUSED;
    if (!signal || (!waited && (!was_stopped(r) || r->layer)))
        return false;
    if (signal == SIGINT)
        snprintf(text, sizeof text, "interrupted (Ctrl-C)%s", waited ? " before it ran" : "");
    else
        snprintf(text, sizeof text, "ended by SIG%s%s", name ? name : "?",
                 waited ? " before it ran" : "");
    if (!waited) {
        flow_result_say(r, FLOW_ERROR, NULL, "EARLY_ABORT", "Stopped", text);
        return true;
    }
    snprintf(r->message, sizeof r->message, "%s", text);
    snprintf(r->reason, sizeof r->reason, "%s", text);
    r->layer = NULL; /* no layer ended the wait */
    r->violation_count = 0;
    r->violations_total = 0;
    return true;
}

/* Nothing runs yet, so there is nothing to end. Only calls that a handler may make. */
static void on_early(int signal)
{
    static const char line[] = "cordon: interrupted (Ctrl-C) before it ran\n";
    (void)!write(STDERR_FILENO, line, sizeof line - 1);
    _exit(of_signal(signal));
}

void exits_heed_early(void)
{
    struct sigaction now, early = {.sa_handler = on_early};
    if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        (void)sigaction(SIGINT, &early, NULL);
}
