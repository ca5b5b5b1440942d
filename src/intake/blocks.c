/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the lines. In prose a line may open a block or a reasoning tag; in a block only its closing fence
 * matters. A fence inside a string of several lines is part of the program: where that would make the block endless,
 * the first fence that could close it does, and strings are not looked at again, so that the pass stays linear. */
#include "intake/blocks.h"

#include "intake/notes.h"
#include "intake/quotes.h"
#include "intake/tags.h"

#include <string.h>
#include <strings.h>

static const char *const reasoning[] = {"think", "thinking", "reasoning", "thought", "reflection"};

struct cursor {
    size_t at, line; /* of the line to be read next; from 1 */
    char string;     /* the state of strings before it */
    bool words;      /* a string before it ended as in a sentence */
};

struct line {
    const char *data;
    size_t len;    /* without its end */
    size_t indent; /* spaces and tabs in front */
    size_t begin, next;
};

static bool read_line(const struct intake_blocks *b, const struct cursor *c, struct line *ret)
{
    if (c->at >= b->len)
        return false;
    const char *data = b->text + c->at, *end = memchr(data, '\n', b->len - c->at);
    size_t len = end ? (size_t)(end - data) : b->len - c->at;
    *ret = (struct line){
        .data = data, .len = len, .begin = c->at, .next = c->at + len + (end != NULL)};
    if (ret->len && data[ret->len - 1] == '\r')
        ret->len--;
    while (ret->indent < ret->len && (data[ret->indent] == ' ' || data[ret->indent] == '\t'))
        ret->indent++;
    return true;
}

static void advance(struct cursor *c, const struct line *l)
{
    c->string = intake_quotes_after(c->string, l->data, l->len, &c->words);
    c->at = l->next;
    c->line++;
}

static bool blank(const struct line *l)
{
    return l->indent == l->len;
}

/* ---- fences ---- */

/* How many fence characters a line begins with; 0: fewer than three. */
static size_t fence_length(const struct line *l)
{
    const char *s = l->data + l->indent;
    const size_t len = l->len - l->indent;
    size_t n = 0;
    while (n < len && s[n] == s[0] && (s[0] == '`' || s[0] == '~'))
        n++;
    return n >= 3 ? n : 0;
}

/* The info string's first word: `python`, `{.python}`, `python:main.py`, `Python title="x"`. */
static bool opens(const struct line *l, char *ret_tag)
{
    const size_t n = fence_length(l);
    const char *s = l->data + l->indent + n, *end = l->data + l->len;
    if (!n || (s[-1] == '`' && memchr(s, '`', (size_t)(end - s))))
        return false;
    while (s < end && (*s == ' ' || *s == '\t' || *s == '{' || *s == '.'))
        s++;
    size_t len = 0;
    while (s + len < end && len < INTAKE_LANGUAGE && !strchr(" \t:{},;=\"", s[len]))
        len++;
    memcpy(ret_tag, s, len);
    ret_tag[len] = 0;
    return true;
}

static bool closes(const struct line *l, char mark, size_t length, size_t indent)
{
    const size_t n = fence_length(l);
    if (n < length || l->data[l->indent] != mark || l->indent > indent + 3)
        return false;
    for (size_t i = l->indent + n; i < l->len; i++)
        if (l->data[i] != ' ' && l->data[i] != '\t')
            return false;
    return true;
}

/* A whole answer in a block of markdown is an answer: its fence is no more than a line of prose. */
static bool is_wrapper(const char *tag)
{
    return strcasecmp(tag, "markdown") == 0 || strcasecmp(tag, "md") == 0;
}

/* Three quotes begin a string in Python alone. A block without a tag, or with one that nobody knows, may be Python. */
static bool has_long_strings(const char *tag)
{
    const char *language = intake_tag_language(tag);
    return !language || strcmp(language, "python") == 0;
}

/* The lines behind an opening fence. C is behind the block afterwards. */
static void read_block(struct intake_blocks *b, struct cursor *c, const struct line *fence,
                       struct intake_block *block)
{
    const char mark = fence->data[fence->indent];
    const size_t length = fence_length(fence);
    const bool strings = has_long_strings(block->tag);
    struct cursor first = {
        0}; /* behind the first fence that would close it if it were in no string */
    size_t first_end = 0;
    struct line l;
    c->string = 0;
    block->begin = c->at;
    block->line = c->line;
    block->indent = fence->indent;
    while (read_line(b, c, &l)) {
        const bool in_string = strings && c->string && !b->strings_lost;
        const bool close = closes(&l, mark, length, fence->indent);
        advance(c, &l);
        if (close && !in_string) {
            block->end = l.begin;
            c->string = 0;
            return;
        }
        if (close && !first.at) {
            first = *c;
            first_end = l.begin;
        }
    }
    if (first.at) {
        b->strings_lost = true;
        *c = (struct cursor){.at = first.at, .line = first.line};
        block->end = first_end;
        return;
    }
    block->end = b->len;
    block->unclosed = true;
}

static bool only_blanks(const struct intake_blocks *b, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        if (!strchr(" \t\r\n", b->text[i]))
            return false;
    return true;
}

