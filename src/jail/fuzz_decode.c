/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile registers and hostile memory: whatever the guest does, the line is bounded and printable.
 *
 * Input: 16 bytes of name, how large the buffer, how the reader behaves, fold or not, six
 * registers, then guest memory from 0x1000 on. Folding puts the registers into that range, or
 * pointers would rarely hit. A name that is no denied call picks one by its first byte. */
#include "jail/decode.h"
#include "jail/filter.h"

#include <linux/audit.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BASE 0x1000u
#define NAME 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
    const uint8_t *bytes;
    size_t size;
    uint8_t manner;
};

static ssize_t read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
    const struct memory *m = ctx;
    if (addr < BASE || addr - BASE >= m->size)
        return m->manner & 1 ? -1 : 0;
    size_t n = m->size - (addr - BASE);
    n = n < len ? n : len;
    if (m->manner & 2 && n > 1)
        n /= 2;
    memcpy(buf, m->bytes + (addr - BASE), n);
    return m->manner & 4 ? (ssize_t)(n + 1000) : (ssize_t)n; /* a reader that boasts */
}

/* x86-64's filter on every machine: it denies the most, and a seed means the same everywhere. */
static const char *pick(const uint8_t *data)
{
    const struct jail_filter *f = jail_filter_find_arch("exec", AUDIT_ARCH_X86_64);
    if (!f || !f->n_calls)
        abort();
    for (unsigned i = 0; i < f->n_calls; i++)
        if (strncmp(jail_call_name(f, &f->calls[i]), (const char *)data, NAME) == 0)
            return jail_call_name(f, &f->calls[i]);
    return jail_call_name(f, &f->calls[data[0] % f->n_calls]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seccomp_data call = {0};
    const size_t head = NAME + 3 + sizeof call.args;
    if (size < head)
        return 0;
    const uint8_t *knob = data + NAME;
    memcpy(call.args, knob + 3, sizeof call.args);
    struct memory m = {data + head, size - head, knob[1]};
    if (m.size && knob[2] & 1)
        for (int i = 0; i < 6; i++)
            call.args[i] = BASE + call.args[i] % m.size;
    jail_decode_reader rd = {read_memory, &m};

    size_t cap = (size_t)knob[0] * 4;
    char *out = malloc(cap ? cap : 1); /* exact, so that the sanitizer sees one byte too many */
    if (!out)
        return 0;
    jail_decode(&call, pick(data), &rd, out, cap);
    if (cap) {
        size_t len = strnlen(out, cap);
        if (len == cap)
            abort();
        for (size_t i = 0; i < len; i++)
            if (out[i] < 0x20 || out[i] > 0x7e)
                abort();
    }
    free(out);
    return 0;
}
