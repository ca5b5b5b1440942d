/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions as RubyVM::InstructionSequence#to_a writes them down: arrays of arrays, the first word of each is the
 * opcode. The layout is that of Ruby 3.1, and the interpreter is no other (interp.c). An opcode that the table does not have
 * is refused: nobody has thought about what it does. */
#include "ruby_first.h"

#include "judge_inside.h"
#include "rules.h"

#include <stdio.h>
#include <string.h>

#define MAGIC "YARVInstructionSequence/SimpleDataFormat"

/* All opcodes of Ruby 3.1 that compiled source can have. `invokebuiltin` and its kin are the interpreter's own. */
static const char opcodes[] =
    " nop getlocal setlocal getblockparam setblockparam getblockparamproxy getspecial setspecial"
    " getinstancevariable setinstancevariable getclassvariable setclassvariable getconstant "
    "setconstant getglobal"
    " setglobal putnil putself putobject putspecialobject putstring concatstrings anytostring "
    "toregexp intern"
    " newarray newarraykwsplat duparray duphash expandarray concatarray splatarray newhash "
    "newrange pop dup dupn"
    " swap topn setn adjuststack defined checkmatch checkkeyword checktype defineclass "
    "definemethod definesmethod"
    " send opt_send_without_block objtostring opt_str_freeze opt_nil_p opt_str_uminus "
    "opt_newarray_max"
    " opt_newarray_min invokesuper invokeblock leave throw jump branchif branchunless branchnil"
    " opt_getinlinecache opt_setinlinecache once opt_case_dispatch opt_plus opt_minus opt_mult "
    "opt_div opt_mod"
    " opt_eq opt_neq opt_lt opt_le opt_gt opt_ge opt_ltlt opt_and opt_or opt_aref opt_aset "
    "opt_aset_with"
    " opt_aref_with opt_length opt_size opt_empty_p opt_succ opt_not opt_regexpmatch2 getlocal_WC_0"
    " getlocal_WC_1 setlocal_WC_0 setlocal_WC_1 putobject_INT2FIX_0_ putobject_INT2FIX_1_ ";

static const char *const libraries[] = {
#define LIBRARY(name) name,
    RB_LIBRARIES(LIBRARY)
#undef LIBRARY
};

