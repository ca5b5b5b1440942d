/* `cordon exec`: any program in the jail. The words of the command line become a plan; the plan
 * runs. */
#include "base/limits.h"
#include "commands.h"
#include "jail/run.h"
#include "options.h"
#include "output/capture.h"
#include "output/visible.h"
#include "programs.h"
#include "result.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

struct exec_options {
    bool json, proc, run_written, help;
    const char *net, *mode, *memory_by, *input;
    struct option_list ro, rw, env;
    struct jail_limits limits;
};

struct reader {
    struct output_capture streams[2];
    struct output_visible visible[2];
    bool stream_on, tty[2];
    bool gone; /* nobody reads our output any more */
};

/* ---- where the guest's output goes ---- */

static void write_out(struct reader *r, int fd, const char *p, size_t len)
{
    while (len) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            r->gone = r->gone || errno == EPIPE;
            return;
        }
        p += n;
        len -= (size_t)n;
    }
}

static void show(struct reader *r, enum jail_stream stream, const char *p, size_t len)
{
    int fd = stream == JAIL_STDOUT ? STDOUT_FILENO : STDERR_FILENO;
    if (!r->tty[stream]) {
        write_out(r, fd, p, len);
        return;
    }
    struct buf text;
    buf_init(&text, len * 8 + 16);
    if (output_visible_add(&r->visible[stream], p, len, &text) == 0 && text.len)
        write_out(r, fd, text.data, text.len);
    buf_done(&text);
}

static void take_bytes(void *ctx, enum jail_stream stream, const void *data, size_t len)
{
    struct reader *r = ctx;
    size_t now = output_capture_add(&r->streams[stream], data, len);
    if (r->stream_on && now)
        show(r, stream, data, now);
}

static void show_rest(struct reader *r)
{
    for (enum jail_stream s = JAIL_STDOUT; s <= JAIL_STDERR; s++) {
        struct buf rest;
        buf_init(&rest, r->streams[s].tail_room + sizeof OUTPUT_MARKER + 64);
        if (output_capture_rest(&r->streams[s], &rest) == 0 && rest.len)
            show(r, s, rest.data, rest.len);
        buf_reset(&rest);
        if (r->tty[s] && output_visible_end(&r->visible[s], &rest) == 0 && rest.len)
            write_out(r, s == JAIL_STDOUT ? STDOUT_FILENO : STDERR_FILENO, rest.data, rest.len);
        buf_done(&rest);
    }
}

/* ---- words to plan ---- */

static int parse(int argc, char **argv, struct exec_options *o, int *ret_next, struct err *err)
{
    struct jail_limits *l = &o->limits;
    uint64_t threads = UINT64_MAX;
    const struct option_row rows[] = {
        {"", OPTION_GROUP, NULL, NULL, "What the program sees:"},
        {"ro", OPTION_LIST, &o->ro, "PATH[:DEST]", "show a folder or file, read-only (repeatable)"},
        {"rw", OPTION_LIST, &o->rw, "PATH[:DEST]", "show it writable; no symbolic link on the way"},
        {"env", OPTION_LIST, &o->env, "K=V", "set an environment variable (repeatable)"},
        {"stdin", OPTION_STRING, &o->input, "FILE|-", "its input; - is our own (default: nothing)"},
        {"proc", OPTION_FLAG, &o->proc, NULL, "mount a /proc with its own processes only"},
        {"exec-files", OPTION_FLAG, &o->run_written, NULL, "let it run files that it wrote itself"},
        {"net", OPTION_STRING, &o->net, "none", "the network: there is none (the only value)"},
        {"", OPTION_GROUP, NULL, NULL, "Limits:"},
        {"timeout", OPTION_MILLIS, &l->wall_ms, "TIME", "wall clock (30s)"},
        {"cpu", OPTION_MILLIS, &l->cpu_ms, "TIME", "CPU time (30s)"},
        {"memory", OPTION_BYTES, &l->memory, "SIZE", "memory (512m)"},
        {"memory-by", OPTION_STRING, &o->memory_by, "WHAT",
         "auto, cgroup or rlimit: what enforces it (auto)"},
        {"descriptors", OPTION_COUNT, &l->descriptors, "N", "open files at once (64)"},
        {"disk", OPTION_BYTES, &l->disk, "SIZE", "bytes held in /workspace and /tmp (100m)"},
        {"inodes", OPTION_COUNT, &l->inodes, "N", "files and folders there (10000)"},
        {"processes", OPTION_COUNT, &l->processes, "N", "further processes at once (0)"},
        {"threads", OPTION_COUNT, &threads, "N", "further threads (16; 0 with --processes)"},
        {"output", OPTION_BYTES, &l->output, "SIZE",
         "output kept, each stream (10m); 10 times that ends the run"},
        {"", OPTION_GROUP, NULL, NULL, "How:"},
        {"mode", OPTION_STRING, &o->mode, "MODE",
         "full, or landlock: weaker, no namespaces, for containers (full)"},
        {"json", OPTION_FLAG, &o->json, NULL, "print one JSON object with everything"},
        {"help", OPTION_FLAG, &o->help, NULL, "this text"},
    };
    const size_t count = sizeof rows / sizeof *rows;
    int r = options_parse(argc, argv, rows, count, ret_next, err);
    if (r < 0)
        return r;
    if (o->help) {
        puts("usage: cordon exec [OPTIONS] -- PROGRAM ARGS...\n\n"
             "Runs PROGRAM in a jail: own namespaces, read-only root, no network, no new "
             "processes,\n"
             "system calls by allow-list. It may write in /workspace (where it starts) and /tmp.");
        options_print(rows, count);
        puts("\nExit status: 0 done, 1 the program failed, 2 usage, 4 a limit was hit, 5 no jail "
             "could\n"
             "be built (run `cordon doctor`).\n\n"
             "  cordon exec -- python3 -c 'print(6 * 7)'\n"
             "  cordon exec --json --rw ./out:/workspace -- sh -c 'echo hello > note'\n"
             "  cordon exec --processes 8 --timeout 2m --ro .:/workspace -- make -n");
        return 0;
    }
    if (threads != UINT64_MAX)
        l->threads = threads;
    else if (l->processes > 0)
        l->threads = 0; /* the kernel counts both together: N means N */
    return 0;
}

