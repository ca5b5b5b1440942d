/* SPDX-License-Identifier: Apache-2.0 */
/* What cordon is compared with must be asked for the same thing, or the ratio says nothing: the
 * same namespaces, the same sight of the disk, no capability, and (for the rows that have a filter)
 * the filter that cordon itself loads. What a peer has no word for is named beside its row. */
#include "peers.h"

#include "jail/bpf_sim.h"
#include "jail/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <asm/prctl.h>
#endif

extern char **environ;

int peer_copy(const char *const *paths, const char *into)
{
    const char *cp[PEER_WORDS] = {"/bin/cp", "-a"};
    size_t n = 2;
    int status;
    pid_t pid;
    while (*paths && n < PEER_WORDS - 2)
        cp[n++] = *paths++;
    cp[n] = into;
    if (*paths || posix_spawn(&pid, cp[0], NULL, NULL, (char *const *)cp, environ) != 0 ||
        waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* Links of a merged /usr; a host that has folders here has them bound instead. */
static const char *const top[] = {"bin", "sbin", "lib", "lib64", "lib32"};
#define TOP_COUNT (sizeof top / sizeof *top)
static char top_path[TOP_COUNT][16], top_target[TOP_COUNT][64];

/* 'l' a link (its target is read), 'd' a folder, 0 not there. */
static char top_kind(size_t i)
{
    struct stat st;
    snprintf(top_path[i], sizeof top_path[i], "/%s", top[i]);
    if (lstat(top_path[i], &st) < 0)
        return 0;
    if (!S_ISLNK(st.st_mode))
        return 'd';
    ssize_t n = readlink(top_path[i], top_target[i], sizeof top_target[i] - 1);
    top_target[i][n < 0 ? 0 : n] = 0;
    return 'l';
}

void peer_bwrap(const char *argv[PEER_WORDS], int seccomp)
{
    static const char *const policy[] = {"--unshare-all",
                                         "--die-with-parent",
                                         "--new-session",
                                         "--clearenv",
                                         "--cap-drop",
                                         "ALL",
                                         "--ro-bind",
                                         "/usr",
                                         "/usr",
                                         "--ro-bind",
                                         "/etc/ld.so.cache",
                                         "/etc/ld.so.cache",
                                         "--dev",
                                         "/dev",
                                         "--tmpfs",
                                         "/tmp",
                                         "--tmpfs",
                                         "/workspace",
                                         "--chdir",
                                         "/workspace"};
    static char fd[8];
    int n = 0;
    argv[n++] = "/usr/bin/bwrap";
    for (size_t i = 0; i < sizeof policy / sizeof *policy; i++)
        argv[n++] = policy[i];
    for (size_t i = 0; i < TOP_COUNT; i++) {
        char kind = top_kind(i);
        if (!kind)
            continue;
        argv[n++] = kind == 'l' ? "--symlink" : "--ro-bind";
        argv[n++] = kind == 'l' ? top_target[i] : top_path[i];
        argv[n++] = top_path[i];
    }
    if (seccomp) {
        snprintf(fd, sizeof fd, "%d", PEER_FILTER_FD);
        argv[n++] = "--seccomp";
        argv[n++] = fd;
    }
    argv[n++] = "/bin/true";
    argv[n] = NULL;
}

/* bubblewrap has no listener: what cordon would report fails unseen. Two calls that cordon's
 * supervisor lets go on (the first execve, the exit) are let through ahead of the table. */
int peer_filter(void)
{
    const struct jail_filter *f = jail_filter_find("exec");
    const struct sock_filter head[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, 0}, /* the number */
        {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_execve},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_exit_group},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    int fd = f ? memfd_create("filter", MFD_CLOEXEC) : -1;
    if (fd < 0 || write(fd, head, sizeof head) != (ssize_t)sizeof head)
        return -1;
    for (unsigned i = 0; i < f->len; i++) {
        struct sock_filter in = f->insns[i];
        if (in.code == (BPF_RET | BPF_K) && in.k == SECCOMP_RET_USER_NOTIF)
            in.k = SECCOMP_RET_ERRNO | EPERM;
        if (write(fd, &in, sizeof in) != (ssize_t)sizeof in)
            return -1;
    }
    return fd;
}

/* ---- crun ---- */

static bool allowed(const struct jail_filter *f, struct seccomp_data call)
{
    call.arch = f->arch;
    return bpf_sim_run(f->insns, &call).action == SECCOMP_RET_ALLOW;
}

/* crun compiles its filter from names at every start: the calls that cordon's table allows when
 * their arguments are plain, and what the C library cannot start without. */
static bool crun_may_call(const struct jail_filter *f, int nr)
{
#if defined(__x86_64__)
    if (nr == SYS_arch_prctl) /* the loader sets the thread pointer by it, or exits with 127 */
        return allowed(f, (struct seccomp_data){.nr = nr, .args = {ARCH_SET_FS}});
#endif
    return nr == SYS_execve || nr == SYS_exit_group || allowed(f, (struct seccomp_data){.nr = nr});
}

static void print_calls(FILE *out)
{
    const struct jail_filter *f = jail_filter_find("exec");
    const char *comma = "";
    for (int nr = 0; f && nr < 600; nr++) {
        if (!crun_may_call(f, nr))
            continue;
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
        if (name) {
            fprintf(out, "%s\"%s\"", comma, name);
            comma = ", ";
        }
        free(name);
    }
}

static void print_bundle(FILE *out)
{
    fputs(
        "{\"ociVersion\": \"1.0.2\", \"root\": {\"path\": \"rootfs\", \"readonly\": true},\n"
        "\"process\": {\"user\": {\"uid\": 1000, \"gid\": 1000}, \"args\": [\"/bin/true\"],\n"
        "  \"cwd\": \"/workspace\", \"env\": [\"PATH=/usr/bin:/bin\"], \"noNewPrivileges\": true,\n"
        "  \"capabilities\": {\"bounding\": [], \"effective\": [], \"permitted\": [],\n"
        "    \"inheritable\": [], \"ambient\": []},\n"
        "  \"rlimits\": [{\"type\": \"RLIMIT_NOFILE\", \"soft\": 64, \"hard\": 64}]},\n"
        "\"mounts\": [\n",
        out);
    static const char *const tmpfs[] = {"/tmp", "/workspace"};
    for (size_t i = 0; i < 2; i++)
        fprintf(out,
                "  {\"destination\": \"%s\", \"type\": \"tmpfs\", \"source\": \"tmpfs\",\n"
                "   \"options\": [\"nosuid\", \"nodev\", \"mode=1777\", \"size=100m\"]},\n",
                tmpfs[i]);
    for (size_t i = 0; i < TOP_COUNT; i++)
        if (top_kind(i) == 'd')
            fprintf(out,
                    "  {\"destination\": \"%s\", \"source\": \"%s\", \"options\": [\"bind\", "
                    "\"ro\"]},\n",
                    top_path[i], top_path[i]);
    fputs("  {\"destination\": \"/usr\", \"source\": \"/usr\", \"options\": [\"bind\", \"ro\"]},\n"
          "  {\"destination\": \"/etc/ld.so.cache\", \"source\": \"/etc/ld.so.cache\",\n"
          "   \"options\": [\"bind\", \"ro\"]},\n"
          "  {\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},\n"
          "  {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\",\n"
          "   \"options\": [\"nosuid\", \"mode=755\", \"size=64k\"]}],\n"
          "\"linux\": {\"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"},\n"
          "    {\"type\": \"ipc\"}, {\"type\": \"uts\"}, {\"type\": \"mount\"},\n"
          "    {\"type\": \"user\"}, {\"type\": \"cgroup\"}],\n"
          "  \"uidMappings\": [{\"containerID\": 0, \"hostID\": 100000, \"size\": 65536}],\n"
          "  \"gidMappings\": [{\"containerID\": 0, \"hostID\": 100000, \"size\": 65536}],\n"
          "  \"seccomp\": {\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [\n"
          "    {\"action\": \"SCMP_ACT_ALLOW\", \"names\": [",
          out);
    print_calls(out);
    fputs("]}]}}}\n", out);
}

