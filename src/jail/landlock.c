/* SPDX-License-Identifier: Apache-2.0 */
/* Paths by Landlock, independent of the mount table: should the private root have a hole, the rules
 * here still name the only folders that open. Rules stick to inodes; the rule for what is writable
 * lies on /live, a folder of the read-only root above the mount that is written to: Landlock looks at the folders
 * above a mount, so the rule holds for whatever is mounted there later. */
#include "jail/confine.h"
#include "jail/inside.h"

#include "sys/fd.h"
#include "sys/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FS(x) LANDLOCK_ACCESS_FS_##x

/* What each ABI brought. A row is used when the running kernel is at least that new. */
static const struct {
    int abi;
    struct sys_landlock_attr adds;
} abis[] = {
    {1,
     {.fs = FS(EXECUTE) | FS(WRITE_FILE) | FS(READ_FILE) | FS(READ_DIR) | FS(REMOVE_DIR) |
            FS(REMOVE_FILE) | FS(MAKE_CHAR) | FS(MAKE_DIR) | FS(MAKE_REG) | FS(MAKE_SOCK) |
            FS(MAKE_FIFO) | FS(MAKE_BLOCK) | FS(MAKE_SYM)}},
    {2, {.fs = FS(REFER)}},
    {3, {.fs = FS(TRUNCATE)}},
    {4, {.net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP}},
    {5, {.fs = FS(IOCTL_DEV)}},
    {6, {.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL}},
};

#define READ (FS(READ_FILE) | FS(READ_DIR))
#define RUN  (READ | FS(EXECUTE))
#define WRITE                                                                                      \
    (READ | FS(WRITE_FILE) | FS(REMOVE_DIR) | FS(REMOVE_FILE) | FS(MAKE_DIR) | FS(MAKE_REG) |      \
     FS(MAKE_SOCK) | FS(MAKE_FIFO) | FS(MAKE_SYM) | FS(REFER) | FS(TRUNCATE))
#define FILE_ONLY (FS(READ_FILE) | FS(WRITE_FILE) | FS(EXECUTE) | FS(TRUNCATE) | FS(IOCTL_DEV))

struct rule {
    const char *path;
    uint64_t access;
    bool optional; /* a machine may lack it */
};

/* The private root (root.c). /.sealed has no rule that lets it be read: the launcher tries. */
static const struct rule private_root[] = {
    {"/", FS(READ_DIR), false}, {"/usr", RUN, false},
    {"/etc", READ, false},      {"/bin", RUN, true},
    {"/lib", RUN, true},        {"/lib64", RUN, true},
    {"/sbin", RUN, true},       {"/lib32", RUN, true},
    {"/proc", READ, true},      {"/dev", READ | FS(WRITE_FILE), false},
    {"/live", WRITE, false},
};
/* The host's root, in the mode without namespaces and when a test turns the private root off. */
static const struct rule host_root[] = {
    {"/usr", RUN, false},
    {"/bin", RUN, true},
    {"/lib", RUN, true},
    {"/lib64", RUN, true},
    {"/sbin", RUN, true},
    {"/lib32", RUN, true},
    {"/etc/ld.so.cache", FS(READ_FILE), true},
    {"/etc/alternatives", READ, true},
    {"/dev/null", FS(READ_FILE) | FS(WRITE_FILE), false},
    {"/dev/zero", FS(READ_FILE) | FS(WRITE_FILE), false},
    {"/dev/random", FS(READ_FILE), false},
    {"/dev/urandom", FS(READ_FILE), false},
#ifdef CORDON_LAYER_SWITCHES
    {"/mnt", WRITE, true}, /* see root.c */
#endif
};

static int allow_fd(int ruleset, int fd, const char *path, uint64_t access, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_sys(err, "stat %s for its rule", path);
    if (S_ISLNK(st.st_mode))
        return 0; /* /bin -> usr/bin: the rule for /usr covers it */
    if (!S_ISDIR(st.st_mode))
        access &= FILE_ONLY;
    if (sys_landlock_allow_path(ruleset, fd, access) < 0)
        return err_sys(err, "the rule for %s", path);
    return 0;
}

