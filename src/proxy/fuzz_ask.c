/* SPDX-License-Identifier: Apache-2.0 */
/* What the gateway replied, as cordon-ask reads it, in both protocols. */
#include "base/limits.h"
#include "proxy/ask/ask.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int anthropic = 0; anthropic < 2; anthropic++) {
        struct ask_answer a;
        ask_reply((const char *)data, size, anthropic, &a);
        if (a.text.len > LIMIT_ASK_TEXT || (a.end != GATEWAY_ANSWERED && !a.why[0]))
            abort();
        ask_answer_done(&a);
    }
    return 0;
}
