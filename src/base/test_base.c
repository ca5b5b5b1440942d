/* SPDX-License-Identifier: Apache-2.0 */
/* The pure helpers: each has an edge that a caller relies on. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fit.h"
#include "base/jsonw.h"
#include "base/languages.h"
#include "base/naming.h"
#include "base/near.h"
#include "base/tap.h"
#include "base/units.h"
#include "base/utf8.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void errors(void)
{
    struct err e = ERR_INIT;
    tap_eq_int(err_set(&e, ERR_LIMIT, "%s is %d", "x", 3), ERR_LIMIT, "err_set returns the code");
    tap_eq_str(e.msg, "x is 3", "err_set formats its message");
    errno = ENOENT;
    tap_eq_int(err_sys(&e, "open %s", "/x"), ERR_SYS, "err_sys returns ERR_SYS");
    tap_eq_str(e.msg, "open /x: No such file or directory", "err_sys appends errno's text");
    tap_eq_int(e.sys_errno, ENOENT, "err_sys keeps errno");
    tap_ok(!err_is_host(&e), "a file that is not there is not the machine's fault");
    errno = EMFILE;
    err_sys(&e, "open %s", "/x");
    e.code = ERR_USAGE;
    tap_ok(err_is_host(&e), "no descriptor left is the machine's fault, whoever asked");
    err_set(&e, ERR_MEMORY, "no memory");
    tap_ok(err_is_host(&e), "no memory left is the machine's fault");
    err_layer(&e, "landlock");
    tap_eq_str(e.layer, "landlock", "err_layer names the layer");
    char big[600];
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = 0;
    err_set(&e, ERR_USAGE, "%s", big);
    tap_eq_int(strlen(e.msg), sizeof e.msg - 1, "a long message is cut, not overrun");
}

/* In the middle of its message, which is where an argument cannot be read. */
static void killed_writer(bool of_system)
{
    struct err *e =
        mmap(NULL, sizeof *e, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *shut = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (e == MAP_FAILED || shut == MAP_FAILED)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit none = {0, 0};
        signal(SIGSEGV, SIG_DFL);
        setrlimit(RLIMIT_CORE, &none);
        if (of_system)
            (void)err_sys(e, "some words, and %s", shut);
        else
            (void)err_set(e, ERR_MISSING, "some words, and %s", shut);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    tap_ok(WIFSIGNALED(status) && e->code == 0,
           "whoever is killed while it writes %s has left no code (%d)",
           of_system ? "an error of the kernel" : "an error of ours", e->code);
    munmap(e, sizeof *e);
}

static void buffers(void)
{
    struct buf b;
    buf_init(&b, 10);
    tap_eq_int(buf_add(&b, "12345", 5), 0, "five bytes fit in a buffer of ten");
    tap_eq_int(buf_printf(&b, "%d", 67890), 0, "five more bytes fill a buffer of ten exactly");
    tap_eq_int(buf_str(&b, "x"), ERR_LIMIT, "an eleventh byte does not fit in a buffer of ten");
    tap_eq_int(b.len, 10, "a byte that does not fit adds nothing to the buffer");
    tap_eq_str(b.data, "1234567890", "bytes of a buffer are in order, with a NUL behind them");
    buf_reset(&b);
    tap_eq_int(buf_printf(&b, "%s", "longer than ten bytes"), ERR_LIMIT,
               "buf_printf obeys the ceiling of its buffer");
    buf_done(&b);
}

static void names_of_files(void)
{
    static const struct naming_rule rules[] = {
        {"/tools/*", "^[A-Z][A-Za-z0-9]+[.][a-z]+$", "CamelCase", true},
        {"/data/*.csv", "^[a-z_]+[.]csv$", "small letters", false}};
    static const struct {
        const char *path, *text, *broken;
    } cases[] = {
        {"/tools/WordCount.py", "import re\ndef WordCount(text):\n    return 1\n", NULL},
        {"/tools/WordCount.py", "class WordCount:\n    pass\n", NULL},
        {"/tools/WordCount.py", "async def WordCount(): pass", NULL},
        {"/tools/WordCount.py", "WordCount = 1", NULL},
        {"/tools/WordCount.py", "def WordCounter(): pass", "CamelCase"},
        {"/tools/WordCount.py", "# def WordCount(): pass", "CamelCase"},
        {"/tools/WordCount.py", "    def WordCount(): pass", "CamelCase"},
        {"/tools/WordCount.py", "", "CamelCase"},
        {"/tools/word_count.py", "def word_count(): pass", "CamelCase"},
        {"/tools/WordCount", "def WordCount(): pass", "CamelCase"},
        {"/tools/WordCount.js", "export function WordCount() {}", NULL},
        {"/tools/WordCount.js", "export default class WordCount {}", NULL},
        {"/tools/WordCount.mjs", "const a = 1;\nexport {\n  a,\n  WordCount,\n};\n", NULL},
        {"/tools/WordCount.js", "module.exports = { WordCount }", NULL},
        {"/tools/WordCount.js", "exports.WordCount = f", NULL},
        {"/tools/WordCount.ts", "export const WordCount: F = f", NULL},
        {"/tools/WordCount.js", "function WordCount() {}", "CamelCase"},
        {"/tools/WordCount.js", "export function WordCounts() {}", "CamelCase"},
        {"/tools/WordCount.js", "exported(WordCount)", "CamelCase"},
        {"/tools/WordCount.rb", "class WordCount\nend", NULL},
        {"/tools/WordCount.rb", "module Other\nend", "CamelCase"},
        {"/tools/WordCount.txt", "anything", NULL},
        {"/tools/deep/word_count.py", "", NULL},
        {"/other/word_count.py", "", NULL},
        {"/data/BIG.csv", "", "small letters"},
        {"/data/a_b.csv", "", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct naming_rule *r =
            naming_broken(rules, 2, cases[i].path, cases[i].text, strlen(cases[i].text));
        tap_eq_str(r ? r->message : "none", cases[i].broken ? cases[i].broken : "none",
                   "the rule for names that %s breaks with the text '%s'", cases[i].path,
                   cases[i].text);
    }
    tap_ok(naming_pattern_problem("^[A-Z]") == NULL && naming_pattern_problem("[") != NULL,
           "a pattern that is none is told with a reason");
    struct buf packed;
    struct naming_rule back[NAMING_MAX];
    size_t count = 0;
    buf_init(&packed, NAMING_BYTES);
    tap_ok(naming_pack(rules, 2, &packed) == 0 &&
               naming_unpack(packed.data, packed.len, back, &count) == 0 && count == 2 &&
               strcmp(back[1].pattern, rules[1].pattern) == 0 && back[0].exports &&
               !back[1].exports,
           "rules for names are the same after they were packed");
    tap_eq_int(naming_unpack(packed.data, packed.len - 1, back, &count), ERR_FORMAT,
               "packed rules that are cut are refused");
    buf_done(&packed);
}

static void arenas(void)
{
    struct arena a;
    arena_init(&a, 100000);
    char *p = arena_alloc(&a, 3), *q = arena_alloc(&a, 70000);
    tap_ok(p && q && ((uintptr_t)q & 15) == 0, "blocks of an arena are aligned");
    tap_ok(q && q[0] == 0 && q[69999] == 0, "blocks of an arena are zeroed");
    tap_ok(arena_alloc(&a, 30000) == NULL, "the ceiling of an arena holds");
    tap_ok(arena_alloc(&a, SIZE_MAX) == NULL, "an absurd size is refused by an arena");
    tap_eq_str(arena_strdup(&a, "abc"), "abc", "a string is copied into an arena");
    tap_ok(a.block <= 4096, "one large object of an arena makes no later block large");
    arena_done(&a);
}

static void fill(char *out, size_t size, const char *text)
{
    fit_words(out, size, snprintf(out, size, "%s", text));
}

static void sizes(void)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {{0, "0 bytes"},           {1, "1 byte"},
                {17, "17 bytes"},         {1023, "1023 bytes"},
                {1024, "1 KB"},           {1536, "1.5 KB"},
                {64ULL << 20, "64 MB"},   {512ULL << 20, "512 MB"},
                {80000004096, "74.5 GB"}, {UINT64_MAX, "15.9 EB"}};
    char text[UNITS_TEXT], words[24];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        units_bytes_text(rows[i].bytes, text);
        tap_eq_str(text, rows[i].text, "%llu bytes as people read them",
                   (unsigned long long)rows[i].bytes);
    }
    static const struct {
        uint64_t ms;
        const char *text;
    } times[] = {{0, "0 ms"},     {1, "1 ms"},      {1500, "1500 ms"},
                 {90000, "90 s"}, {3600000, "1 h"}, {604800000, "168 h"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        units_millis_text(times[i].ms, text);
        tap_eq_str(text, times[i].text, "%llu ms as people read them",
                   (unsigned long long)times[i].ms);
    }
    fill(words, sizeof words, "one two three four five six");
    tap_eq_str(words, "one two three four...", "a text that is too long ends behind a whole word");
    fill(words, sizeof words, "00000000000000000000000001");
    tap_eq_str(words, "00000000000000000000...", "a word that is too long is cut");
    fill(words, sizeof words, "one two");
    tap_eq_str(words, "one two", "a text that fits stays as it is");
    struct err err = ERR_INIT;
    char long_path[600];
    memset(long_path, 'p', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    errno = EACCES;
    (void)!err_sys(&err, "open %s", long_path);
    tap_ok(strstr(err.msg, "...: Permission denied"), "a long path leaves room for the reason");
}

static void units(void)
{
    static const struct {
        const char *s;
        int (*read)(const char *, uint64_t *);
        int64_t want; /* -1: refused */
    } t[] = {
        {"64", units_count, 64},
        {"", units_count, -1},
        {"-1", units_count, -1},
        {"1.5", units_count, -1},
        {"64x", units_count, -1},
        {"18446744073709551616", units_count, -1},
        {"9223372036854775807", units_count, INT64_MAX},
        {"1.0000", units_count, 1},
        {"1.0004", units_count, -1},
        {"512m", units_bytes, 512LL << 20},
        {"1.5k", units_bytes, 1536},
        {"1GB", units_bytes, 1LL << 30},
        {"99999999999999g", units_bytes, -1},
        {"30", units_millis, 30000},
        {"1.5s", units_millis, 1500},
        {"200ms", units_millis, 200},
        {"0.5ms", units_millis, -1},
        {"2m", units_millis, 120000},
        {"1h", units_millis, 3600000},
        {"1d", units_millis, -1},
        {" 1", units_millis, -1},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        uint64_t n = 0;
        int r = t[i].read(t[i].s, &n);
        tap_ok(t[i].want < 0 ? r == ERR_FORMAT : r == 0 && n == (uint64_t)t[i].want,
               "units '%s' (got %d, %llu)", t[i].s, r, (unsigned long long)n);
    }
}

static void utf8(void)
{
    static const struct {
        const char *s;
        size_t len, good;
    } t[] = {
        {"abc", 3, 3},
        {"\xc3\xa9", 2, 2},
        {"\xc0\x80", 2, 0},
        {"\xed\xa0\x80", 3, 0},
        {"\xf4\x90\x80\x80", 4, 0},
        {"\xf0\x9f\x98\x80", 4, 4},
        {"a\xe2\x82", 3, 1},
        {"\xff", 1, 0},
        {"\xe0\x80\x80", 3, 0},
        {"eight by", 8, 8},
        {"eight by eight b", 16, 16},
        {"eight by \xc3\xa9 eight by eight", 25, 25},
        {"seven b\xff more text here", 20, 7},
        {"eight by\xff", 9, 8},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        tap_eq_int(utf8_valid_prefix(t[i].s, t[i].len), t[i].good, "utf-8 row %zu", i);
    uint32_t cp;
    tap_eq_int(utf8_decode((const unsigned char *)"\xe2\x82", 2, &cp), -1,
               "a cut UTF-8 sequence is -1");
    tap_eq_int(utf8_count("a\xe2\x82\xac\xf0\x9f\x98\x80", 8), 3,
               "the bytes of three characters are counted");
    bool same = true;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char out[4];
        int n = utf8_encode(c, out);
        if (c >= 0xd800 && c <= 0xdfff)
            same = same && n == 0;
        else
            same =
                same && n > 0 && utf8_decode((unsigned char *)out, (size_t)n, &cp) == n && cp == c;
    }
    tap_ok(same, "every scalar value survives encode and decode");
}

static void json(void)
{
    struct buf out;
    buf_init(&out, 1000);
    struct jsonw j = {.out = &out};
    jsonw_open(&j, NULL, '{');
    jsonw_bytes(&j, "s", "a\"\\\n\x01\xc3\xa9\xf0\x9f\x98\x80\xff\0z", 14);
    jsonw_int(&j, "n", INT64_MIN);
    jsonw_int(&j, "z", 0);
    jsonw_null(&j, "x");
    jsonw_open(&j, "l", '[');
    jsonw_bool(&j, NULL, true);
    jsonw_decimal(&j, NULL, 1.5);
    jsonw_close(&j, ']');
    jsonw_close(&j, '}');
    tap_eq_str(out.data,
               "{\"s\": \"a\\\"\\\\\\n\\u0001\\u00e9\\ud83d\\ude00\\ufffd\\u0000z\", \"n\": "
               "-9223372036854775808, \"z\": 0, "
               "\"x\": null, \"l\": [true, 1.500]}",
               "hostile bytes come out as valid JSON");
    buf_done(&out);
    buf_init(&out, 10);
    j = (struct jsonw){.out = &out};
    jsonw_string(&j, "key", "longer than ten");
    tap_eq_int(j.bad, ERR_LIMIT, "a full buffer is an error that sticks");
    buf_done(&out);
}

static void near(void)
{
    static const struct {
        const char *word, *candidates[4], *want;
    } rows[] = {
        {"exce", {"exec", "eval", "run"}, "exec"},
        {"rnu", {"run", "resume"}, "run"},
        {"tiemout", {"timeout", "memory"}, "timeout"},
        {"TIMEOUT", {"timeout"}, "timeout"},
        {"no", {"off", "begin", "on"}, "off"},
        {"no", {"begin", "on"}, NULL},
        {"yes", {"off", "begin", "on"}, "on"},
        {"no-wait", {"wait"}, NULL},
        {"no-wiat", {"wait", "no-wait"}, "no-wait"},
        {"ro", {"role"}, NULL},
        {"gate", {"rates"}, NULL},
        {"", {"run"}, NULL},
        {"something-else", {"run", "exec"}, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = 0;
        while (n < 4 && rows[i].candidates[n])
            n++;
        const char *got = near_word(rows[i].word, rows[i].candidates, n);
        tap_eq_str(got ? got : "none", rows[i].want ? rows[i].want : "none",
                   "of %zu words beginning with %s the one near to '%s'", n, rows[i].candidates[0],
                   rows[i].word);
    }
}

static void languages(void)
{
    const struct language *python = language_default();
    tap_ok(language_named("python") == python && language_ending(".py") == python &&
               language_tagged("IPython") == python,
           "a language is found by its name, by an ending and by a tag in any case");
    tap_ok(!language_named("pytho") && !language_named("shell") && !language_ending(".p") &&
               !language_ending("") && !language_tagged("py python") && !language_tagged(""),
           "a part of a word, two words and no word at all are no language");
    tap_ok(language_ending(".sh") && !language_tagged("sh"),
           "a shell's file is told apart, and its blocks are no program's");
    size_t named = 0, workers = 0;
    for (const struct language *l = language_next(NULL); l; l = language_next(l)) {
        named++;
        workers += l->worker != NULL;
        tap_ok(language_named(l->name) == l && language_tagged(l->name) == l && l->title &&
                   l->endings && !l->worker == !l->filter && !l->worker == !l->place,
               "the row of %s is found by its name, which is a tag, and is whole", l->name);
    }
    tap_ok(named > workers && workers > 0, "some languages run, and some are only named");
    char filter[48];
    tap_eq_str(language_filter(python, true, true, false, filter, sizeof filter),
               "python-compute-landlock", "a filter is named by the language and by what it keeps");
}

int main(void)
{
    near();
    json();
    errors();
    killed_writer(false);
    killed_writer(true);
    buffers();
    arenas();
    names_of_files();
    units();
    sizes();
    utf8();
    languages();
    return tap_done();
}
