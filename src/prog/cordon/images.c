/* SPDX-License-Identifier: Apache-2.0 */
/* Three ways by which terminals take a picture: kitty's and iTerm's take a PNG file as base64, sixel is a sequence of printable
 * characters. What cordon-image made is checked here all the same: it has read a guest's file, and a sequence of its own
 * would be the terminal's to obey.
 *
 * Waits: sys_child_wait in make_picture; cordon-image; LIMIT_IMAGE_MS for all pictures of a call; it is killed, and the
 *          picture is only named */
#include "images.h"

#include "base/clock.h"
#include "base/limits.h"
#include "events.h"
#include "flow/take.h"
#include "jail_options.h"
#include "programs.h"
#include "result.h"
#include "sys/child.h"
#include "sys/fd.h"
#include "writer.h"

#include <fcntl.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KITTY_CHUNK 4096 /* characters of base64 in one of kitty's sequences, at most */

static bool says(const char *variable, const char *begin)
{
    const char *value = getenv(variable);
    return value && strncmp(value, begin, strlen(begin)) == 0;
}

/* Nothing is asked of the terminal: its answer would be mixed with what is being typed. */
static enum images of_terminal(void)
{
    static const struct {
        const char *variable, *begin;
        enum images how;
    } rows[] = {
        {"TMUX", "", IMAGES_NAMED},
        {"TERM", "screen", IMAGES_NAMED},
        {"TERM", "tmux", IMAGES_NAMED},
        {"KITTY_WINDOW_ID", "", IMAGES_KITTY},
        {"TERM", "xterm-kitty", IMAGES_KITTY},
        {"TERM", "xterm-ghostty", IMAGES_KITTY},
        {"TERM_PROGRAM", "iTerm.app", IMAGES_ITERM},
        {"LC_TERMINAL", "iTerm2", IMAGES_ITERM},
        {"TERM_PROGRAM", "WezTerm", IMAGES_ITERM},
        {"TERM", "foot", IMAGES_SIXEL},
        {"TERM", "mlterm", IMAGES_SIXEL},
        {"TERM", "contour", IMAGES_SIXEL},
        {"TERM", "yaft", IMAGES_SIXEL},
    };
    for (size_t i = 0; isatty(STDOUT_FILENO) && i < sizeof rows / sizeof *rows; i++)
        if (says(rows[i].variable, rows[i].begin))
            return rows[i].how;
    return IMAGES_NAMED;
}

int images_choose(const char *word, enum images *ret, struct err *err)
{
    static const char *const names[] = {"none", "kitty", "iterm", "sixel", "auto", NULL};
    const int at = jail_options_choose("images", word ? word : "auto", names, err);
    if (at < 0)
        return at;
    *ret = names[at + 1] ? (enum images)at : of_terminal();
    return 0;
}

/* ---- cordon-image ---- */

_Noreturn static void become_image(const char *program, int file, int made, enum images how,
                                   pid_t parent)
{
    char most[16];
    snprintf(most, sizeof most, "%d", LIMIT_IMAGE_SIDE);
    const char *const argv[] = {program, "--from-cordon", how == IMAGES_SIXEL ? "sixel" : "png",
                                most, NULL};
    const char *const env[] = {NULL};
    const int fds[] = {file, made, open("/dev/null", O_WRONLY | O_CLOEXEC)};
    sys_child_exec(argv, env, fds, 3, true, parent);
}

/* When the pictures of this call have had their time, all together: one that cannot be decoded takes as long as one that can, and
 * a program can leave a thousand of them under a thousand names of one file. */
static uint64_t last_instant(void)
{
    return clock_now_ns() + LIMIT_IMAGE_MS * CLOCK_NS_PER_MS;
}

/* OUT: what cordon-image makes of FILE until then. -1: nothing. */
static int make_picture(int file, enum images how, uint64_t until, struct buf *out)
{
    char program[4096];
    struct err err = ERR_INIT;
    int status = 0;
    const uint64_t now = clock_now_ns();
    FD_AUTO made = now < until ? memfd_create("image", MFD_CLOEXEC) : -1;
    if (made < 0 || programs_find("cordon-image", program, sizeof program, &err) < 0)
        return -1;
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become_image(program, file, made, how, parent);
    if (pid < 0 || sys_child_wait(pid, (until - now) / CLOCK_NS_PER_MS, &status) < 0 || status != 0)
        return -1;
    return fd_read_back(made, out) < 0 ? -1 : 0;
}

/* ---- sequences ---- */

/* One sixel sequence and nothing behind it: the terminal is back where it was. */
static bool one_sixel(const struct buf *b)
{
    if (b->len < 5 || memcmp(b->data, "\033P", 2) != 0 ||
        memcmp(b->data + b->len - 2, "\033\\", 2) != 0)
        return false;
    for (size_t i = 2; i < b->len - 2; i++)
        if (b->data[i] < ' ' && b->data[i] != '\n' && b->data[i] != '\r')
            return false;
    return true;
}