int peer_crun_bundle(const char *dir)
{
    char path[256];
    static const char *const folders[] = {"",     "/usr", "/etc",      "/proc",
                                          "/dev", "/tmp", "/workspace"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/rootfs%s", dir, folders[i]);
        if (mkdir(path, 0755) < 0)
            return -1;
    }
    for (size_t i = 0; i < TOP_COUNT; i++) {
        char kind = top_kind(i);
        snprintf(path, sizeof path, "%s/rootfs%s", dir, top_path[i]);
        if ((kind == 'l' && symlink(top_target[i], path) < 0) ||
            (kind == 'd' && mkdir(path, 0755) < 0))
            return -1;
    }
    snprintf(path, sizeof path, "%s/rootfs/etc/ld.so.cache", dir);
    int cache = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (cache < 0)
        return -1;
    close(cache);
    snprintf(path, sizeof path, "%s/config.json", dir);
    FILE *out = fopen(path, "we");
    if (!out)
        return -1;
    print_bundle(out);
    return fclose(out);
}

int peer_crun_mounts(void)
{
    static const char unified[] = "/sys/fs/cgroup/unified";
    int ready[2], ns = -1, status = 0;
    char path[64], byte = 0;
    if (access(unified, F_OK) < 0 || pipe2(ready, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        /* Covered, not unmounted: the unified tree may be in use. */
        if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("none", unified, "tmpfs", 0, "size=4k") == 0 && write(ready[1], &byte, 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    if (pid > 0 && read(ready[0], &byte, 1) == 1) {
        snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
        ns = open(path, O_RDONLY | O_CLOEXEC);
    }
    close(ready[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    return ns;
}