static int allow(int ruleset, const char *path, uint64_t access, bool optional, struct err *err)
{
    FD_AUTO fd = open(path, O_PATH | O_CLOEXEC | (optional ? O_NOFOLLOW : 0));
    if (fd < 0)
        return optional && errno == ENOENT ? 0 : err_sys(err, "open %s for its rule", path);
    return allow_fd(ruleset, fd, path, access, err);
}

/* In a root of its own the bind is where we put it. On the host its name may mean another folder by now: there the
 * rule is for the descriptor that was checked. */
static int allow_bind(const struct jail_spec *spec, size_t i, const int *bind_fds, int ruleset,
                      uint64_t access, struct err *err)
{
    const struct jail_bind *b = &spec->binds[i];
    if (spec->mode == JAIL_LANDLOCK)
        return allow_fd(ruleset, bind_fds[i], b->source, access, err);
    return allow(ruleset, jail_off(spec, mount) ? b->source : b->dest, access, false, err);
}

/* A ruleset that handles all that the kernel can; -1 with errno. */
static int create(int abi, struct sys_landlock_attr *ret_handled)
{
    struct sys_landlock_attr handled = {0};
    for (size_t i = 0; i < sizeof abis / sizeof *abis; i++)
        if (abis[i].abi <= abi) {
            handled.fs |= abis[i].adds.fs;
            handled.net |= abis[i].adds.net;
            handled.scoped |= abis[i].adds.scoped;
        }
    size_t size = handled.scoped ? sizeof handled
                  : handled.net  ? offsetof(struct sys_landlock_attr, scoped)
                                 : offsetof(struct sys_landlock_attr, net);
    *ret_handled = handled;
    return sys_landlock_create(&handled, size);
}

int jail_landlock_folders(const struct jail_folder *folders, size_t count, int *ret_ruleset,
                          struct err *err)
{
    struct sys_landlock_attr handled = {0};
    int abi = sys_landlock_abi();
    if (abi < 1)
        return err_set(err, ERR_MISSING, "this kernel has no Landlock");
    FD_AUTO ruleset = create(abi, &handled);
    if (ruleset < 0)
        return err_sys(err, "create the ruleset");
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = allow_fd(ruleset, folders[i].fd,
                     folders[i].writable ? "a writable folder" : "a readable folder",
                     (folders[i].writable ? WRITE : READ) & handled.fs, err);
    if (r == 0)
        *ret_ruleset = fd_take(&ruleset);
    return r;
}

int jail_landlock_make(const struct jail_spec *spec, const int *bind_fds, int *ret_ruleset,
                       struct err *err)
{
    int abi = sys_landlock_abi();
    if (abi < 1)
        return err_sys(err, "this kernel has no Landlock");
    if (spec->mode == JAIL_LANDLOCK && abi < 6)
        return err_set(err, ERR_MISSING,
                       "--mode landlock needs Linux 6.12 (Landlock ABI 6; this is %d): without it "
                       "nothing keeps signals from the user's other processes",
                       abi);
    struct sys_landlock_attr handled = {0};
    FD_AUTO ruleset = create(abi, &handled);
    if (ruleset < 0)
        return err_sys(err, "create the ruleset");

    bool own_root = spec->mode == JAIL_FULL && !jail_off(spec, mount);
    const struct rule *rules = own_root ? private_root : host_root;
    size_t count = own_root ? sizeof private_root / sizeof *private_root
                            : sizeof host_root / sizeof *host_root;
    uint64_t written = WRITE | (spec->run_written ? FS(EXECUTE) : 0);
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = allow(ruleset, rules[i].path,
                  (rules[i].access == WRITE ? written : rules[i].access) & handled.fs,
                  rules[i].optional, err);
    for (size_t i = 0; i < spec->nbinds && r == 0; i++)
        r = spec->binds[i].lower || spec->binds[i].copied
                ? 0
                : allow_bind(spec, i, bind_fds, ruleset,
                             (spec->binds[i].writable ? written : RUN) & handled.fs, err);
    if (r == 0)
        *ret_ruleset = fd_take(&ruleset);
    return r;
}

int jail_landlock_enter(int ruleset, struct err *err)
{
    return sys_landlock_restrict(ruleset) < 0 ? err_sys(err, "restrict_self") : 0;
}
