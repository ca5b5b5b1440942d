/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tables of tests/filter on the simulator, for both architectures wherever we are.
 *
 *   test_filter FOLDER
 *
 * A row:  ARCH FILTER CALL [ARG...] = ACTION
 *   ARCH     x86_64, aarch64, both; x86_64@i386: the filter of the first, a call of the second
 *   FILTER   a name, `each` for exec and exec-procs, `pythons` and `rubies` for those of
 *            a language's worker, `workers` for both, `guests` for all of them
 *   CALL     several joined by commas, or #NUMBER
 *   ARG      a name or number as in the filter tables; a `+high` behind it sets the upper 32 bits
 *   ACTION   allow, notify, trap, kill, or an errno's name; `free` is allow without looking at arguments
 * A call that the architecture lacks is an error unless the row says `both`. */
#include "base/languages.h"
#include "base/tap.h"
#include "jail/bpf_sim.h"
#include "jail/filter.h"
#include "jail/filters/constants.h"

#include <dirent.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <stdint.h>
#include <sys/mman.h>

static const struct {
    const char *name;
    uint32_t audit, scmp;
} arches[] = {
    {"x86_64", AUDIT_ARCH_X86_64, SCMP_ARCH_X86_64},
    {"aarch64", AUDIT_ARCH_AARCH64, SCMP_ARCH_AARCH64},
    {"i386", AUDIT_ARCH_I386, SCMP_ARCH_X86},
    {"arm", AUDIT_ARCH_ARM, SCMP_ARCH_ARM},
    {"riscv64", AUDIT_ARCH_RISCV64, SCMP_ARCH_RISCV64},
};

static const char *const filters_each[] = {"exec", "exec-procs", NULL};
static const char *const filters_python[] = {"python", "python-threads", "python-compute", NULL};
static const char *const filters_ruby[] = {"ruby", "ruby-threads", "ruby-compute", NULL};
static const char *const filters_javascript[] = {"javascript", "javascript-threads",
                                                 "javascript-compute", NULL};
#define WORKERS                                                                                    \
    "python", "python-threads", "python-compute", "ruby", "ruby-threads", "ruby-compute",          \
        "javascript", "javascript-threads", "javascript-compute"
static const char *const filters_workers[] = {WORKERS, NULL};
static const char *const filters_guests[] = {WORKERS, "exec", "exec-procs", "python-procs", NULL};

static const char *where;
static int line, rows;

static void bad_row(const char *why, const char *what)
{
    tap_ok(false, "%s:%d: %s: %s", where, line, why, what);
}

static int arch_index(const char *name)
{
    for (unsigned i = 0; i < sizeof arches / sizeof *arches; i++)
        if (strcmp(arches[i].name, name) == 0)
            return (int)i;
    return -1;
}

static const char *action_name(struct bpf_sim r, bool distinguish_free, char *buf, size_t size)
{
    switch (r.action & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
        return distinguish_free && !r.looked_at_arg ? "free" : "allow";
    case SECCOMP_RET_USER_NOTIF:
        return "notify";
    case SECCOMP_RET_TRAP:
        return "trap";
    case SECCOMP_RET_KILL_PROCESS:
        return "kill";
    case SECCOMP_RET_ERRNO:
        snprintf(buf, size, "errno %u", r.action & SECCOMP_RET_DATA);
        return buf;
    }
    return "?";
}

