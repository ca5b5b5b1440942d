/* SPDX-License-Identifier: Apache-2.0 */
/* The library through its public header: every memory size, every damaged byte, and explanations
 * against an exhaustive search. What it answers is compared with CPython elsewhere. */
#include "base/tap.h"
#include "base/utf8.h"
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
    tap_eq_int(cordon_load(schema, out, n, loaded, sizeof loaded, &q, &err), 0,
               "a saved program is loaded again");
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
                   "a saved program is refused by a schema without its keys");
}

/* Random and/or/not over five bools, as text and as a tree. */
struct tree {
    char op; /* '&', '+' for or, '!', or a key */
    int left, right;
};
static struct tree trees[64];
static int tree_count;

static size_t random_tree(char *out, int depth, int *ret_tree)
{
    size_t n = 0;
    int left, right;
    if (depth == 0 || below(4) == 0) {
        char key = (char)('a' + (int)below(5));
        trees[tree_count] = (struct tree){.op = key};
        *ret_tree = tree_count++;
        return (size_t)sprintf(out, "ctx['%c']", key);
    }
    if (below(5) == 0) {
        n = (size_t)sprintf(out, "not (");
        n += random_tree(out + n, depth - 1, &left);
        trees[tree_count] = (struct tree){'!', left, 0};
        *ret_tree = tree_count++;
        return n + (size_t)sprintf(out + n, ")");
    }
    bool is_and = below(2);
    n = (size_t)sprintf(out, "(");
    n += random_tree(out + n, depth - 1, &left);
    n += (size_t)sprintf(out + n, is_and ? " and " : " or ");
    n += random_tree(out + n, depth - 1, &right);
    trees[tree_count] = (struct tree){is_and ? '&' : '+', left, right};
    *ret_tree = tree_count++;
    return n + (size_t)sprintf(out + n, ")");
}

/* What a tree comes to when only the keys of SET are known: 1, 0, or -1 for unknown. */
static int known_by(int at, unsigned set, unsigned bits)
{
    const struct tree *t = &trees[at];
    if (t->op >= 'a')
        return set >> (t->op - 'a') & 1 ? (int)(bits >> (t->op - 'a') & 1) : -1;
    int l = known_by(t->left, set, bits);
    if (t->op == '!')
        return l < 0 ? -1 : !l;
    int r = known_by(t->right, set, bits), stop = t->op == '+';
    return l == stop || r == stop ? stop : l < 0 || r < 0 ? -1 : !stop;
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
    size_t once = 0, larger = 0, repeated = 0;
    for (int round = 0; round < 3000; round++) {
        int root;
        tree_count = 0;
        size_t len = random_tree(source, 4, &root);
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
        bool read_once = true;
        for (const char *at = source; (at = strstr(at, "ctx['")); at += 5) {
            read_once = read_once && !(seen >> (at[5] - 'a') & 1);
            seen |= 1u << (at[5] - 'a');
        }
        once += read_once;
        for (size_t i = 0; i < count; i++)
            set |= 1u << (source[reasons[i].offset + 5] - 'a');
        forced = forced && forces(p, set, bits, answer) && known_by(root, set, bits) == answer;
        for (unsigned other = 0; other < 32; other++)
            if ((size_t)__builtin_popcount(other) < count &&
                known_by(root, other, bits) == answer) {
                larger += read_once;
                repeated += !read_once;
                if (repeated == 1 && !read_once)
                    printf("# not the smallest: %s under %u\n", source, bits);
                break;
            }
    }
    tap_ok(answers, "explain answers what test answers");
    tap_ok(forced, "what explain gives forces the answer");
    tap_ok(
        once > 100 && larger == 0,
        "no smaller set than that of explain forces the answer, by exhaustive search (%zu trees)",
        once);
    tap_eq_int(repeated, 0,
               "no smaller set than that of explain forces the answer where a leaf stands twice");
}

