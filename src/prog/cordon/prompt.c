/* SPDX-License-Identifier: Apache-2.0 */
/* libedit reads keys and draws the line; what a key means here is ours. It is given nothing but the keystrokes of whoever
 * sits at the terminal and, for Tab, names that were looked at letter by letter. Its buffer holds the whole block, line
 * ends included: so a block is edited, recalled and pasted as one.
 *
 * Enter asks the session's parser whether the block is whole, and else begins the next line, indented as the last one. A paste
 * comes in brackets (`ESC [200~`), as terminals send it when they are asked to, and is put in as it is: empty lines in
 * it end nothing.
 *
 * Waits: poll in next_byte; a person to type; none (a person sits there: a signal ends it); the session's idle
 *          time ends it
 *        el_wgets in prompt_read; the same person, by next_byte; none (a person sits there: a signal ends it); as there
 *        read in *; nobody: poll said that it is there, or it is non-blocking; at once; comes again */
#include "prompt.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "history.h"
#include "sys/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define PASTE_ON  "\033[?2004h"
#define PASTE_OFF "\033[?2004l"
#define FINISH    L"\033[9001~" /* no key sends it: bound to libedit's own end of a line */
#define INDENT    4

struct prompt {
    struct prompt_start start;
    EditLine *editor;
    HistoryW *history;
    FILE *in, *out;
    enum prompt_got got; /* why the last read ended without a line */
    struct prompt_names names;
};

static struct prompt *prompt_of(EditLine *e)
{
    void *p = NULL;
    el_wget(e, EL_CLIENTDATA, &p);
    return p;
}

static void say(struct prompt *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct prompt *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(p->out, fmt, ap);
    va_end(ap);
    fflush(p->out);
}

/* ---- keys ---- */

/* 1: a byte. 0: the end, a signal: `got` says which. */
static int next_byte(struct prompt *p, unsigned char *ret)
{
    struct signalfd_siginfo info;
    struct pollfd w[2] = {{.fd = fileno(p->in), .events = POLLIN},
                          {.fd = p->start.stop, .events = POLLIN}};
    while (poll(w, 2, -1) < 0)
        if (errno != EINTR)
            return 0;
    p->got = PROMPT_END;
    if (w[1].revents) {
        p->got = PROMPT_INTERRUPT;
        while (read(p->start.stop, &info, sizeof info) == sizeof info)
            if (info.ssi_signo != SIGINT)
                p->got = PROMPT_STOP;
        return 0;
    }
    return read(w[0].fd, ret, 1) == 1;
}

/* What is no UTF-8 is shown as a question mark: nobody typed it. */
static int next_letter(EditLine *e, wchar_t *ret)
{
    struct prompt *p = prompt_of(e);
    unsigned char bytes[4];
    uint32_t letter = '?';
    for (size_t n = 0; n < sizeof bytes; n++) {
        if (!next_byte(p, &bytes[n]))
            return 0;
        int r = utf8_decode(bytes, n + 1, &letter);
        if (r != -1) {
            *ret = r > 0 ? (wchar_t)letter : L'?';
            return 1;
        }
    }
    *ret = L'?';
    return 1;
}

static int to_utf8(const wchar_t *from, size_t count, struct buf *out)
{
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++) {
        char letter[4];
        int n = utf8_encode((uint32_t)from[i], letter);
        r = buf_add(out, n ? letter : "?", n ? (size_t)n : 1);
    }
    return r;
}

/* ---- Enter ---- */

/* The blanks that the line before the cursor begins with, and four more behind a colon. A line that
 * came faster than a person types has its own. */
static void indent_next(EditLine *e, const LineInfoW *line)
{
    wchar_t blanks[64] = L"\n";
    size_t n = 1;
    int waiting = 0;
    const wchar_t *start = line->cursor;
    while (start > line->buffer && start[-1] != L'\n')
        start--;
    if (ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting == 0) {
        for (; start < line->cursor && *start == L' ' && n < 40; start++)
            blanks[n++] = L' ';
        const wchar_t *last = line->cursor;
        while (last > start && last[-1] == L' ')
            last--;
        for (int i = 0; last > start && last[-1] == L':' && i < INDENT; i++)
            blanks[n++] = L' ';
    }
    blanks[n] = 0;
    el_winsertstr(e, blanks);
}

/* Without the blanks that Enter put at the beginning of an empty last line: that line ends the block. */
static size_t without_indent(const struct buf *text)
{
    size_t len = text->len;
    while (len && text->data[len - 1] == ' ')
        len--;
    return len && text->data[len - 1] == '\n' ? len : text->len;
}

