/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas, marked texts and paths of cordon-tool, without the process: what a guest may send, what a file may hold, and a folder
 * that somebody swaps for a link while it is resolved. */
#include "base/tap.h"
#include "sys/fd.h"
#include "tools/inside.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":3},"            \
    "\"n\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9},"                                    \
    "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":2},"                   \
    "\"e\":{\"type\":\"string\",\"enum\":[\"x\",\"y\"]}},\"required\":[\"a\"]}"

static void schemas(void)
{
    static const struct {
        const char *given, *why; /* NULL: it fits */
    } rows[] = {
        {"{\"args\":[\"abc\"],\"kwargs\":null}", NULL},
        {"{\"args\":[],\"kwargs\":{\"a\":\"\\u00e9\\u00e9\\u00e9\"}}", NULL},
        {"{\"args\":[\"a\",9],\"kwargs\":{\"l\":[\"x\"],\"e\":\"y\"}}", NULL},
        {"{\"args\":[\"abcd\"]}", "maxLength"},
        {"{\"args\":[\"a\",0]}", "minimum"},
        {"{\"args\":[\"a\",10]}", "maximum"},
        {"{\"args\":[\"a\",1.5]}", "not of type integer"},
        {"{\"args\":[\"a\",true]}", "not of type integer"},
        {"{\"args\":[\"a\"],\"kwargs\":{\"l\":[1]}}", "not of type string"},
        {"{\"args\":[\"a\"],\"kwargs\":{\"l\":[\"\",\"\",\"\"]}}", "maxItems"},
        {"{\"args\":[\"a\"],\"kwargs\":{\"e\":\"z\"}}", "none of the values"},
        {"{\"args\":[\"a\"],\"kwargs\":{\"a\":\"b\"}}", "comes twice"},
        {"{\"args\":[\"a\"],\"kwargs\":{\"z\":1}}", "no argument 'z'"},
        {"{\"args\":[\"a\",1,[],\"x\",5]}", "too many"},
        {"{\"args\":[]}", "'a' is missing"},
        {"{\"args\":[\"a\\u0000b\"]}", "not JSON"},
        {"[", "not JSON"},
        {"[1]", "not JSON"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[300] = "";
        json_t *args = NULL;
        const int r =
            tools_check(SCHEMA, rows[i].given, strlen(rows[i].given), &args, why, sizeof why);
        tap_ok(rows[i].why ? r < 0 && strstr(why, rows[i].why) : r == 0 && json_is_object(args),
               "arguments %s %s", rows[i].given, rows[i].why ? "are refused" : "fit their schema");
        json_decref(args);
    }
    static const char large[] = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
                                "\"minimum\":-9007199254740992,\"maximum\":9007199254740992}}}";
    static const struct {
        const char *given, *why;
    } edges[] = {{"{\"args\":[9007199254740992]}", NULL},
                 {"{\"args\":[9007199254740993]}", "9007199254740993; maximum is 9007199254740992"},
                 {"{\"args\":[-9007199254740993]}", "minimum is -9007199254740992"},
                 {"{\"args\":[9223372036854775807]}", "maximum"},
                 {"{\"args\":[9223372036854775808]}", "64 bits"},
                 {"{\"args\":[NaN]}", "no NaN"}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        char why[300] = "";
        json_t *args = NULL;
        const int r =
            tools_check(large, edges[i].given, strlen(edges[i].given), &args, why, sizeof why);
        tap_ok(edges[i].why ? r < 0 && strstr(why, edges[i].why) : r == 0,
               "a bound of 2^53 is exact: %s: %s", edges[i].given, why);
        json_decref(args);
    }
    char why[300];
    json_t *args = NULL;
    static const char odd[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"^a\"}}}";
    tap_ok(tools_check(odd, "{\"args\":[\"a\"]}", 14, &args, why, sizeof why) < 0 &&
               strstr(why, "pattern"),
           "a word of a schema that nobody checks refuses the call");
    for (size_t i = 0; i < tools_count; i++)
        if (tools_table[i].schema) {
            json_t *schema = json_loads(tools_table[i].schema, JSON_REJECT_DUPLICATES, NULL);
            tap_ok(json_is_object(schema), "the schema of %s is JSON", tools_table[i].name);
            json_decref(schema);
        }
}

/* What a record has of arguments, whether or not they fit. */
static void records(void)
{
    static const struct {
        const char *given, *kept; /* NULL: nothing can be read */
    } rows[] = {
        {"{\"args\":[\"x\",5],\"kwargs\":{\"e\":1}}", "{\"a\":\"x\",\"n\":5,\"e\":1}"},
        {"{\"args\":[[1]],\"kwargs\":null}", "{\"a\":[1]}"},
        {"{\"args\":[],\"kwargs\":{\"z\":1}}", "{\"z\":1}"},
        {"{\"args\":[1],\"kwargs\":{\"a\":2}}", "{\"a\":1,\"a_again\":2}"},
        {"{\"args\":[1,2,3,4,\"hush\",[6]]}", "{\"a\":1,\"n\":2,\"l\":3,\"e\":4,\"arguments "
                                              "without a name\":{\"count\":2,\"bytes\":9}}"},
        {"[1]", NULL},
        {"{\"args\":[\"a\\ud800\"]}", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *named = tools_named(SCHEMA, rows[i].given, strlen(rows[i].given));
        char *text = named ? json_dumps(named, JSON_COMPACT) : NULL;
        tap_eq_str(text ? text : "", rows[i].kept ? rows[i].kept : "",
                   "the record of the arguments %s has their names", rows[i].given);
        free(text);
        json_decref(named);
    }
    char why[300] = "";
    json_t *args = NULL;
    static const char cut[] = "{\"args\":[\"hush\\ud800\"]}";
    tap_ok(tools_check(SCHEMA, cut, sizeof cut - 1, &args, why, sizeof why) < 0 &&
               !strstr(why, "hush"),
           "the reason for arguments that are no JSON quotes nothing of them (%s)", why);
}

static void marks(void)
{
    static const struct {
        const char *bytes, *text;
    } rows[] = {
        {"plain text\n\tof lines", "plain text\n\tof lines"},
        {"a\r\nb", "a\nb"},
        {"\x1b[31m", "^[[31m"},
        {"\xe2\x80\xae", "<U+202E>"},
        {"\xff", "\\xff"},
        {"System: x", "System&#58; x"},
        {"  human: x", "  human&#58; x"},
        {"the System: x", "the System: x"},
        {"a <|im_start|> b", "a &#60;|im_start|> b"},
        {"[INST]<<SYS>>", "&#91;INST]&#60;<SYS>>"},
        {"</Tool_result>", "&#60;/Tool_result>"},
        {"a < b [0] user", "a < b [0] user"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tools_call c = {0};
        json_t *text = tools_mark(&c, rows[i].bytes, strlen(rows[i].bytes));
        tap_ok(text && strcmp(json_string_value(text), rows[i].text) == 0,
               "a text of row %zu is marked as it should be", i);
        json_decref(text);
    }
}

static struct tools_call call = {.files = -1, .limits = {50000, 100}};

static void put(int dir, const char *name, const char *text)
{
    FD_AUTO fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        abort();
}

/* Swaps the folder `d` for a link to a folder outside, again and again. */
_Noreturn static void swap(int work)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        syscall(SYS_renameat2, work, "d", work, "l", 2 /* RENAME_EXCHANGE */);
}

static bool says(const char *path, const char *text)
{
    struct tools_place p;
    struct stat st;
    struct buf b;
    int fd = -1;
    buf_init(&b, 4096);
    enum tools_end end = tools_place_open(&call, path, false, &p);
    if (end == TOOLS_OK)
        end = tools_open_file(&call, &p, &fd, &st);
    if (end == TOOLS_OK)
        end = tools_read(&call, fd, 0, 4000, &b);
    const bool same = end == TOOLS_OK && b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
    fd_close(fd);
    tools_place_close(&p);
    buf_done(&b);
    return same;
}

static void race(int root)
{
    FD_AUTO work = openat(root, "workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    unsigned out = 0, in = 0;
    const pid_t pid = fork();
    if (pid == 0)
        swap(work);
    for (int i = 0; i < 10000; i++) {
        out += says("d/f", "outside");
        in += says("d/f", "inside");
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    tap_ok(out == 0, "a folder that is swapped for a link 10,000 times never leads outside");
    tap_ok(in > 0, "a folder that is being swapped is read whenever it is there");
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void paths(void)
{
    char top[] = "/tmp/cordon-tools-XXXXXX";
    if (!mkdtemp(top))
        abort();
    FD_AUTO dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(dir, "root", 0755) < 0 || mkdirat(dir, "root/workspace", 0755) < 0 ||
        mkdirat(dir, "root/tmp", 0755) < 0 || mkdirat(dir, "root/workspace/d", 0755) < 0 ||
        mkdirat(dir, "outside", 0755) < 0 || mkdirat(dir, "root/hidden", 0755) < 0 ||
        symlinkat("../../outside", dir, "root/workspace/l") < 0)
        abort();
    put(dir, "outside/f", "outside");
    put(dir, "root/workspace/d/f", "inside");
    put(dir, "root/hidden/f", "hidden");
    FD_AUTO root = openat(dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    call.files = root;
    tap_ok(says("d/f", "inside") && says("/workspace//d/./f", "inside"), "a path inside is opened");
    tap_ok(!says("../hidden/f", "hidden") && !says("/workspace/../hidden/f", "hidden") &&
               strstr(call.refusal, "Path not in allowed locations"),
           "a folder beside /workspace is not reached by ..");
    tap_ok(!says("l/f", "outside") && strstr(call.refusal, "Path not in allowed locations"),
           "a link to a folder outside is not followed");
    race(root);
    tap_eq_int(nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0, "what the test made is removed");
}

/* Records as the audit has them: whole, with arguments that redaction broke, and a line that is no record. */
static void goals(void)
{
    static const char lines[] =
        "3\n{\"ts\": 5, \"args\": {\"arguments\": "
        "\"{\\\"goal\\\":\\\"a\\\\nb\\\",\\\"why\\\":\\\"w\\\"}\"}}"
        "\n{\"ts\": 6, \"args\": {\"arguments\": \"{\\\"goal\\\":\\\"[redacted]\"}}";
    static const struct {
        const char *lines;
        bool good;
    } rows[] = {{lines, true}, {"0", true}, {"", true}, {"1\nno record", false}, {"1\n{}", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tools_call c = {.name = "Goal", .args = json_object()};
        const enum tools_end end = tools_goal_answer(&c, rows[i].lines, strlen(rows[i].lines));
        tap_ok((end == TOOLS_OK) == rows[i].good, "goals of a session are read from records: %zu",
               i);
        if (i == 0) {
            const json_t *v = json_object_get(c.answer, "versions");
            char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);
            tap_eq_str(text,
                       "[{\"diff\":null,\"goal\":\"a\\nb\",\"ts\":5,\"version\":2,\"why\":\"w\"},"
                       "{\"diff\":[\"-a\",\"-b\",\"+{\\\"goal\\\":\\\"[redacted]\"],\"goal\":\"{"
                       "\\\"goal\\\":\\\"["
                       "redacted]\",\"ts\":6,\"version\":3,\"why\":\"\"}]",
                       "what redaction broke is told as it stands, with its number");
            free(text);
        }
        json_decref(c.args);
        json_decref(c.answer);
    }
}

static void made(void)
{
#define NONE "{\"type\":\"object\",\"properties\":{}}"
    static const struct {
        const char *name, *schema, *source, *why; /* NULL: it is good */
    } rows[] = {
        {"WordCount", NONE, "def WordCount():\n    pass\n", NULL},
        {"A1", "{\"type\":\"object\"}", "x = 1\ndef  A1 ():\n    pass\n", "no name"},
        {"Ab", "{\"type\":\"object\"}", "x = 1\ndef  Ab ():\n    pass\n", NULL},
        {"wordCount", NONE, "def wordCount(): pass", "no name"},
        {"Word/../x", NONE, "def x(): pass", "no name"},
        {"Grep", NONE, "def Grep(): pass", "already"},
        {"WordCount", NONE, "def WordCounts(): pass", "has no line"},
        {"WordCount", NONE, "    def WordCount(): pass", "has no line"},
        {"WordCount", "{\"type\":\"array\"}", "def WordCount(): pass", "not of type object"},
        {"WordCount", "{\"type\":\"object\",\"properties\":{\"a\":{}}}", "def WordCount(a): pass",
         "does not say its type"},
        {"WordCount",
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"format\":\"file\"}}}",
         "def WordCount(a): pass", "nobody checks"},
    };
#undef NONE
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tools_program p;
        struct tools_call c = {.name = "CreateTool",
                               .files = -1,
                               .args = json_pack("{s:s, s:s, s:o, s:s}", "name", rows[i].name,
                                                 "description", "d\n# x", "schema",
                                                 json_loads(rows[i].schema, 0, NULL), "source",
                                                 rows[i].source)};
        const enum tools_end end = tools_program(&c, &p);
        tap_ok(rows[i].why ? end == TOOLS_REFUSED && strstr(c.refusal, rows[i].why)
                           : end == TOOLS_OK && strcmp(p.word, rows[i].name) == 0 &&
                                 strncmp(p.source, "# {\"description\":\"d\\n# x\"", 25) == 0 &&
                                 strcmp(strchr(p.source, '\n') + 1, rows[i].source) == 0,
               "a tool %s is %s: %s", rows[i].name, rows[i].why ? "refused" : "made", c.refusal);
        buf_done(&c.text);
        json_decref(c.args);
    }
}

int main(void)
{
    schemas();
    records();
    made();
    goals();
    marks();
    paths();
    return tap_done();
}
