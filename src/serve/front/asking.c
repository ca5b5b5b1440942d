/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to clients. Up to 2025-11-25 they are requests of our own, on the stream of the call that they belong to, and
 * the answer is a message of its own. The newest revision has none of that: a result says what is wanted, and the client
 * calls again with the answers and the word that it was given. Such a word is random, is kept here with what it was given
 * for, and counts once; so nobody makes one, changes one or uses one for another call. */
#include "serve/front/inside.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

struct serve_asked *serve_asking_start(struct serve_front *f, const struct serve_reply *to,
                                       const char *method, const char *params, serve_asked_fn *done,
                                       const void *what)
{
    const uint64_t now_ns = clock_now_ns();
    for (size_t i = 0; i < SERVE_ASKED; i++) {
        struct serve_asked *a = &f->asked[i];
        struct buf text;
        struct jsonw j = {.out = &text};
        if (a->used && now_ns <= a->until_ns)
            continue;
        *a = (struct serve_asked){
            .used = true, .to = *to, .done = done, .what = what, .until_ns = UINT64_MAX};
        snprintf(a->id, sizeof a->id, "cordon-%llu", (unsigned long long)++f->numbers);
        buf_init(&text, LIMIT_SERVE_LINE);
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "jsonrpc", "2.0");
        jsonw_string(&j, "id", a->id);
        jsonw_string(&j, "method", method);
        jsonw_raw(&j, "params", params, strlen(params));
        jsonw_close(&j, '}');
        const int r = j.bad ? j.bad : to->sink->put(to->sink, SERVE_PUT_NOTE, text.data, text.len);
        f->bad = f->bad ? f->bad : r;
        buf_done(&text);
        return a;
    }
    return NULL;
}

void serve_asking_answer(struct serve_front *f, const struct serve_talk *talk, json_t *message)
{
    const char *id = serve_rpc_text(message, "id");
    for (size_t i = 0; id && i < SERVE_ASKED; i++) {
        struct serve_asked a = f->asked[i];
        if (!a.used || a.to.talk != talk || strcmp(a.id, id) != 0)
            continue;
        f->asked[i].used = false; /* once */
        if (clock_now_ns() > a.until_ns)
            return;
        a.done(f, &a, json_object_get(message, "result"));
        return;
    }
}

size_t serve_asking_count(const struct serve_front *f, const struct serve_sink *sink)
{
    size_t count = 0;
    for (size_t i = 0; i < SERVE_ASKED; i++)
        count += f->asked[i].used && f->asked[i].to.sink == sink;
    return count;
}

void serve_asking_drop(struct serve_front *f, const struct serve_talk *talk,
                       const struct serve_sink *sink)
{
    for (size_t i = 0; i < SERVE_ASKED; i++)
        if (f->asked[i].to.talk == talk || (sink && f->asked[i].to.sink == sink))
            f->asked[i].used = false;
}

void serve_asking_end(struct serve_front *f, const struct serve_talk *talk, const char *id)
{
    for (size_t i = 0; i < SERVE_ASKED; i++)
        if (f->asked[i].to.talk == talk && strcmp(f->asked[i].to.id, id) == 0)
            f->asked[i].used = false;
}

/* ---- words of the newest revision ---- */

/* The oldest makes room: a client that lost its word is asked again. */
const char *serve_state_new(struct serve_front *f, const void *what, unsigned round)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    unsigned char bytes[SERVE_STATE];
    struct serve_state *s = &f->states[f->next_state++ % SERVE_STATES];
    *s = (struct serve_state){.what = what, .round = round};
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return NULL;
    for (size_t i = 0; i < sizeof bytes; i++)
        s->word[i] = letters[bytes[i] & 31];
    return s->word;
}

bool serve_state_take(struct serve_front *f, const char *word, const void *what,
                      unsigned *ret_round)
{
    for (size_t i = 0; i < SERVE_STATES; i++) {
        struct serve_state *s = &f->states[i];
        if (!s->word[0] || s->what != what || strcmp(s->word, word) != 0)
            continue;
        *ret_round = s->round;
        *s = (struct serve_state){.what = NULL};
        return true;
    }
    return false;
}