static void judge(const char *filter, int own, int calling, const char *call, struct seccomp_data d,
                  const char *want)
{
    const struct jail_filter *f = jail_filter_find_arch(filter, arches[own].audit);
    if (!f) {
        bad_row("no such filter", filter);
        return;
    }
    char got_buf[32], want_buf[32];
    d.arch = arches[calling].audit;
    struct bpf_sim r = bpf_sim_run(f->insns, &d);
    const char *got = action_name(r, strcmp(want, "free") == 0, got_buf, sizeof got_buf);
    int e = constants_errno(want);
    if (e >= 0) {
        snprintf(want_buf, sizeof want_buf, "errno %d", e);
        want = want_buf;
    }
    rows++;
    bool good = strcmp(got, want) == 0;
    tap_ok(good, "%s %s %s %llx %llx %llx %llx", arches[own].name, filter, call,
           (unsigned long long)d.args[0], (unsigned long long)d.args[1],
           (unsigned long long)d.args[2], (unsigned long long)d.args[3]);
    if (!good)
        printf("# %s:%d: got %s, want %s\n", where, line, got, want);
    if (strcmp(want, "notify") == 0) {
        const struct jail_call *c = jail_filter_call(f, d.nr);
        if (!c || strcmp(jail_call_name(f, c), call) != 0 || !*jail_call_reason(f, c))
            bad_row("notified, but the table has no name and reason for it", call);
    }
}

static void one_call(char **w, unsigned n, char *call, int own, int calling, bool both)
{
    struct seccomp_data d = {0};
    if (call[0] == '#') {
        uint64_t v;
        if (!constants_value(call + 1, &v)) {
            bad_row("no such number", call);
            return;
        }
        d.nr = (int)v;
    } else {
        d.nr = seccomp_syscall_resolve_name_arch(arches[calling].scmp, call);
        if (d.nr < 0 && both && d.nr != __NR_SCMP_ERROR)
            return;
        if (d.nr < 0) {
            bad_row("no such call there", call);
            return;
        }
    }
    unsigned i = 3;
    for (unsigned a = 0; i < n && strcmp(w[i], "=") != 0; i++, a++) {
        char word[256];
        snprintf(word, sizeof word, "%s", w[i]);
        char *high = strstr(word, "+high");
        if (high)
            *high = 0;
        uint64_t v;
        if (a > 5 || !constants_value(word, &v)) {
            bad_row("no such argument", w[i]);
            return;
        }
        d.args[a] = high ? v | 0xffffffff00000000u : v;
    }
    if (i + 2 != n) {
        bad_row("a row ends in `= ACTION`", w[0]);
        return;
    }
    const char *single[] = {w[1], NULL};
    const char *const *names = strcmp(w[1], "each") == 0          ? filters_each
                               : strcmp(w[1], "pythons") == 0     ? filters_python
                               : strcmp(w[1], "rubies") == 0      ? filters_ruby
                               : strcmp(w[1], "javascripts") == 0 ? filters_javascript
                               : strcmp(w[1], "workers") == 0     ? filters_workers
                               : strcmp(w[1], "guests") == 0      ? filters_guests
                                                                  : single;
    for (; *names; names++)
        judge(*names, own, calling, call, d, w[n - 1]);
}

static void row(char *text)
{
    char *words[32], *save = NULL, calls[1024];
    unsigned n = 0;
    if (text[0] == '#') /* elsewhere it stands before a number */
        return;
    for (char *w = strtok_r(text, " \t\n", &save); w && n < 32; w = strtok_r(NULL, " \t\n", &save))
        words[n++] = w;
    if (n == 0)
        return;
    if (n < 5) {
        bad_row("too few words", words[0]);
        return;
    }
    bool both = strcmp(words[0], "both") == 0;
    for (int a = 0; a < 2; a++) {
        int own = a, calling = a;
        if (!both) {
            char name[32];
            snprintf(name, sizeof name, "%s", words[0]);
            char *at = strchr(name, '@');
            if (at)
                *at = 0;
            own = arch_index(name);
            calling = at ? arch_index(at + 1) : own;
            if (own < 0 || own > 1 || calling < 0) {
                bad_row("no such architecture", words[0]);
                return;
            }
        }
        snprintf(calls, sizeof calls, "%s", words[2]);
        char *inner = NULL;
        for (char *c = strtok_r(calls, ",", &inner); c; c = strtok_r(NULL, ",", &inner))
            one_call(words, n, c, own, calling, both);
        if (!both)
            break;
    }
}

