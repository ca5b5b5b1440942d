/* SPDX-License-Identifier: Apache-2.0 */
/* The files: which are taken and which are not, in which order, when they change, and where a guest could write
 * them. All of it in a folder of its own. */
#include "base/tap.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char top[64] = "/tmp/cordon-policy-XXXXXX";

static const char *at(const char *name)
{
    static char paths[8][200];
    static size_t next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", top, name);
    return p;
}

static void put(const char *name, const char *text, mode_t mode)
{
    unlink(at(name));
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode) < 0)
        printf("# %s: %s\n", at(name), strerror(errno));
    close(fd);
}

/* Overwrites in place: the same inode. */
static void edit(const char *name, const char *text)
{
    int fd = open(at(name), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        printf("# %s: %s\n", at(name), strerror(errno));
    close(fd);
}

static void rest(void) /* until a change cannot be missed */
{
    nanosleep(&(struct timespec){.tv_nsec = 60000000}, NULL);
}

static int open_one(const char *name, struct err *err)
{
    struct policy_store *store = NULL;
    int r = policy_open_files(NULL, NULL, at(name), &store, err);
    policy_close(store);
    return r;
}

static void order(void)
{
    struct policy_store *store = NULL;
    struct err err = ERR_INIT;
    tap_ok(policy_open_files(at("none1"), at("none2"), NULL, &store, &err) == 0 &&
               policy_now(store) == &policy_builtin,
           "without files the policy is the built-in one");
    policy_close(store);
    put("system.yaml", "limits: {timeout: 1s, cpu: 1s, threads: 1}\n", 0644);
    put("user.yaml", "limits: {timeout: 2s, cpu: 2s}\n", 0600);
    put("asked.yaml", "limits: {timeout: 3s}\n", 0444);
    tap_ok(policy_open_files(at("system.yaml"), at("user.yaml"), at("asked.yaml"), &store, &err) ==
               0,
           "a policy of three files opens");
    const struct policy *p = policy_now(store);
    tap_ok(p->limits.timeout_ms == 3000 && p->limits.cpu_ms == 2000 && p->limits.threads == 1,
           "--policy wins over the user's file, which wins over the system's");
    policy_close(store);
    tap_ok(policy_open_files(NULL, NULL, at("none"), &store, &err) == ERR_USAGE &&
               strstr(err.msg, "no such file"),
           "a file that was asked for must be there");
    put("two.yaml", "limits: {timeout: x}\nrun: {mode: y}\n", 0600);
    tap_ok(policy_open_files(at("system.yaml"), at("two.yaml"), NULL, &store, &err) == ERR_FORMAT &&
               strstr(err.msg, "two.yaml:1:19: limits.timeout: 'x'") &&
               strstr(err.msg, "and 1 more"),
           "a broken file is no policy at all");
    printf("# %s\n", err.msg);
    tap_ok(policy_open("nonsense", &store, &err) == ERR_USAGE && strstr(err.msg, "max-safety"),
           "a policy name that is not shipped is refused");
    tap_ok(policy_open("a\033b", &store, &err) == ERR_USAGE,
           "a policy name with a control character is refused");
}

static void trust(void)
{
    struct err err = ERR_INIT;
    put("good.yaml", "version: 1\n", 0644);
    tap_ok(open_one("good.yaml", &err) == 0, "a file of our own is taken");
    put("group.yaml", "version: 1\n", 0664);
    tap_ok(open_one("group.yaml", &err) == ERR_USAGE && strstr(err.msg, "chmod go-w"),
           "a file that is writable for the group is refused");
    put("world.yaml", "version: 1\n", 0606);
    tap_ok(open_one("world.yaml", &err) == ERR_USAGE,
           "a file that is writable for everybody is refused");
    mkdir(at("folder"), 0755);
    tap_ok(open_one("folder", &err) == ERR_USAGE && strstr(err.msg, "regular"),
           "a folder in the place of a policy file is refused");
    mkfifo(at("fifo"), 0600);
    tap_ok(open_one("fifo", &err) == ERR_USAGE && strstr(err.msg, "regular"),
           "a pipe in the place of a policy file is refused, and not waited for");
    mkdir(at("anybody"), 0755);
    put("anybody/p.yaml", "version: 1\n", 0600);
    chmod(at("anybody"), 0777);
    tap_ok(open_one("anybody/p.yaml", &err) == ERR_USAGE &&
               strstr(err.msg, "writable for everybody"),
           "a file in a folder that everybody may write is refused");
    chmod(at("anybody"), 01777);
    tap_ok(open_one("anybody/p.yaml", &err) == 0,
           "a file in a folder with the sticky bit, as /tmp, is taken");
    if (symlink("good.yaml", at("link.yaml")) < 0 || symlink("loop.yaml", at("loop.yaml")) < 0 ||
        symlink(at("anybody"), at("through")) < 0)
        printf("# no links\n");
    tap_ok(open_one("link.yaml", &err) == 0, "a file behind a link of our own is taken");
    tap_ok(open_one("loop.yaml", &err) == ERR_USAGE && strstr(err.msg, "too many links"),
           "a loop of links is refused");
    chmod(at("anybody"), 0777);
    tap_ok(open_one("through/p.yaml", &err) == ERR_USAGE,
           "a link into a folder that everybody may write is refused");
    if (geteuid() == 0) {
        put("other.yaml", "version: 1\n", 0600);
        if (chown(at("other.yaml"), 12345, 12345) < 0)
            printf("# chown: %s\n", strerror(errno));
        tap_ok(open_one("other.yaml", &err) == ERR_USAGE && strstr(err.msg, "somebody else"),
               "a policy file of somebody else is refused");
    } else {
        tap_skip("a policy file of somebody else is refused", "needs root");
    }
    int fd = open(at("big.yaml"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 2 << 20) < 0)
        printf("# no big file\n");
    close(fd);
    tap_ok(open_one("big.yaml", &err) == ERR_LIMIT, "a policy file beyond a megabyte is refused");
}

static void writable(void)
{
    struct err err = ERR_INIT;
    mkdir(at("guest"), 0755);
    mkdir(at("guest/deep"), 0755);
    mkdir(at("etc"), 0755);
    put("etc/p.yaml", "version: 1\n", 0600);
    put("guest/deep/p.yaml", "version: 1\n", 0600);
    if (symlink("../guest/deep/p.yaml", at("etc/in.yaml")) < 0 ||
        symlink(at("etc/p.yaml"), at("guest/out.yaml")) < 0 || symlink("guest", at("alias")) < 0 ||
        link(at("etc/p.yaml"), at("etc/hard.yaml")) < 0)
        printf("# no links\n");
    char held[4][200];
    snprintf(held[0], sizeof held[0], "%s/guest", top);
    snprintf(held[1], sizeof held[1], "%s/alias", top);
    snprintf(held[2], sizeof held[2], "%s/etc/p.yaml", top);
    snprintf(held[3], sizeof held[3], "%s/no", top);
    const char *guest[] = {held[0]}, *alias[] = {held[1]}, *file[] = {held[2]},
               *absent[] = {held[3]};
    tap_ok(policy_path_safe(at("etc/p.yaml"), absent, 1, &err) == ERR_USAGE &&
               strstr(err.msg, "hard link"),
           "a policy file with a second name is refused");
    unlink(at("etc/hard.yaml"));
    tap_ok(policy_path_safe(at("etc/p.yaml"), guest, 1, &err) == 0,
           "a policy outside of what a guest may write is safe");
    tap_ok(policy_path_safe(at("etc/p.yaml"), absent, 1, &err) == 0,
           "a bind that is not there holds nothing");
    tap_ok(policy_path_safe(at("guest/deep/p.yaml"), guest, 1, &err) == ERR_USAGE &&
               strstr(err.msg, "may write"),
           "a policy inside of what a guest may write is refused");
    tap_ok(policy_path_safe(at("guest/deep/p.yaml"), alias, 1, &err) == ERR_USAGE,
           "a policy inside of what a guest may write is refused by another name, too");
    tap_ok(policy_path_safe(at("alias/deep/p.yaml"), guest, 1, &err) == ERR_USAGE,
           "a policy that we name otherwise, inside of what a guest may write, is refused");
    tap_ok(policy_path_safe(at("etc/in.yaml"), guest, 1, &err) == ERR_USAGE,
           "a link that leads into what a guest may write is refused");
    tap_ok(policy_path_safe(at("guest/out.yaml"), guest, 1, &err) == ERR_USAGE,
           "a link inside of what a guest may write is refused, as the guest could turn it");
    tap_ok(policy_path_safe(at("guest/deep/../../etc/p.yaml"), guest, 1, &err) == ERR_USAGE,
           "a path that goes through what a guest may write is refused");
    tap_ok(policy_path_safe(at("etc/p.yaml"), file, 1, &err) == ERR_USAGE,
           "a policy file that a guest may write itself is refused");
    tap_ok(policy_path_safe(at("guest/planted.yaml"), guest, 1, &err) == ERR_USAGE,
           "a place where a guest could plant a policy is refused");
    tap_ok(policy_path_safe(at("none/planted.yaml"), guest, 1, &err) == 0,
           "a place elsewhere where there is no policy yet is safe");

    struct policy_store *store = NULL;
    tap_ok(policy_open_files(at("etc/p.yaml"), at("guest/planted.yaml"), NULL, &store, &err) == 0 &&
               policy_paths_safe(store, guest, 1, &err) == ERR_USAGE &&
               policy_paths_safe(store, NULL, 0, &err) == 0,
           "every place that a policy is read from is looked at");
    policy_close(store);
    if (chdir(at("guest/deep")) == 0)
        tap_ok(policy_path_safe("p.yaml", guest, 1, &err) == ERR_USAGE,
               "a relative path is looked at from the root on");
    if (chdir("/") < 0)
        printf("# chdir\n");
}

/* The machine's file has made keys final: what a later file may still say. */
static void finals(void)
{
    static const struct {
        const char *later;
        bool taken;
    } rows[] = {
        {"approval: {mode: HITL}\n", true},
        {"approval: {mode: EVERY_N}\n", true},
        {"approval: {mode: AUTONOMOUS}\n", false},
        {"approval: {every_n: 2}\n", true},
        {"approval: {every_n: 6}\n", false},
        {"approval: {approvers: other-session}\n", false},
        {"approval: {iterations: 5}\n", true},
        {"approval: {iterations: 0}\n", false},
        {"approval: {elicitation: true}\n", false},
        {"approval: {tool: true}\n", false},
        {"approval: {contents: true}\n", true},
        {"approval: {contents: false}\n", false},
        {"ceilings: {memory: 600m}\n", true},
        {"ceilings: {memory: 2g}\n", false},
        {"limits: {timeout: 60s}\n", true}, /* not final; its ceiling is another key */
        {"run: {profiles: [strict]}\n", true},
        {"run: {profiles: [strict, open]}\n", false},
        {"run: {mode: landlock}\n", false},
        {"run: {mode: full}\n", true},
        {"run: {role: execute}\n", true},
        {"run: {role: explore}\n", false},
        {"roles: {execute: {tools: ['*']}}\n", false},
        {"profiles: {mine: {base: strict}}\n", true}, /* nobody may choose it */
        {"arena: {judges: []}\n", false},
        {"audit: {sync: off}\n", false},
        {"audit: {alert_command: []}\n", false},
        {"output: {redact: false}\n", false},
        {"output: {redact: true}\n", true},
        {"output: {scrub_paths: [/a, /b]}\n", true},
        {"output: {scrub_paths: [/b]}\n", false},
        {"search: {collections: []}\n", true},
        {"search: {collections: [a=/x]}\n", true},
        {"search: {collections: [a=/x, b=/y]}\n", false},
        {"search: {collections: [a=/y]}\n", false},
        {"rates: {window: 2m}\n", true},
        {"rates: {window: 1s}\n", false},
        {"final: []\n", false},
        {"final: [limits]\n", false},
        {"state: {folder: /tmp/other}\n", false},
    };
    struct policy_store *store = NULL;
    struct err err = ERR_INIT;
    put("machine.yaml",
        "final: [approval, ceilings, run.profiles, run.mode, run.role, roles, arena, audit, "
        "output, rates, search, state]\n"
        "search: {collections: [a=/x]}\n"
        "state: {folder: /var/lib/cordon}\n"
        "approval: {mode: EVERY_N, every_n: 5, approvers: other-user, iterations: 50, contents: "
        "true}\n"
        "ceilings: {memory: 1g, timeout: 60s}\n"
        "run: {profiles: [strict, standard]}\n"
        "audit: {sync: begin, alert_command: [/bin/true]}\n"
        "output: {scrub_paths: [/a]}\n",
        0600);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int asked = 0; asked < 2; asked++) {
            put("later.yaml", rows[i].later, 0600);
            int r = policy_open_files(at("machine.yaml"), asked ? NULL : at("later.yaml"),
                                      asked ? at("later.yaml") : NULL, &store, &err);
            tap_ok(rows[i].taken ? r == 0 : r == ERR_FORMAT && strstr(err.msg, "machine's policy"),
                   "below a final key, the %s file's %.*s is %s", asked ? "asked for" : "user's",
                   (int)strcspn(rows[i].later, "\n"), rows[i].later,
                   rows[i].taken ? "taken" : "refused by name");
            if (r == 0)
                policy_close(store);
        }
    put("user.yaml", "approval: {mode: HITL}\n", 0600);
    put("asked.yaml", "approval: {mode: EVERY_N}\n", 0600);
    tap_ok(policy_open_files(at("machine.yaml"), at("user.yaml"), at("asked.yaml"), &store, &err) ==
               ERR_FORMAT,
           "what the user's file tightened below a final key, --policy does not loosen again");
    put("machine.yaml", "final: [aproval]\n", 0600);
    tap_ok(policy_open_files(at("machine.yaml"), NULL, NULL, &store, &err) == ERR_FORMAT &&
               strstr(err.msg, "aproval"),
           "a word in final that names nothing is an error");
    put("machine.yaml", "final: [all]\nlimits: {timeout: 10s}\n", 0600);
    put("later.yaml", "limits: {timeout: 20s}\n", 0600);
    tap_ok(policy_open_files(at("machine.yaml"), at("later.yaml"), NULL, &store, &err) ==
               ERR_FORMAT,
           "final: [all] covers every key");
}

