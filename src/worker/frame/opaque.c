/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes are SipHash-1-3. What is shown must tell apart what lives at the same time, so it is a permutation of 64-bit
 * numbers: Speck64 with 27 rounds, whose round keys are all random. */
#include "worker/frame/opaque.h"

#include <sys/random.h>

struct worker_opaque_keys worker_opaque_keys;

int worker_opaque_start(struct err *err)
{
    const ssize_t size = (ssize_t)sizeof worker_opaque_keys;
    return getrandom(&worker_opaque_keys, sizeof worker_opaque_keys, 0) == size
               ? 0
               : err_sys(err, "getrandom");
}
