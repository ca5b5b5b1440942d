/* SPDX-License-Identifier: Apache-2.0 */
/* The order: encoding, reasoning and blocks, language, source. */
#include "intake/intake.h"

#include "base/utf8.h"
#include "intake/blocks.h"
#include "intake/notes.h"
#include "intake/tags.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- encoding ---- */

static size_t line_of(const char *text, size_t at)
{
    size_t line = 1;
    for (const char *p = text, *end = text + at; (p = memchr(p, '\n', (size_t)(end - p))); p++)
        line++;
    return line;
}

static int check_encoding(const char *text, size_t len, struct intake_source *s, struct err *err)
{
    const unsigned char *u = (const unsigned char *)text;
    const char *nul = memchr(text, 0, len);
    s->not_utf8 = true;
    if (len >= 2 && ((u[0] == 0xff && u[1] == 0xfe) || (u[0] == 0xfe && u[1] == 0xff)))
        return err_set(err, ERR_FORMAT, "the text is UTF-16; save it as UTF-8");
    s->not_utf8 = false;
    s->has_nul = nul;
    if (nul)
        return err_set(err, ERR_FORMAT, "line %zu holds a NUL byte, which no program does",
                       line_of(text, (size_t)(nul - text)));
    const size_t good = utf8_valid_prefix(text, len);
    s->not_utf8 = good < len;
    if (good < len)
        return err_set(err, ERR_FORMAT, "line %zu is not UTF-8 (byte 0x%02x)", line_of(text, good),
                       u[good]);
    return 0;
}

/* Characters that change how a line looks and not what it does, or the other way round. */
static bool invisible(uint32_t cp)
{
    return cp == 0xad || cp == 0x61c || cp == 0x180e || (cp >= 0x200b && cp <= 0x200f) ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x2069) || cp == 0xfeff ||
           cp == 0x3164 || cp == 0xffa0;
}

static void note_invisible(const char *code, size_t len, size_t line, struct intake_source *s)
{
    for (size_t at = 0; at < len;) {
        uint32_t cp = 0;
        const int n = (unsigned char)code[at] < 0x80
                          ? 1
                          : utf8_decode((const unsigned char *)code + at, len - at, &cp);
        if (code[at] == '\n')
            line++;
        if (n > 1 && invisible(cp)) {
            char word[12];
            snprintf(word, sizeof word, "U+%04X", (unsigned)cp);
            intake_note(s, INTAKE_INVISIBLE, line, 1, word);
        }
        at += n > 0 ? (size_t)n : 1;
    }
}

/* ---- language ---- */

static bool same(const char *language, const char *other)
{
    return language && other && strcmp(language, other) == 0;
}

/* What the blocks of a text say about their languages. */
struct said {
    const char *first, *other; /* two that differ; NULL: there are none, or only one */
    bool untagged, wanted;     /* a block says nothing; one says what the caller named */
};

static struct said look_at_tags(const struct intake_blocks *b, const char *wanted)
{
    struct said said = {0};
    for (size_t i = 0; i < b->count; i++) {
        const char *language = intake_tag_language(b->block[i].tag);
        said.untagged = said.untagged || !b->block[i].tag[0];
        said.wanted = said.wanted || same(language, wanted);
        if (!said.first)
            said.first = language;
        if (language && !same(language, said.first))
            said.other = language;
    }
    return said;
}

/* Whose blocks are the program. "": those without a language. NULL: an error. */
static const char *choose_language(const struct intake_blocks *b, const char *wanted,
                                   struct err *err)
{
    const struct said said = look_at_tags(b, wanted);
    if (wanted && (said.wanted || said.untagged))
        return said.wanted ? wanted : "";
    if (!wanted && said.other) {
        err_set(err, ERR_FORMAT,
                "the text has blocks of %s and of %s; name the one to run: --lang %s", said.first,
                said.other, said.first);
        return NULL;
    }
    if (!wanted && (said.first || said.untagged))
        return said.first ? said.first : "";
    err_set(err, ERR_FORMAT, "the text has no block of %s, only of %s (line %zu)",
            wanted ? wanted : "a language that runs here", b->block[0].tag, b->block[0].line - 1);
    return NULL;
}

static bool is_part(const struct intake_block *block, const char *language)
{
    return language[0] ? same(intake_tag_language(block->tag), language) : !block->tag[0];
}

/* ---- source ---- */

static size_t lines_in(const char *text, size_t begin, size_t end)
{
    return line_of(text + begin, end - begin) - (end > begin && text[end - 1] == '\n');
}

