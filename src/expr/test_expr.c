/* The library through its public header: every memory size, every damaged byte, and explanations
 * against an exhaustive search. What it answers is compared with CPython elsewhere. */
#include "base/tap.h"
#include "cordon.h"

static const char schema_text[] =
    "{\"keys\":{\"a\":\"bool\",\"b\":\"bool\",\"c\":\"bool\",\"d\":\"bool\",\"e\":\"bool\",\"n\":{"
    "\"type\":\"int\",\"min\":0,\"max\":10},"
    "\"s\":{\"type\":\"str\",\"enum\":[\"low\",\"high\"]},\"x\":\"any\"}}";
static char schema_mem[65536], program_mem[1 << 19], ctx_mem[4096], scratch[1 << 21], work[1 << 22];
static struct cordon_schema *schema;
static uint64_t state = 7;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((state >> 33) % n);
}

static struct cordon_program *compile(const char *source)
{
    struct cordon_program *p = NULL;
    struct cordon_error err;
    if (cordon_compile(schema, source, strlen(source), program_mem, sizeof program_mem, &p, &err))
        printf("# %s: %s\n", source, err.message);
    return p;
}

static void memory(void)
{
    const char *source = "ctx['n'] * 123456789012345678901234567890 > 3 and ctx['s'] == 'l\\x6fw' "
                         "'er' or -ctx['x'] + 'a'";
    size_t need = cordon_compile_size(strlen(source));
    bool good = true;
    int last = -1;
    for (size_t size = 0; size <= need; size += 7) {
        void *mem = malloc(size ? size : 1);
        struct cordon_program *p;
        struct cordon_error err = {0};
        last = cordon_compile(schema, source, strlen(source), mem, size, &p, &err);
        good = good && (last == 0 || last == CORDON_MEMORY);
        free(mem);
    }
    tap_ok(good, "compiling with too little memory says so, at every size");
    void *mem = malloc(need);
    struct cordon_program *p;
    struct cordon_error err = {0};
    tap_eq_int(cordon_compile(schema, source, strlen(source), mem, need, &p, &err), 0,
               "the size asked for is enough");
    good = true;
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    cordon_ctx_int(c, 5, 7);
    cordon_ctx_str(c, 6, "low", 3);
    cordon_ctx_str(c, 7, "z", 1);
    for (size_t size = 0; size < 600; size++) {
        void *s = malloc(size ? size : 1);
        struct cordon_value v;
        int r = cordon_eval(p, c, s, size, &v, &err);
        good = good && (r == CORDON_MEMORY || r == CORDON_TYPE_ERROR);
        free(s);
    }
    tap_ok(good, "evaluating with too little memory says so, at every size");
    free(mem);
    good = true;
    for (size_t size = 0; size < cordon_schema_size(strlen(schema_text)); size += 5) {
        struct cordon_schema *s;
        mem = malloc(size ? size : 1);
        int r = cordon_schema_read(schema_text, strlen(schema_text), mem, size, &s, &err);
        good = good && (r == 0 || r == CORDON_MEMORY);
        free(mem);
    }
    tap_ok(good, "reading a schema with too little memory says so, at every size");
}

static void saved(void)
{
    static unsigned char out[4096], loaded[1 << 17];
    struct cordon_program *p = compile("ctx['n'] + 1 > 4 and ctx['s'] == 'low' or 1 < ctx['n'] < "
                                       "1e3 or 99999999999999999999 == ctx['x']");
    struct cordon_program *q;
    struct cordon_error err;
    size_t n = cordon_save(p, out, sizeof out), silent = 0;
    tap_ok(n <= sizeof out && cordon_save(p, NULL, 0) == n, "a program is saved (%zu bytes)", n);
    tap_eq_int(cordon_load(schema, out, n, loaded, sizeof loaded, &q, &err), 0, "and loaded");
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            out[i] ^= (unsigned char)(1 << bit);
            silent +=
                cordon_load(schema, out, n, loaded, sizeof loaded, &q, &err) != CORDON_BYTECODE;
            out[i] ^= (unsigned char)(1 << bit);
        }
    tap_eq_int(silent, 0, "every damaged bit is noticed");
    for (size_t cut = 0; cut < n; cut++)
        silent += cordon_load(schema, out, cut, loaded, sizeof loaded, &q, &err) != CORDON_BYTECODE;
    tap_eq_int(silent, 0, "every cut is noticed");
    static char other_mem[4096];
    struct cordon_schema *other;
    if (cordon_schema_read("{\"keys\":[\"n\",\"s\"]}", 18, other_mem, sizeof other_mem, &other,
                           &err) == 0)
        tap_eq_int(cordon_load(other, out, n, loaded, sizeof loaded, &q, &err), CORDON_BYTECODE,
                   "a schema without its keys refuses it");
}

