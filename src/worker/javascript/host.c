/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and answers of tools travel as JSON that the library writes and reads: what a program did to that changes only what the
 * program itself says.
 *
 * Waits: read in fill; whatever the program reads from; none (the program's own input); the run's time limit
 *        clock_nanosleep in js_host_sleep; the program's own timer; its own time; the run's time limit */
#include "host.h"

#include "base/limits.h"
#include "text.h"
#include "worker/frame/channel.h"
#include "worker/frame/host.h"
#include "worker/frame/input.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define FUNCTION(name)                                                                             \
    static JSValueRef name(JSContextRef ctx, JSObjectRef function, JSObjectRef self, size_t argc,  \
                           const JSValueRef argv[], JSValueRef *exception)
#define UNUSED_WORDS                                                                               \
    (void)function;                                                                                \
    (void)self;                                                                                    \
    (void)argc;                                                                                    \
    (void)argv;                                                                                    \
    (void)exception

struct js_host_end js_host_end;

static JSValueRef error(JSContextRef ctx, const char *name, const char *text)
{
    JSValueRef words[] = {js_text_value(ctx, text, strlen(text))};
    JSObjectRef made = JSObjectMakeError(ctx, 1, words, NULL);
    JSStringRef key = JSStringCreateWithUTF8CString("name");
    if (name)
        JSObjectSetProperty(ctx, made, key, js_text_value(ctx, name, strlen(name)),
                            kJSPropertyAttributeDontEnum, NULL);
    JSStringRelease(key);
    return made;
}

/* ---- interrupts ---- */

static volatile int32_t interrupt;

static void on_interrupt(int signal)
{
    (void)signal;
    interrupt = 1;
}

int js_host_set_interrupt(void)
{
    struct sigaction a = {.sa_handler = on_interrupt}; /* no restart: what waits is woken */
    sigemptyset(&a.sa_mask);
    return sigaction(SIGINT, &a, NULL);
}

void js_host_drop_interrupt(void)
{
    interrupt = 0;
}

JSValueRef js_host_interrupted(JSContextRef ctx)
{
    if (js_host_end.left) /* it caught what ends it: it is ended again */
        return error(ctx, "Interrupt", "the program has ended");
    if (!interrupt)
        return NULL;
    interrupt = 0;
    return error(ctx, "Interrupt", "interrupted");
}

/* In the loops of a session's call, where the number that the handler sets is not 0. */
FUNCTION(give_way)
{
    UNUSED_WORDS;
    JSValueRef stopped = js_host_interrupted(ctx);
    if (stopped)
        *exception = stopped;
    return JSValueMakeUndefined(ctx);
}

static void *flag_bytes(void)
{
    return (void *)(uintptr_t)&interrupt;
}

static void keep_flag(void *bytes, void *context)
{
    (void)bytes; /* it is ours */
    (void)context;
}

/* ---- streams ---- */

void js_host_write(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return; /* nobody reads it: as a program in Node, it goes on */
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

FUNCTION(write_text)
{
    UNUSED_WORDS;
    size_t len;
    char *text = argc > 1 && !js_host_end.left ? js_text_of(ctx, argv[1], &len) : NULL;
    if (text)
        js_host_write(JSValueToNumber(ctx, argv[0], NULL) == 2 ? STDERR_FILENO : STDOUT_FILENO,
                      text, len);
    free(text);
    JSValueRef stopped = js_host_interrupted(ctx);
    if (stopped)
        *exception = stopped;
    return JSValueMakeUndefined(ctx);
}

static struct {
    char bytes[65536];
    size_t at, end;
    bool asks;
} input;

void js_host_asks(bool typed)
{
    input.asks = typed;
}

void js_host_drop_input(void)
{
    input.at = input.end = 0;
}

/* 1: there is a byte. 0: the end. -1: an interrupt. */
static int fill(void)
{
    if (input.at < input.end)
        return 1;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, input.bytes, sizeof input.bytes);
        if (n < 0 && errno == EINTR && !interrupt)
            continue;
        input.at = 0;
        input.end = n > 0 ? (size_t)n : 0;
        return n > 0 ? 1 : n < 0 && interrupt ? -1 : 0;
    }
}