/* ---- reasoning ---- */

/* Whether a line begins with <NAME> or </NAME>. Returns the name. */
static const char *tag_of(const struct line *l, bool *ret_closing, size_t *ret_len)
{
    const char *s = l->data + l->indent;
    const size_t len = l->len - l->indent;
    const bool closing = len > 1 && s[0] == '<' && s[1] == '/';
    const size_t from = closing ? 2 : 1;
    for (size_t i = 0; len > from && s[0] == '<' && i < sizeof reasoning / sizeof *reasoning; i++) {
        const size_t n = strlen(reasoning[i]);
        if (len > from + n && strncasecmp(s + from, reasoning[i], n) == 0 && s[from + n] == '>') {
            *ret_closing = closing;
            *ret_len = from + n + 1;
            return reasoning[i];
        }
    }
    return NULL;
}

/* Behind </NAME>, wherever it stands. False: it does not come. */
static bool skip_reasoning(const struct intake_blocks *b, struct cursor *c, const char *name)
{
    const size_t n = strlen(name);
    for (size_t at = c->at; at + n + 3 <= b->len; at++) {
        if (b->text[at] == '\n')
            c->line++;
        if (b->text[at] == '<' && b->text[at + 1] == '/' && b->text[at + n + 2] == '>' &&
            strncasecmp(b->text + at + 2, name, n) == 0) {
            *c = (struct cursor){.at = at + n + 3, .line = c->line, .words = c->words};
            return true;
        }
    }
    return false;
}

/* 1: the line was reasoning, and C is behind it. 0: it is none. */
static int read_reasoning(struct intake_blocks *b, struct cursor *c, const struct line *l,
                          struct intake_source *notes, struct err *err)
{
    bool closing = false;
    size_t len = 0;
    const char *name = tag_of(l, &closing, &len);
    const struct cursor from = *c;
    if (!name || (c->string && !b->strings_lost))
        return 0;
    if (closing) { /* its beginning was in the prompt: all before it is reasoning */
        c->at = l->begin + l->indent + len;
        b->count = 0;
        notes->note_count = 0;
        b->prose_words = b->reasoning_inside = b->fences = false;
        b->prose = c->at;
        b->prose_line = c->line;
        intake_note(notes, INTAKE_REASONING, 1, c->line, "");
        return 1;
    }
    if (!skip_reasoning(b, c, name))
        return err_set(
            err, ERR_FORMAT,
            "<%s> in line %zu is never closed, so all that follows is reasoning; the text was cut",
            name, from.line);
    if (only_blanks(b, b->prose, from.at)) {
        b->prose = c->at;
        b->prose_line = c->line;
    } else {
        b->reasoning_inside = true;
    }
    intake_note(notes, INTAKE_REASONING, from.line, c->line - from.line + 1, "");
    return 1;
}

/* ---- all of it ---- */

static int add_block(struct intake_blocks *b, const struct intake_block *block, struct err *err)
{
    if (only_blanks(b, block->begin, block->end))
        return 0;
    if (b->count == INTAKE_BLOCKS)
        return err_set(err, ERR_LIMIT, "more than %d blocks of code in one text", INTAKE_BLOCKS);
    b->block[b->count++] = *block;
    return 0;
}

/* WORDS: prose has no strings. RET_WORDS: it has none, as is seen now, but lines of it were taken for parts of one. */
static int look_through(struct intake_blocks *b, bool words, struct intake_source *notes,
                        bool *ret_words, struct err *err)
{
    bool strings = false, said = false;
    struct cursor c = {.at = 0, .line = 1};
    struct line l;
    b->count = b->prose = 0;
    b->prose_line = 1;
    b->prose_words = b->reasoning_inside = b->fences = false;
    while (read_line(b, &c, &l)) {
        struct intake_block block = {0};
        int r = read_reasoning(b, &c, &l, notes, err);
        if (r < 0)
            return r;
        if (r > 0)
            continue;
        const bool fence = (!c.string || b->strings_lost) && opens(&l, block.tag);
        advance(&c, &l);
        said = said || c.words;
        c.string = words ? 0 : c.string;
        strings = strings || c.string;
        if (fence && !is_wrapper(block.tag)) {
            read_block(b, &c, &l, &block);
            c.words = false; /* of the program in the block: prose is asked about */
            b->fences = true;
            r = add_block(b, &block, err);
            if (r < 0)
                return r;
        } else if (!fence && !blank(&l)) {
            b->prose_words = true;
        }
    }
    /* a string that never ends is none; and a text with a block of code beside its strings is no program, so that its quotes
     * are words about quotes; nor is one whose strings end in the middle of a sentence */
    *ret_words = c.string || (strings && (b->count || said));
    return 0;
}

int intake_blocks_find(struct intake_blocks *b, struct intake_source *notes, struct err *err)
{
    const size_t before = notes->note_count;
    bool words = false;
    b->strings_lost = false;
    const int r = look_through(b, false, notes, &words, err);
    if (r < 0 || !words)
        return r;
    notes->note_count = before;
    b->strings_lost = false;
    return look_through(b, true, notes, &words, err);
}