/* Random and/or/not over five bools, and its value under an assignment. */
static size_t random_tree(char *out, int depth)
{
    size_t n = 0;
    if (depth == 0 || below(4) == 0)
        return (size_t)sprintf(out, "ctx['%c']", 'a' + (int)below(5));
    if (below(5) == 0) {
        n = (size_t)sprintf(out, "not (");
        n += random_tree(out + n, depth - 1);
        return n + (size_t)sprintf(out + n, ")");
    }
    n = (size_t)sprintf(out, "(");
    n += random_tree(out + n, depth - 1);
    n += (size_t)sprintf(out + n, below(2) ? " and " : " or ");
    n += random_tree(out + n, depth - 1);
    return n + (size_t)sprintf(out + n, ")");
}

static int value_under(const struct cordon_program *p, unsigned bits)
{
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    for (size_t i = 0; i < 5; i++)
        cordon_ctx_bool(c, i, bits >> i & 1);
    return cordon_test(p, c, scratch, sizeof scratch);
}

/* Whether fixing the keys of SET at BITS forces the answer, whatever the others are. */
static bool forces(const struct cordon_program *p, unsigned set, unsigned bits, int answer)
{
    for (unsigned other = 0; other < 32; other++)
        if (value_under(p, (bits & set) | (other & ~set)) != answer)
            return false;
    return true;
}

static void explanations(void)
{
    char source[4096];
    bool forced = true, answers = true;
    size_t trees = 0, larger = 0;
    for (int round = 0; round < 3000; round++) {
        size_t len = random_tree(source, 4);
        source[len] = 0;
        struct cordon_program *p = compile(source);
        unsigned bits = below(32), set = 0;
        int answer = value_under(p, bits);
        const struct cordon_reason *reasons;
        size_t count;
        struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
        for (size_t i = 0; i < 5; i++)
            cordon_ctx_bool(c, i, bits >> i & 1);
        answers = answers && cordon_explain(p, c, work, sizeof work, &reasons, &count) == answer;
        unsigned seen = 0;
        bool read_once =
            true; /* each key once: then the leaves are independent, and the set must be minimal */
        for (const char *at = source; (at = strstr(at, "ctx['")); at += 5) {
            read_once = read_once && !(seen >> (at[5] - 'a') & 1);
            seen |= 1u << (at[5] - 'a');
        }
        for (size_t i = 0; i < count; i++)
            set |= 1u << (source[reasons[i].offset + 5] - 'a');
        forced = forced && forces(p, set, bits, answer);
        if (!read_once)
            continue;
        trees++;
        for (unsigned other = 0; other < 32; other++)
            if ((size_t)__builtin_popcount(other) < count && forces(p, other, bits, answer)) {
                larger++;
                break;
            }
    }
    tap_ok(answers, "explain answers what test answers");
    tap_ok(forced, "what explain gives forces the answer");
    tap_ok(trees > 100 && larger == 0, "no smaller set does, by exhaustive search (%zu trees)",
           trees);
}

static void findings(void)
{
    static const struct {
        const char *source;
        enum cordon_finding_kind kind;
    } t[] = {
        {"ctx['n'] > 5 and ctx['n'] < 3", CORDON_ALWAYS_FALSE},
        {"ctx['n'] > 5 and ctx['n'] < 6", CORDON_ALWAYS_FALSE}, /* no int between */
        {"ctx['x'] > 5 and ctx['x'] < 6", 0},
        {"ctx['x'] > 5 and (ctx['a'] or ctx['b']) and ctx['x'] < 3", CORDON_ALWAYS_FALSE},
        {"5 < ctx['n'] < 3", CORDON_ALWAYS_FALSE},
        {"ctx['n'] >= 0", CORDON_ALWAYS_TRUE},
        {"ctx['n'] > 10", CORDON_ALWAYS_FALSE},
        {"ctx['n'] == 10.5", CORDON_ALWAYS_FALSE},
        {"ctx['s'] == 'low' or ctx['s'] == 'high' or ctx['s'] == None", CORDON_ALWAYS_TRUE},
        {"ctx['s'] == 'low' and ctx['s'] == 'high'", CORDON_ALWAYS_FALSE},
        {"ctx['s'] == 'lwo'", CORDON_ALWAYS_FALSE},
        {"ctx['s'] != 'low' and ctx['s'] != 'high' and ctx['s'] != None", CORDON_ALWAYS_FALSE},
        {"ctx['s'] < 1", CORDON_ALWAYS_RAISES},
        {"ctx['x'] == 1 or ctx['x'] != 1", CORDON_ALWAYS_TRUE},
        {"ctx['x'] > 1 or ctx['x'] <= 1", 0}, /* NaN is neither */
        {"ctx['n'] > 1 or ctx['n'] <= 1", CORDON_ALWAYS_TRUE},
        {"not (ctx['n'] > 1 or ctx['n'] <= 1)", CORDON_ALWAYS_FALSE},
        {"ctx['a'] and ctx['b']", 0},
        {"ctx['a'] == None and ctx['a'] != None", CORDON_ALWAYS_FALSE},
        {"1 < 2", CORDON_ALWAYS_TRUE},
        {"ctx['n'] + 1 > 0", 0}, /* not understood, so nothing is claimed */
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct cordon_finding f[8] = {{0}};
        struct cordon_program *p = compile(t[i].source);
        size_t n = cordon_analyse(p, work, sizeof work, f, 8);
        enum cordon_finding_kind got = n && f[0].kind <= CORDON_ALWAYS_RAISES ? f[0].kind : 0;
        tap_ok(got == t[i].kind, "analysis: %s (%s)", t[i].source, cordon_finding_name(got));
    }
}

