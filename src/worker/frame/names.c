/* SPDX-License-Identifier: Apache-2.0 */
/* Some hundred names are compared one by one: a person waits for the answer, nothing else does. */
#include "worker/frame/names.h"

#include "worker/frame/channel.h"

#include <string.h>

void worker_names_begin(struct worker_names *f, const char *part)
{
    f->part = part;
    f->len = strlen(part);
    f->count = 0;
}

void worker_names_add(struct worker_names *f, const char *name, size_t len)
{
    bool private = name[0] == '_' && f->part[0] != '_';
    if (f->count == WORKER_NAMES_MAX || len >= sizeof f->text[0] || len < f->len || private ||
        strncmp(name, f->part, f->len) != 0)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->text[i], name) == 0)
            return;
    memcpy(f->text[f->count], name, len);
    f->text[f->count++][len] = 0;
}

int worker_names_send(const struct worker_names *f)
{
    const char *list[WORKER_NAMES_MAX];
    struct wire_writer w;
    for (size_t i = 0; i < f->count; i++)
        list[i] = f->text[i];
    worker_channel_begin(&w, WIRE_NAMES);
    wire_put_strings(&w, list, f->count);
    return worker_channel_send(&w);
}
