/* SPDX-License-Identifier: Apache-2.0 */
/* `cordon workspace list`: each workspace, and behind it its clones. What is listed is read from the stores: there is no
 * list of them that could be wrong. */
#include "order.h"

#include "base/jsonw.h"
#include "base/units.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int facts_of(const char *name, struct workspace_facts *ret, struct err *err)
{
    struct workspace *w = NULL;
    int r = workspace_open(name, false, &w, err);
    if (r == 0)
        r = workspace_describe(w, ret, err);
    workspace_close(w);
    return r;
}

static int put_facts(const struct order *o, const char *name, const struct workspace_facts *f,
                     bool first, struct output *out)
{
    struct buf text;
    int r = 0;
    buf_init(&text, 64 * KIB);
    if (o->json) {
        struct jsonw j = {.out = &text};
        jsonw_open(&j, NULL, '{');
        jsonw_string(&j, "workspace", name);
        jsonw_string(&j, "head", f->head);
        jsonw_int(&j, "time", f->time);
        jsonw_int(&j, "commits", (int64_t)f->commits);
        jsonw_int(&j, "files", (int64_t)f->files);
        jsonw_int(&j, "bytes", (int64_t)f->bytes);
        jsonw_int(&j, "store_bytes", (int64_t)f->store);
        jsonw_close(&j, '}');
        r = j.bad;
        if (r == 0 && !first)
            r = output_put(out, ", ", 2);
    } else {
        r = buf_printf(&text, "%-20s %.12s %6llu commits %8llu files %12llu bytes\n", name, f->head,
                       (unsigned long long)f->commits, (unsigned long long)f->files,
                       (unsigned long long)f->bytes);
    }
    if (r == 0)
        r = output_put(out, text.data, text.len);
    buf_done(&text);
    return r;
}

static int wanted(const struct dirent *e)
{
    return workspace_name_good(e->d_name);
}

struct listing {
    const struct order *o;
    struct output *out;
    const char *name; /* of the workspace whose clones are listed */
    int shown, damaged;
    struct err *err; /* the first that is damaged */
};

/* One that is damaged keeps nobody from seeing the others; the first of them is the error at the end. */
static int list_one(struct listing *l, const char *name)
{
    struct workspace_facts f = {0};
    struct err why = ERR_INIT;
    char folder[WORKSPACE_NAME_MAX + 1];
    struct stat st;
    if (facts_of(name, &f, &why) == 0)
        return put_facts(l->o, name, &f, l->shown++ == 0, l->out);
    workspace_base_part(name, folder);
    if (stat(folder, &st) == 0 && l->damaged++ == 0) /* else it was deleted meanwhile */
        err_set(l->err, ERR_STATE, "'%s' cannot be read: %.300s", name, why.msg);
    return 0;
}

static int list_clone(void *listing, const char *clone)
{
    struct listing *l = listing;
    char name[WORKSPACE_FULL_MAX + 1];
    snprintf(name, sizeof name, "%s@%s", l->name, clone);
    return workspace_full_name_good(name) ? list_one(l, name) : 0;
}

static int list_clones(struct listing *l, const char *name)
{
    struct workspace *w = NULL;
    struct err why = ERR_INIT;
    int r = 0;
    l->name = name;
    if (workspace_open(name, false, &w, &why) == 0) /* else list_one has said so */
        r = workspace_clones(w, list_clone, l, l->err);
    workspace_close(w);
    return r;
}

int order_list(const struct order *o, struct err *err)
{
    struct dirent **names = NULL;
    struct output out;
    const int count = scandir(".", &names, wanted, alphasort);
    if (count < 0)
        return err_sys(err, "look into the folder of the workspaces");
    output_init(&out, STDOUT_FILENO, o->tty);
    struct listing l = {.o = o, .out = &out, .err = err};
    int r = o->json ? output_put(&out, "[", 1) : 0;
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        struct stat st;
        if (r == 0 && stat(name, &st) == 0 && S_ISDIR(st.st_mode)) {
            r = list_one(&l, name);
            if (r == 0)
                r = list_clones(&l, name);
        }
        free(names[i]);
    }
    free(names);
    if (r == 0 && o->json)
        r = output_put(&out, "]\n", 2);
    else if (r == 0 && l.shown == 0 && !l.damaged)
        fputs("cordon workspace: no workspaces\n", stderr);
    r = output_end(&out, r, err);
    return r < 0 || !l.damaged ? r : ERR_STATE;
}