/* Values that the schema does not promise must find all the memory that the sizes speak of. */
static void beyond_schema(void)
{
    static const char *const sources[] = {
        "ctx['n'] + 1 > 5",         "ctx['s'] + 'abc' != 'b'",        "-ctx['n'] < 3",
        "ctx['n'] * ctx['n'] != 2", "3 / ctx['n'] + ctx['n'] > 1",    "ctx['s'] * 2 == 'x'",
        "2 * ctx['s'] == 'x'",      "ctx['a'] - ctx['b'] * ctx['c']", "ctx['n'] + ctx['s'] > 'a'",
    };
    static uint64_t words[4096];
    static char text[524288];
    struct cordon_error err = {0};
    size_t runs = 0, short_runs = 0, differ = 0;
    memset(words, 0xa5, sizeof words);
    memset(text, 'q', sizeof text);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        struct cordon_program *p = compile(sources[i]);
        size_t size = cordon_scratch_size(p), why_size = cordon_explain_size(p);
        void *mem = malloc(size), *why = malloc(why_size);
        for (unsigned form = 0; form < 64; form++) {
            struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
            for (size_t slot = 0; slot < 8; slot++) {
                unsigned how = slot < 3 ? form % 8 : form / 8;
                size_t longest = how & 1 ? 2000 : 2;
                if (how < 3)
                    cordon_ctx_big(c, slot, words, longest, how == 2);
                else if (how < 6)
                    cordon_ctx_str(c, slot, text, how == 3 ? sizeof text : longest * 90);
                else
                    cordon_ctx_int(c, slot, how == 6 ? INT64_MIN : 5);
            }
            const struct cordon_reason *reasons;
            struct cordon_value v;
            size_t count;
            int r = cordon_eval(p, c, mem, size, &v, &err), t = cordon_test(p, c, mem, size);
            runs++;
            short_runs += r == CORDON_MEMORY;
            differ +=
                (r != 0) != (t < 0) || cordon_explain(p, c, why, why_size, &reasons, &count) != t;
        }
        free(mem);
        free(why);
    }
    tap_ok(runs == 576 && short_runs == 0,
           "the size asked for is enough for values beyond the schema (%zu of %zu were short)",
           short_runs, runs);
    tap_eq_int(differ, 0, "eval, test and explain agree beyond the schema");
}

/* What a run costs is counted, not copied from the certificate. */
static void costs(void)
{
    static const struct {
        const char *source;
        unsigned steps, stack;
    } t[] = {
        {"ctx['n'] + 1 > 5", 6, 2},                      /* n 1 + 5 > return */
        {"ctx['a'] and ctx['b'] and ctx['c']", 3, 1},    /* a AND return */
        {"ctx['b'] or ctx['n'] * (1 + ctx['n'])", 3, 1}, /* b OR return */
        {"1 < ctx['n'] < 2 < ctx['n']", 6, 2},           /* 1 n < 2 < return */
        {"1 + (2 + (3 + (4 + ctx['n'])))", 10, 5},
        {"ctx['a'] or 1 + (2 + (3 + ctx['n']))", 10, 4},
        {"not ctx['a']", 3, 1},
    };
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    cordon_ctx_bool(c, 0, false);
    cordon_ctx_bool(c, 1, true);
    cordon_ctx_int(c, 5, 7);
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct cordon_program *p = compile(t[i].source);
        const struct cordon_certificate *k = cordon_certify(p);
        struct cordon_certificate m;
        int r = cordon_measure(p, c, scratch, sizeof scratch, &m);
        tap_ok(r == 0 && m.steps == t[i].steps && m.stack == t[i].stack && m.steps <= k->steps &&
                   m.stack <= k->stack,
               "%s runs %u instructions with %u values at once (%u, %u)", t[i].source, t[i].steps,
               t[i].stack, m.steps, m.stack);
    }
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
        {"ctx['x'] >= 5 and ctx['x'] <= 5", 0},
        {"ctx['x'] > 5 and ctx['x'] <= 5", CORDON_ALWAYS_FALSE},
        {"ctx['n'] >= 5 and ctx['n'] <= 5 and ctx['n'] != 5", CORDON_ALWAYS_FALSE},
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
    tap_ok(k->raises >> CORDON_ZERO_DIVISION & 1, "a divisor that is a key can be zero");
}