static int choose(const char *option, const char *word, const char *const *names, struct err *err)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    char all[120] = "";
    for (int i = 0; names[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    return err_set(err, ERR_USAGE, "--%s: '%.40s' is none of: %s", option, word, all);
}

static int plan_env(const struct exec_options *o, struct jail_spec *spec, struct arena *mem,
                    struct err *err)
{
    static const char *const fixed[] = {"PATH=/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
                                        "LANG=C.UTF-8"};
    const size_t nfixed = sizeof fixed / sizeof *fixed;
    const char **env = arena_alloc(mem, (nfixed + o->env.count + 1) * sizeof *env);
    size_t count = 0;
    if (!env)
        return err_set(err, ERR_MEMORY, "no memory");
    for (size_t i = 0; i < nfixed; i++)
        env[count++] = fixed[i];
    for (size_t i = 0; i < o->env.count; i++) {
        const char *word = o->env.items[i], *equals = strchr(word, '=');
        if (!equals || equals == word)
            return err_set(err, ERR_USAGE, "--env: '%.60s' is not K=V", word);
        size_t at = count, key = (size_t)(equals - word) + 1;
        for (size_t k = 0; k < count; k++)
            if (strncmp(env[k], word, key) == 0)
                at = k; /* a later one wins */
        env[at] = word;
        count += at == count;
    }
    spec->env = env;
    spec->envc = count;
    return 0;
}

static int plan(const struct exec_options *o, int argc, char **argv, struct jail_spec *spec,
                enum jail_memory_by *ret_by, struct arena *mem, struct err *err)
{
    static const char *const modes[] = {"full", "landlock", NULL},
                             *const bys[] = {"auto", "cgroup", "rlimit", NULL},
                             *const nets[] = {"none", NULL};
    int mode = choose("mode", o->mode, modes, err);
    int by = mode < 0 ? mode : choose("memory-by", o->memory_by, bys, err);
    int r = by < 0 ? by : choose("net", o->net, nets, err);
    if (r < 0)
        return r;
    spec->mode = mode == 1 ? JAIL_LANDLOCK : JAIL_FULL;
    *ret_by = (enum jail_memory_by)by;
    spec->proc = o->proc;
    spec->run_written = o->run_written;
    spec->limits = o->limits;
    spec->limits.flood = o->limits.output * LIMIT_FLOOD_FACTOR;
    spec->filter = o->limits.processes ? "exec-procs" : "exec";
    if (argc == 0)
        return err_set(err, ERR_USAGE,
                       "no program given; usage: cordon exec [OPTIONS] -- PROGRAM ARGS");
    if (argc > LIMIT_ARGS)
        return err_set(err, ERR_USAGE, "more than %d arguments", LIMIT_ARGS);
    size_t nbinds = o->ro.count + o->rw.count;
    if (nbinds > LIMIT_BINDS)
        return err_set(err, ERR_USAGE, "more than %d of --ro and --rw", LIMIT_BINDS);
    spec->binds = arena_alloc(mem, (nbinds + 1) * sizeof *spec->binds);
    if (!spec->binds)
        return err_set(err, ERR_MEMORY, "no memory");
    for (size_t i = 0; i < nbinds && r == 0; i++) {
        bool writable = i >= o->ro.count;
        r = programs_parse_bind(writable ? o->rw.items[i - o->ro.count] : o->ro.items[i], writable,
                                mem, &spec->binds[spec->nbinds++], err);
    }
    if (r == 0)
        r = plan_env(o, spec, mem, err);
    if (r == 0)
        r = jail_switches_from_env(spec, err);
    if (r == 0)
        r = jail_spec_check(spec, err);
    if (r == 0)
        r = programs_resolve(spec, argv[0], mem, &spec->program, err);
    spec->argv = (const char **)argv;
    spec->argc = (size_t)argc;
    return r;
}

/* *ret_fd is -1 when there is no input. */
static int open_input(const struct exec_options *o, int *ret_fd, struct err *err)
{
    *ret_fd = -1;
    if (!o->input)
        return 0;
    int fd = strcmp(o->input, "-") == 0
                 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                 : open(o->input, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(err, "--stdin %s", o->input);
        return err->code = ERR_USAGE;
    }
    if (S_ISDIR(st.st_mode)) {
        fd_close(fd);
        return err_set(err, ERR_USAGE, "--stdin %s: a folder", o->input);
    }
    *ret_fd = fd;
    return 0;
}

/* ---- running ---- */

static void run_to_end(struct jail_run *run, const struct reader *reader)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    FD_AUTO signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
    struct pollfd p[2] = {{.fd = jail_run_fd(run), .events = POLLIN},
                          {.fd = signals, .events = POLLIN}};
    while (!jail_run_step(run, 0)) {
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            jail_run_stop(run);
        if (p[1].revents || reader->gone) /* as a pipe would end the program itself */
            jail_run_stop(run);
    }
}

