/* SPDX-License-Identifier: Apache-2.0 */
/* Command line to jail specification: the same for every command that starts a jail. */
#include "jail_options.h"

#include "base/limits.h"
#include "jail/put.h"
#include "pool/pool.h"
#include "programs.h"
#include "storage.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

int jail_options_choose(const char *option, const char *word, const char *const *names,
                        struct err *err)
{
    for (int i = 0; names[i]; i++)
        if (strcmp(word, names[i]) == 0)
            return i;
    char all[120] = "";
    for (int i = 0; names[i]; i++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? ", " : "", names[i]);
    return err_set(err, ERR_USAGE, "--%s: '%.40s' is none of: %s", option, word, all);
}

static int jail_options_env(const struct jail_options *o, struct jail_spec *spec, struct arena *mem,
                            struct err *err)
{
    const char **env = arena_alloc(mem, (POOL_ENV + o->env.count + 1) * sizeof *env);
    size_t count = 0;
    if (!env)
        return err_set(err, ERR_MEMORY, "no memory");
    for (size_t i = 0; i < POOL_ENV; i++)
        env[count++] = pool_env[i];
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

static int jail_options_binds(const struct jail_options *o, struct jail_spec *spec,
                              struct arena *mem, struct err *err)
{
    size_t nbinds = o->ro.count + o->rw.count, all = nbinds + o->in.count;
    int r = 0;
    if (all > LIMIT_BINDS)
        return err_set(err, ERR_USAGE, "--ro, --rw and --in are given more than %d times together",
                       LIMIT_BINDS);
    spec->binds = arena_alloc(mem, (all + 1) * sizeof *spec->binds);
    if (!spec->binds)
        return err_set(err, ERR_MEMORY, "no memory");
    for (size_t i = 0; i < nbinds && r == 0; i++) {
        bool writable = i >= o->ro.count;
        r = programs_parse_bind(writable ? o->rw.items[i - o->ro.count] : o->ro.items[i], writable,
                                mem, &spec->binds[spec->nbinds++], err);
    }
    for (size_t i = 0; i < o->in.count && r == 0; i++)
        r = programs_parse_copy(o->in.items[i], mem, &spec->binds[spec->nbinds++], err);
    for (size_t i = 0; i < nbinds && o->in.count && r == 0; i++)
        if (strcmp(spec->binds[i].dest, "/workspace") == 0)
            r = err_set(err, ERR_USAGE,
                        "--in: %.80s is shown as /workspace, so nothing can be copied there; give "
                        "it another place, such as %.80s:/workspace/data",
                        spec->binds[i].source, spec->binds[i].source);
    return r;
}

void jail_options_init(struct jail_options *o)
{
    *o = (struct jail_options){.net = "none"};
#define X(name) o->limits.name = UINT64_MAX;
    JAIL_LIMITS(X)
#undef X
}

/* What was not said is the policy's; what was said may not pass its ceiling. What a server says is nobody's wish, and a
 * ceiling that was lowered since cuts it: otherwise nothing would run until somebody has the server read the policy again. */
static int jail_options_limits(const struct jail_options *o, const struct policy *p,
                               struct jail_limits *l, struct err *err)
{
    const struct {
        const char *option;
        uint64_t said, normal, ceiling, *to;
    } rows[] = {
        {"timeout", o->limits.wall_ms, p->limits.timeout_ms, p->ceilings.timeout_ms, &l->wall_ms},
        {"cpu", o->limits.cpu_ms, p->limits.cpu_ms, p->ceilings.cpu_ms, &l->cpu_ms},
        {"memory", o->limits.memory, p->limits.memory, p->ceilings.memory, &l->memory},
        {"descriptors", o->limits.descriptors, p->limits.descriptors, p->ceilings.descriptors,
         &l->descriptors},
        {"disk", o->limits.disk, p->limits.disk, p->ceilings.disk, &l->disk},
        {"inodes", o->limits.inodes, p->limits.inodes, p->ceilings.inodes, &l->inodes},
        {"processes", o->limits.processes, p->limits.processes, p->ceilings.processes,
         &l->processes},
        {"threads", o->limits.threads, p->limits.threads, p->ceilings.threads, &l->threads},
        {"output", o->limits.output, p->limits.output, p->ceilings.output, &l->output},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool said = rows[i].said != UINT64_MAX;
        *rows[i].to = said ? rows[i].said : rows[i].normal;
        if (said && rows[i].said > rows[i].ceiling && o->served)
            *rows[i].to = rows[i].ceiling;
        else if (said && rows[i].said > rows[i].ceiling)
            return err_set(err, ERR_USAGE,
                           "--%s: more than the policy's ceiling (cordon policy show, ceilings)",
                           rows[i].option);
    }
    if (o->limits.threads == UINT64_MAX && l->processes > 0)
        l->threads = 0; /* the kernel counts both together: N means N */
    l->flood = l->output * p->flood_factor;
    return 0;
}

/* What the machine's policy has made final, an option can only tighten. */
static int jail_options_final(const struct jail_options *o, const struct policy *p, int mode,
                              int by, struct err *err)
{
    const struct {
        const char *option, *key;
        bool looser;
    } rows[] = {
        {"mode", "run.mode", mode > (int)p->run.mode},
        {"memory-by", "run.memory_by", by != (int)p->run.memory_by},
        {"escape", "output.escape",
         o->escape && strcmp(o->escape, "none") == 0 && p->output.escape != POLICY_ESCAPE_NONE},
        {"role", "run.role", o->role && strcmp(o->role, p->run.role) != 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].looser && policy_is_final(p, rows[i].key))
            return err_set(err, ERR_USAGE,
                           "--%s: %s is final in the machine's policy (cordon policy show)",
                           rows[i].option, rows[i].key);
    return 0;
}

/* No space: the gate counts a session under a name that has one, and a task is never a session. */
static int jail_options_task(const char *task, struct err *err)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const size_t len = task ? strlen(task) : 1;
    if (len >= 1 && len <= LIMIT_TASK && (!task || strspn(task, letters) == len))
        return 0;
    return err_set(err, ERR_USAGE,
                   "--task: '%.80s' is not a name of 1 to %d letters, digits, '-', '_' and '.'",
                   task, LIMIT_TASK);
}