struct line {
    char *text;
    size_t len, room;
};

static bool keep(struct line *line, const char *from, size_t len)
{
    if (len == 0)
        return true;
    if (line->len + len > LIMIT_OUTPUT)
        return false;
    if (line->len + len > line->room) {
        line->room = 2 * (line->len + len);
        char *more = realloc(line->text, line->room);
        if (!more)
            return false;
        line->text = more;
    }
    memcpy(line->text + line->len, from, len);
    line->len += len;
    return true;
}

/* One line without its end; undefined at the end of the input. */
FUNCTION(read_line)
{
    UNUSED_WORDS;
    struct line line = {0};
    bool whole = false, some = false;
    int r = 1;
    if (input.asks)
        worker_input_ask();
    while (!whole && (r = fill()) > 0) {
        const char *from = input.bytes + input.at, *end = memchr(from, '\n', input.end - input.at);
        const size_t len = end ? (size_t)(end - from) : input.end - input.at;
        some = true;
        whole = end != NULL;
        input.at += len + whole;
        if (!keep(&line, from, len))
            break;
    }
    if (whole && line.len > 0 && line.text[line.len - 1] == '\r')
        line.len--;
    JSValueRef value = some ? js_text_value(ctx, line.text, line.len) : JSValueMakeUndefined(ctx);
    free(line.text);
    if (r < 0)
        *exception = js_host_interrupted(ctx);
    return value;
}

/* ---- clock, chance ---- */