static int refuse(const struct exec_options *o, const struct err *why)
{
    struct result r;
    result_refuse(&r, why);
    if (!o->json || result_print_json(&r, NULL, NULL) < 0)
        result_print_text(&r, NULL);
    return r.exit_status;
}

static int run_plan(const struct exec_options *o, const struct jail_spec *spec,
                    enum jail_memory_by by, struct err *err)
{
    char nest[4096];
    struct reader reader = {.stream_on = !o->json, .tty = {isatty(1), isatty(2)}};
    struct jail_run *run = NULL;
    FD_AUTO input = -1;
    int r = open_input(o, &input, err);
    if (r < 0)
        return r;
    struct jail_start start = {.nest = nest,
                               .memory_by = by,
                               .input = input,
                               .channel = -1,
                               .channel_ours = -1,
                               .sink = {.ctx = &reader, .bytes = take_bytes},
                               .step_down = true};
    for (int i = 0; i < 2; i++)
        output_capture_init(&reader.streams[i], spec->limits.output);
    r = programs_find_nest(nest, sizeof nest, err);
    if (r == 0)
        r = jail_run_new(spec, &start, &run, err);
    if (r == 0) {
        struct result result;
        run_to_end(run, &reader);
        const struct jail_outcome *out = jail_run_outcome(run);
        result_judge(&result, out, &spec->limits);
        r = result.exit_status;
        if (!o->json) {
            show_rest(&reader);
            result_print_text(&result, out);
        } else if (result_print_json(&result, out, reader.streams) < 0) {
            fputs("cordon exec: the result could not be written to stdout\n", stderr);
            r = EXIT_FAILED;
        }
    }
    jail_run_free(run);
    for (int i = 0; i < 2; i++)
        output_capture_done(&reader.streams[i]);
    return r;
}

int cmd_exec(int argc, char **argv)
{
    struct exec_options o = {.mode = "full", .memory_by = "auto", .net = "none"};
    struct jail_spec spec;
    struct err err = ERR_INIT;
    struct arena mem;
    enum jail_memory_by by = JAIL_MEMORY_AUTO;
    int next = 0;
    jail_spec_init(&spec);
    o.limits = spec.limits;
    arena_init(&mem, 4 * MIB);
    int r = parse(argc, argv, &o, &next, &err);
    if (r == 0 && !o.help) {
        r = plan(&o, argc - next, argv + next, &spec, &by, &mem, &err);
        if (r == 0)
            r = run_plan(&o, &spec, by, &err);
    }
    if (r == ERR_USAGE) {
        result_complain("cordon exec", err.msg);
        r = EXIT_USAGE;
    } else if (r < 0) {
        r = refuse(&o, &err);
    }
    arena_done(&mem);
    return r;
}