int jail_options_fill(const struct jail_options *o, const struct policy *policy,
                      struct jail_spec *spec, enum jail_memory_by *ret_by, struct arena *mem,
                      struct err *err)
{
    static const char *const modes[] = {"full", "landlock", NULL},
                             *const bys[] = {"auto", "cgroup", "rlimit", NULL},
                             *const nets[] = {"none", NULL},
                             *const escapes[] = {"none", "html", NULL};
    int mode = o->mode ? jail_options_choose("mode", o->mode, modes, err) : (int)policy->run.mode;
    int by = mode < 0       ? mode
             : o->memory_by ? jail_options_choose("memory-by", o->memory_by, bys, err)
                            : (int)policy->run.memory_by;
    int r = by < 0 ? by : jail_options_choose("net", o->net, nets, err);
    if (r >= 0 && o->escape)
        r = jail_options_choose("escape", o->escape, escapes, err);
    if (r < 0)
        return r;
    if ((r = jail_options_final(o, policy, mode, by, err)) < 0 ||
        (r = jail_options_task(o->task, err)) < 0)
        return r;
    spec->mode = mode == 1 ? JAIL_LANDLOCK : JAIL_FULL;
    *ret_by = (enum jail_memory_by)by;
    spec->proc = o->proc;
    spec->run_written = o->run_written;
    r = jail_options_limits(o, policy, &spec->limits, err);
    if (r == 0)
        r = jail_options_binds(o, spec, mem, err);
    if (r == 0)
        r = jail_options_env(o, spec, mem, err);
    if (r == 0)
        r = jail_switches_from_env(spec, err);
    if (r == 0)
        r = jail_spec_check(spec, err);
    return r == 0 ? storage_check_binds(spec, policy, err) : r;
}

int jail_options_venv(const char *venv, const struct policy *policy, struct arena *mem,
                      const char **ret_venv, struct err *err)
{
    *ret_venv = NULL;
    if (!venv)
        return 0;
    if (policy_is_final(policy, "python.environment"))
        return err_set(err, ERR_USAGE,
                       "--venv: python.environment is final in the machine's policy (cordon policy "
                       "show)");
    *ret_venv = *venv ? programs_absolute(venv, mem) : NULL;
    return *ret_venv ? 0 : err_set(err, ERR_USAGE, "--venv needs the folder of an environment");
}

int jail_options_files(const struct jail_options *o, const struct policy_profile *profile,
                       struct err *err)
{
    if (!profile->packages && o->venv)
        return err_set(err, ERR_USAGE,
                       "--venv: a program under %.40s has no packages; use --profile standard",
                       profile->name);
    if (profile->files || !profile->compute_only || (!o->in.count && !o->out))
        return 0;
    return err_set(err, ERR_USAGE,
                   "--%s: a program under %.40s has no files; give it data with --stdin FILE and "
                   "take what it prints, or use --profile standard",
                   o->in.count ? "in" : "out", profile->name);
}

int jail_options_open_out(const struct jail_options *o, const struct jail_spec *spec,
                          const struct policy *policy, int *ret_fd, struct err *err)
{
    const struct jail_bind dir = {.source = o->out, .writable = true, .out = true};
    *ret_fd = -1;
    if (!o->out)
        return o->replace ? err_set(err, ERR_USAGE, "--replace is for --out DIR") : 0;
    if (spec->mode != JAIL_FULL)
        return err_set(err, ERR_USAGE,
                       "--out needs --mode full: the other has no /workspace of its own");
    for (size_t i = 0; i < spec->nbinds; i++)
        if (strcmp(spec->binds[i].dest, "/workspace") == 0 && spec->binds[i].writable)
            return err_set(err, ERR_USAGE,
                           "--out: %.80s is /workspace itself and keeps what the program leaves",
                           spec->binds[i].source);
    if (mkdir(o->out, 0777) < 0 && errno != EEXIST) {
        err_sys(err, "--out %.160s", o->out);
        return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
    }
    FD_AUTO there = jail_bind_open(&dir, err);
    if (there < 0)
        return there;
    const int r = storage_check("--out", o->out, there, policy, err);
    if (r < 0)
        return r;
    *ret_fd = openat(there, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*ret_fd >= 0)
        return 0;
    err_sys(err, "--out %.160s", o->out);
    return err->code = ERR_USAGE;
}

int jail_options_open_input(const char *input, int *ret_fd, struct err *err)
{
    *ret_fd = -1;
    if (!input)
        return 0;
    int fd = strcmp(input, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                     : open(input, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        err_sys(err, "--stdin %s", input);
        return err_is_host(err) ? err->code : (err->code = ERR_USAGE);
    }
    if (S_ISDIR(st.st_mode)) {
        fd_close(fd);
        return err_set(err, ERR_USAGE, "--stdin %s is a folder; name a file", input);
    }
    *ret_fd = fd;
    return 0;
}

int jail_options_stop_fd(void)
{
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    struct sigaction
        now; /* from here on it is heard by descriptor, and ends what waits at the end */
    if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
        (void)signal(SIGINT, SIG_DFL);
    return signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
}