static unsigned char on_enter(EditLine *e, int key)
{
    struct prompt *p = prompt_of(e);
    const LineInfoW *line = el_wline(e);
    struct buf text;
    (void)key;
    buf_init(&text, LIMIT_SOURCE);
    int r = to_utf8(line->buffer, (size_t)(line->lastchar - line->buffer), &text);
    const bool inside =
        wmemchr(line->cursor, L'\n', (size_t)(line->lastchar - line->cursor)) != NULL;
    enum prompt_block is = PROMPT_WHOLE; /* a block that is too long is refused when it is run */
    if (r == 0 && text.len)
        is = inside ? PROMPT_PART : p->start.whole(p->start.ctx, text.data, without_indent(&text));
    buf_done(&text);
    if (is == PROMPT_PART) {
        indent_next(e, line);
        return CC_REFRESH;
    }
    el_wpush(e, FINISH);
    return CC_NORM;
}

/* ---- paste ---- */

#define PASTE_MOST (LIMIT_SOURCE / 2)
static const wchar_t paste_end[] = L"\033[201~";

struct paste {
    wchar_t *text;
    size_t count;
    size_t ending;  /* letters of the end mark that were seen and are not in TEXT */
    bool too_long;  /* the rest is read up to the end mark, and not kept */
    bool cut_short; /* a signal, or the end of the input */
};

static void keep_pasted(struct paste *p, wchar_t letter)
{
    if (p->count < PASTE_MOST)
        p->text[p->count++] = letter == L'\r' ? L'\n' : letter;
    else
        p->too_long = true;
}

/* One letter of a paste; false where it ended. The mark's first letter is nowhere else in it. */
static bool take_pasted(EditLine *e, struct paste *p)
{
    wchar_t letter;
    if (next_letter(e, &letter) <= 0) {
        p->cut_short = true;
        return false;
    }
    if (letter == paste_end[p->ending])
        return paste_end[++p->ending] != 0;
    for (size_t i = 0; i < p->ending; i++)
        keep_pasted(p, paste_end[i]);
    p->ending = letter == paste_end[0];
    if (!p->ending)
        keep_pasted(p, letter);
    return true;
}

/* What a terminal would obey is not code. */
static void drop_controls(wchar_t *text, size_t count)
{
    size_t to = 0;
    for (size_t i = 0; i < count; i++)
        if (text[i] == L'\n' || text[i] == L'\t' || (text[i] >= L' ' && text[i] != 0x7f))
            text[to++] = text[i];
    while (to && text[to - 1] == L'\n') /* whoever pasted presses Enter */
        to--;
    text[to] = 0;
}

static unsigned char on_paste(EditLine *e, int key)
{
    struct paste p = {.text = calloc(PASTE_MOST + 1, sizeof *p.text)};
    unsigned char done = CC_REFRESH;
    (void)key;
    if (!p.text)
        return CC_ERROR;
    while (take_pasted(e, &p))
        ;
    drop_controls(p.text, p.count);
    if (p.cut_short) {
        done = CC_EOF; /* prompt_read tells by `got` which it was */
    } else if (p.too_long) {
        say(prompt_of(e), "\ncordon repl: the paste is longer than %llu KB, and forgotten\n",
            PASTE_MOST / KIB);
        done = CC_REDISPLAY;
    } else if (el_winsertstr(e, p.text) < 0) {
        done = CC_ERROR;
    }
    free(p.text);
    return done;
}

/* ---- up and down: in the block, then in the history ---- */

static const wchar_t *line_start(const LineInfoW *line, const wchar_t *at)
{
    while (at > line->buffer && at[-1] != L'\n')
        at--;
    return at;
}

static unsigned char on_up(EditLine *e, int key)
{
    const LineInfoW *line = el_wline(e);
    const wchar_t *here = line_start(line, line->cursor);
    (void)key;
    if (here == line->buffer) {
        el_wpush(e, L"\020"); /* ed-prev-history */
        return CC_NORM;
    }
    const wchar_t *above = line_start(line, here - 1);
    const long column = line->cursor - here, width = here - 1 - above;
    el_cursor(e, (int)(above + (column < width ? column : width) - line->cursor));
    return CC_CURSOR;
}

static unsigned char on_down(EditLine *e, int key)
{
    const LineInfoW *line = el_wline(e);
    const size_t rest = (size_t)(line->lastchar - line->cursor);
    const wchar_t *end = wmemchr(line->cursor, L'\n', rest);
    (void)key;
    if (!end) {
        el_wpush(e, L"\016"); /* ed-next-history */
        return CC_NORM;
    }
    const wchar_t *below = end + 1, *last = wmemchr(below, L'\n', (size_t)(line->lastchar - below));
    const long column = line->cursor - line_start(line, line->cursor);
    const long width = (last ? last : line->lastchar) - below;
    el_cursor(e, (int)(below + (column < width ? column : width) - line->cursor));
    return CC_CURSOR;
}

