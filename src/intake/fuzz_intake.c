/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the text of a model: what comes of it is part of the text, in its order, and taking it in again as a source
 * changes nothing. */
#include "base/limits.h"
#include "intake/intake.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const languages[] = {NULL, "python", "ruby", "expr", "javascript", "typescript"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct intake_source s, again;
    struct err err = ERR_INIT;
    if (!size)
        return 0;
    const struct intake_text text = {.data = (const char *)data + 1,
                                     .len = size - 1,
                                     .language = languages[data[0] % 4 + (data[0] & 8 ? 2 : 0)],
                                     .plain = data[0] & 4};
    intake_source_init(&s, LIMIT_SOURCE);
    intake_source_init(&again, LIMIT_SOURCE);
    if (intake_read(&text, &s, &err) == 0) {
        const struct intake_text plain = {.data = s.code.data, .len = s.code.len, .plain = true};
        if (s.code.len > size + s.blocks || strlen(s.language) > INTAKE_LANGUAGE)
            abort();
        if (memcmp(s.code.data, "\xef\xbb\xbf", s.code.len < 3 ? s.code.len : 3) != 0 &&
            (intake_read(&plain, &again, &err) < 0 || again.code.len != s.code.len ||
             memcmp(again.code.data, s.code.data, s.code.len) != 0))
            abort();
    } else if (!err.msg[0]) {
        abort();
    }
    intake_source_done(&s);
    intake_source_done(&again);
    return 0;
}
