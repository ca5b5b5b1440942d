/* SPDX-License-Identifier: Apache-2.0 */
/* A refusal names what a walk of CPython's tree from the outside in would meet first, so `ctx.get('k')` is a Call, not
 * an Attribute. Without a tree the same name is found by reading on to the last trailer of the
 * operand. All of this runs only once a refusal is certain, each token at most once. */
#include "expr/refuse.h"

#include <stdio.h>
#include <string.h>

static void hint(struct lex *lx, const char *text)
{
    if (lx->err && text)
        snprintf(lx->err->hint, sizeof lx->err->hint, "%s", text);
}

int refuse_node(struct lex *lx, const char *node, uint32_t start, uint32_t end, const char *text)
{
    int r =
        expr_fail(lx->err, CORDON_UNSAFE,
                  "Disallowed AST node type: %s. Only comparisons, boolean ops, and ctx subscripts "
                  "are allowed.",
                  node);
    expr_place(lx->err, lx->s, lx->len, start, end);
    hint(lx, text);
    lx->disallowed = true;
    return r;
}

static int refuse_op(struct lex *lx, const char *what, const char *name, const struct lex_token *t,
                     const char *text)
{
    int r = expr_fail(lx->err, CORDON_UNSAFE, "Disallowed %s operator: %s", what, name);
    expr_place(lx->err, lx->s, lx->len, t->start, t->end);
    hint(lx, text);
    lx->disallowed = true;
    return r;
}

int refuse_constant(struct lex *lx, const struct lex_token *t)
{
    if (strcmp(t->what, "JoinedStr") == 0)
        return refuse_node(lx, t->what, t->start, t->end, "write a plain string");
    int r = expr_fail(lx->err, CORDON_UNSAFE, "Disallowed constant type: %s", t->what);
    expr_place(lx->err, lx->s, lx->len, t->start, t->end);
    hint(lx, "constants are int, float, str, bool and None");
    lx->disallowed = true;
    return r;
}

int refuse_key(struct lex *lx, const struct cordon_schema *s, const struct lex_token *t,
               const struct expr_value *key)
{
    lx->disallowed = true;
    if (!lx->err)
        return CORDON_UNSAFE;
    char text[CORDON_MESSAGE_MAX];
    struct expr_text m = {.out = text, .size = sizeof text};
    expr_text_str(&m, "Disallowed context key: ");
    if (key->kind == K_STR && key->len <= 256)
        expr_text_repr(&m, key->s, key->len);
    else if (key->kind == K_STR)
        expr_text_str(&m, "a string of more than 256 bytes");
    else
        expr_text_add(&m, lx->s + t->start, t->end - t->start < 64 ? t->end - t->start : 64);
    expr_text_str(&m, ". Allowed keys: [");
    for (uint32_t i = 0; i < s->count && m.len < sizeof text; i++) {
        if (i)
            expr_text_str(&m, ", ");
        expr_text_repr(&m, s->keys[i].name, s->keys[i].len);
    }
    expr_text_str(&m, "]");
    if (expr_text_end(&m) >= sizeof text) {
        size_t len = strlen(text), cut = expr_text_clip(text, len, len - 5);
        snprintf(text + cut, sizeof text - cut, "...]");
    }
    expr_fail(lx->err, CORDON_UNSAFE, "%s", text);
    expr_place(lx->err, lx->s, lx->len, t->start, t->end);
    int near =
        key->kind == K_STR ? expr_nearest(key->s, key->len, s->count, expr_schema_get_key, s) : -1;
    if (near >= 0) {
        struct expr_text h = {.out = lx->err->hint, .size = sizeof lx->err->hint};
        expr_text_str(&h, "did you mean ");
        expr_text_repr(&h, s->keys[near].name, s->keys[near].len);
        expr_text_str(&h, "?");
        expr_text_end(&h);
    }
    return CORDON_UNSAFE;
}

/* Reads to the bracket that closes the one before lx->at. Tells whether `for` and `:` and `,` stood
 * on its own level. False if the text ends or does not lex. */
