/* SPDX-License-Identifier: Apache-2.0 */
/* Built without libedit: `cordon repl` reads lines as they come. */
#include "prompt.h"

int prompt_new(const struct prompt_start *start, struct prompt **ret, struct err *err)
{
    (void)start;
    (void)ret;
    return err_set(err, ERR_MISSING, "built without a line editor");
}

void prompt_free(struct prompt *p)
{
    (void)p;
}

enum prompt_got prompt_read(struct prompt *p, struct buf *text)
{
    (void)p;
    (void)text;
    return PROMPT_END;
}