static void certificates(void)
{
    const struct cordon_certificate *k = cordon_certify(compile("ctx['n'] * ctx['n'] + 1"));
    tap_ok(k->bits == 9 && k->types == ((1 << CORDON_INT)) && k->raises == 1 << CORDON_TYPE_ERROR,
           "a range bounds the bits (%u) and what can be raised", k->bits);
    k = cordon_certify(compile("1 < 2 and 'a' == 'b'"));
    tap_ok(k->raises == 0 && k->types == 1 << CORDON_BOOL, "constants cannot raise");
    k = cordon_certify(compile("ctx['x'] / 2"));
    tap_ok(!(k->raises >> CORDON_ZERO_DIVISION & 1), "a constant divisor cannot be zero");
    k = cordon_certify(compile("2 / ctx['x']"));
    tap_ok(k->raises >> CORDON_ZERO_DIVISION & 1, "a key can be");
}

static void contexts(void)
{
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    struct cordon_error err;
    char json[256];
    tap_ok(cordon_ctx_conforms(c), "an empty context follows a schema without required keys");
    cordon_ctx_int(c, 5, 11);
    tap_ok(!cordon_ctx_conforms(c), "a value outside its range does not");
    cordon_ctx_int(c, 5, 3);
    tap_ok(cordon_ctx_conforms(c), "setting it again mends it");
    tap_ok(!cordon_ctx_str(c, 7, "\xff", 1), "invalid UTF-8 is not taken");
    const char *text = "{\"n\": 5, \"s\": \"low\", \"other\": {\"n\": 9}}";
    tap_eq_int(cordon_ctx_json(c, text, strlen(text), json, sizeof json, &err), 0,
               "a JSON context");
    tap_eq_int(
        cordon_test(compile("ctx['n'] == 5 and ctx['s'] == 'low'"), c, scratch, sizeof scratch), 1,
        "is read at its own level only");
    /* more than 64 keys: readiness takes more than one word */
    static char wide_text[4096], wide_mem[1 << 17], wide_ctx[1 << 14];
    size_t n = (size_t)sprintf(wide_text, "{\"keys\":{");
    for (int i = 0; i < 150; i++)
        n += (size_t)sprintf(wide_text + n, "%s\"k%03d\":\"int\"", i ? "," : "", i);
    n += (size_t)sprintf(wide_text + n, "}}");
    struct cordon_schema *wide;
    struct cordon_program *p;
    const char *source = "ctx['k003'] + ctx['k070'] == 5 and ctx['k149'] == 7";
    bool good = cordon_schema_read(wide_text, n, wide_mem, sizeof wide_mem, &wide, &err) == 0 &&
                cordon_compile(wide, source, strlen(source), program_mem, sizeof program_mem, &p,
                               &err) == 0;
    c = good ? cordon_ctx_init(wide_ctx, sizeof wide_ctx, wide, 0) : NULL;
    if (c) {
        cordon_ctx_int(c, 3, 2);
        cordon_ctx_int(c, 70, 3);
        good = cordon_test(p, c, scratch, sizeof scratch) == 0;
        cordon_ctx_int(c, 149, 7);
        good = good && cordon_test(p, c, scratch, sizeof scratch) == 1;
        cordon_ctx_none(c, 70);
        good = good && cordon_test(p, c, scratch, sizeof scratch) == -1;
    }
    tap_ok(good, "a schema of 150 keys");
}

int main(void)
{
    struct cordon_error err;
    if (!tap_ok(cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem,
                                   &schema, &err) == 0,
                "the schema"))
        return tap_done();
    tap_eq_int(cordon_schema_read(cordon_schema_example, strlen(cordon_schema_example), work,
                                  sizeof work, &(struct cordon_schema *){NULL}, &err),
               0, "the shipped schema reads");
    memory();
    saved();
    explanations();
    findings();
    certificates();
    contexts();
    return tap_done();
}