static bool to_closing(struct lex *lx, bool *ret_for, bool *ret_colon, uint32_t *ret_end)
{
    unsigned depth = 1;
    struct lex_token t;
    struct cordon_error *keep = lx->err;
    *ret_for = *ret_colon = false;
    lx->err = NULL;
    lx->depth++;
    while (lex_next(lx, &t) == 0 && t.kind != T_END) {
        *ret_end = t.end;
        if (t.kind == T_OPEN || t.kind == T_OPEN_SQUARE || t.kind == T_OPEN_CURLY)
            depth++;
        if (t.kind == T_CLOSE || t.kind == T_CLOSE_SQUARE || t.kind == T_CLOSE_CURLY)
            if (--depth == 0) {
                lx->err = keep;
                lx->depth--;
                return true;
            }
        *ret_for = *ret_for || (depth == 1 && t.kind == T_FOR);
        *ret_colon = *ret_colon || (depth == 1 && t.kind == T_COLON);
    }
    lx->err = keep;
    lx->depth--;
    return false;
}

/* The next token without a word about what is wrong with it; false if there is none. */
static bool next_quietly(struct lex *lx, struct lex_token *ret)
{
    struct cordon_error *keep = lx->err;
    lx->err = NULL;
    int r = lex_next(lx, ret);
    lx->err = keep;
    return r == 0 && ret->kind != T_END;
}

/* The node that an operand becomes by what follows it. */
struct outer {
    const char *node, *hint;
    uint32_t end;
};

/* Reads the trailer that T begins and all that follow it; T is then the token behind them, if there
 * is one (false: there is none). The last of them is the outer node. */
static bool read_trailers(struct lex *lx, struct lex_token *t, struct outer *ret)
{
    bool a, b;
    while (refuse_is_trailer(t->kind)) {
        ret->end = t->end;
        if (t->kind == T_OPEN) {
            ret->node = "Call";
            ret->hint = "function and method calls are not allowed";
            if (!to_closing(lx, &a, &b, &ret->end))
                return false;
        } else if (t->kind == T_OPEN_SQUARE) {
            ret->node = "Subscript";
            ret->hint = "only ctx['key'] can be subscripted, once";
            if (!to_closing(lx, &a, &b, &ret->end))
                return false;
        } else {
            ret->node = "Attribute";
            ret->hint = "attributes are not allowed";
            if (!next_quietly(lx, t) || t->kind != T_NAME)
                return false;
            ret->end = t->end;
        }
        if (!next_quietly(lx, t))
            return false;
    }
    return true;
}

int refuse_trailer(struct lex *lx, uint32_t start, const struct lex_token *next)
{
    struct lex_token t = *next;
    struct outer o = {.end = t.end};
    read_trailers(lx, &t, &o);
    return refuse_node(lx, o.node, start, o.end, o.hint);
}

/* What stands directly inside one pair of parentheses. */
struct inside {
    uint32_t start;
    bool loop, comma, yields, arguments; /* arguments: of a lambda, whose commas are its own */
};

static void look_inside(struct inside *in, const struct lex_token *t)
{
    if (t->kind == T_LAMBDA)
        in->arguments = true;
    else if (t->kind == T_COLON)
        in->arguments = false;
    in->loop = in->loop || t->kind == T_FOR;
    in->yields = in->yields || t->kind == T_YIELD;
    in->comma = in->comma || (t->kind == T_COMMA && !in->arguments);
}

void refuse_enclosing(struct lex *from, const uint32_t *open, uint32_t count)
{
    struct lex lx = *from;
    struct inside level[CORDON_NESTING_MAX] = {0};
    struct lex_token t;
    struct outer found = {0};
    uint32_t depth = 0, start = 0;
    lx.at = open[0];
    lx.depth = 1; /* line ends are blanks wherever this looks */
    bool more = next_quietly(&lx, &t);
    while (more) {
        bool closes = t.kind == T_CLOSE || t.kind == T_CLOSE_SQUARE || t.kind == T_CLOSE_CURLY;
        if (t.kind == T_OPEN || t.kind == T_OPEN_SQUARE || t.kind == T_OPEN_CURLY) {
            if (depth == CORDON_NESTING_MAX)
                return;
            level[depth++] = (struct inside){.start = t.start};
        } else if (!closes) {
            look_inside(&level[depth - 1], &t);
        }
        uint32_t end = t.end;
        more = next_quietly(&lx, &t);
        if (!closes)
            continue;
        struct inside *in = &level[--depth];
        if (depth < count && in->start == open[depth]) { /* one of those around the refused */
            struct outer o = {.end = end};
            if (in->loop)
                o = (struct outer){"GeneratorExp", "there are no loops", end};
            else if (in->comma && !in->yields)
                o = (struct outer){"Tuple", "a condition has one value", end};
            if (more)
                more = read_trailers(&lx, &t, &o);
            if (o.node) {
                found = o;
                start = in->start;
            }
        }
        if (depth == 0)
            break;
    }
    if (depth == 0 && found.node)
        refuse_node(from, found.node, start, found.end, found.hint);
}

