/* SPDX-License-Identifier: Apache-2.0 */
/* Rules and code are two messages of different roles. The code stands between lines that have its hash in them: code cannot contain its own
 * hash, so it cannot write the line that ends it, nor a verdict on itself. The hash is put into the rules alone, in one pass, so
 * that a `{hash}` in the code stays what it is. Control and bidi characters are shown, as everywhere where text goes to a reader
 * who decides by it. */
#include "judge.h"

#include "output/markers.h"
#include "output/visible.h"

#include <stdint.h>
#include <string.h>

const char *judge_rules(const char *name)
{
    return strcmp(name, "reviewer") == 0  ? judge_reviewer
           : strcmp(name, "sceptic") == 0 ? judge_sceptic
                                          : NULL;
}

int judge_system(const char *rules, const struct judge_facts *f, struct buf *out)
{
    static const char word[] = "{hash}";
    int r = 0;
    for (const char *at = rules; r == 0 && *at;) {
        const char *next = strstr(at, word);
        r = buf_add(out, at, next ? (size_t)(next - at) : strlen(at));
        if (r == 0 && next)
            r = buf_str(out, f->hash);
        at = next ? next + strlen(word) : "";
    }
    return r;
}

/* As it is shown to whoever decides by it. */
static int add_shown(const char *text, size_t len, struct buf *out)
{
    struct output_visible v = {.plain = true};
    struct buf seen;
    uint64_t broken = 0;
    buf_init(&seen, 10 * len + 16);
    int r = len ? output_visible_add(&v, text, len, &seen) : 0;
    if (r == 0)
        r = output_visible_end(&v, &seen);
    if (r == 0 && seen.len)
        r = output_markers_break(seen.data, seen.len, out, &broken);
    buf_done(&seen);
    return r;
}

int judge_prompt(const struct judge_facts *f, const char *code, size_t len, struct buf *out)
{
    int r = buf_printf(out, "Tool: %s. Risk: %s. Arguments: ", f->tool, f->risk);
    if (r == 0)
        r = add_shown(f->arguments, strlen(f->arguments), out);
    if (r == 0)
        r = buf_printf(out, "\n\nBEGIN %s\n", f->hash);
    if (r == 0)
        r = add_shown(code, len, out);
    return r == 0 ? buf_printf(out, "\nEND %s\n", f->hash) : r;
}
