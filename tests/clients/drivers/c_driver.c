/* SPDX-License-Identifier: Apache-2.0 */
/* Does what tests/clients/clients.py says, a JSON object a line, with the C library. c_driver SOCKET|- */
#include <cordon.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELD 8

struct step {
    struct cordon_client *client;
    struct cordon_session *session; /* NULL: the client's own method */
    json_t *args, *output, *progress, *got;
    const char *hears;
    bool interrupted;
};

static struct {
    char name[16];
    struct cordon_session *session;
} held[HELD];

static struct cordon_client *of_handler;

static const char *const quick[] = {"--answer", "100ms",        "--timeout",    "10m", "--profile",
                                    "standard", "--workspaces", "stdio,socket", NULL};

static void on_signal(int number)
{
    (void)number;
    cordon_client_cancel(of_handler);
}

/* A program whose timer ticks: its signals restart no call. */
static void on_tick(int number)
{
    (void)number;
}

static const char *text(const struct step *s, const char *name)
{
    return json_string_value(json_object_get(s->args, name));
}

static int on_output(void *data, const char *stream, const char *more, size_t len)
{
    struct step *s = data;
    (void)stream;
    json_array_append_new(s->output, json_stringn(more, len));
    if (s->hears && strcmp(s->hears, "signal") == 0)
        raise(SIGUSR1);
    return s->hears && strcmp(s->hears, "cancel") == 0;
}

static int on_progress(void *data, uint64_t ms, const char *message)
{
    struct step *s = data;
    (void)message;
    json_array_append_new(s->progress, json_integer((json_int_t)ms));
    if (json_array_size(s->output) && !s->interrupted) {
        s->interrupted = true;
        return cordon_session_interrupt(s->session);
    }
    return 0;
}

static struct cordon_run_options options(struct step *s)
{
    const json_t *wait = json_object_get(s->args, "wait"),
                 *output = json_object_get(s->args, "on_output");
    s->hears = json_string_value(output);
    return (struct cordon_run_options){
        .language = text(s, "language"),
        .session_id = text(s, "session_id"),
        .timeout_ms = (uint64_t)json_integer_value(json_object_get(s->args, "timeout_ms")),
        .memory_mb = (uint64_t)json_integer_value(json_object_get(s->args, "memory_mb")),
        .max_output_chars =
            (uint64_t)json_integer_value(json_object_get(s->args, "max_output_chars")),
        .no_wait = json_is_false(wait),
        .check = json_is_true(json_object_get(s->args, "check")),
        .on_output = output ? on_output : NULL,
        .on_progress = json_object_get(s->args, "on_progress") ? on_progress : NULL,
        .data = s};
}

static struct cordon_session **slot(const char *name)
{
    for (int i = 0; name && i < HELD; i++)
        if (!held[i].session || strcmp(held[i].name, name) == 0) {
            snprintf(held[i].name, sizeof held[i].name, "%s", name);
            return &held[i].session;
        }
    return NULL;
}

/* The cases have bytes as base64; what comes back is told as digits. */
static int put(struct step *s)
{
    const char *text64 = text(s, "data");
    size_t len = strlen(text64), n = 0;
    unsigned char *bytes = malloc(len + 1);
    unsigned word = 0;
    int bits = 0;
    for (size_t i = 0; i < len && text64[i] != '='; i++) {
        const char c = text64[i];
        const int digit = c >= 'a'   ? c - 'a' + 26
                          : c >= 'A' ? c - 'A'
                          : c >= '0' ? c - '0' + 52
                          : c == '+' ? 62
                                     : 63;
        word = word << 6 | (unsigned)digit;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            bytes[n++] = (unsigned char)(word >> bits);
        }
    }
    const int r = cordon_session_put(s->session, text(s, "path"), bytes, n);
    free(bytes);
    return r;
}