static void refresh(void)
{
    struct policy_store *store = NULL;
    struct err err = ERR_INIT;
    put("live.yaml", "limits: {timeout: 1s}\n", 0600);
    unlink(at("later.yaml"));
    tap_ok(policy_open_files(at("later.yaml"), at("live.yaml"), NULL, &store, &err) == 0,
           "a policy of two files is in force");
    tap_eq_int(policy_refresh(store, &err), 0, "a refresh finds no change");
    rest();
    tap_eq_int(policy_refresh(store, &err), 0, "a later refresh finds no change");
    edit("live.yaml", "limits: {timeout: 2s}\n");
    tap_ok(policy_refresh(store, &err) == 1 && policy_now(store)->limits.timeout_ms == 2000,
           "a file that is edited in place, at the same size, is taken up");
    edit("live.yaml", "limits: {timeout: 3s}\n");
    tap_ok(policy_refresh(store, &err) == 1 && policy_now(store)->limits.timeout_ms == 3000,
           "a file that is edited again at once is taken up");
    put("live.yaml", "limits: {timeout: 4s}\n", 0600);
    const struct policy *held = policy_hold(store);
    tap_ok(policy_refresh(store, &err) == 1 && policy_now(store)->limits.timeout_ms == 4000 &&
               held->limits.timeout_ms == 3000,
           "a file that is replaced is taken up, and who holds the old policy has it still");
    policy_release(store, held);
    rest();
    edit("live.yaml", "limits: {timeout: oops}\n");
    tap_ok(policy_refresh(store, &err) == ERR_FORMAT && strstr(err.msg, "live.yaml:1:19") &&
               policy_now(store)->limits.timeout_ms == 4000,
           "a broken file is reported, and the old policy stays in force");
    rest();
    tap_ok(policy_refresh(store, &err) <= 0 && policy_now(store)->limits.timeout_ms == 4000,
           "the old policy stays in force while the file is broken");
    edit("live.yaml", "limits: {timeout: 5s}\n");
    tap_ok(policy_refresh(store, &err) == 1 && policy_now(store)->limits.timeout_ms == 5000,
           "a broken file that is mended is taken up");
    chmod(at("live.yaml"), 0666);
    tap_ok(policy_refresh(store, &err) == ERR_USAGE && policy_now(store)->limits.timeout_ms == 5000,
           "a file that everybody may write is refused");
    chmod(at("live.yaml"), 0600);
    tap_ok(policy_refresh(store, &err) >= 0, "a file that is closed to others again is accepted");
    put("later.yaml", "limits: {cpu: 7s}\n", 0600);
    tap_ok(policy_refresh(store, &err) == 1 && policy_now(store)->limits.cpu_ms == 7000 &&
               policy_now(store)->limits.timeout_ms == 5000,
           "a policy file that came later is taken up");
    unlink(at("later.yaml"));
    unlink(at("live.yaml"));
    tap_ok(policy_refresh(store, &err) == 1 && policy_now(store) == &policy_builtin,
           "the built-in policy is in force when all files are gone");
    policy_close(store);
    put("asked.yaml", "limits: {timeout: 3s}\n", 0600);
    tap_ok(policy_open_files(NULL, NULL, at("asked.yaml"), &store, &err) == 0,
           "a file that was asked for is in force");
    unlink(at("asked.yaml"));
    tap_ok(policy_refresh(store, &err) == ERR_USAGE && policy_now(store)->limits.timeout_ms == 3000,
           "a file that was asked for and is gone stays in force, and that is reported");
    policy_close(store);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

int main(void)
{
    if (!tap_ok(mkdtemp(top) != NULL, "a folder for the policy files is made"))
        return tap_done();
    umask(022);
    order();
    trust();
    writable();
    finals();
    refresh();
    nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return tap_done();
}
