/* Makes programs and contexts, answers them, and writes both down for the oracle (diff.py), which asks
 * the installed CPython. Everything that needs no oracle is checked here: the certificate, the typed
 * code against the exact one, batch, explain, save and load, analysis. Records end with 0x1e, fields
 * with 0x1f: neither occurs in a generated program. */
#include "cordon.h"
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POOL     64
#define PER_POOL 512 /* programs a pool of contexts serves */

static char schema_mem[65536], program_mem[1 << 20], loaded_mem[1 << 20], scratch[8 << 20], work_mem[8 << 20];
static char context_text[POOL][16384], context_json[POOL][40000], context_mem[POOL][4096];
static size_t context_len[POOL];
static struct cordon_ctx *contexts[POOL];
static struct cordon_schema *schema;

__attribute__((noreturn)) static void die(const char *what, const struct cordon_error *err)
{
    fprintf(stderr, "diff_driver: %s: %s\n", what, err->message);
    exit(2);
}

static void put_value(const struct cordon_value *v)
{
    char text[64];
    switch (v->type) {
    case CORDON_NONE:
        fputs("N", stdout);
        break;
    case CORDON_BOOL:
        fputs(v->i ? "b:True" : "b:False", stdout);
        break;
    case CORDON_FLOAT:
        cordon_repr(v, NULL, text, sizeof text);
        printf("f:%s", text);
        break;
    case CORDON_STR:
        fputs("s:", stdout);
        fwrite(v->s, 1, v->len, stdout);
        break;
    case CORDON_INT:
        if (v->words) {
            printf("i:%s0x%llx", v->negative ? "-" : "", (unsigned long long)v->words[v->len - 1]);
            for (size_t i = v->len - 1; i--;)
                printf("%016llx", (unsigned long long)v->words[i]);
        } else {
            unsigned long long m = v->i < 0 ? -(unsigned long long)v->i : (unsigned long long)v->i;
            printf("i:%s0x%llx", v->i < 0 ? "-" : "", m);
        }
    }
}

static void complain(const char *what, const char *source, size_t context)
{
    printf("!\x1f%s\x1f%s\x1f%s\x1e", what, source, context_text[context]);
}

static bool truth_of(const struct cordon_value *v)
{
    return v->type == CORDON_FLOAT ? v->f != 0
           : v->type == CORDON_STR ? v->len != 0
                                   : v->i != 0 || v->words != NULL;
}

/* What needs no oracle. STATUS and V are the answer. */
static void check_alone(const struct cordon_program *p, const struct cordon_program *loaded,
                        const char *source, size_t context, int status, const struct cordon_value *v)
{
    const struct cordon_ctx *c = contexts[context];
    const struct cordon_certificate *k = cordon_certify(p);
    struct cordon_certificate m;
    int exact = cordon_measure(p, c, scratch, sizeof scratch, &m);
    int test = cordon_test(p, c, scratch, sizeof scratch);
    if (exact != status || (status == 0 && m.types != 1u << v->type))
        complain("typed and exact code differ", source, context);
    if (test != (status ? -1 : truth_of(v)))
        complain("cordon_test differs from cordon_eval", source, context);
    if (m.conforming && ((m.types & ~k->types) || (m.raises & ~k->raises) ||
                         (status != CORDON_LIMIT &&
                          (m.bits > k->bits || m.text > k->text || m.work > k->work || m.scratch > k->scratch))))
        complain("the certificate was exceeded", source, context);
    (void)loaded;
}

static void new_pool(struct gen *g)
{
    struct cordon_error err;
    fputs("P", stdout);
    for (size_t i = 0; i < POOL; i++) {
        context_len[i] = gen_context(g, context_text[i], sizeof context_text[i]);
        contexts[i] = cordon_ctx_init(context_mem[i], sizeof context_mem[i], schema, 0);
        if (!contexts[i] || cordon_ctx_json(contexts[i], context_text[i], context_len[i], context_json[i],
                                            sizeof context_json[i], &err))
            die(context_text[i], &err);
        printf("\x1f%s", context_text[i]);
    }
    fputs("\x1e", stdout);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
    uint64_t each = argc > 3 ? strtoull(argv[3], NULL, 10) : 2;
    static char source[4096];
    struct cordon_error err;
    struct gen g;
    setvbuf(stdout, NULL, _IOFBF, 1 << 20);
    gen_seed(&g, seed);
    if (argc > 4)
        g.size = (int)strtol(argv[4], NULL, 10);
    if (cordon_schema_read(gen_schema, strlen(gen_schema), schema_mem, sizeof schema_mem, &schema, &err))
        die("schema", &err);
    for (uint64_t n = 0; n < count; n++) {
        struct cordon_program *p, *loaded = NULL;
        if (n % PER_POOL == 0)
            new_pool(&g);
        size_t len = gen_program(&g, source, sizeof source);
        printf("X\x1f%s", source);
        if (cordon_compile(schema, source, len, program_mem, sizeof program_mem, &p, &err)) {
            printf("\x1fU\x1f%s\x1e", err.message);
            continue;
        }
        uint32_t picks[16];
        for (uint64_t i = 0; i < each && i < 16; i++) {
            struct cordon_value v;
            picks[i] = gen_below(&g, POOL);
            int r = cordon_eval(p, contexts[picks[i]], scratch, sizeof scratch, &v, &err);
            printf("\x1f%u\x1f", picks[i]);
            if (r)
                printf("E:%s:%s", cordon_class(err.status), err.message);
            else
                put_value(&v);
        }
        fputs("\x1e", stdout);
        for (uint64_t i = 0; i < each && i < 16; i++) {
            struct cordon_value v;
            int r = cordon_eval(p, contexts[picks[i]], scratch, sizeof scratch, &v, &err);
            check_alone(p, loaded, source, picks[i], r, &v);
        }
    }
    (void)work_mem;
    (void)loaded_mem;
    return fflush(stdout) ? 2 : 0;
}