FUNCTION(now)
{
    UNUSED_WORDS;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return JSValueMakeNumber(ctx, (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6);
}

int js_host_sleep(double ms)
{
    const double most = 7 * 24 * 3600 * 1e3; /* the run's own limit comes before */
    if (!(ms > 0))
        return interrupt ? -1 : 0;
    ms = ms > most ? most : ms;
    const time_t s = (time_t)(ms / 1e3);
    struct timespec left = {.tv_sec = s, .tv_nsec = (long)((ms - (double)s * 1e3) * 1e6)};
    while (!interrupt && clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
        ;
    return interrupt ? -1 : 0;
}

FUNCTION(sleep_for)
{
    UNUSED_WORDS;
    if (argc > 0 && js_host_sleep(JSValueToNumber(ctx, argv[0], NULL)) < 0)
        *exception = js_host_interrupted(ctx);
    return JSValueMakeUndefined(ctx);
}

static uint64_t chance[2];

void js_host_other_chance(void)
{
    chance[0] = chance[1] = 0;
}

/* xorshift128+, which is no secret: what needs one asks the system. */
FUNCTION(random_number)
{
    UNUSED_WORDS;
    while (!chance[0] && !chance[1])
        if (getrandom(chance, sizeof chance, 0) < 0 && errno != EINTR)
            chance[0] = 1;
    uint64_t a = chance[0];
    const uint64_t b = chance[1];
    chance[0] = b;
    a ^= a << 23;
    chance[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return JSValueMakeNumber(ctx, (double)((chance[1] + b) >> 11) / 9007199254740992.0);
}

/* ---- the end ---- */

static void leave(JSContextRef ctx, int status, JSValueRef *exception)
{
    js_host_end.left = true;
    js_host_end.status = status;
    if (!js_host_end.stays)
        longjmp(js_host_end.back, 1);
    interrupt = 1;
    *exception = js_host_interrupted(ctx);
}

FUNCTION(exit_program)
{
    UNUSED_WORDS;
    leave(ctx, argc > 0 ? (int)JSValueToNumber(ctx, argv[0], NULL) & 255 : 0, exception);
    return JSValueMakeUndefined(ctx);
}

FUNCTION(final_answer)
{
    UNUSED_WORDS;
    size_t len = 0;
    char *text = argc > 0 ? js_text_of(ctx, argv[0], &len) : NULL;
    if (!js_host_end.left)
        worker_channel_pieces(WIRE_FINAL, text ? text : "", len);
    free(text);
    leave(ctx, 0, exception);
    return JSValueMakeUndefined(ctx);
}

static void note_failure(JSContextRef ctx, JSValueRef value)
{
    if (js_host_end.failed)
        return; /* the first one counts */
    JSValueProtect(ctx, value);
    js_host_end.failed = value;
}

FUNCTION(fail)
{
    UNUSED_WORDS;
    note_failure(ctx, argc > 0 ? argv[0] : JSValueMakeUndefined(ctx));
    return JSValueMakeUndefined(ctx);
}

FUNCTION(unhandled)
{
    UNUSED_WORDS;
    note_failure(ctx, argc > 1 ? argv[1] : JSValueMakeUndefined(ctx));
    return JSValueMakeUndefined(ctx);
}

JSObjectRef js_host_unhandled(JSContextRef ctx)
{
    return JSObjectMakeFunctionWithCallback(ctx, NULL, unhandled);
}

/* ---- the supervisor ---- */

/* event(rule, what, hint): something that the library refused. */
FUNCTION(tell_event)
{
    UNUSED_WORDS;
    size_t len;
    char *words[3] = {NULL};
    for (size_t i = 0; i < 3 && i < argc; i++)
        words[i] = js_text_of(ctx, argv[i], &len);
    if (words[0] && words[1] && words[2])
        worker_event(NULL, "process", words[0], words[1], words[2], 0);
    for (size_t i = 0; i < 3; i++)
        free(words[i]);
    return JSValueMakeUndefined(ctx);
}

static void set(JSContextRef ctx, JSObjectRef object, const char *name, JSValueRef value)
{
    JSStringRef key = JSStringCreateWithUTF8CString(name);
    JSObjectSetProperty(ctx, object, key, value, kJSPropertyAttributeNone, NULL);
    JSStringRelease(key);
}

static JSValueRef ask(JSContextRef ctx, const char *name, const char *json, size_t len,
                      JSValueRef *exception)
{
    struct worker_answer answer;
    worker_host_lock();
    uint64_t id = worker_host_ask(name, json, len);
    const bool answered = id && worker_host_wait(id, &answer) == 0;
    JSObjectRef value = JSObjectMake(ctx, NULL, NULL);
    if (answered) {
        set(ctx, value, "good", JSValueMakeBoolean(ctx, answer.good));
        set(ctx, value, "json", js_text_value(ctx, answer.json, answer.len));
    } else {
        *exception =
            error(ctx, NULL,
                  id ? "the tool's side of the channel is gone" : "the call could not be sent");
    }
    worker_host_unlock();
    return value;
}

/* call(name, json): {good, json} */
FUNCTION(call_tool)
{
    UNUSED_WORDS;
    size_t name_len, len;
    char *name = argc > 1 ? js_text_of(ctx, argv[0], &name_len) : NULL;
    char *json = name ? js_text_of(ctx, argv[1], &len) : NULL;
    JSValueRef value = JSValueMakeUndefined(ctx);
    if (!json || len > LIMIT_CALL)
        *exception = error(ctx, NULL, "the arguments are longer than a call may be");
    else
        value = ask(ctx, name, json, len, exception);
    free(name);
    free(json);
    return value;
}

JSObjectRef js_host_object(JSContextRef ctx)
{
    static const struct {
        const char *name;
        JSObjectCallAsFunctionCallback function;
    } rows[] = {{"write", write_text},
                {"readline", read_line},
                {"now", now},
                {"sleep", sleep_for},
                {"random", random_number},
                {"exit", exit_program},
                {"final", final_answer},
                {"fail", fail},
                {"event", tell_event},
                {"call", call_tool},
                {"giveWay", give_way}};
    JSObjectRef object = JSObjectMake(ctx, NULL, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        set(ctx, object, rows[i].name,
            JSObjectMakeFunctionWithCallback(ctx, NULL, rows[i].function));
    set(ctx, object, "flag",
        JSObjectMakeTypedArrayWithBytesNoCopy(ctx, kJSTypedArrayTypeInt32Array, flag_bytes(),
                                              sizeof interrupt, keep_flag, NULL, NULL));
    return object;
}