int refuse_name(struct lex *lx, const struct lex_token *name, const struct lex_token *next)
{
    static const struct {
        const char *name, *hint;
    } known[] = {
        {"true", "write True"}, {"false", "write False"},
        {"TRUE", "write True"}, {"FALSE", "write False"},
        {"null", "write None"}, {"nil", "write None"},
        {"NULL", "write None"}, {"undefined", "write None"},
        {"AND", "write and"},   {"OR", "write or"},
        {"NOT", "write not"},   {"ctx", "ctx takes one key: ctx['key']"},
    };
    if (refuse_is_trailer(next->kind))
        return refuse_trailer(lx, name->start, next);
    if (next->kind == T_WALRUS)
        return refuse_node(lx, "NamedExpr", name->start, next->end, "nothing can be assigned");
    uint32_t n = name->end - name->start;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == n && memcmp(known[i].name, lx->s + name->start, n) == 0)
            return refuse_node(lx, "Name", name->start, name->end, known[i].hint);
    char text[128];
    snprintf(text, sizeof text, "there are no variables; write ctx['%.*s'] if it is a key",
             (int)(n < 60 ? n : 60), lx->s + name->start);
    return refuse_node(lx, "Name", name->start, name->end, text);
}

/* Whether a trailer follows what was just read; then that is the outer node, and NEXT is its token.
 */
static bool trailer_follows(struct lex *lx, struct lex_token *next)
{
    struct lex at = *lx;
    if (next_quietly(lx, next) && refuse_is_trailer(next->kind))
        return true;
    *lx = at;
    return false;
}

/* T stands where WHAT belongs; its text may be a string, and so anything. */
static int misplaced(struct lex *lx, const struct lex_token *t, const char *what)
{
    char text[256];
    struct expr_text quote = {.out = text, .size = sizeof text};
    expr_text_repr(&quote, lx->s + t->start,
                   expr_text_clip(lx->s + t->start, t->end - t->start, 20));
    expr_text_end(&quote);
    return lex_fail(lx, t->start, t->end, "%s where %s is missing", text, what);
}

