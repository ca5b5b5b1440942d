/* SPDX-License-Identifier: Apache-2.0 */
/* Cases are files: what a model wrote, and the source that must come of it (tests/cases/intake). Usage: test_intake FOLDER. */
#include "base/limits.h"
#include "base/tap.h"
#include "intake/intake.h"

#include <dirent.h>
#include <time.h>

struct fields {
    char *option, *expect, *language, *removed, *message, *plain;
    char *text, *source; /* the source: NULL where an error is due */
};

static char *read_file(const char *folder, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    char *text = f ? calloc(1, 1 << 16) : NULL;
    if (text && fread(text, 1, (1 << 16) - 1, f) == 0)
        text[0] = 0;
    if (f)
        fclose(f);
    return text;
}

/* `key: value` lines, a line ---, the text, a line ===== before the source. */
static bool parse(char *file, struct fields *f)
{
    const struct {
        const char *key;
        char **value;
    } keys[] = {{"option", &f->option},   {"expect", &f->expect},   {"language", &f->language},
                {"removed", &f->removed}, {"message", &f->message}, {"plain", &f->plain}};
    char *body = strstr(file, "---\n"), *source = strstr(file, "=====\n");
    if (!body)
        return false;
    *body = 0;
    f->text = body + 4;
    if (source) {
        *source = 0;
        f->source = source + 6;
    }
    for (char *save = NULL, *line = strtok_r(file, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *colon = strstr(line, ": ");
        size_t k = 0;
        while (colon && k < sizeof keys / sizeof *keys &&
               (strncmp(line, keys[k].key, (size_t)(colon - line)) != 0 ||
                strlen(keys[k].key) != (size_t)(colon - line)))
            k++;
        if (!colon || k == sizeof keys / sizeof *keys)
            return false;
        *keys[k].value = colon + 2;
    }
    return f->text && f->expect && (f->source || strcmp(f->expect, "error") == 0);
}

/* \r, \0 and \xNN in a case stand for themselves where `plain` or text need bytes that an editor would not keep. */
static size_t unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (from[0] == '\\' && from[1] == '@' && from[2] && from[3]) {
            char digits[3] = {from[2], from[3], 0};
            *to++ = (char)strtoul(digits, NULL, 16);
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = 0;
    return (size_t)(to - text);
}

static void list_removed(const struct intake_source *s, char *out, size_t size)
{
    out[0] = 0;
    for (size_t i = 0; i < s->note_count && i < INTAKE_NOTES; i++) {
        const struct intake_note *n = &s->notes[i];
        const size_t len = strlen(out);
        snprintf(out + len, size - len, "%s%s%s%s@%zu", len ? ", " : "", intake_kind_name(n->kind),
                 n->detail[0] ? " " : "", n->detail, n->line);
    }
}

static void run_case(const char *name, struct fields *f)
{
    base_assert(f->text);
    struct intake_source s;
    struct err err = ERR_INIT;
    char removed[600];
    intake_source_init(&s, LIMIT_SOURCE);
    const size_t len = unescape(f->text);
    if (f->source)
        unescape(f->source);
    const struct intake_text text = {
        .data = f->text, .len = len, .language = f->option, .plain = f->plain != NULL};
    const int r = intake_read(&text, &s, &err);
    list_removed(&s, removed, sizeof removed);
    if (!f->source) {
        tap_ok(r == ERR_FORMAT && f->message && strstr(err.msg, f->message),
               "%s: refused, and the message says: %s", name, f->message ? f->message : "");
        if (r != ERR_FORMAT || !f->message || !strstr(err.msg, f->message))
            printf("# r %d, message '%s', code '%s'\n", r, err.msg, s.code.data ? s.code.data : "");
    } else {
        tap_ok(r == 0, "%s: a program is found (%s)", name, err.msg);
        tap_eq_str(s.code.data ? s.code.data : "", f->source, "%s: the source is exact", name);
        tap_eq_str(s.language, f->language ? f->language : "",
                   "%s: the language is the expected one", name);
        tap_eq_str(removed, f->removed ? f->removed : "", "%s: what was left out is told", name);
    }
    intake_source_done(&s);
}

static void run_cases(const char *folder)
{
    struct dirent **names = NULL;
    const int n = scandir(folder, &names, NULL, alphasort);
    int cases = 0;
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(names[i]->d_name, '.');
        if (dot && strcmp(dot, ".case") == 0) {
            struct fields f = {0};
            char *file = read_file(folder, names[i]->d_name);
            cases++;
            if (tap_ok(file && parse(file, &f), "%s can be read", names[i]->d_name))
                run_case(names[i]->d_name, &f);
            free(file);
        }
        free(names[i]);
    }
    free(names);
    tap_ok(cases >= 60, "there are at least 60 cases (%d)", cases);
}

/* ---- time ---- */

