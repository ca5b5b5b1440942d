/* SPDX-License-Identifier: Apache-2.0 */
/* The tables are for people first: words and one line a rule, so the reader is a splitter of words
 * and not a grammar. It stops at the first mistake, because a half-understood filter must not
 * build.
 *
 * Waits: getline in read_file; a table among the sources, while Cordon is built; none (the kernel's own); an error */
#include "jail/filters/table.h"

#include "jail/filters/constants.h"

#include <errno.h>
#include <libgen.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 160

struct reader {
    struct table *table;
    const char *file;
    int line;
    int depth;
    bool below;  /* what is notified is allowed: another table, above this one, does it */
    bool silent; /* what is notified is refused: nobody listens */
    bool
        above; /* what the table below refuses or notifies is left to it; what it allows is trapped */
    const char *top; /* the table that is read; the others are included */
};

static const char *const layers[] = {"process", "syscalls", "resources", "network", "filesystem"};

void table_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

#define fail(r, ...) table_fail((r)->file, (r)->line, __VA_ARGS__)

/* Memory that lives as long as the generator; the list is there so that a leak checker agrees. */
static void *lasting(size_t size)
{
    static struct kept {
        struct kept *next;
    } * kept;
    struct kept *k = calloc(1, sizeof *k + size);
    if (!k)
        abort();
    k->next = kept;
    kept = k;
    return k + 1;
}

static char *keep(const char *s)
{
    return memcpy(lasting(strlen(s) + 1), s, strlen(s) + 1);
}

static char *trim(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n && strchr(" \t\n", s[n - 1]))
        s[--n] = 0;
    return s;
}

/* Cuts TEXT at spaces, in place. */
static unsigned split(struct reader *r, char *text, char **words)
{
    unsigned n = 0;
    char *save = NULL;
    for (char *w = strtok_r(text, " \t", &save); w; w = strtok_r(NULL, " \t", &save)) {
        if (n == WORDS)
            fail(r, "more than %d words", WORDS);
        words[n++] = w;
    }
    return n;
}

static bool listed(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

/* `a1 & MASK in X Y`, `p4 == 0` or `p1 over memory`, up to `and` or the end; returns how many words it
 * took. */
static unsigned condition(struct reader *r, char **w, unsigned n, struct table_cond *c)
{
    unsigned i = 0;
    *c = (struct table_cond){0};
    if (n < 3 || strlen(w[0]) != 2 || !strchr("ap", w[0][0]) || w[0][1] < '0' || w[0][1] > '5')
        fail(r, "a condition is `a0 & MASK in VALUE...` or `p0 == VALUE`");
    c->wide = w[0][0] == 'p';
    c->arg = w[0][1] - '0';
    i = 1;
    if (strcmp(w[1], "over") == 0) {
        if (!c->wide || strcmp(w[2], "memory") != 0 || (n > 3 && strcmp(w[3], "and") != 0))
            fail(r, "`over` is for `pN over memory`");
        c->over = true;
        return 3;
    }
    if (strcmp(w[i], "&") == 0) {
        uint64_t mask;
        if (c->wide)
            fail(r, "a mask looks at 32 bits: write a%d", c->arg);
        if (n < 5 || !constants_value(w[2], &mask) || mask == 0 || mask > UINT32_MAX)
            fail(r, "no such mask: %s", n > 2 ? w[2] : "(nothing)");
        c->masked = true;
        c->mask = (uint32_t)mask;
        i = 3;
    }
    bool list = strcmp(w[i], "in") == 0;
    if (!list && strcmp(w[i], "==") != 0)
        fail(r, "`==` or `in` expected, not `%s`", w[i]);
    for (i++; i < n && strcmp(w[i], "and") != 0; i++) {
        uint64_t v;
        if (c->n == TABLE_LIST)
            fail(r, "more than %d values", TABLE_LIST);
        if (!constants_value(w[i], &v))
            fail(r, "no such constant: %s", w[i]);
        if (!c->wide && v > UINT32_MAX)
            fail(r, "%s does not fit 32 bits: write p%d", w[i], c->arg);
        if (c->masked && (v & ~(uint64_t)c->mask))
            fail(r, "%s can never be equal: it has bits outside the mask", w[i]);
        c->values[c->n++] = v;
    }
    if (c->n == 0 || (!list && c->n != 1))
        fail(r, "`==` takes one value, `in` at least one");
    if (c->wide && c->n != 1)
        fail(r, "pN compares with one value only");
    return i;
}

static struct table_call *call_of(struct reader *r, const char *name)
{
    struct table *t = r->table;
    if (name[0] == '*') {
        if (strcmp(name, "*foreign") == 0)
            return &t->foreign;
        if (strcmp(name, "*unknown") == 0)
            return &t->unknown;
        if (strcmp(name, "*unlisted") == 0)
            return &t->unlisted;
        fail(r, "no such class of calls: %s", name);
    }
    for (unsigned i = 0; i < t->n_calls; i++)
        if (strcmp(t->calls[i].name, name) == 0)
            return &t->calls[i];
    if (seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name) < 0 &&
        seccomp_syscall_resolve_name_arch(SCMP_ARCH_AARCH64, name) < 0)
        fail(r, "no such system call on x86-64 or aarch64: %s", name);
    if (t->n_calls == TABLE_CALLS)
        fail(r, "more than %d calls", TABLE_CALLS);
    t->calls[t->n_calls].name = keep(name);
    return &t->calls[t->n_calls++];
}

