/* SPDX-License-Identifier: Apache-2.0 */
/* The only door of cordond: of all messages that our processes know it takes three from a front, and of those that ask,
 * the verbs of the table. A message or a verb that is added elsewhere is no second door. */
#include "base/tap.h"
#include "serve/holding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEYOND 1000 /* verbs after the last of the table */

/* A front for clients, or that of --metrics. */
static struct serve_client *front(struct serve_shared *all, bool metrics)
{
    struct serve_client *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    *c = (struct serve_client){.all = all, .config = &all->config, .sock = -1, .metrics = metrics};
    return c;
}

/* Whether cordond takes the frame, and does not hang up. */
static bool takes(struct serve_client *c, struct buf *frame, struct wire_writer *w)
{
    struct err err = ERR_INIT;
    if (wire_end(w) < 0)
        abort();
    const bool taken = serve_asks_take(c, frame->data, frame->len, 1, &err) == 0;
    buf_reset(frame);
    return taken;
}

/* Every field as its message wants it, and nothing in it. */
static void fill(struct wire_writer *w)
{
    while (*w->left)
        switch (*w->left) {
        case 'u':
            wire_put_uint(w, 1);
            break;
        case 'i':
            wire_put_int(w, 1);
            break;
        case 't':
            wire_put_text(w, "");
            break;
        case 'b':
            wire_put_bytes(w, "", 0);
            break;
        case 'U':
            wire_put_uints(w, NULL, 0);
            break;
        default:
            wire_put_strings(w, NULL, 0);
        }
}

static void test_messages(void)
{
    struct serve_shared all = {0};
    struct serve_client *c = front(&all, false);
    struct wire_writer w;
    struct buf frame, taken;
    buf_init(&frame, LIMIT_FRAME);
    buf_init(&taken, 64 * KIB);
    for (enum wire_type t = WIRE_NONE + 1; t < WIRE_TYPES; t++) {
        if (t == WIRE_SERVE_ASK) /* the verbs are below */
            continue;
        wire_begin(&w, &frame, t);
        fill(&w);
        if (takes(c, &frame, &w) && (buf_str(&taken, wire_name(t)) < 0 || buf_str(&taken, " ") < 0))
            abort();
    }
    tap_eq_str(
        taken.data, "SERVE_PIECE SERVE_CANCEL ",
        "beside requests cordond takes pieces of them and their cancelling from a front, and "
        "no other message of any process");
    buf_done(&taken);
    buf_done(&frame);
    free(c);
}

static const char *const handles[] = {[SERVE_HANDLE_NONE] = "",
                                      [SERVE_HANDLE_SESSION] = "mcp-aaaaaaaaaaaaaaaaaaaaaaaaaa",
                                      [SERVE_HANDLE_JOB] = "job-aaaaaaaaaaaaaaaaaaaaaaaaaa"};

/* A request with a handle that nobody was given. A BODY of it is announced and does not come, so nothing begins. */
static bool asks(struct serve_client *c, uint64_t verb, uint64_t number, const char *handle,
                 uint64_t body)
{
    const uint64_t limits[3] = {0};
    struct wire_writer w;
    struct buf frame;
    buf_init(&frame, LIMIT_FRAME);
    wire_begin(&w, &frame, WIRE_SERVE_ASK);
    wire_put_uint(&w, number);
    wire_put_uint(&w, verb);
    wire_put_text(&w, handle);
    wire_put_uints(&w, limits, 3);
    wire_put_uint(&w, 0);
    wire_put_uint(&w, body);
    wire_put_bytes(&w, "", 0);
    const bool taken = takes(c, &frame, &w);
    buf_done(&frame);
    for (size_t i = 0; i < SERVE_PLACES; i++)
        serve_asks_free(&c->asks[i]);
    return taken;
}

/* As its row of the table wants it. */
static bool asks_known(struct serve_client *c, enum serve_verb verb)
{
    return asks(c, verb, 1, handles[serve_verb_handle(verb)], serve_verb_body(verb) ? 1 : 0);
}

/* With whichever handle: what lies behind the table may look like any row. */
static size_t asks_beyond(struct serve_client *c, uint64_t verb)
{
    return (size_t)asks(c, verb, 1, handles[SERVE_HANDLE_NONE], 0) +
           asks(c, verb, 1, handles[SERVE_HANDLE_SESSION], 0) +
           asks(c, verb, 1, handles[SERVE_HANDLE_JOB], 0);
}

static bool of_figures(enum serve_verb verb)
{
    return verb == SERVE_METRICS || verb == SERVE_HEALTH;
}

static void test_verbs(void)
{
    struct serve_shared all = {0};
    struct serve_client *clients = front(&all, false), *figures = front(&all, true);
    size_t lacks = 0, strange = 0, beyond = 0;
    for (enum serve_verb v = 0; v < SERVE_VERB_COUNT; v++) {
        lacks += !of_figures(v) && !asks_known(clients, v);
        strange += asks_known(of_figures(v) ? clients : figures, v);
    }
    lacks += !asks_known(figures, SERVE_HEALTH); /* METRICS would start a runner */
    for (uint64_t v = SERVE_VERB_COUNT; v < SERVE_VERB_COUNT + BEYOND; v++)
        beyond += asks_beyond(clients, v) + asks_beyond(figures, v);
    beyond += asks_beyond(clients, UINT64_MAX) + asks_beyond(clients, (uint64_t)UINT32_MAX + 1);
    tap_eq_int(lacks, 0, "cordond takes each verb of the table from the front that has it");
    tap_eq_int(
        strange, 0,
        "cordond takes no verb of figures from a front of clients, and no other from that of "
        "figures");
    tap_eq_int(beyond, 0, "cordond takes no verb beyond the table");
    tap_ok(!asks(clients, SERVE_SESSION_LIST, 0, "", 0),
           "cordond takes no request without a number");
    free(clients);
    free(figures);
}

/* Of a verb without words cordond makes no runner: it ends, with all that it holds. */
static void test_words(void)
{
    static const bool answered[SERVE_VERB_COUNT] = {[SERVE_SESSION_LIST] = true,
                                                    [SERVE_JOB_WAIT] = true,
                                                    [SERVE_JOB_LOOK] = true,
                                                    [SERVE_JOB_CANCEL] = true,
                                                    [SERVE_HEALTH] = true};
    static const char commands[] = " run check session serve approve ";
    const struct serve_config config = {
        .cordon = "cordon", .profile = "", .role = "", .policy = "", .workspaces = ""};
    const struct serve_for named = {.session = handles[SERVE_HANDLE_SESSION], .asker = 1};
    size_t strange = 0;
    for (enum serve_verb v = 0; v < SERVE_VERB_COUNT; v++) {
        struct serve_request q = {.number = 1, .verb = v};
        struct serve_words w = {.count = 0};
        char word[32] = "";
        memcpy(q.handle, handles[serve_verb_handle(v)], strlen(handles[serve_verb_handle(v)]) + 1);
        if (answered[v])
            continue;
        serve_words(&w, &config, &q, &named);
        snprintf(word, sizeof word, " %s ", w.count > 1 ? w.argv[1] : "?");
        strange += !strstr(commands, word);
    }
    tap_eq_int(strange, 0,
               "each verb of the table that cordond does not answer itself has the words of a "
               "command");
}

int main(void)
{
    test_messages();
    test_verbs();
    test_words();
    return tap_done();
}