static double seconds(const char *text, size_t len)
{
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        struct intake_source s;
        struct err err = ERR_INIT;
        struct timespec a, b;
        intake_source_init(&s, 64 * MIB);
        const struct intake_text t = {.data = text, .len = len};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        (void)!intake_read(&t, &s, &err);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        intake_source_done(&s);
        const double now = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
        best = now < best ? now : best;
    }
    return best;
}

/* Ten times the text takes at most forty times as long; a quadratic rule would take a hundred times. */
static void linear(const char *piece, const char *what)
{
    enum { SMALL = 1 << 20, FACTOR = 10 };
    char *text = malloc((size_t)SMALL * FACTOR);
    const size_t n = strlen(piece);
    if (!text)
        abort();
    for (size_t i = 0; i < (size_t)SMALL * FACTOR; i++)
        text[i] = piece[i % n];
    const double small = seconds(text, SMALL), large = seconds(text, (size_t)SMALL * FACTOR);
    tap_ok(large < 40 * small + 0.05, "time is linear in the text: 10 MB of %s", what);
    printf("#= intake: 10 MB of %s in %.1f ms\n", what, large * 1e3);
    free(text);
}

/* What a method must have, by its words alone. */
static void structure(void)
{
    static const struct {
        const char *language, *text, *lacks;
    } rows[] = {
        {"ruby", "def a\n  1\nend", NULL},
        {"ruby", "def a; end", NULL},
        {"ruby", "", "def ... end"},
        {"ruby", "puts 1\nend", "def ... end"},
        {"ruby",
         "undef a\ndefine\ndef_\n\xc3\xa4"
         "def\nend",
         "def ... end"},
        {"ruby",
         "0def 9def adef zdef Adef Zdef _def \xc4\x80"
         "def\nend",
         "def ... end"},
        {"ruby", "end\ndef a", "end behind its def"},
        {"ruby", "def a\nends\n_end\nend1\nbackend", "end behind its def"},
        {"ruby", "de", "def ... end"},
        {"ruby", "def", "end behind its def"},
        {"python", "pass", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *lacks = intake_lacks(rows[i].language, rows[i].text, strlen(rows[i].text));
        tap_eq_str(lacks ? lacks : "", rows[i].lacks ? rows[i].lacks : "", "structure, %s: row %zu",
                   rows[i].language, i);
    }
}

/* What a case cannot say: a text without a line feed at its end, the limit of a program, and what the step that refuses
 * it is told. */
static void edges(void)
{
    static const struct {
        const char *text;
        size_t len, max;
        int r;
        bool plain, not_utf8, has_nul;
        const char *source, *what;
    } rows[] = {
        {"```python\nf()", 13, 100, 0, false, false, false, "f()\n",
         "a block that is cut in its line has a line feed at its end"},
        {"f()", 3, 100, 0, true, false, false, "f()", "a program of a file is left as it is"},
        {"f()\n", 4, 4, 0, true, false, false, "f()\n", "a program that fits exactly is taken"},
        {"f()\n", 4, 3, ERR_LIMIT, true, false, false, NULL, "a program over its limit is refused"},
        {"```\nf()\n```", 11, 3, ERR_LIMIT, false, false, false, NULL,
         "a block over the limit is refused"},
        {"a\xff", 2, 100, ERR_FORMAT, true, true, false, NULL,
         "bytes that are not UTF-8 are told as that"},
        {"\xff\xfe"
         "a",
         3, 100, ERR_FORMAT, true, true, false, NULL, "UTF-16 is told as not UTF-8"},
        {"a\0b", 3, 100, ERR_FORMAT, true, false, true, NULL, "a NUL is told as that"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct intake_source s;
        struct err err = ERR_INIT;
        const struct intake_text text = {
            .data = rows[i].text, .len = rows[i].len, .plain = rows[i].plain};
        intake_source_init(&s, rows[i].max);
        const int r = intake_read(&text, &s, &err);
        tap_ok(r == rows[i].r && s.not_utf8 == rows[i].not_utf8 && s.has_nul == rows[i].has_nul &&
                   (!rows[i].source || strcmp(s.code.data, rows[i].source) == 0),
               "%s (%d: %s)", rows[i].what, r, err.msg);
        intake_source_done(&s);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        puts("usage: test_intake FOLDER");
        return 2;
    }
    run_cases(argv[1]);
    structure();
    edges();
    linear("`", "backticks");
    linear("```\n", "fences");
    linear("```x\n\"\"\"\n```\n", "fences in strings");
    linear("~~~\nx\n````\n", "fences of two kinds");
    linear("<think>", "tags that open");
    linear("<think>\n</think>\n", "reasoning");
    linear("</think>\n", "tags that close");
    linear("'''\n```py\n", "fences in open strings");
    linear("\xe2\x80\x8b", "zero-width spaces");
    return tap_done();
}