static void run_folder(const char *folder)
{
    struct dirent **list;
    int n = scandir(folder, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(list[i]->d_name);
        if (len > 6 && strcmp(list[i]->d_name + len - 6, ".tests") == 0) {
            char path[1024], text[2048];
            snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
            FILE *f = fopen(path, "re");
            int before = rows;
            where = list[i]->d_name;
            for (line = 1; f && fgets(text, sizeof text, f); line++)
                row(text);
            tap_ok(f && rows > before, "%s has rows", list[i]->d_name);
            if (f)
                fclose(f);
        }
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

/* What must hold of every filter as a whole. */
static void wholes(void)
{
    for (int a = 0; a < 2; a++) {
        for (const char *const *name = filters_guests; *name; name++) {
            const struct jail_filter *f = jail_filter_find_arch(*name, arches[a].audit);
            tap_ok(f != NULL, "%s %s exists", arches[a].name, *name);
            if (!f)
                continue;
            const char *wrong = bpf_sim_check(f->insns, f->len);
            tap_ok(!wrong, "%s %s is a program the kernel takes%s%s", arches[a].name, *name,
                   wrong ? ": " : "", wrong ? wrong : "");
            if (wrong)
                continue;
            unsigned steps = 0, numbers = 0, most = 0, free_calls = 0, unnamed = 0;
            for (int nr = 0; nr < 512; nr++, numbers++) {
                struct seccomp_data d = {.nr = nr, .arch = f->arch};
                struct bpf_sim r = bpf_sim_run(f->insns, &d);
                steps += r.steps;
                most = r.steps > most ? r.steps : most;
                free_calls += r.action == SECCOMP_RET_ALLOW && !r.looked_at_arg;
                unnamed += r.action == SECCOMP_RET_USER_NOTIF && !jail_filter_call(f, nr);
            }
            tap_eq_int(unnamed, 0, "%s %s: every notified call has a name", arches[a].name, *name);
            tap_ok(free_calls > 150, "%s %s: %u calls are free", arches[a].name, *name, free_calls);
            tap_ok(steps / numbers < 16,
                   "%s %s: the tree is flat (%u steps on average, %u at most)", arches[a].name,
                   *name, steps / numbers, most);
            printf("#= filter %s %s: %u instructions, %u steps on average, %u calls free\n",
                   arches[a].name, *name, f->len, steps / numbers, free_calls);
            bool sorted = true;
            for (unsigned i = 1; i < f->n_calls; i++)
                sorted &= f->calls[i - 1].nr < f->calls[i].nr;
            tap_ok(sorted && f->n_calls > 100, "%s %s: denied calls are sorted", arches[a].name,
                   *name);
        }
    }
    tap_ok(!jail_filter_find("no-such") && !jail_filter_find_arch("exec", AUDIT_ARCH_I386),
           "an unknown name or architecture has no filter");
    const struct jail_filter *f = jail_filter_find("exec");
    tap_ok(f && !jail_filter_call(f, -1) && !jail_filter_call(f, 1 << 30),
           "numbers outside the table have no entry");
}

/* A call that the supervisor lets go on although the first table notifies it (jail/notify.c): the end, a signal to
 * itself, and a session's branch that was asked for. */
static bool let_go_on(const char *name)
{
    static const char *const names[] = {"exit_group", "kill", "tgkill", "clone", "capset"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* What two tables say of a call, one over the other: the kernel takes the stricter word. */
static uint32_t stacked(const struct jail_filter *first, const struct jail_filter *second,
                        const struct seccomp_data *d)
{
    uint32_t a = bpf_sim_run(first->insns, d).action, b = bpf_sim_run(second->insns, d).action;
    return (int32_t)(a & SECCOMP_RET_ACTION_FULL) < (int32_t)(b & SECCOMP_RET_ACTION_FULL) ? a : b;
}

/* The table of computation over the first one: at most 35 calls can happen, and what the first one reports is still
 * reported. Arguments are tried one value for all: each allowed call is allowed with zeros or with a channel's number. */
static void computes(const char *first)
{
    for (int a = 0; a < 2; a++) {
        const struct jail_filter *under = jail_filter_find_arch(first, arches[a].audit);
        const struct jail_filter *f = jail_filter_find_arch("compute", arches[a].audit);
        unsigned possible = 0, hidden = 0, unnamed = 0;
        const char *wrong = f ? bpf_sim_check(f->insns, f->len) : "missing";
        tap_ok(!wrong && under, "%s compute is a program the kernel takes", arches[a].name);
        if (wrong || !under)
            continue;
        printf("#= filter %s compute over %s, calls that can happen:", arches[a].name, first);
        for (int nr = 0; nr < 1024; nr++) {
            bool can = false;
            char *name = seccomp_syscall_resolve_num_arch(arches[a].scmp, nr);
            for (uint64_t arg = 0; name && arg < 70; arg++) {
                struct seccomp_data d = {
                    .nr = nr, .arch = f->arch, .args = {arg, arg, arg, arg, arg, arg}};
                uint32_t both = stacked(under, f, &d);
                can |= both == SECCOMP_RET_ALLOW ||
                       (both == SECCOMP_RET_USER_NOTIF && let_go_on(name));
                hidden += bpf_sim_run(under->insns, &d).action == SECCOMP_RET_USER_NOTIF &&
                          both != SECCOMP_RET_USER_NOTIF && both != SECCOMP_RET_TRAP;
                unnamed += both == SECCOMP_RET_TRAP && !jail_filter_call(f, nr);
            }
            possible += can;
            if (can)
                printf(" %s", name);
            free(name);
        }
        printf("\n");
        tap_ok(possible > 20 && possible <= 35, "%s compute over %s: %u calls, at most 35",
               arches[a].name, first, possible);
        tap_eq_int(hidden, 0, "%s compute over %s: refuses nothing in silence that was reported",
                   arches[a].name, first);
        tap_eq_int(unnamed, 0, "%s compute: every trapped call has a name", arches[a].name);
        tap_ok(!jail_filter_notifies(f), "%s compute: needs no listener", arches[a].name);
    }
}

/* A run's own number written in: what is more than that at once is notified, and nothing else. */
static void bound(void)
{
    static const uint64_t limits[] = {4u << 20, 512u << 20, 0xfffffffeu, 0xffffffffu, 6ull << 30};
    enum { ASK = 0x5a5a5a }; /* stands for the number of bytes */
    static const struct {
        const char *call;
        uint64_t args[4];
        bool counts;
    } kinds[] = {
        {"mmap", {0, ASK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS}, true},
        {"mmap", {0, ASK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS}, false},
        {"mmap",
         {0, ASK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE},
         false},
        {"mremap", {0, 4096, ASK, MREMAP_MAYMOVE}, true},
        {"mremap", {0, ASK, 4096, MREMAP_MAYMOVE}, false},
    };
    for (int a = 0; a < 2; a++)
        for (const char *const *name = filters_guests; *name; name++) {
            const struct jail_filter *f = jail_filter_find_arch(*name, arches[a].audit);
            static struct sock_filter own[4096];
            unsigned wrong = 0;
            for (size_t l = 0; f && l < sizeof limits / sizeof *limits; l++) {
                jail_filter_bound(f, limits[l], own);
                wrong += bpf_sim_check(own, f->len) != NULL;
                for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
                    for (int more = -1; more < 4; more++) {
                        uint64_t ask = more == 3   ? UINT64_MAX
                                       : more == 2 ? limits[l] + (1ull << 32)
                                                   : limits[l] + (uint64_t)(int64_t)more;
                        struct seccomp_data d = {
                            .nr = seccomp_syscall_resolve_name_arch(arches[a].scmp, kinds[k].call),
                            .arch = f->arch};
                        for (size_t i = 0; i < 4; i++)
                            d.args[i] = kinds[k].args[i] == ASK ? ask : kinds[k].args[i];
                        uint32_t want = kinds[k].counts && ask > limits[l] ? SECCOMP_RET_USER_NOTIF
                                                                           : SECCOMP_RET_ALLOW;
                        wrong += bpf_sim_run(own, &d).action != want;
                    }
            }
            tap_ok(f && f->n_over == 2 && wrong == 0, "%s %s: more than the limit at once",
                   arches[a].name, *name);
        }
}

/* A template's table lies below its children's. What theirs allow or notify must pass here; and where
 * nobody listens, nothing may be notified: it would say ENOSYS to everybody. */
static void below(void)
{
    for (int a = 0; a < 2; a++) {
        const struct jail_filter *t = jail_filter_find_arch("template", arches[a].audit);
        unsigned hidden = 0, notified = 0, looked = 0;
        for (const char *const *name = filters_python; t && *name; name++) {
            const struct jail_filter *f = jail_filter_find_arch(*name, arches[a].audit);
            /* the first argument of most calls that look at one: flags, options, families */
            for (int nr = 0; f && nr < 512; nr++)
                for (uint64_t arg = 0; arg < 70; arg++) {
                    struct seccomp_data d = {
                        .nr = nr, .arch = f->arch, .args = {arg, arg, arg, arg, arg, arg}};
                    uint32_t above = bpf_sim_run(f->insns, &d).action;
                    uint32_t under = bpf_sim_run(t->insns, &d).action;
                    looked++;
                    notified += under == SECCOMP_RET_USER_NOTIF;
                    hidden += (above == SECCOMP_RET_USER_NOTIF || above == SECCOMP_RET_ALLOW) &&
                              under != SECCOMP_RET_ALLOW;
                }
        }
        tap_ok(looked && !hidden, "%s template: hides nothing that a child's table shows",
               arches[a].name);
        tap_ok(looked && !notified, "%s template: the filter notifies nobody", arches[a].name);
        tap_ok(t && !jail_filter_notifies(t) && jail_filter_notifies(jail_filter_find("python")),
               "%s template: is known to need no listener", arches[a].name);
    }
}

/* The simulator's own refusals. */
static void simulator(void)
{
    const struct sock_filter ret = {BPF_RET | BPF_K, 0, 0, 0};
    const struct sock_filter past[] = {{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0}, ret};
    const struct sock_filter odd[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 3}, ret};
    const struct sock_filter open_end[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}};
    const struct sock_filter far[] = {{BPF_JMP | BPF_JA, 0, 0, 1}, ret};
    tap_ok(bpf_sim_check(past, 2) && bpf_sim_check(odd, 2) && bpf_sim_check(open_end, 1) &&
               bpf_sim_check(far, 2) && bpf_sim_check(&ret, 0) && !bpf_sim_check(&ret, 1),
           "the simulator refuses what the kernel refuses");
}

/* A cold worker and a child of a template ask for them by these names. */
static void filters_of_languages(void)
{
    char name[48];
    for (const struct language *l = language_next(NULL); l; l = language_next(l))
        for (int i = 0; l->worker && i < 8; i++) {
            language_filter(l, i & 1, i & 2, i & 4, name, sizeof name);
            tap_ok(jail_filter_find(name) != NULL, "the worker of %s has the filter %s", l->name,
                   name);
        }
    language_filter_procs(language_default(), name, sizeof name);
    tap_ok(jail_filter_find(name) != NULL, "a worker that may start programs has the filter %s",
           name);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: test_filter FOLDER\n");
        return 2;
    }
    simulator();
    wholes();
    computes("python-compute");
    computes("python-compute-landlock");
    computes("ruby-compute");
    computes("ruby-compute-landlock");
    computes("javascript-compute");
    computes("javascript-compute-landlock");
    filters_of_languages();
    bound();
    below();
    run_folder(argv[1]);
    tap_ok(rows > 300, "%d rows of tests/filter were run", rows);
    return tap_done();
}