static void contexts(void)
{
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, schema, 0);
    struct cordon_error err;
    char json[256];
    tap_ok(cordon_ctx_conforms(c), "an empty context follows a schema without required keys");
    cordon_ctx_int(c, 5, 11);
    tap_ok(!cordon_ctx_conforms(c),
           "a context with a value outside its range does not follow its schema");
    cordon_ctx_int(c, 5, 3);
    tap_ok(cordon_ctx_conforms(c), "setting a value again within its range mends the context");
    tap_ok(!cordon_ctx_str(c, 7, "\xff", 1), "a value that is invalid UTF-8 is not taken");
    const char *text = "{\"n\": 5, \"s\": \"low\", \"other\": {\"n\": 9}}";
    tap_eq_int(cordon_ctx_json(c, text, strlen(text), json, sizeof json, &err), 0,
               "a context is read from JSON");
    tap_eq_int(
        cordon_test(compile("ctx['n'] == 5 and ctx['s'] == 'low'"), c, scratch, sizeof scratch), 1,
        "a JSON context is read at its own level only");
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
    tap_ok(good, "a schema of 150 keys is read");
}

/* Whether TEXT has whole characters only. */
static bool whole(const char *text)
{
    return utf8_valid_prefix(text, strlen(text)) == strlen(text);
}

/* Texts that do not fit, at every size: of one, two, three and four bytes a character. */
static void cuts(void)
{
    static const char letters[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
    const struct cordon_value v = {.type = CORDON_STR, .s = letters, .len = strlen(letters)};
    const struct cordon_error at = {.line = 1, .offset = 1, .end = 2, .column = 2, .end_column = 3};
    char text[700] = "{\"keys\":[\"", out[600];
    struct cordon_error err = {0};
    struct cordon_schema *wide;
    struct cordon_program *p;
    struct cordon_value ignored;
    size_t used = strlen(text);
    for (int i = 0; i < 40; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", letters);
    snprintf(text + used, sizeof text - used, "\"]}");
    if (!tap_ok(cordon_schema_read(text, strlen(text), work, sizeof work, &wide, &err) == 0,
                "a schema whose key has 400 bytes is read"))
        return;
    bool good = true;
    for (size_t size = 1; size < sizeof out; size++) {
        cordon_repr(&v, NULL, out, size);
        good = good && whole(out) && strlen(out) < size;
        cordon_json(&v, NULL, out, size);
        good = good && whole(out);
        cordon_prompt(wide, out, size);
        good = good && whole(out);
        cordon_caret(&at, letters, strlen(letters), out, size);
        good = good && whole(out);
    }
    tap_ok(good, "a text that is cut to any size has whole characters only");
    char source[500], context[500];
    size_t len;
    const char *key = cordon_schema_key(wide, 0, &len);
    snprintf(source, sizeof source, "ctx['%.*s']", (int)len, key);
    snprintf(context, sizeof context, "{\"%.*s\": []}", (int)len, key);
    struct cordon_ctx *c = cordon_ctx_init(ctx_mem, sizeof ctx_mem, wide, 0);
    int r = cordon_compile(wide, source, strlen(source), program_mem, sizeof program_mem, &p, &err);
    if (r == 0)
        r = cordon_ctx_json(c, context, strlen(context), out, sizeof out, &err);
    if (r == 0)
        r = cordon_eval(p, c, scratch, sizeof scratch, &ignored, &err);
    tap_ok(r == CORDON_TYPE_ERROR && strstr(err.message, "holds a list") && whole(err.message),
           "an error that names a key of 400 bytes has whole characters only");
}

int main(void)
{
    struct cordon_error err;
    if (!tap_ok(cordon_schema_read(schema_text, strlen(schema_text), schema_mem, sizeof schema_mem,
                                   &schema, &err) == 0,
                "the shipped schema is opened"))
        return tap_done();
    tap_eq_int(cordon_schema_read(cordon_schema_example, strlen(cordon_schema_example), work,
                                  sizeof work, &(struct cordon_schema *){NULL}, &err),
               0, "the shipped schema is read");
    memory();
    saved();
    explanations();
    beyond_schema();
    costs();
    findings();
    certificates();
    contexts();
    cuts();
    return tap_done();
}