/* A line of the table below, in one that is `above` it: one answer for a call, so that the filter stays short. What the
 * table below allows under some condition is trapped; what it only ever refuses or notifies is left to it. */
static void add_above(struct table_call *c, const struct table_rule *rule)
{
    bool allows = rule->action == SECCOMP_RET_ALLOW, first = c->n_rules == 0;
    bool notifies = rule->action == SECCOMP_RET_USER_NOTIF;
    if (!allows && !notifies && (rule->n_conds || !first))
        return;
    if (!first && c->rules[0].action == SECCOMP_RET_TRAP)
        return;
    c->rules[0] = *rule;
    c->rules[0].n_conds = 0;
    c->n_rules = 1;
    if (notifies)
        c->rules[0].action = SECCOMP_RET_ALLOW;
    else if (allows || rule->action == (SECCOMP_RET_ERRNO | EPERM))
        c->rules[0].action = SECCOMP_RET_TRAP;
}

static void add_rule(struct reader *r, const char *name, const struct table_rule *rule)
{
    struct table_call *c = call_of(r, name);
    if (name[0] == '*' && (rule->n_conds || rule->action == SECCOMP_RET_ALLOW))
        fail(r, "%s has no condition and is not allowed", name);
    if (c->n_rules) {
        const struct table_rule *last = &c->rules[c->n_rules - 1];
        if (!last->n_conds && (r->below || r->silent || r->above) &&
            strcmp(last->file, r->top) == 0)
            return; /* the table above has the last word on it */
        if (!last->n_conds && !r->above)
            fail(r, "%s is already decided at %s:%d", name, last->file, last->line);
    }
    if (r->above) {
        add_above(c, rule);
        return;
    }
    if (c->n_rules == TABLE_RULES)
        fail(r, "more than %d lines for %s", TABLE_RULES, name);
    c->rules[c->n_rules++] = *rule;
}

/* The words before the first colon. */
static void rule(struct reader *r, char *head, char *layer, char *reason)
{
    char *words[WORDS], **w = words;
    unsigned n = split(r, head, words);
    struct table_rule rule = {
        .layer = keep(layer), .reason = keep(reason), .file = r->file, .line = r->line};

    if (n && strcmp(w[0], "allow") == 0) {
        rule.action = SECCOMP_RET_ALLOW;
    } else if (n && strcmp(w[0], "notify") == 0) {
        rule.action = r->below    ? SECCOMP_RET_ALLOW
                      : r->silent ? SECCOMP_RET_ERRNO | EPERM
                                  : SECCOMP_RET_USER_NOTIF;
    } else if (n && strcmp(w[0], "trap") == 0) {
        rule.action = SECCOMP_RET_TRAP;
    } else if (n && strcmp(w[0], "kill") == 0) {
        rule.action = SECCOMP_RET_KILL_PROCESS;
    } else if (n > 1 && strcmp(w[0], "errno") == 0) {
        int e = constants_errno(w[1]);
        if (e < 0)
            fail(r, "no such errno: %s", w[1]);
        rule.action = SECCOMP_RET_ERRNO | (uint32_t)e;
        w++, n--;
    } else {
        fail(r, "a line begins with allow, errno NAME, notify, trap or kill");
    }
    w++, n--;

    unsigned n_names = 0;
    while (n_names < n && strcmp(w[n_names], "if") != 0)
        n_names++;
    if (n_names == 0)
        fail(r, "which call?");
    for (unsigned i = n_names; i < n;) {
        i++; /* `if` or `and` */
        if (rule.n_conds == TABLE_CONDS)
            fail(r, "more than %d conditions", TABLE_CONDS);
        i += condition(r, w + i, n - i, &rule.conds[rule.n_conds++]);
    }
    for (unsigned i = 0; i < n_names; i++)
        add_rule(r, w[i], &rule);
}

