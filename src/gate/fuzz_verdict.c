/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of a judge: text of a model that has read hostile code. */
#include "gate/verdict.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char hash[65] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    struct gate_verdict v;
    struct err err = ERR_INIT;
    if (gate_verdict_read((const char *)data, size, hash, &v, &err) == 0) {
        base_assert(strlen(v.reason) > 0);
        base_assert(memmem(data, size, hash, 64) != NULL);
        base_assert(size <=
                    sizeof "cordon-verdict 1\ncode \nverdict approve\nreason \n" + 64 + 400);
    } else {
        base_assert(err.msg[0] != 0);
    }
    return 0;
}