static int put_kitty(const char *text, size_t len, struct buf *out)
{
    int r = 0;
    for (size_t at = 0; at < len && r == 0; at += KITTY_CHUNK) {
        const size_t now = len - at < KITTY_CHUNK ? len - at : KITTY_CHUNK;
        r = buf_printf(out, "\033_G%sm=%d;", at ? "" : "a=T,f=100,q=2,", at + now < len);
        if (r == 0)
            r = buf_add(out, text + at, now);
        if (r == 0)
            r = buf_str(out, "\033\\");
    }
    return r;
}

static int put_sequence(enum images how, const struct buf *picture, struct buf *out)
{
    if (how == IMAGES_SIXEL)
        return one_sixel(picture) ? buf_add(out, picture->data, picture->len) : -1;
    const size_t len = BASE64_ENCODE_RAW_LENGTH(picture->len);
    char *text = malloc(len);
    if (!text)
        return -1;
    base64_encode_raw(text, picture->len, (const uint8_t *)picture->data);
    int r = how == IMAGES_KITTY
                ? put_kitty(text, len, out)
                : buf_printf(out, "\033]1337;File=inline=1;size=%zu:", picture->len);
    if (how == IMAGES_ITERM && r == 0)
        r = buf_add(out, text, len);
    if (how == IMAGES_ITERM && r == 0)
        r = buf_str(out, "\a");
    free(text);
    return r;
}

/* False: it cannot be shown. */
static bool show(enum images how, int workspace, const char *path, uint64_t until)
{
    struct stat st;
    struct err err = ERR_INIT;
    struct buf picture, out;
    FD_AUTO file = flow_take_open(workspace, path, &st, &err);
    if (file < 0)
        return false;
    buf_init(&picture, LIMIT_IMAGE_SENT);
    buf_init(&out, 2 * LIMIT_IMAGE_SENT);
    const bool made = make_picture(file, how, until, &picture) == 0 && picture.len &&
                      put_sequence(how, &picture, &out) == 0 && buf_str(&out, "\n") == 0;
    if (made) {
        writer_ceiling(out.len + MIB);
        writer_take(JAIL_STDOUT, &out);
    }
    buf_done(&picture);
    buf_done(&out);
    return made;
}

static void name(const struct flow_file *f, const char *session)
{
    char line[512];
    snprintf(line, sizeof line,
             "%.160s (%s, %llu bytes); cordon session get %.40s %.160s copies it", f->path, f->type,
             (unsigned long long)f->bytes, session, f->path);
    result_note("image", line);
}

bool images_can_show(const char *type)
{
    static const char *const kinds[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
    for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(type, kinds[i]) == 0)
            return true;
    return false;
}

static bool event_until(int workspace, const char *path, const char *shown, uint64_t until)
{
    struct stat st;
    struct err err = ERR_INIT;
    struct buf picture;
    FD_AUTO file = flow_take_open(workspace, path, &st, &err);
    if (file < 0)
        return false;
    buf_init(&picture, LIMIT_IMAGE_SENT);
    const size_t len = make_picture(file, IMAGES_KITTY, until, &picture) == 0 ? picture.len : 0;
    char *text = len ? malloc(BASE64_ENCODE_RAW_LENGTH(len)) : NULL;
    if (text) {
        base64_encode_raw(text, len, (const uint8_t *)picture.data);
        events_image(shown, text, BASE64_ENCODE_RAW_LENGTH(len));
    }
    buf_done(&picture);
    free(text);
    return text != NULL;
}

bool images_event(int workspace, const char *path, const char *shown)
{
    return event_until(workspace, path, shown, last_instant());
}

void images_events(int files, const struct flow_result *result)
{
    static const char below[] = "/workspace/";
    const uint64_t until = last_instant();
    size_t shown = 0;
    FD_AUTO workspace = openat(files, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; workspace >= 0 && i < result->file_count && shown < LIMIT_IMAGES; i++) {
        const struct flow_file *f = &result->files[i];
        if (images_can_show(f->type) && strncmp(f->path, below, sizeof below - 1) == 0)
            shown += event_until(workspace, f->path + sizeof below - 1, f->path, until);
    }
}

void images_show(enum images how, int files, const char *session, const struct flow_result *result)
{
    static const char below[] = "/workspace/";
    const uint64_t until = last_instant();
    size_t shown = 0;
    FD_AUTO workspace = openat(files, "workspace", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; i < result->file_count && shown < LIMIT_IMAGES; i++) {
        const struct flow_file *f = &result->files[i];
        if (!f->type)
            continue;
        shown++;
        const bool can = images_can_show(f->type) && strncmp(f->path, below, sizeof below - 1) == 0;
        if (how != IMAGES_NAMED && can && workspace >= 0)
            (void)show(how, workspace, f->path + sizeof below - 1, until);
        name(f, session);
    }
}