int refuse_operand(struct lex *lx, const struct lex_token *t)
{
    bool has_for, has_colon;
    uint32_t end = t->end;
    struct lex_token next;
    switch (t->kind) {
    case T_FOREIGN_VALUE:
        if (trailer_follows(lx, &next))
            return refuse_trailer(lx, t->start, &next);
        return refuse_constant(lx, t);
    case T_ELLIPSIS: {
        struct lex_token e = *t;
        e.what = "ellipsis";
        return refuse_constant(lx, &e);
    }
    case T_PLUS:
        return refuse_op(lx, "unary", "UAdd", t, "leave the + away");
    case T_TILDE:
        return refuse_op(lx, "unary", "Invert", t, NULL);
    case T_OPEN_SQUARE:
        if (to_closing(lx, &has_for, &has_colon, &end) && trailer_follows(lx, &next))
            return refuse_trailer(lx, t->start, &next);
        return refuse_node(lx, has_for ? "ListComp" : "List", t->start, end,
                           "there are no lists; compare with == and join with or");
    case T_OPEN_CURLY: {
        struct lex probe = *lx;
        struct lex_token first = *t;
        probe.err = NULL;
        probe.depth++;
        bool empty =
            lex_next(&probe, &first) == 0 && (first.kind == T_CLOSE_CURLY || first.kind == T_POWER);
        if (to_closing(lx, &has_for, &has_colon, &end) && trailer_follows(lx, &next))
            return refuse_trailer(lx, t->start, &next);
        const char *node =
            has_for ? (has_colon ? "DictComp" : "SetComp") : (has_colon || empty ? "Dict" : "Set");
        return refuse_node(lx, node, t->start, end, "there are no sets or dictionaries");
    }
    case T_STAR:
        return refuse_node(lx, "Starred", t->start, t->end, NULL);
    case T_LAMBDA:
        return refuse_node(lx, "Lambda", t->start, t->end, "there are no functions");
    case T_AWAIT:
        return refuse_node(lx, "Await", t->start, t->end, NULL);
    case T_YIELD:
        return refuse_node(lx, "Yield", t->start, t->end, NULL);
    case T_END:
        return lex_fail(lx, t->start, t->end, "the expression ends where a value is missing");
    case T_FOREIGN_OP:
        lex_fail(lx, t->start, t->end, "'%.*s' is no operator", (int)(t->end - t->start),
                 lx->s + t->start);
        hint(lx, lx->s[t->start] == '!' ? "write not" : NULL);
        return CORDON_UNSAFE;
    case T_KEYWORD:
        lex_fail(lx, t->start, t->end, "'%.*s' begins a statement; a condition is one expression",
                 (int)(t->end - t->start), lx->s + t->start);
        return CORDON_UNSAFE;
    default:
        return misplaced(lx, t, "a value");
    }
}

int refuse_operator(struct lex *lx, const struct lex_token *t, unsigned parens)
{
    static const struct {
        enum lex_kind kind;
        const char *what, *name, *hint;
    } known[] = {
        {T_POWER, "binary", "Pow", "write the product"},
        {T_FLOORDIV, "binary", "FloorDiv", "/ is the only division"},
        {T_PERCENT, "binary", "Mod", NULL},
        {T_AT, "binary", "MatMult", NULL},
        {T_LSHIFT, "binary", "LShift", NULL},
        {T_RSHIFT, "binary", "RShift", NULL},
        {T_AMPERSAND, "binary", "BitAnd", "write and"},
        {T_BAR, "binary", "BitOr", "write or"},
        {T_CARET, "binary", "BitXor", NULL},
        {T_IN, "comparison", "In", "compare with == and join with or"},
    };
    struct lex_token next;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].kind == t->kind)
            return refuse_op(lx, known[i].what, known[i].name, t, known[i].hint);
    struct lex probe = *lx;
    probe.err = NULL;
    bool more = lex_next(&probe, &next) == 0;
    switch (t->kind) {
    case T_NOT:
        if (more && next.kind == T_IN)
            return refuse_op(lx, "comparison", "NotIn", t, "compare with != and join with and");
        break;
    case T_IS:
        if (more && next.kind == T_NOT)
            return refuse_op(lx, "comparison", "IsNot", t, "write !=");
        return refuse_op(lx, "comparison", "Is", t, "write ==");
    case T_IF:
        return refuse_node(lx, "IfExp", t->start, t->end, "write it with and, or, not");
    case T_FOR:
        if (parens)
            return refuse_node(lx, "GeneratorExp", t->start, t->end, "there are no loops");
        break;
    case T_COMMA:
        return refuse_node(lx, "Tuple", t->start, t->end, "a condition has one value");
    case T_ASSIGN:
    case T_FOREIGN_OP: {
        uint32_t n = t->end - t->start;
        const char *s = lx->s + t->start;
        lex_fail(lx, t->start, t->end, "'%.*s' is no operator of a condition", (int)n, s);
        hint(lx, *s == '='                ? "write == to compare"
                 : *s == '&'              ? "write and"
                 : *s == '|'              ? "write or"
                 : *s == '!' || *s == '<' ? "write !="
                                          : NULL);
        return CORDON_UNSAFE;
    }
    case T_CLOSE:
        return lex_fail(lx, t->start, t->end, "unmatched ')'");
    case T_END:
        return lex_fail(lx, t->start, t->end, "'(' was never closed");
    default:
        break;
    }
    return misplaced(lx, t, "an operator");
}
