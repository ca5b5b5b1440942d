/* SPDX-License-Identifier: Apache-2.0 */
/* The record between the gate and cordon-approvals: fields lie inside it, whatever it says. */
#include "gate/record.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1), word[8]; /* exact: a byte too far is seen */
    if (!copy)
        return 0;
    if (size)
        memcpy(copy, data, size);
    struct gate_record r = {copy, copy + size};
    struct gate_field f;
    struct buf again;
    int e;
    buf_init(&again, size + 64);
    while ((e = gate_record_next(&r, &f)) == 1) {
        char name[33] = "";
        base_assert(f.data >= copy && f.data + f.len <= copy + size && f.name_len <= 32);
        memcpy(name, f.name, f.name_len);
        base_assert(gate_record_bytes(&again, name, f.data, f.len) == 0);
    }
    base_assert((e == 0) == gate_record_valid(copy, size));
    gate_record_copy(copy, size, "code", word, sizeof word);
    base_assert(strlen(word) < sizeof word);
    (void)gate_record_count(copy, size, "asked");
    buf_done(&again);
    free(copy);
    return 0;
}
