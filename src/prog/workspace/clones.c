/* SPDX-License-Identifier: Apache-2.0 */
/* The orders about clones. What `cordon workspace verify` runs, it runs itself, each in a jail: here is only told what a
 * clone changed, and noted that it was verified. */
#include "order.h"

#include "base/jsonw.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int tell_clone(const struct order *o, const char *clone, const char *id, struct err *err)
{
    struct output out;
    struct buf text;
    int r = 0;
    char name[WORKSPACE_FULL_MAX + 1], base[WORKSPACE_NAME_MAX + 1];
    workspace_base_part(o->name, base);
    snprintf(name, sizeof name, "%s@%s", base, clone);
    output_init(&out, STDOUT_FILENO, o->tty);
    buf_init(&text, 4096);
    if (o->json) {
        struct jsonw j = {.out = &text};
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", name);
        jsonw_string(&j, "id", id);
        jsonw_string(&j, "from", o->name);
        jsonw_close(&j, '}');
        r = j.bad;
    } else {
        r = buf_str(&text, name);
    }
    if (r == 0)
        r = buf_str(&text, "\n");
    if (r == 0)
        r = output_put(&out, text.data, text.len);
    buf_done(&text);
    return output_end(&out, r, err);
}

int order_clone(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "", name[WORKSPACE_NAME_MAX + 1] = "";
    const char *wanted = o->words[1];
    if (*wanted && (!workspace_name_good(wanted) || strcmp(wanted, "main") == 0))
        return err_set(err, ERR_USAGE,
                       "'%.70s' cannot name a clone: 1 to 64 of a-z 0-9 . _ -, beginning with a "
                       "letter or digit, and not main",
                       wanted);
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_clone(w, wanted, o->words[2], name, id, err);
    workspace_close(w);
    return r < 0 ? r : tell_clone(o, name, id, err);
}

static int print_of_clone(const struct order *o,
                          int (*print)(struct workspace *w, const struct workspace_sink *out,
                                       struct err *err),
                          struct err *err)
{
    struct workspace *w = NULL;
    struct output out;
    output_init(&out, STDOUT_FILENO, false);
    int r = workspace_open(o->name, false, &w, err);
    if (r == 0)
        r = print(w, &(struct workspace_sink){output_put, &out}, err);
    workspace_close(w);
    return output_end(&out, r, err);
}

/* Paths, each with a NUL behind it. */
int order_changed(const struct order *o, struct err *err)
{
    return print_of_clone(o, workspace_changed, err);
}

/* The same as a patch: what `merge` would bring. */
int order_changes(const struct order *o, struct err *err)
{
    return print_of_clone(o, workspace_changes, err);
}

int order_verified(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_verified(w, o->words[0], err);
    workspace_close(w);
    return r;
}

int order_merge(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    char id[WORKSPACE_ID] = "", base[WORKSPACE_NAME_MAX + 1];
    bool new = false;
    struct order told = *o;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_merge(w, id, &new, err);
    workspace_close(w);
    workspace_base_part(o->name, base);
    told.name = base;
    return r < 0 ? r : order_tell(&told, id, new, NULL, err);
}

int order_discard(const struct order *o, struct err *err)
{
    struct workspace *w = NULL;
    int r = workspace_open(o->name, true, &w, err);
    if (r == 0)
        r = workspace_discard(w, err);
    workspace_close(w);
    return r;
}