/* A block's lines, each without as much indentation as its fence has. */
static int add_content(const struct intake_blocks *b, const struct intake_block *block,
                       struct buf *out)
{
    int r = 0;
    for (size_t at = block->begin; r == 0 && at < block->end;) {
        const char *line = b->text + at, *end = memchr(line, '\n', block->end - at);
        size_t len = end ? (size_t)(end - line) + 1 : block->end - at, skip = 0;
        while (skip < block->indent && skip < len && (line[skip] == ' ' || line[skip] == '\t'))
            skip++;
        r = block->indent ? buf_add(out, line + skip, len - skip)
                          : buf_add(out, line, block->end - at);
        at = block->indent ? at + len : block->end;
    }
    if (r == 0 && out->len && out->data[out->len - 1] != '\n')
        r = buf_add(out, "\n", 1);
    return r;
}

static int join_blocks(const struct intake_blocks *b, const char *language,
                       struct intake_source *ret, struct err *err)
{
    if (b->prose_words)
        intake_note(ret, INTAKE_PROSE, b->prose_line, 0, "");
    for (size_t i = 0; i < b->count; i++) {
        const struct intake_block *block = &b->block[i];
        if (!is_part(block, language)) {
            intake_note(ret, INTAKE_BLOCK, block->line - 1,
                        lines_in(b->text, block->begin, block->end) + 2,
                        block->tag[0] ? block->tag : "no language");
            continue;
        }
        if (block->unclosed)
            intake_note(ret, INTAKE_UNCLOSED, block->line - 1, 1, "");
        if (ret->blocks++ == 0)
            ret->line = block->line;
        const int r = add_content(b, block, &ret->code);
        if (r < 0)
            return err_set(err, r, "the program is longer than %zu bytes", ret->code.max);
    }
    snprintf(ret->language, sizeof ret->language, "%s", language);
    return 0;
}

static int take_whole(const char *text, size_t len, size_t line, struct intake_source *ret,
                      struct err *err)
{
    ret->line = line;
    const int r = buf_add(&ret->code, text, len);
    return r < 0 ? err_set(err, r, "the program is longer than %zu bytes", ret->code.max) : 0;
}

static int find_program(const struct intake_text *text, const char *data, size_t len,
                        struct intake_source *ret, struct err *err)
{
    struct intake_blocks *b = malloc(sizeof *b);
    if (!b)
        return err_set(err, ERR_MEMORY, "no memory for the blocks of a text");
    b->text = data;
    b->len = len;
    int r = intake_blocks_find(b, ret, err);
    if (r == 0 && b->count) {
        const char *language = choose_language(b, text->language, err);
        r = language ? join_blocks(b, language, ret, err) : ERR_FORMAT;
    } else if (r == 0 && b->fences) {
        r = err_set(err, ERR_FORMAT,
                    "there is no program in the text: its blocks of code are empty");
    } else if (r == 0 && b->reasoning_inside) {
        r = err_set(err, ERR_FORMAT,
                    "the text has words and reasoning but no block of code, so it is not clear "
                    "what the program is; put it into a ```python block");
    } else if (r == 0) {
        r = take_whole(data + b->prose, len - b->prose, b->prose_line, ret, err);
    }
    free(b);
    return r;
}

static bool is_empty(const struct buf *code)
{
    for (size_t i = 0; i < code->len; i++)
        if (!strchr(" \t\r\n\f", code->data[i]))
            return false;
    return true;
}

int intake_read(const struct intake_text *text, struct intake_source *ret, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf";
    const char *data = text->data;
    size_t len = text->len;
    int r = check_encoding(data, len, ret, err);
    if (r < 0)
        return r;
    if (len >= 3 && memcmp(data, mark, 3) == 0) {
        data += 3;
        len -= 3;
        intake_note(ret, INTAKE_MARK, 1, 0, "");
    }
    r = text->plain ? take_whole(data, len, 1, ret, err) : find_program(text, data, len, ret, err);
    if (r < 0)
        return r;
    if (is_empty(&ret->code))
        return err_set(err, ERR_FORMAT, "there is no program in the text: it is empty%s",
                       ret->note_count ? " but for what is no program" : "");
    if (!ret->language[0]) {
        const char *by_line = intake_shebang_language(ret->code.data, ret->code.len);
        snprintf(ret->language, sizeof ret->language, "%s",
                 text->language ? text->language
                 : by_line      ? by_line
                                : "");
    }
    note_invisible(ret->code.data, ret->code.len, ret->line, ret);
    return 0;
}
