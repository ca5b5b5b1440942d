/* SPDX-License-Identifier: Apache-2.0 */
/* One call at a time: the channel has no other reader while guest code runs. */
#include "worker/frame/host.h"

#include "base/limits.h"
#include "worker/frame/channel.h"

#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char tools[LIMIT_HOST_TOOLS][64];
static size_t tool_count;
static uint64_t next_call = 1;

int worker_host_tools(const char *const *names, size_t count, struct err *err)
{
    if (count > LIMIT_HOST_TOOLS)
        return err_set(err, ERR_LIMIT, "more than %d tools", LIMIT_HOST_TOOLS);
    for (size_t i = 0; i < count; i++)
        snprintf(tools[i], sizeof tools[i], "%s", names[i]);
    tool_count = count;
    return 0;
}

size_t worker_host_count(void)
{
    return tool_count;
}

const char *worker_host_name(size_t i)
{
    return tools[i];
}

void worker_host_lock(void)
{
    pthread_mutex_lock(&one_at_a_time);
}

void worker_host_unlock(void)
{
    pthread_mutex_unlock(&one_at_a_time);
}

uint64_t worker_host_ask(const char *name, const char *json, size_t len)
{
    struct wire_writer w;
    uint64_t id = next_call++;
    worker_channel_begin(&w, WIRE_CALL);
    wire_put_uint(&w, id);
    wire_put_text(&w, name);
    wire_put_bytes(&w, json, len);
    return worker_channel_send(&w) < 0 ? 0 : id;
}

int worker_host_file(const struct worker_file *f, struct worker_file_done *ret)
{
    struct wire_writer w;
    struct wire_reader r;
    const uint64_t id = next_call++;
    worker_channel_begin(&w, WIRE_FILE_ASK);
    wire_put_uint(&w, id);
    wire_put_uint(&w, f->what);
    wire_put_bytes(&w, f->path, f->path_len);
    wire_put_bytes(&w, f->second, f->second_len);
    wire_put_uints(&w, f->numbers, 2);
    wire_put_bytes(&w, f->bytes, f->len);
    if (worker_channel_send(&w) < 0 || worker_channel_next(&r) != 1 || r.type != WIRE_FILE_DONE ||
        wire_get_uint(&r) != id)
        return -1;
    ret->error = wire_get_uint(&r);
    ret->count = wire_get_uints(&r, ret->numbers, sizeof ret->numbers / sizeof *ret->numbers);
    ret->bytes = wire_get_bytes(&r, &ret->len);
    return ret->count > sizeof ret->numbers / sizeof *ret->numbers ? -1 : 0;
}

int worker_host_wait(uint64_t call, struct worker_answer *ret)
{
    struct wire_reader r;
    if (worker_channel_next(&r) != 1 || r.type != WIRE_ANSWER || wire_get_uint(&r) != call)
        return -1;
    ret->good = wire_get_uint(&r) != 0;
    ret->json = wire_get_bytes(&r, &ret->len);
    return 0;
}
