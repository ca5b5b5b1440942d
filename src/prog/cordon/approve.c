/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon approve`: the questions that wait for a person. What is shown is what would run, byte for byte
 * and visible; nothing in it acts on the reader's terminal.
 *
 * Waits: write in ask_why; the terminal; none (a person sits there); Ctrl-C
 *        read in ask_why; a person to say why; none (a person sits there); Ctrl-C
 *        source_read in elicited; nobody: cordond wrote it before; LIMIT_TOOL_MS; an error
 *        poll in watch; nothing: it is a pause; LOOK_MS; looks again */
#include "approve.h"

#include "admin.h"
#include "base/limits.h"
#include "base/units.h"
#include "commands.h"
#include "options.h"
#include "result.h"
#include "shown_code.h"
#include "source.h"
#include "sys/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WATCHED = 1000, /* questions that can wait at one time; more are shown again */
    LOOK_MS = 1000,
    ID = sizeof(((struct gate_approval *)0)->id),
};

struct approve_options {
    const char *why;
    bool all, watch, json, help;
    struct option_list words;
};

/* ---- printing ---- */

static void put_field(const char *name, const char *text)
{
    char before[32];
    snprintf(before, sizeof before, "  %-10s ", name);
    shown_line(before, text, strlen(text));
}

static void put_time(const char *name, uint64_t seconds)
{
    char text[40] = "";
    time_t t = (time_t)seconds;
    struct tm tm;
    if (seconds && gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
        put_field(name, text);
}

void approve_json(struct jsonw *j, const struct gate_approval *a, bool whole)
{
    const struct {
        const char *name;
        uint64_t n;
    } times[] = {
        {"asked", a->asked}, {"expires", a->expires}, {"answered", a->answered}, {"used", a->used}};
    jsonw_open(j, NULL, '{');
    jsonw_string(j, "id", a->id);
    jsonw_string(j, "state", gate_approval_state_name(a->state));
    jsonw_string(j, "client", a->client);
    jsonw_string(j, "tool", a->tool);
    jsonw_string(j, "run", a->run);
    jsonw_string(j, "because", a->because);
    jsonw_string(j, "code_sha256", a->hash);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].n)
            jsonw_int(j, times[i].name, (int64_t)times[i].n);
        else
            jsonw_null(j, times[i].name);
    jsonw_string(j, "by", a->by[0] ? a->by : NULL);
    jsonw_string(j, "why", a->why[0] ? a->why : NULL);
    if (whole) {
        jsonw_string(j, "arguments", a->arguments);
        jsonw_bytes(j, "code", a->code, a->code_len);
    }
    jsonw_close(j, '}');
}

static int put_json(struct buf *out, const struct jsonw *j)
{
    int r = j->bad || puts(out->data) < 0 ? EXIT_FAILED : EXIT_DONE;
    buf_done(out);
    return r;
}

/* ---- the verbs ---- */

static void put_line(const struct gate_approval *a)
{
    char line[400];
    long long left = (long long)a->expires - (long long)time(NULL);
    snprintf(line, sizeof line, "%-16s %-9s %-8s %-12s sha256:%.12s  %s", a->id,
             gate_approval_state_name(a->state), a->tool, a->client, a->hash, a->because);
    if (a->state == GATE_ASKED)
        snprintf(line + strlen(line), sizeof line - strlen(line), "  (%lld s left)",
                 left > 0 ? left : 0);
    shown_line("", line, strlen(line));
}

/* Whether it was shown in an earlier look: those that wait now, and nothing older, are remembered. */
static bool is_known(char (*ids)[ID], size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(ids[i], id) == 0)
            return true;
    return false;
}

/* Prints each question once, as it comes, until it is interrupted. */
static int watch(struct admin *admin, const struct approve_options *o, struct err *err)
{
    static char known[WATCHED][ID];
    size_t nknown = 0;
    for (;;) {
        struct gate_approval *items = NULL;
        struct arena mem;
        size_t count = 0;
        arena_init(&mem, 64 * MIB);
        int r = gate_approvals_list(admin->gate, true, &mem, &items, &count, err);
        for (size_t i = 0; r == 0 && i < count; i++) {
            if (is_known(known, nknown, items[i].id))
                continue;
            if (o->json) {
                struct buf out;
                buf_init(&out, 16 * MIB);
                struct jsonw j = {.out = &out};
                approve_json(&j, &items[i], false);
                (void)put_json(&out, &j);
            } else {
                put_line(&items[i]);
            }
        }
        nknown = count < WATCHED ? count : WATCHED;
        for (size_t i = 0; i < nknown; i++)
            snprintf(known[i], sizeof known[i], "%s", items[i].id);
        arena_done(&mem);
        if (r < 0 || fflush(stdout) != 0)
            return r < 0 ? r : EXIT_FAILED;
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static int list(struct admin *admin, const struct approve_options *o, struct arena *mem,
                struct err *err)
{
    struct gate_approval *items = NULL;
    size_t count = 0;
    if (o->words.count > 1)
        return err_set(err, ERR_USAGE, "list takes no id");
    if (o->watch)
        return watch(admin, o, err);
    int r = gate_approvals_list(admin->gate, !o->all, mem, &items, &count, err);
    if (r < 0)
        return r;
    if (o->json) {
        struct buf out;
        buf_init(&out, 16 * MIB);
        struct jsonw j = {.out = &out};
        jsonw_open(&j, NULL, '[');
        for (size_t i = 0; i < count; i++)
            approve_json(&j, &items[i], false);
        jsonw_close(&j, ']');
        return put_json(&out, &j);
    }
    for (size_t i = 0; i < count; i++)
        put_line(&items[i]);
    if (count == 0)
        puts(o->all ? "no approvals" : "nothing waits for an answer");
    return EXIT_DONE;
}

static int show(struct admin *admin, const struct approve_options *o, struct arena *mem,
                struct err *err)
{
    struct gate_approval a;
    int r = gate_approval_show(admin->gate, o->words.items[1], mem, &a, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_USAGE, "there is no approval '%.40s'; see cordon approve list",
                       o->words.items[1]);
    if (o->json) {
        struct buf out;
        buf_init(&out, 64 * MIB);
        struct jsonw j = {.out = &out};
        approve_json(&j, &a, true);
        return put_json(&out, &j);
    }
    printf("approval %s: %s\n", a.id, gate_approval_state_name(a.state));
    put_field("client", a.client);
    put_field("tool", a.tool);
    put_field("run", a.run);
    put_field("because", a.because);
    put_time("asked", a.asked);
    put_time("expires", a.expires);
    put_time("answered", a.answered);
    put_time("used", a.used);
    if (a.by[0]) {
        put_field("by", a.by);
        put_field("why", a.why);
    }
    put_field("arguments", a.arguments[0] ? a.arguments : "none");
    printf("  %-10s sha256:%s, %zu bytes\n", "code", a.hash, a.code_len);
    shown_code(a.code, a.code_len);
    return EXIT_DONE;
}

/* The reason, asked for where none was given and somebody sits there. */
static int ask_why(char *out, size_t size, struct err *err)
{
    static const char prompt[] = "why: ";
    FD_AUTO tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    ssize_t n = -1;
    if (tty >= 0 && write(tty, prompt, sizeof prompt - 1) > 0)
        n = read(tty, out, size - 1);
    while (n > 0 && (out[n - 1] == '\n' || out[n - 1] == ' '))
        n--;
    if (n <= 0)
        return err_set(err, ERR_USAGE, "say why: --why TEXT; it is kept with the answer");
    out[n] = 0;
    return 0;
}

static int answer(struct admin *admin, const struct approve_options *o, bool yes, struct err *err)
{
    struct gate_refusal no;
    char asked[200];
    const char *why = o->why, *id = o->words.items[1];
    int r = 0;
    if (why && strlen(why) >= sizeof asked)
        return err_set(err, ERR_USAGE, "--why is longer than %zu bytes", sizeof asked - 1);
    if (!why || !*why) {
        r = ask_why(asked, sizeof asked, err);
        why = asked;
    }
    if (r == 0)
        r = gate_approval_answer(admin->gate, id, &admin->self, yes, why, &no, err);
    if (r < 0)
        return r;
    if (r == 0) {
        char line[700];
        snprintf(line, sizeof line, "%s; %s", no.reason, no.hint);
        result_complain("cordon approve", line);
        return EXIT_FAILED;
    }
    printf("%s: %s\n", id, yes ? "approved, once, for exactly that code" : "denied");
    return EXIT_DONE;
}

/* ---- the person at a client of `cordon serve` ---- */

bool approve_started_by_cordond(void)
{
    char path[40], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
    return fd_read_file(AT_FDCWD, path, name, sizeof name) > 0 && strcmp(name, "cordond\n") == 0;
}

/* PID: the runner that asked, by cordond's own list; the id and yes or no come from the client's front. */
static int elicited(const char *word, const char *policy, struct err *err)
{
    struct admin admin;
    struct gate_refusal no;
    struct err closing = ERR_INIT;
    struct text text = {0};
    uint64_t pid = 0;
    if (!approve_started_by_cordond() || units_count(word, &pid) < 0 || pid > INT32_MAX)
        return err_set(err, ERR_USAGE, "elicited: started by cordon serve only");
    int r = source_read("-", 256, LIMIT_TOOL_MS, &text, err);
    const char *answer = r == 0 ? memchr(text.data, 0, text.len) : NULL;
    if (r == 0 && (!answer || text.data[text.len - 1] != 0))
        r = err_set(err, ERR_USAGE, "elicited: an id and yes or no, each with a NUL behind it");
    if (r == 0)
        r = admin_open_policy(&admin, policy, err);
    if (r == 0 && answer) {
        r = gate_approval_elicited(admin.gate, text.data, &admin.self, (pid_t)pid,
                                   strcmp(answer + 1, "yes") == 0, &no, err);
        if (admin_close(&admin, &closing) < 0 && r >= 0)
            r = err_set(err, closing.code, "%s", closing.msg);
        if (r == 0)
            r = err_set(err, ERR_STATE, "%s; %s", no.reason, no.hint);
    }
    free(text.data);
    return r < 0 ? r : EXIT_DONE;
}

static int act(const struct approve_options *o, struct arena *mem, struct err *err)
{
    static const char *const verbs[] = {"list", "show", "yes", "no"};
    const char *word = o->words.count ? o->words.items[0] : "list";
    size_t verb = 0;
    if (strcmp(word, "elicited") == 0 && (o->words.count == 2 || o->words.count == 3))
        return elicited(o->words.items[1], o->words.count == 3 ? o->words.items[2] : NULL, err);
    if (strcmp(word, "served") == 0 && o->words.count <= 2)
        return approve_served(o->words.count == 2 ? o->words.items[1] : NULL, mem, err);
    while (verb < 4 && strcmp(verbs[verb], word) != 0)
        verb++;
    if (verb == 4)
        return options_no_verb(word, verbs, 4, err);
    if (verb > 0 && o->words.count != 2)
        return err_set(err, ERR_USAGE, "%s takes one id; see cordon approve list", word);
    struct admin admin;
    struct err closing = ERR_INIT;
    int r = admin_open(&admin, err);
    if (r == 0)
        r = verb == 0   ? list(&admin, o, mem, err)
            : verb == 1 ? show(&admin, o, mem, err)
                        : answer(&admin, o, verb == 2, err);
    if (admin_close(&admin, &closing) < 0 && r >= 0) {
        *err = closing;
        r = closing.code;
    }
    return r;
}

int cmd_approve(int argc, char **argv)
{
    struct approve_options o = {0};
    const struct option_row rows[] = {
        {"why", OPTION_STRING, &o.why, "TEXT", "yes, no: the reason; kept with the answer"},
        {"all", OPTION_FLAG, &o.all, NULL, "list: also those that are answered or too late"},
        {"watch", OPTION_FLAG, &o.watch, NULL, "list: go on, and print each question as it comes"},
        {"json", OPTION_FLAG, &o.json, NULL, "list, show: JSON"},
        {"help", OPTION_FLAG, &o.help, NULL, "this text"},
    };
    struct err err = ERR_INIT;
    struct arena mem;
    arena_init(&mem, 64 * MIB);
    int r = options_parse_mixed(argc, argv, rows, sizeof rows / sizeof *rows, &o.words, &err);
    if (r == 0 && o.help) {
        puts("usage: cordon approve list | show ID | yes ID | no ID\n\n"
             "Answers what waits for a person. A yes is for exactly the code and arguments that "
             "`show`\nprints, for one use, and for a limited time. Who asked cannot say yes.\n");
        options_print(rows, sizeof rows / sizeof *rows);
        exits_print(EXITS_OTHER);
    } else if (r == 0) {
        r = act(&o, &mem, &err);
    }
    if (r < 0) {
        result_complain("cordon approve", err.msg);
        r = err.code == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
    }
    arena_done(&mem);
    return r;
}