static void read_file(struct reader *r, const char *path);

static void line_of(struct reader *r, char *text)
{
    text = trim(text);
    if (!*text)
        return;
    const bool below = strncmp(text, "below ", 6) == 0, silent = strncmp(text, "silent ", 7) == 0,
               above = strncmp(text, "above ", 6) == 0;
    if (below || silent || above || strncmp(text, "include ", 8) == 0) {
        char path[4096], *copy = keep(r->file);
        snprintf(path, sizeof path, "%s/%s", dirname(copy), trim(strchr(text, ' ')));
        struct reader inner = *r;
        inner.below = below || r->below;
        inner.silent = silent || r->silent;
        inner.above = above || r->above;
        inner.depth++;
        if (inner.depth > 5)
            fail(r, "includes too deep");
        read_file(&inner, keep(path));
        return;
    }
    char *layer = strstr(text, " : ");
    char *reason = layer ? strstr(layer + 3, " : ") : NULL;
    if (!reason)
        fail(r, "a line is ACTION CALL... : LAYER : REASON");
    *layer = *reason = 0;
    layer = trim(layer + 3);
    reason = trim(reason + 3);
    if (!listed(layer, layers, sizeof layers / sizeof *layers))
        fail(r, "no such layer: %s", layer);
    rule(r, text, layer, reason);
}

/* Lines that end in a backslash go on; an error names the first of them. */
static void read_file(struct reader *r, const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f)
        fail(r, "cannot open %s", path);
    char whole[4096] = "", *text = NULL;
    size_t cap = 0, used = 0;
    int line = 0;
    r->file = path;
    while (getline(&text, &cap, f) >= 0) {
        line++;
        if (!used)
            r->line = line;
        char *s = text + strspn(text, " \t");
        if (*s == '#')
            *s = 0;
        size_t len = strcspn(text, "\n");
        bool more = len && text[len - 1] == '\\';
        len -= more;
        if (used + len + 1 >= sizeof whole)
            fail(r, "line too long");
        memcpy(whole + used, text, len);
        used += len;
        whole[used] = 0;
        if (more)
            continue;
        line_of(r, whole);
        used = 0;
    }
    if (used)
        fail(r, "the file ends in the middle of a line");
    free(text);
    fclose(f);
}

static void whole(const struct table_call *c, const char *path, const char *name)
{
    if (!c->n_rules)
        table_fail(path, 1, "no line decides %s", name);
    const struct table_rule *last = &c->rules[c->n_rules - 1];
    if (last->n_conds)
        table_fail(last->file, last->line, "the last line of %s has a condition; what else?", name);
}

struct table *table_read(const char *path)
{
    struct table *t = lasting(sizeof *t);
    struct reader r = {.table = t, .file = path, .line = 0, .top = path};
    read_file(&r, path);

    t->name = keep(basename(keep(path)));
    char *dot = strstr(t->name, ".filter");
    if (!dot || dot[7])
        table_fail(path, 1, "a table is called NAME.filter");
    *dot = 0;
    whole(&t->foreign, path, "*foreign");
    whole(&t->unknown, path, "*unknown");
    whole(&t->unlisted, path, "*unlisted");
    for (unsigned i = 0; i < t->n_calls; i++)
        whole(&t->calls[i], path, t->calls[i].name);
    return t;
}
