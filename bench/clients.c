/* SPDX-License-Identifier: Apache-2.0 */
/* How many runs a second the command line gives to 1, 10, 50 and 200 clients at once, and how long each waits.
 *
 * A client is a thread that starts `cordon run FILE` and waits for its end, again and again: what people's scripts do. So
 * the start of a process is in it, and the third column shows that floor: the same program, which prints its version
 * and ends. Gate and audit are as installed (durable records, ten places), only rates and breakers are out of the way.
 * Usage: clients_bench BUILD [--seconds N] */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { CLIENTS = 200, SAMPLES = 200000 };

static char dir[] = "/tmp/cordon-bench-XXXXXX", cordon[64];
static float ms[SAMPLES];
static unsigned count, failed;
static volatile bool over;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Its exit status; -1: it did not start. */
static int run(const char *const *argv)
{
    posix_spawn_file_actions_t to;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_init(&to);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&to, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    int r = posix_spawn(&pid, argv[0], &to, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&to);
    while (r == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return r == 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void *client(void *argv)
{
    while (!over) {
        double began = now_ms();
        bool good = run(argv) == 0;
        float took = (float)(now_ms() - began);
        unsigned at = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
        if (at < SAMPLES)
            ms[at] = took;
        if (!good)
            __atomic_fetch_add(&failed, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void measure(const char *const *argv, unsigned clients, unsigned seconds)
{
    pthread_t threads[CLIENTS];
    unsigned started = 0;
    count = failed = 0;
    over = false;
    double began = now_ms();
    while (started < clients && pthread_create(&threads[started], NULL, client, (void *)argv) == 0)
        started++;
    sleep(seconds);
    over = true;
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    double took = now_ms() - began;
    unsigned n = count < SAMPLES ? count : SAMPLES;
    qsort(ms, n, sizeof *ms, by_value);
    printf("  %6.0f %7.1f %7.1f", count * 1e3 / took, n ? (double)ms[n / 2] : 0,
           n ? (double)ms[(size_t)n * 99 / 100] : 0);
    if (failed || started < clients)
        printf(" (%u failed)", failed + clients - started);
    fflush(stdout);
}

static bool write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    return f && fputs(text, f) >= 0 && fclose(f) == 0;
}

static bool prepare(const char *build)
{
    static const char *const names[] = {"cordon", "cordon-nest", "cordon-python", "cordon-holder"};
    char paths[4][4096], path[256];
    const char *cp[] = {"/bin/cp", "-a", paths[0], paths[1], paths[2], paths[3], dir, NULL};
    for (int i = 0; i < 4; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%s", build, names[i]);
    if (!mkdtemp(dir) || run(cp) != 0)
        return false;
    snprintf(cordon, sizeof cordon, "%s/cordon", dir);
    snprintf(path, sizeof path, "%s/config", dir);
    bool made = mkdir(path, 0700) == 0;
    setenv("XDG_CONFIG_HOME", path, 1);
    snprintf(path, sizeof path, "%s/config/cordon", dir);
    made = made && mkdir(path, 0700) == 0;
    snprintf(path, sizeof path, "%s/state", dir);
    setenv("CORDON_STATE", path, 1);
    return made &&
           write_file("config/cordon/policy.yaml",
                      "version: 1\nrates: {executions: 1000, window: 1ms}\n"
                      "breakers: {failures: 1000}\naudit: {duplicates: 0, slow_factor: 0}\n") &&
           write_file("cold.yaml", "version: 1\npool: {enabled: false}\n") &&
           write_file("pass.py", "pass\n");
}

int main(int argc, char **argv)
{
    static const unsigned crowds[] = {1, 10, 50, 200};
    unsigned seconds = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 4;
    char program[256], cold[256];
    if ((argc != 2 && (argc != 4 || strcmp(argv[2], "--seconds") != 0)) || !seconds ||
        !prepare(argv[1])) {
        fputs("usage: clients_bench BUILD [--seconds N]\n", stderr);
        return 2;
    }
    snprintf(program, sizeof program, "%s/pass.py", dir);
    snprintf(cold, sizeof cold, "%s/cold.yaml", dir);
    const char *const kinds[][6] = {{cordon, "run", "--policy", cold, program},
                                    {cordon, "run", program},
                                    {cordon, "--version"}};
    const char *const start[] = {cordon, "pool", "start", "--size", "16", NULL};
    const char *const stop[] = {cordon, "pool", "stop", "--force", NULL};
    const char *const rm[] = {"/bin/rm", "-rf", "--one-file-system", dir, NULL};
    puts("Runs through the command line: runs a second, p50 and p99 in ms; durable audit, ten "
         "places");
    printf("%-8s %25s %24s %24s\n", "clients", "cold run", "warm run", "process alone");
    if (run(start) != 0)
        return 2;
    for (size_t i = 0; i < sizeof crowds / sizeof *crowds; i++) {
        printf("%-8u", crowds[i]);
        for (size_t k = 0; k < 3; k++)
            measure(kinds[k], crowds[i], seconds);
        puts("");
    }
    run(stop);
    run(rm);
    return 0;
}