/* WORD, of LEN bytes, stands in LIST, with a blank before and behind each. */
static bool stands_in(const char *list, const char *word, size_t len)
{
    for (const char *at = list; (at = len ? strstr(at, word) : NULL); at++)
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

static const char *name_of(VALUE symbol)
{
    return SYMBOL_P(symbol) ? rb_id2name(SYM2ID(symbol)) : NULL;
}

/* ---- rules ---- */

static void find(struct rb_judge *j, const struct rb_rule *rule, enum check_sentence what,
                 const char *word)
{
    rb_judge_find(j, rule->id, rule->hint, what, word, strlen(word), j->line, 0);
}

static void method(struct rb_judge *j, const char *name, enum check_sentence what)
{
    for (const struct rb_rule *rule = rb_rules; j->ruled && name && rule->id; rule++)
        if (stands_in(rule->methods, name, strlen(name)))
            find(j, rule, what, name);
}

static void constant(struct rb_judge *j, const char *name)
{
    for (const struct rb_rule *rule = rb_rules; j->ruled && name && rule->id; rule++)
        if (stands_in(rule->constants, name, strlen(name)))
            find(j, rule, CHECK_SAY_NAME, name);
}

/* Where the interpreter looks for libraries, and what it has loaded. */
static void global(struct rb_judge *j, const char *name)
{
    static const char names[] = "$: $LOAD_PATH $-I $\" $LOADED_FEATURES $0 $PROGRAM_NAME";
    if (j->ruled && name && stands_in(names, name, strlen(name)) && strcmp(name, "$0") != 0 &&
        strcmp(name, "$PROGRAM_NAME") != 0)
        rb_judge_find(j, "rb.global.load-path", "leave the interpreter's own lists alone",
                      CHECK_SAY_NAME, name, strlen(name), j->line, 0);
}

static void use_library(struct rb_judge *j, const char *name)
{
    struct rb_judged *r = j->ret;
    for (size_t i = 0; i < r->library_count; i++)
        if (strcmp(r->libraries[i], name) == 0)
            return;
    if (r->library_count < RB_JUDGE_LIBRARIES)
        r->libraries[r->library_count++] = name;
}

/* LITERAL: the string that is pushed right before the call; else 0. */
static void require(struct rb_judge *j, VALUE literal)
{
    static const char hint[] = "of the libraries only those of docs/ruby.md are here";
    const char *name = literal ? RSTRING_PTR(literal) : "require";
    const size_t len = literal ? (size_t)RSTRING_LEN(literal) : strlen(name);
    for (size_t i = 0; literal && i < sizeof libraries / sizeof *libraries; i++)
        if (strlen(libraries[i]) == len && memcmp(libraries[i], name, len) == 0) {
            use_library(j, libraries[i]);
            return;
        }
    if (j->ruled)
        rb_judge_find(j, "rb.call.require", hint, literal ? CHECK_SAY_IMPORT : CHECK_SAY_FUNCTION,
                      name, len, j->line, 0);
}

/* What loads a library of its own when it is called. */
static void late_library(struct rb_judge *j, const char *name)
{
    if (strcmp(name, "pp") == 0 || strcmp(name, "pretty_inspect") == 0)
        use_library(j, "pp");
    else if (strncmp(name, "unicode_normal", 14) == 0)
        use_library(j, "unicode_normalize/normalize");
}

static void call(struct rb_judge *j, VALUE data, VALUE before)
{
    const char *name = name_of(rb_hash_lookup(data, ID2SYM(rb_intern("mid"))));
    if (!name)
        return; /* a block's call has none */
    late_library(j, name);
    if (strcmp(name, "require") == 0)
        require(j, before);
    else
        method(j, name, CHECK_SAY_FUNCTION);
}

/* Answers to names that nobody wrote: what is called can then not be read in the program. */
static void definition(struct rb_judge *j, const char *opcode, const char *name)
{
    if (j->method && name && strcmp(opcode, "definemethod") == 0 && strcmp(name, j->method) == 0)
        j->defines = true;
    if (j->plain && name && stands_in("method_missing const_missing", name, strlen(name)))
        rb_judge_find(j, "rb.form.missing", "define the methods that are called", CHECK_SAY_NAME,
                      name, strlen(name), j->line, 0);
}

/* ---- instructions ---- */

static void sequence(struct rb_judge *j, VALUE code);

static bool is_sequence(VALUE x)
{
    if (!RB_TYPE_P(x, T_ARRAY) || RARRAY_LEN(x) < 14)
        return false;
    VALUE magic = rb_ary_entry(x, 0);
    return RB_TYPE_P(magic, T_STRING) && strcmp(StringValueCStr(magic), MAGIC) == 0;
}

/* A literal: what a symbol in it names may be called later. */
static void literal(struct rb_judge *j, VALUE x, int depth)
{
    if (SYMBOL_P(x)) {
        const char *name = name_of(x);
        method(j, name, CHECK_SAY_REFERENCE);
        if (j->ruled && name && strcmp(name, "require") == 0)
            require(j, 0);
    } else if (RB_TYPE_P(x, T_ARRAY) && depth < 100) {
        for (long i = 0; i < RARRAY_LEN(x); i++)
            literal(j, rb_ary_entry(x, i), depth + 1);
    } else if (RB_TYPE_P(x, T_HASH) && depth < 100) {
        literal(j, rb_funcall(x, rb_intern("to_a"), 0), depth + 1);
    }
}

static void operands(struct rb_judge *j, const char *opcode, VALUE row, VALUE before)
{
    const bool symbols = strcmp(opcode, "putobject") == 0 || strcmp(opcode, "duparray") == 0 ||
                         strcmp(opcode, "duphash") == 0;
    for (long i = 1; i < RARRAY_LEN(row); i++) {
        VALUE x = rb_ary_entry(row, i);
        if (is_sequence(x))
            sequence(j, x);
        else if (symbols)
            literal(j, x, 0);
        else if (RB_TYPE_P(x, T_HASH))
            call(j, x, before);
        else if (SYMBOL_P(x) &&
                 (strcmp(opcode, "getconstant") == 0 || strcmp(opcode, "defineclass") == 0 ||
                  strcmp(opcode, "setconstant") == 0))
            constant(j, name_of(x));
        else if (SYMBOL_P(x) && strncmp(opcode, "define", 6) == 0)
            definition(j, opcode, name_of(x));
        else if (SYMBOL_P(x) && strstr(opcode, "global"))
            global(j, name_of(x));
    }
}

static void unknown(struct rb_judge *j, const char *opcode)
{
    rb_judge_find(j, "rb.form.opcode", "write it in another way", CHECK_SAY_NAME, opcode,
                  strlen(opcode), j->line, 0);
}

/* The body: lines, labels, and instructions. Behind a label the stack may hold something else than the line before it
 * pushed. */
static void body(struct rb_judge *j, VALUE rows, VALUE *ret_last)
{
    VALUE before = 0; /* a string that the instruction before pushed */
    for (long i = 0; i < RARRAY_LEN(rows); i++) {
        VALUE row = rb_ary_entry(rows, i);
        if (RB_INTEGER_TYPE_P(row)) {
            j->line = FIXNUM_P(row) && FIX2LONG(row) > 0 ? (unsigned)FIX2LONG(row) : 0;
        } else if (SYMBOL_P(row)) {
            if (strncmp(name_of(row), "label_", 6) == 0)
                before = 0;
        } else if (RB_TYPE_P(row, T_ARRAY) && RARRAY_LEN(row) > 0 &&
                   SYMBOL_P(rb_ary_entry(row, 0))) {
            const char *opcode = name_of(rb_ary_entry(row, 0));
            VALUE first = rb_ary_entry(row, 1);
            if (!stands_in(opcodes, opcode, strlen(opcode)))
                unknown(j, opcode);
            operands(j, opcode, row, before);
            before = strcmp(opcode, "putstring") == 0 && RB_TYPE_P(first, T_STRING) ? first : 0;
            if (strcmp(opcode, "leave") != 0)
                *ret_last = row;
        } else {
            unknown(j, "?");
        }
    }
}

/* Handlers of exceptions are sequences, too. */
static void handlers(struct rb_judge *j, VALUE table)
{
    for (long i = 0; RB_TYPE_P(table, T_ARRAY) && i < RARRAY_LEN(table); i++) {
        VALUE row = rb_ary_entry(table, i);
        for (long k = 0; RB_TYPE_P(row, T_ARRAY) && k < RARRAY_LEN(row); k++)
            if (is_sequence(rb_ary_entry(row, k)))
                sequence(j, rb_ary_entry(row, k));
    }
}

static VALUE whole(struct rb_judge *j, VALUE code)
{
    VALUE rows = rb_ary_entry(code, 13), last = 0;
    const unsigned line = j->line;
    if (RB_TYPE_P(rows, T_ARRAY))
        body(j, rows, &last);
    else
        unknown(j, "?");
    handlers(j, rb_ary_entry(code, 12));
    j->line = line;
    return last;
}

static void sequence(struct rb_judge *j, VALUE code)
{
    (void)whole(j, code);
}

/* `p x` has printed what it gives. */
static bool is_printed(VALUE data)
{
    const char *name =
        RB_TYPE_P(data, T_HASH) ? name_of(rb_hash_lookup(data, ID2SYM(rb_intern("mid")))) : NULL;
    return name && (strcmp(name, "p") == 0 || strcmp(name, "pp") == 0);
}

/* A program that ends in a value shows it; one that ends in a definition or an assignment does not. */
static bool makes_value(VALUE last)
{
    static const char *const not_shown[] = {"set", "def", "pop", "throw", "jump", "branch"};
    const char *opcode = last ? name_of(rb_ary_entry(last, 0)) : NULL;
    VALUE first = last ? rb_ary_entry(last, 1) : Qnil;
    for (size_t i = 0; opcode && i < sizeof not_shown / sizeof *not_shown; i++)
        if (strncmp(opcode, not_shown[i], strlen(not_shown[i])) == 0)
            return false;
    return opcode && !is_printed(first) &&
           !SYMBOL_P(first); /* a symbol alone is what `def` gives */
}

void rb_judge_code(struct rb_judge *j, unsigned long instructions)
{
    if (!is_sequence(instructions)) {
        unknown(j, "?");
        return;
    }
    j->ret->shows = makes_value(whole(j, instructions));
}
