/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all probes and the way their verdict gets out. The verdict is one write(2) of one
 * line, so that neither stdio state nor a second thread can tear it. */
#include "probe.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const struct probe *const tables[] = {
    probes_descriptors, probes_processes, probes_memory, probes_namespaces, probes_exec,
    probes_files,       probes_network,   probes_ipc,    probes_limits,     probes_output,
    probes_identity,    probes_kernel,    probes_notify, probes_shared,     probes_benign,
};

static int verdict_fd = 1;

void keep_stdout(void)
{
    verdict_fd = fcntl(1, F_DUPFD_CLOEXEC, 10);
    if (verdict_fd < 0)
        broken("cannot keep stdout: %s", error_name(errno));
}

__attribute__((format(printf, 3, 0))) static _Noreturn void verdict(int code, const char *word,
                                                                    const char *fmt, va_list ap)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "\n%s ", word);
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    size_t used = (size_t)n + (size_t)(m < 0 ? 0 : m);
    if (used > sizeof line - 2)
        used = sizeof line - 2;
    for (size_t i = 1; i < used; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = '?';
    line[used++] = '\n';
    for (size_t done = 0; done < used;) {
        ssize_t w = write(verdict_fd, line + done, used - done);
        if (w < 0 && errno == EAGAIN)
            continue;
        if (w <= 0)
            _exit(EXIT_BROKEN);
        done += (size_t)w;
    }
    _exit(code);
}

#define VERDICT(name, code, word)                                                                  \
    void name(const char *fmt, ...)                                                                \
    {                                                                                              \
        va_list ap;                                                                                \
        va_start(ap, fmt);                                                                         \
        verdict(code, word, fmt, ap);                                                              \
    }
VERDICT(contained, EXIT_CONTAINED, "CONTAINED")
VERDICT(reached, EXIT_REACHED, "REACHED")
VERDICT(broken, EXIT_BROKEN, "BROKEN")

const char *error_name(int error)
{
    const char *name = strerrorname_np(error);
    return name ? name : "an unknown error";
}

bool is_refusal(int error)
{
    return error == EPERM || error == EACCES || error == ENOSYS;
}

bool filtered(void)
{
    return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
}

void must_fail(const char *what, long result)
{
    if (result == -1)
        contained("%s: %s", what, error_name(errno));
    reached("%s gave %ld", what, result);
}

void must_be_refused(const char *what, long result)
{
    if (result != -1)
        reached("%s gave %ld", what, result);
    if (!is_refusal(errno))
        reached("%s got into the kernel: %s", what, error_name(errno));
    contained("%s: %s", what, error_name(errno));
}

static char attempts[800], successes[400];

__attribute__((format(printf, 3, 4))) static void note(char *list, size_t size, const char *fmt,
                                                       ...)
{
    size_t used = strlen(list);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(list + used, size - used, fmt, ap);
    va_end(ap);
}

void tried(const char *what, long result)
{
    if (result == -1)
        note(attempts, sizeof attempts, "%s%s %s", *attempts ? ", " : "", what, error_name(errno));
    else
        note(successes, sizeof successes, "%s%s gave %ld", *successes ? ", " : "", what, result);
}

void none_may_have_succeeded(void)
{
    if (*successes)
        reached("%s", successes);
    if (!*attempts)
        broken("nothing was tried");
    contained("%s", attempts);
}

const char *need(int argc, char **argv, int i)
{
    if (i >= argc)
        broken("argument %d is missing", i);
    return argv[i];
}

long number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 0);
    if (*end || end == text)
        broken("'%s' is not a number", text);
    return n;
}

int file_holds(const char *path, const char *word)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    int error = errno;
    close(fd);
    errno = error;
    if (n < 0)
        return -1;
    text[n] = 0;
    return strstr(text, word) != NULL;
}

static const char *or_dash(const char *s)
{
    return s && *s ? s : "-";
}

static int list(void)
{
    printf("name\titems\tcategory\tlayer\ttwin\tends\trule\toptions\targs\twhat\n");
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct probe *p = tables[t]; p->name; p++)
            printf("%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p->name, or_dash(p->items),
                   p->category, or_dash(p->layer), or_dash(p->twin), p->ends ? p->ends : "ok",
                   or_dash(p->rule), or_dash(p->options), or_dash(p->args), p->what);
    return fflush(stdout) ? EXIT_BROKEN : 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (argc < 2)
        broken("usage: probe NAME [ARG…] | probe --list");
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const struct probe *p = tables[t]; p->name; p++)
            if (strcmp(p->name, argv[1]) == 0) {
                p->run(argc - 2, argv + 2);
                broken("%s came back without a verdict", p->name);
            }
    broken("no probe is called %s", argv[1]);
}