/* ---- Tab ---- */

static bool in_word(wchar_t c)
{
    return (c >= L'a' && c <= L'z') || (c >= L'A' && c <= L'Z') || (c >= L'0' && c <= L'9') ||
           c == L'_' || c == L'.';
}

/* Made in the jail, and so hostile: ASCII letters, digits and `_`, and nothing else, reach the terminal. */
static bool name_is_good(const char *name, size_t len)
{
    bool good = len > 0 && len < PROMPT_NAME && !(name[0] >= '0' && name[0] <= '9');
    for (size_t i = 0; i < len && good; i++)
        good = name[i] != '.' && in_word((unsigned char)name[i]);
    return good;
}

static int by_letters(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Offers those of the names that begin with PART; returns how many letters they all have. */
static size_t keep_fitting(struct prompt_names *n, const char *part, size_t len)
{
    size_t kept = 0, common = 0;
    for (size_t i = 0; i < n->count; i++) {
        const char *name = n->name[i];
        if (strncmp(name, part, len) != 0 || !name_is_good(name, strlen(name)))
            continue;
        size_t same = kept ? 0 : strlen(name);
        while (kept && same < common && name[same] == n->name[0][same])
            same++;
        common = same;
        if (kept != i)
            memcpy(n->name[kept], name, PROMPT_NAME);
        kept++;
    }
    n->count = kept;
    return common;
}

static void list_names(struct prompt *p)
{
    qsort(p->names.name, p->names.count, PROMPT_NAME, by_letters);
    size_t wide = 0, columns;
    struct winsize size = {0};
    for (size_t i = 0; i < p->names.count; i++)
        wide = strlen(p->names.name[i]) > wide ? strlen(p->names.name[i]) : wide;
    columns = ioctl(fileno(p->out), TIOCGWINSZ, &size) == 0 && size.ws_col > wide + 2
                  ? size.ws_col / (wide + 2)
                  : 1;
    for (size_t i = 0; i < p->names.count; i++)
        fprintf(p->out, "%s%-*s", i % columns ? "" : "\n", (int)wide + 2, p->names.name[i]);
    fputc('\n', p->out);
    fflush(p->out);
}

static unsigned char on_tab(EditLine *e, int key)
{
    struct prompt *p = prompt_of(e);
    const LineInfoW *line = el_wline(e);
    const wchar_t *start = line->cursor;
    char word[256];
    size_t len = 0;
    (void)key;
    while (start > line->buffer && in_word(start[-1]))
        start--;
    if (start == line->cursor) {
        el_winsertstr(e, L"    ");
        return CC_REFRESH;
    }
    if ((size_t)(line->cursor - start) >= sizeof word)
        return CC_ERROR;
    for (; start < line->cursor; start++)
        word[len++] = (char)*start; /* in_word: ASCII */
    word[len] = 0;
    p->names.count = 0;
    p->start.names(p->start.ctx, word, len, &p->names);
    const char *dot = strrchr(word, '.');
    const char *part = dot ? dot + 1 : word;
    const size_t have = strlen(part), common = keep_fitting(&p->names, part, have);
    wchar_t rest[PROMPT_NAME] = {0};
    for (size_t i = have; i < common; i++)
        rest[i - have] = (wchar_t)p->names.name[0][i];
    if (rest[0])
        return el_winsertstr(e, rest) < 0 ? CC_ERROR : CC_REFRESH;
    if (p->names.count < 2)
        return p->names.count ? CC_NORM : CC_ERROR;
    list_names(p);
    return CC_REDISPLAY;
}

/* ---- the editor ---- */

static wchar_t *mark(EditLine *e)
{
    static wchar_t plain[] = L">>> ", coloured[] = L"\1\033[32m\1>>>\1\033[0m\1 ";
    return prompt_of(e)->start.colour ? coloured : plain;
}

static void bind_keys(EditLine *e)
{
    static const struct {
        const wchar_t *name;
        unsigned char (*run)(EditLine *e, int key);
        const wchar_t *keys[4];
    } rows[] = {
        {L"cordon-enter", on_enter, {L"\n", L"\r"}},
        {L"cordon-paste", on_paste, {L"\033[200~"}},
        {L"cordon-up", on_up, {L"\033[A", L"\033OA"}},
        {L"cordon-down", on_down, {L"\033[B", L"\033OB"}},
        {L"cordon-tab", on_tab, {L"\t"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        el_wset(e, EL_ADDFN, rows[i].name, L"", rows[i].run);
        for (size_t k = 0; k < 4 && rows[i].keys[k]; k++)
            el_wset(e, EL_BIND, rows[i].keys[k], rows[i].name, NULL);
    }
    el_wset(e, EL_BIND, FINISH, L"ed-newline", NULL);
    el_wset(e, EL_BIND, L"^R", L"em-inc-search-prev", NULL);
}

static void remember(void *ctx, const char *text, size_t len)
{
    struct prompt *p = ctx;
    HistEventW event;
    wchar_t *wide = calloc(len + 1, sizeof *wide);
    size_t count = 0;
    for (size_t at = 0; wide && at < len;) {
        uint32_t letter;
        int n = utf8_decode((const unsigned char *)text + at, len - at, &letter);
        wide[count++] = n > 0 ? (wchar_t)letter : L'?';
        at += n > 0 ? (size_t)n : 1;
    }
    if (count)
        history_w(p->history, &event, H_ENTER, wide);
    free(wide);
}

static int open_streams(struct prompt *p, struct err *err)
{
    /* copies: stdio's own stdout is a queue of ours (writer.c), which knows no terminal */
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
        out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    p->in = in < 0 ? NULL : fdopen(in, "r");
    p->out = out < 0 ? NULL : fdopen(out, "w");
    return p->in && p->out ? 0 : err_sys(err, "the terminal");
}

static int open_editor(struct prompt *p, struct err *err)
{
    HistEventW event;
    p->editor = el_init("cordon", p->in, p->out, stderr);
    p->history = history_winit();
    if (!p->editor || !p->history)
        return err_set(err, ERR_MEMORY, "no memory for the line editor");
    el_wset(p->editor, EL_CLIENTDATA, p);
    el_wset(p->editor, EL_GETCFN, next_letter);
    el_wset(p->editor, EL_PROMPT_ESC, mark, L'\1');
    el_wset(p->editor, EL_EDITOR, L"emacs");
    history_w(p->history, &event, H_SETSIZE, HISTORY_BLOCKS);
    history_w(p->history, &event, H_SETUNIQUE, 1);
    el_wset(p->editor, EL_HIST, history_w, p->history);
    bind_keys(p->editor);
    return 0;
}

/* The prompt works without the history of another day. */
static void recall(struct prompt *p)
{
    struct err err = ERR_INIT;
    if (p->start.history >= 0 && history_load(p->start.history, remember, p, &err) < 0) {
        say(p, "cordon repl: %s; nothing is kept this time\n", err.msg);
        p->start.history = -1;
    }
}

int prompt_new(const struct prompt_start *start, struct prompt **ret, struct err *err)
{
    const char *terminal = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !terminal || !*terminal ||
        strcmp(terminal, "dumb") == 0)
        return err_set(err, ERR_MISSING, "no terminal to edit on");
    struct prompt *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MEMORY, "no memory for the line editor");
    p->start = *start;
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* a program is UTF-8, whatever the caller's locale is */
    int r = open_streams(p, err);
    if (r == 0)
        r = open_editor(p, err);
    if (r < 0) {
        prompt_free(p);
        return r;
    }
    recall(p);
    *ret = p;
    return 0;
}

void prompt_free(struct prompt *p)
{
    if (!p)
        return;
    if (p->editor)
        el_end(p->editor);
    if (p->history)
        history_wend(p->history);
    if (p->in)
        fclose(p->in);
    if (p->out)
        fclose(p->out);
    free(p);
}

static void bracket_pastes(struct prompt *p, bool on)
{
    fputs(on ? PASTE_ON : PASTE_OFF, p->out);
    fflush(p->out);
}

enum prompt_got prompt_read(struct prompt *p, struct buf *text)
{
    int count = 0;
    struct err err = ERR_INIT;
    p->got = PROMPT_END;
    el_resize(p->editor);
    el_wset(p->editor, EL_PREP_TERM,
            1); /* before the mark is seen: a key after it is not echoed twice */
    bracket_pastes(p, true);
    const wchar_t *line = el_wgets(p->editor, &count);
    bracket_pastes(p, false);
    el_wset(p->editor, EL_PREP_TERM, 0);
    if (!line || count <= 0) {
        fputc('\n', p->out);
        fflush(p->out);
        return p->got;
    }
    buf_reset(text);
    while (count && wcschr(L" \t\n", line[count - 1])) /* the empty line that ended it, too */
        count--;
    if (to_utf8(line, (size_t)count, text) < 0)
        return PROMPT_INTERRUPT;
    if (text->len) {
        remember(p, text->data, text->len);
        if (p->start.history >= 0 &&
            history_add(p->start.history, text->data, text->len, &err) < 0) {
            say(p, "cordon repl: %s; nothing more is kept\n", err.msg);
            p->start.history = -1;
        }
    }
    return PROMPT_BLOCK;
}
