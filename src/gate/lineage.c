/* SPDX-License-Identifier: Apache-2.0 */
/* Users run agents under their own uid, so a uid does not tell a person from the program that asks.
 * What tells them apart, as far as anything does, is the process tree: an agent that starts both the
 * run and the answer is an ancestor of both. So every ancestor counts, except those that start the
 * sessions of people as well: pid 1, processes of other users, and a short list of logins, terminals
 * and multiplexers, which must be root's files to be believed. And whoever answers as the same user
 * needs a terminal of his own: a process that left its tree behind by forking twice has none, unless it
 * opens one.
 *
 * This is a fence, not a wall: a program with the same uid that wants to cheat can leave its tree before
 * it asks, or attach to the terminal of its user. The wall is another user (approval.approvers:
 * other-user). docs/gate.md says so. */
#include "gate/lineage.h"

#include "sys/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const servers[] = {
    "systemd",        "init",
    "login",          "sshd",
    "sshd-session",   "agetty",
    "getty",          "tmux",
    "screen",         "gnome-terminal-server",
    "gnome-shell",    "konsole",
    "xterm",          "kitty",
    "alacritty",      "foot",
    "wezterm",        "wezterm-gui",
    "ptyxis-agent",   "mate-terminal",
    "plasmashell",    "lightdm",
    "xfce4-terminal", "terminator",
    "mosh-server",    "gdm-session-worker",
};

static bool is_server(pid_t pid)
{
    char link[64], path[512];
    struct stat st;
    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || stat(link, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022))
        return false;
    path[n] = 0;
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; slash && i < sizeof servers / sizeof *servers; i++)
        if (strcmp(slash + 1, servers[i]) == 0)
            return true;
    return false;
}

/* The fields behind the command's name, which may contain anything. */
static bool read_stat(pid_t pid, struct gate_process *p, pid_t *ret_parent)
{
    char path[64], text[1024];
    int parent = 0, sid = 0, tty = 0;
    unsigned long long start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    const char *after = strrchr(text, ')');
    if (!after || sscanf(after + 1,
                         " %*c %d %*d %d %d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                         "%*d %*d %*d %llu",
                         &parent, &sid, &tty, &start) != 4)
        return false;
    *p = (struct gate_process){.pid = pid, .sid = sid, .tty = tty, .start = start};
    *ret_parent = parent;
    return true;
}

static bool read_uid(pid_t pid, uid_t *ret_uid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (fd_read_file(AT_FDCWD, path, text, sizeof text) < 0)
        return false;
    const char *line = strstr(text, "\nUid:");
    unsigned uid = 0;
    if (!line || sscanf(line, "\nUid: %u", &uid) != 1)
        return false;
    *ret_uid = uid;
    return true;
}

unsigned long long gate_process_start(pid_t pid)
{
    struct gate_process p;
    pid_t parent;
    return read_stat(pid, &p, &parent) ? p.start : 0;
}

int gate_lineage_read(struct gate_lineage *l, pid_t pid, struct err *err)
{
    *l = (struct gate_lineage){0};
    while (pid > 0 && l->count < GATE_LINEAGE_MAX) {
        struct gate_process *p = &l->items[l->count];
        pid_t parent = 0;
        if (!read_stat(pid, p, &parent) || !read_uid(pid, &p->uid))
            break; /* it ended in this moment: what is known counts */
        p->server = pid == 1 || is_server(pid);
        l->count++;
        pid = parent;
    }
    if (pid > 0 && l->count == GATE_LINEAGE_MAX) /* those that are left out might be common */
        return err_set(err, ERR_LIMIT, "this process has more than %d ancestors", GATE_LINEAGE_MAX);
    return l->count ? 0 : err_sys(err, "read the ancestors of a process in /proc");
}

int gate_lineage_write(const struct gate_lineage *l, struct buf *out)
{
    for (size_t i = 0; i < l->count; i++) {
        const struct gate_process *p = &l->items[i];
        int r = buf_printf(out, "%d %llu %u %d %d %d\n", (int)p->pid, p->start, (unsigned)p->uid,
                           (int)p->sid, p->tty, p->server);
        if (r < 0)
            return r;
    }
    return 0;
}

int gate_lineage_parse(struct gate_lineage *l, const char *text, size_t len)
{
    *l = (struct gate_lineage){0};
    const char *end = text + len;
    while (text < end) {
        char line[160];
        const char *nl = memchr(text, '\n', (size_t)(end - text));
        int pid, sid, tty, server;
        unsigned uid;
        unsigned long long start;
        if (!nl || (size_t)(nl - text) >= sizeof line || l->count == GATE_LINEAGE_MAX)
            return ERR_FORMAT;
        memcpy(line, text, (size_t)(nl - text));
        line[nl - text] = 0;
        if (sscanf(line, "%d %llu %u %d %d %d", &pid, &start, &uid, &sid, &tty, &server) != 6)
            return ERR_FORMAT;
        l->items[l->count++] = (struct gate_process){
            .pid = pid, .start = start, .uid = uid, .sid = sid, .tty = tty, .server = server != 0};
        text = nl + 1;
    }
    return l->count ? 0 : ERR_FORMAT;
}

static const struct gate_process *member(const struct gate_lineage *l, const struct gate_process *p)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].pid == p->pid && l->items[i].start == p->start)
            return &l->items[i];
    return NULL;
}

bool gate_lineage_apart(const struct gate_lineage *asker, const struct gate_lineage *answerer,
                        bool other_user, char *why, size_t size)
{
    base_assert(asker->count && answerer->count);
    const struct gate_process *a = &asker->items[0], *b = &answerer->items[0];
    for (size_t i = 0; i < answerer->count; i++) {
        const struct gate_process *p = &answerer->items[i];
        if (p->server || p->pid == 1 || p->uid != a->uid || !member(asker, p))
            continue;
        snprintf(why, size, "process %d started both the question and this answer", (int)p->pid);
        return false;
    }
    if (other_user && a->uid == b->uid) {
        snprintf(why, size, "policy wants another user than uid %u to answer", (unsigned)a->uid);
        return false;
    }
    if (a->sid == b->sid) {
        snprintf(why, size, "the question came from this very session");
        return false;
    }
    return true;
}

bool gate_lineage_may_answer(const struct gate_lineage *asker, const struct gate_lineage *answerer,
                             bool other_user, char *why, size_t size)
{
    const struct gate_process *a = &asker->items[0], *b = &answerer->items[0];
    if (!gate_lineage_apart(asker, answerer, other_user, why, size))
        return false;
    if (a->uid == b->uid && (b->tty == 0 || b->tty == a->tty)) {
        snprintf(why, size, "as the same user, answer from a terminal of your own");
        return false;
    }
    return true;
}

bool gate_lineage_siblings(const struct gate_lineage *asker, pid_t pid,
                           const struct gate_lineage *answerer)
{
    for (size_t i = 0; i + 1 < asker->count && answerer->count > 1; i++)
        if (asker->items[i].pid == pid)
            return asker->items[i + 1].pid == answerer->items[1].pid &&
                   asker->items[i + 1].start == answerer->items[1].start;
    return false;
}

void gate_lineage_name(const struct gate_lineage *l, char *out, size_t size)
{
    const struct gate_process *p = &l->items[0];
    unsigned tty = (unsigned)p->tty;
    int n = snprintf(out, size, "uid %u, pid %d", (unsigned)p->uid, (int)p->pid);
    if (p->tty && n > 0 && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, ", terminal %u:%u", tty >> 8 & 0xfff,
                 (tty & 0xff) | (tty >> 12 & 0xfff00));
}