static int get(struct step *s)
{
    void *data;
    size_t len;
    const int r = cordon_session_get(s->session, text(s, "path"), &data, &len);
    char *hex = r ? NULL : calloc(1, 2 * len + 1);
    for (size_t i = 0; hex && i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", ((unsigned char *)data)[i]);
    s->got = hex ? json_pack("{s:s}", "hex", hex) : NULL;
    free(hex);
    free(data);
    return r;
}

/* A method about names, matches or states; -1: METHOD is none of them. */
static int of_files(struct step *s, const char *method, struct cordon_answer **ret)
{
    return strcmp(method, "list") == 0 ? cordon_session_list(s->session, text(s, "path"), ret)
           : strcmp(method, "search") == 0
               ? cordon_session_search(s->session, text(s, "pattern"), text(s, "path"),
                                       text(s, "what"),
                                       json_is_true(json_object_get(s->args, "ignore_case")), ret)
           : strcmp(method, "snapshot") == 0
               ? cordon_session_snapshot(s->session, text(s, "name"), text(s, "message"), ret)
           : strcmp(method, "snapshots") == 0 ? cordon_session_snapshots(s->session, ret)
           : strcmp(method, "diff") == 0
               ? cordon_session_diff(s->session, text(s, "snapshot"), text(s, "to"), ret)
           : strcmp(method, "restore") == 0
               ? cordon_session_restore(s->session, text(s, "snapshot"), ret)
               : -1;
}

/* What a forked copy of the client gives for a call; it is closed there, and not here. */
static int forked(struct step *s)
{
    int status = 0;
    const pid_t pid = fork();
    if (pid == 0) {
        struct cordon_answer *a;
        const int r = cordon_client_run(s->client, "1", NULL, &a);
        cordon_client_close(s->client);
        _exit(r);
    }
    return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : WEXITSTATUS(status);
}

/* Whether a client closes while a forked process has a copy of it, and its server ends by itself: it is killed after 15 s. */
static int copied(struct step *s)
{
    struct cordon_client *c;
    struct cordon_answer *a = NULL;
    struct timespec began, ended;
    int ends[2], r = cordon_client_start(NULL, quick, &c, NULL);
    if (r || pipe(ends) < 0)
        return r ? r : -1;
    r = cordon_client_run(c, "1", NULL, &a);
    cordon_answer_free(a);
    const pid_t pid = fork();
    if (pid == 0) {
        char none;
        close(ends[1]);
        _exit((int)read(ends[0], &none, 1)); /* until its parent is done */
    }
    clock_gettime(CLOCK_MONOTONIC, &began);
    cordon_client_close(c);
    clock_gettime(CLOCK_MONOTONIC, &ended);
    close(ends[0]);
    close(ends[1]);
    waitpid(pid, NULL, 0);
    s->got = json_pack("{s:b}", "closed", ended.tv_sec - began.tv_sec < 14);
    return r;
}

/* The method, by its name; an answer where it gives one. */
static int carry_out(struct step *s, const char *method, struct cordon_session **made,
                     struct cordon_answer **ret)
{
    struct cordon_run_options o = options(s);
    json_t *context = json_object_get(s->args, "context");
    char *dumped = json_is_object(context) ? json_dumps(context, 0) : NULL;
    int r = -1;
    if (s->session && strcmp(method, "put") == 0) {
        r = put(s);
    } else if (s->session && strcmp(method, "get") == 0) {
        r = get(s);
    } else if (s->session && (r = of_files(s, method, ret)) >= 0) {
        /* done */
    } else if (s->session) {
        r = strcmp(method, "run") == 0    ? cordon_session_run(s->session, text(s, "code"), &o, ret)
            : strcmp(method, "fork") == 0 ? cordon_session_fork(s->session, made)
            : strcmp(method, "close") == 0 ? cordon_session_close(s->session)
                                           : cordon_session_interrupt(s->session);
    } else if (strcmp(method, "cancel") == 0) {
        cordon_client_cancel(s->client);
        r = 0;
    } else if (strcmp(method, "forked") == 0) {
        r = forked(s);
    } else if (strcmp(method, "copied") == 0) {
        r = copied(s);
    } else if (strcmp(method, "run") == 0) {
        r = cordon_client_run(s->client, text(s, "code"), &o, ret);
    } else if (strcmp(method, "wait") == 0) {
        r = cordon_client_wait(s->client, text(s, "job_id"),
                               json_is_true(json_object_get(s->args, "cancel")), &o, ret);
    } else if (strcmp(method, "check") == 0) {
        r = cordon_client_check(s->client, text(s, "code"), text(s, "language"), ret);
    } else if (strcmp(method, "eval") == 0) {
        r = cordon_client_eval(s->client, text(s, "expression"),
                               dumped ? dumped : json_string_value(context), ret);
    } else if (strcmp(method, "sessions") == 0) {
        r = cordon_client_sessions(s->client, ret);
    } else if (strcmp(method, "session") == 0) {
        r = text(s, "language")    ? cordon_client_session_of(s->client, text(s, "language"),
                                                              text(s, "workspace"), made)
            : text(s, "workspace") ? cordon_client_session_in(s->client, text(s, "workspace"), made)
                                   : cordon_client_session(s->client, made);
    }
    free(dumped);
    return r;
}

/* All that an answer has: its fields, read by the functions for their types. */
static json_t *plain(struct cordon_answer *a, bool list)
{
    size_t len;
    const char *raw = list ? cordon_answer_json(a, CORDON_SESSION_INFO_SESSIONS, &len)
                           : cordon_answer_raw(a, &len);
    json_t *o = json_loadb(raw, len, JSON_DECODE_ANY, NULL), *v;
    const char *key;
    if (list)
        return o;
    json_object_foreach(o, key, v)
    {
        int64_t n = 0;
        const char *s = cordon_answer_string(a, key, &len);
        const bool same =
            json_is_string(v)    ? s && strcmp(s, json_string_value(v)) == 0 && len == strlen(s)
            : json_is_integer(v) ? cordon_answer_integer(a, key, &n) && n == json_integer_value(v)
                                 : !s && cordon_answer_boolean(a, key) == json_is_true(v);
        if (!same)
            fprintf(stderr, "%s is not what its function gives\n", key);
        if (!same)
            exit(3);
    }
    json_object_set_new(o, "text", json_string(cordon_answer_text(a)));
    json_object_set_new(o, "is_error", json_boolean(cordon_answer_is_error(a)));
    return o;
}

static void one(struct cordon_client *c, json_t *ask)
{
    static const char *const names[] = {"",         "Failed",   "Cancelled", "ServerGone",
                                        "Protocol", "Argument", "Memory"};
    const char *on = json_string_value(json_object_get(ask, "on")),
               *as = json_string_value(json_object_get(ask, "as")),
               *method = json_string_value(json_object_get(ask, "do"));
    struct step s = {.client = c,
                     .args = json_object_get(ask, "args"),
                     .output = json_array(),
                     .progress = json_array()};
    struct cordon_answer *a = NULL;
    struct cordon_session *made = NULL;
    if (on)
        s.session = *slot(on);
    const int r = carry_out(&s, method, &made, &a);
    json_t *told = json_object();
    if (made) {
        cordon_session_free(*slot(as));
        *slot(as) = made;
        json_object_set_new(told, "result", json_pack("{s:s}", "id", cordon_session_id(made)));
    }
    if (r)
        json_object_set_new(told, "raised", json_string(r > 0 && r < 7 ? names[r] : "?"));
    if (r)
        json_object_set_new(told, "message", json_string(cordon_client_why(c)));
    if (s.got)
        json_object_set_new(told, "result", s.got);
    if (a)
        json_object_set_new(told, "result", plain(a, strcmp(method, "sessions") == 0));
    json_object_set_new(told, "output", s.output);
    json_object_set_new(told, "progress", s.progress);
    json_dumpf(told, stdout, 0);
    puts("");
    fflush(stdout);
    json_decref(told);
    cordon_answer_free(a);
}

int main(int argc, char **argv)
{
    struct cordon_client *c;
    char why[CORDON_WHY_MAX], *line = NULL;
    size_t cap = 0;
    if (argc < 2)
        return 2;
    sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_tick}, NULL);
    const int r = strcmp(argv[1], "-") == 0 ? cordon_client_start(NULL, quick, &c, why)
                                            : cordon_client_connect(argv[1], &c, why);
    if (r) {
        fprintf(stderr, "c_driver: %s\n", why);
        return 1;
    }
    of_handler = c;
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
    while (getline(&line, &cap, stdin) > 0) {
        json_t *ask = json_loads(line, 0, NULL);
        one(c, ask);
        json_decref(ask);
    }
    free(line);
    for (int i = 0; i < HELD; i++)
        cordon_session_free(held[i].session);
    cordon_client_close(c);
    return 0;
}
