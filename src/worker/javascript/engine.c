/* SPDX-License-Identifier: Apache-2.0 */
/* The engine reads its settings from the environment, once: before the first call of it that environment is ours.
 *
 * It keeps descriptors: a source of random numbers, and an event by which other threads would wake it. There are none,
 * but it signals the event to itself after collections. A child of a template has not what the template opened, and a branch of a
 * session must share nothing with it: so the event is replaced by /dev/null, under the same number. */
#include "engine.h"

#include "base/limits.h"
#include "text.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

extern char **environ;

enum { KEPT = 8, URANDOM_MAJOR = 1, URANDOM_MINOR = 9 };

static struct {
    JSContextGroupRef group;
    JSGlobalContextRef judge, run;
    struct {
        int fd;
        bool random;
    } kept[KEPT];
    size_t kept_count;
} engine;

/* JIT off: no memory becomes code, and nothing compiles in another thread. One marker and no concurrent collector: one thread, which
 * may be forked. Memory that threads could share is a way to sleep (library/globals.js). A collection for each 8 MB, not for each one: it
 * writes a mark beside every object, and a child would copy the template's pages for that before its first program has run (`make bench BENCH=javascript`). The C library's allocator, without the cages of the engine's own: 70 GB of addresses less (stand_in.h for the rest). No handler of
 * faults: it is for WebAssembly, and calls the one that was there before (worker/frame/stack.c) without end. */
static const char *const settings[][2] = {{"JSC_useJIT", "0"},
                                          {"JSC_useConcurrentGC", "0"},
                                          {"JSC_numberOfGCMarkers", "1"},
                                          {"JSC_useSharedArrayBuffer", "1"},
                                          {"JSC_smallHeapSize", "8388608"},
                                          {"JSC_useWasmFaultSignalHandler", "0"},
                                          {"GIGACAGE_ENABLED", "0"},
                                          {"Malloc", "1"}};

static void set_settings(void)
{
    for (char **word = environ; *word;) {
        const char *equals = strchr(*word, '=');
        char name[64] = "";
        if (strncmp(*word, "JSC_", 4) == 0 && equals && equals - *word < (long)sizeof name)
            memcpy(name, *word, (size_t)(equals - *word));
        if (!name[0] || unsetenv(name) < 0)
            word++;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 1);
}

static void unset_settings(void)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        unsetenv(settings[i][0]); /* a program sees none of it */
}

/* ---- descriptors ---- */

static void note_descriptors(const bool *before)
{
    struct stat st;
    for (int fd = 0; fd < (int)LIMIT_DESCRIPTORS && engine.kept_count < KEPT; fd++) {
        if (before[fd] || fstat(fd, &st) < 0)
            continue;
        engine.kept[engine.kept_count].random =
            S_ISCHR(st.st_mode) &&
            st.st_rdev == makedev(URANDOM_MAJOR, URANDOM_MINOR); /* the kernel's numbers */
        engine.kept[engine.kept_count++].fd = fd;
    }
}

static void open_devices(bool all)
{
    for (size_t i = 0; i < engine.kept_count; i++) {
        const bool random = engine.kept[i].random;
        if (random && !all)
            continue;
        int fd =
            open(random ? "/dev/urandom" : "/dev/null", (random ? O_RDONLY : O_RDWR) | O_CLOEXEC);
        if (fd >= 0 && fd != engine.kept[i].fd) {
            (void)dup3(fd, engine.kept[i].fd, O_CLOEXEC);
            close(fd);
        }
    }
}

void js_engine_after_fork(void)
{
    static bool done; /* a branch has what its session has: devices */
    if (!done)
        open_devices(true);
    done = true;
}

/* ---- the start ---- */

int js_engine_start(struct err *err)
{
    bool before[LIMIT_DESCRIPTORS];
    if (engine.group)
        return 0;
    for (int fd = 0; fd < (int)LIMIT_DESCRIPTORS; fd++)
        before[fd] = fcntl(fd, F_GETFD) >= 0;
    set_settings();
    JSDisableGCTimer();
    engine.group = JSContextGroupCreate();
    engine.judge = JSGlobalContextCreateInGroup(engine.group, NULL);
    engine.run = JSGlobalContextCreateInGroup(engine.group, NULL);
    unset_settings();
    if (!engine.judge || !engine.run)
        return err_set(err, ERR_MISSING, "JavaScriptCore does not start");
    JSGarbageCollect(engine.run); /* whatever it opens at its first collection */
    note_descriptors(before);
    open_devices(false);
    return 0;
}

JSGlobalContextRef js_engine_judge(void)
{
    return engine.judge;
}

JSGlobalContextRef js_engine_run(void)
{
    return engine.run;
}

JSValueRef js_engine_evaluate(JSGlobalContextRef ctx, const char *name, const char *text,
                              size_t len, struct err *err)
{
    JSValueRef thrown = NULL;
    JSStringRef url = js_text_new(name, strlen(name)), script = js_text_new(text, len);
    JSValueRef value = url && script ? JSEvaluateScript(ctx, script, NULL, url, 1, &thrown) : NULL;
    if (url)
        JSStringRelease(url);
    if (script)
        JSStringRelease(script);
    if (!value) {
        size_t n;
        char *said = thrown ? js_text_of(ctx, thrown, &n) : NULL;
        err_set(err, ERR_STATE, "%s: %.200s", name, said ? said : "no memory");
        free(said);
    }
    return value;
}

void js_engine_settle(void)
{
    for (int i = 0; i < 3; i++)
        JSGarbageCollect(engine.run);
}
