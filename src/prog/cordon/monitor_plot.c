/* SPDX-License-Identifier: Apache-2.0 */
/* cordon-plot is started before the monitor gives up its rights, and gets points as lines of text while the generation is read: so
 * nothing is kept here, however long it is.
 *
 * Waits: poll in monitor_plot_end; cordon-plot; LIMIT_IMAGE_MS; the picture is given up, and the verdict was printed before
 *        read in monitor_plot_end; cordon-plot; at once (poll said so); the same */
#include "monitor_plot.h"

#include "base/limits.h"
#include "monitor/report.h"
#include "programs.h"
#include "sys/child.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static const char *form_of(const char *file, struct err *err)
{
    if (strcmp(file, "-") == 0)
        return "text";
    if (ends_with(file, ".png") || ends_with(file, ".svg"))
        return file + strlen(file) - 3;
    err_set(err, ERR_USAGE, "--plot: '%.80s' ends neither in .png nor in .svg; - is the terminal",
            file);
    return NULL;
}

int monitor_plot_start(struct monitor_plot *p, const char *file, struct err *err)
{
    char program[4096];
    int points[2], done[2];
    const char *form = form_of(file, err);
    if (!form || programs_find("cordon-plot", program, sizeof program, err) < 0)
        return err->code;
    const int out = strcmp(file, "-") == 0
                        ? STDERR_FILENO
                        : open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
    if (out < 0)
        return err_sys(err, "--plot: %.200s", file);
    if (pipe2(points, O_CLOEXEC) < 0 || pipe2(done, O_CLOEXEC) < 0)
        return err_sys(err, "pipe");
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        return err_sys(err, "fork");
    if (pid == 0) {
        const char *const argv[] = {program, "--from-cordon", form, NULL}, *const env[] = {NULL};
        sys_child_exec(argv, env, (const int[]){points[0], out, -1, done[1]}, 4, false, parent);
    }
    close(points[0]);
    close(done[1]);
    if (out != STDERR_FILENO)
        close(out);
    signal(SIGPIPE, SIG_IGN); /* a cordon-plot that ended is told by what it did not say */
    p->points = fdopen(points[1], "w");
    p->done = done[0];
    if (!p->points)
        return err_sys(err, "fdopen");
    fputs("names", p->points);
    for (int i = 0; i < MONITOR_SIGNAL_COUNT; i++)
        fprintf(p->points, " %s", monitor_signal_name((enum monitor_signal)i));
    fputc('\n', p->points);
    return 0;
}

void monitor_plot_point(struct monitor_plot *p, const struct monitor_verdict *v)
{
    double values[MONITOR_SIGNAL_COUNT];
    if (!p->points || v->tokens == p->told)
        return;
    p->told = v->tokens;
    monitor_signal_values(&v->metrics, values);
    fprintf(p->points, "point %llu", (unsigned long long)v->tokens);
    for (int i = 0; i < MONITOR_SIGNAL_COUNT; i++)
        fprintf(p->points, " %g", values[i]);
    fputc('\n', p->points);
}

static void tell_verdict(struct monitor_plot *p, const struct monitor_verdict *v)
{
    fprintf(p->points, "verdict %d %d %llu %llu ", v->abort, v->period > 0,
            (unsigned long long)v->onset, (unsigned long long)v->tokens);
    if (!v->abort)
        fprintf(p->points, "no abort in %llu tokens\n", (unsigned long long)v->tokens);
    else if (!v->period)
        fprintf(p->points, "abort at token %llu: %s\n", (unsigned long long)v->tokens,
                monitor_reason_name(v->reason));
    else
        fprintf(p->points, "abort at token %llu: %s by %s, from token %llu on, period %llu\n",
                (unsigned long long)v->tokens, monitor_reason_name(v->reason),
                monitor_detector_name(v->detector), (unsigned long long)v->onset,
                (unsigned long long)v->period);
}

int monitor_plot_end(struct monitor_plot *p, const struct monitor_verdict *v, struct err *err)
{
    if (!p->points)
        return 0;
    tell_verdict(p, v);
    (void)fclose(p->points);
    p->points = NULL;
    struct pollfd wait = {.fd = p->done, .events = POLLIN};
    char byte = 0;
    int r = poll(&wait, 1, LIMIT_IMAGE_MS);
    r = r > 0 && read(p->done, &byte, 1) == 1 ? 0 : -1;
    close(p->done);
    return r == 0 ? 0 : err_set(err, ERR_STATE, "--plot: cordon-plot did not draw the picture");
}
