/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the filters at build time, so that the program that loads them needs neither libseccomp nor
 * time: a filter is an array of constants.
 *
 *   filtergen X86_64.c AARCH64.c NAME.filter...
 *
 * One C file an architecture: the linker leaves the foreign one out of programs that do not ask for
 * it. */
#include "jail/filters/table.h"
#include "jail/filters/tree.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All words of one file, each once, one after the other. */
struct text {
    size_t len;
    char words[UINT16_MAX];
};

static unsigned place(struct text *t, const char *word)
{
    size_t len = strlen(word) + 1;
    for (size_t at = 0; at < t->len; at += strlen(t->words + at) + 1)
        if (strcmp(t->words + at, word) == 0)
            return (unsigned)at;
    if (len > sizeof t->words - t->len)
        table_fail("filtergen", 0, "more words than 16 bits can tell apart");
    memcpy(t->words + t->len, word, len);
    t->len += len;
    return (unsigned)(t->len - len);
}

static void write_insns(FILE *out, const struct tree *t, const char *id)
{
    fprintf(out, "static const struct sock_filter insns_%s[] = {", id);
    for (unsigned i = 0; i < t->n; i++)
        fprintf(out, "%s{0x%02x, %u, %u, 0x%x},", i % 4 ? " " : "\n    ", t->insns[i].code,
                t->insns[i].jt, t->insns[i].jf, t->insns[i].k);
    fprintf(out, "\n};\n\n");
}

static void write_string(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', out);
        fputc(*s, out);
    }
    fputc('"', out);
}

/* The line a denied call is reported with: the first that notifies, else the first that denies. */
static const struct table_rule *denial(const struct table_call *c)
{
    const struct table_rule *found = NULL;
    for (unsigned i = 0; i < c->n_rules; i++) {
        if (c->rules[i].action == SECCOMP_RET_USER_NOTIF)
            return &c->rules[i];
        if (!found && c->rules[i].action != SECCOMP_RET_ALLOW)
            found = &c->rules[i];
    }
    return found;
}

/* Sorted by number, so that looking one up is a binary search. */
static unsigned write_calls(FILE *out, const struct table *t, uint32_t arch, const char *id,
                            struct text *text)
{
    unsigned n = 0;
    fprintf(out, "static const struct jail_call calls_%s[] = {\n", id);
    for (int nr = 0; nr < 1024; nr++) {
        for (unsigned i = 0; i < t->n_calls; i++) {
            const struct table_rule *r = denial(&t->calls[i]);
            if (!r || tree_number(t->calls[i].name, arch) != nr)
                continue;
            fprintf(out, "    {%d, %u, %u, %u},\n", nr, place(text, t->calls[i].name),
                    place(text, r->layer), place(text, r->reason));
            n++;
        }
    }
    fprintf(out, "};\n\n");
    return n;
}

static void identifier(char *out, size_t size, const char *name)
{
    snprintf(out, size, "%s", name);
    for (; *out; out++)
        if (*out == '-')
            *out = '_';
}

static void generate(const char *path, const char *arch_name, uint32_t arch, char **tables, int n)
{
    static struct tree tree;
    static struct text text;
    text.len = 0;
    char registry[16384] = "";
    size_t used = 0;
    FILE *out = fopen(path, "we");
    if (!out)
        table_fail(path, 0, "%s", strerror(errno));
    fprintf(out, "/* Made by filtergen from the tables in src/jail/filters: edit those. */\n"
                 "#include \"jail/filter.h\"\n\n");
    for (int i = 0; i < n; i++) {
        char id[128];
        struct table *t = table_read(tables[i]);
        identifier(id, sizeof id, t->name);
        tree_compile(&tree, t, arch);
        write_insns(out, &tree, id);
        unsigned n_calls = write_calls(out, t, arch, id, &text);
        int len = snprintf(
            registry + used, sizeof registry - used,
            "    {\"%s\", 0x%xu, insns_%s, %u, calls_%s, %u, text, %u, {%u, %u, %u, %u}},\n",
            t->name, arch, id, tree.n, id, n_calls, tree.n_over, tree.over[0], tree.over[1],
            tree.over[2], tree.over[3]);
        if (len < 0 || (size_t)len >= sizeof registry - used)
            table_fail(path, 0, "too many tables");
        used += (size_t)len;
    }
    fputs("static const char text[] =\n", out);
    for (size_t at = 0; at < text.len; at += strlen(text.words + at) + 1) {
        fputs("    ", out);
        write_string(out, text.words + at);
        fputs(" \"\\0\"\n", out);
    }
    fputs("    ;\n\n", out);
    fprintf(out, "const struct jail_filter jail_filters_%s[] = {\n%s    {0},\n};\n", arch_name,
            registry);
    if (fclose(out) != 0)
        table_fail(path, 0, "%s", strerror(errno));
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: filtergen X86_64.c AARCH64.c NAME.filter...\n");
        return 2;
    }
    generate(argv[1], "x86_64", AUDIT_ARCH_X86_64, argv + 3, argc - 3);
    generate(argv[2], "aarch64", AUDIT_ARCH_AARCH64, argv + 3, argc - 3);
    return 0;
}
