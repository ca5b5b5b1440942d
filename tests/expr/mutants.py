# SPDX-License-Identifier: Apache-2.0
"""Whether the tests can fail: breaks one thing of the engine at a time and expects the differential test (or, where said,
a unit test) to notice. mutants.py BUILD ROOT. TAP on stdout; run by `make expr-mutants`, not by `make test`.

A mutant that leaves the machine code as it was is a mistake in this file, not a pass: it stands in code that this machine
does not compile, or it changes nothing."""
import pathlib
import platform
import subprocess
import sys
import tempfile

build, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
FLAGS = ["-O1", "-D_GNU_SOURCE", "-fno-strict-aliasing", f"-I{root}/src", f"-I{root}/include", f"-I{root}/tests/expr", "-w"]
drop = "(void)0;"
# file, what stands there, what is put in its place, and the unit test that must notice if it is not the differential one
MUTANTS = [
    # every instruction of the exact interpreter, removed or bent
    ("eval.c", "*top++ = p->konst[i->arg];", "*top++ = expr_none();"),
    ("eval.c", "case OP_ADD:\n        case OP_SUB:", "case OP_SUB:"),
    ("eval.c", "case OP_SUB:\n        case OP_MUL:", "case OP_MUL:"),
    ("eval.c", "case OP_MUL:\n        case OP_DIV:", "case OP_DIV:"),
    ("eval.c", "case OP_DIV:\n            top--;", "    top--;"),
    ("eval.c", "r = expr_negate(run, top - 1, &out);", "out = top[-1];"),
    ("eval.c", "top[-1] = expr_bool(!expr_truth(top - 1));", drop),
    *[("eval.c", f"        case OP_{c}:\n", "") for c in ("LT", "LE", "GT", "GE", "EQ", "NE")],
    *[("eval.c", f"        case OP_CHAIN_{c}:\n", "") for c in ("LT", "LE", "GT", "GE", "EQ", "NE")],
    ("eval.c", "if (expr_truth(top - 1))\n                top--;\n            else\n                pc = i->arg - 1;", "top--;"),
    ("eval.c", "if (expr_truth(top - 1))\n                pc = i->arg - 1;\n            else\n                top--;", "top--;"),
    # the operators
    ("compare.c", "*ret = op == CMP_NE;\n            return 0;", "*ret = false;\n            return 0;"),
    ("compare.c", "a->i <= 1LL << 53) {", "a->i <= INT64_MAX) {"),
    ("arith.c", "if (op == ARITH_DIV && y == 0)", "if (0)"),
    ("arith.c", "na != nb ? -d : d", "d"),
    ("arith.c", "if (n->i < 1 || s->len == 0)", "if (n->i < 0 || s->len == 0)"),
    ("big.c", "m += rest > half || (rest == half && (sticky || (m & 1)));", "m += rest >= half;"),
    ("big.c", "borrow -= c;", "borrow = 0;", "number"),
    ("number.c", "high = c > 0 || (c == 0 && (q & 1));", "high = false;"),
    # numbers by the C library, which obeys the locale
    ("number.c", "    char digits[KEEP + 1];\n", "    extern double strtod(const char *, char **);\n    char digits[KEEP + 1];\n    if (len < KEEP) {\n"
     "        memcpy(digits, s, len);\n        digits[len] = 0;\n        return strtod(digits, NULL);\n    }\n", "locale"),
    ("number.c", "    char digits[24];\n", "    extern int sprintf(char *, const char *, ...);\n    char digits[24];\n    if (isfinite(d))\n"
     "        return (size_t)sprintf(out, \"%.17g\", d);\n", "locale"),
    # typed code
    ("fast_run.c", "b &= (truth) | ~1ULL", "b |= (truth)"),
    ("fast_run.c", "if (__builtin_add_overflow(s->i, s[1].i, &s->i))\n        return -1;", "s->i = (int64_t)((uint64_t)s->i + (uint64_t)s[1].i);"),
    ("fast_run.c", "if (s->i > exact || s->i < -exact)\n        return -1;", drop),
    ("fast_run.c", "if (s[1].f == 0)\n        return -1;", drop),
    ("quicken.c", "bound -= x->plus;", drop),
    ("quicken.c", "op = op == CMP_LT ? CMP_LE : op == CMP_GE ? CMP_GT : op;", drop),
    ("quicken.c", "FAST_AND, false);", "FAST_AND, b.lazy != L_NUMBER);"),  # a bug the fuzzer found once
    ("context.c", "bool kind = v.kind == k->kind && ", "bool kind = true && "),
    # lexer and parser
    ("parse.c", "if (ps->depth && ps->stack[ps->depth - 1].kind > P_NOT)", "if (0)"),
    ("parse.c", "if (last->op == OP_CONST && p->count > ps->barrier) {", "if (last->op == OP_CONST) {"),
    ("lex_number.c", "if (lx->s[t->start] == '0')", "if (0)"),
    ("lex_string.c", "out[n++] = '\\n';", "out[n++] = '\\r';"),
    ("lex_string.c", "n < 3 && at + n < end", "n < 2 && at + n < end"),
    ("json.c", "*ret = expr_from_limbs(limb, count, neg);", "*ret = expr_from_limbs(limb, count, false);"),
    # what surrounds it
    ("batch.c", "b->bad[w] |= ~c->valid[first / 64 + w];", drop),
    ("batch.c", "MARK(s[r].f == 0)", ""),
    ("batch.c", "MARK(__builtin_mul_overflow(t[r].i, s[r].i, &t[r].i))", "EACH t[r].i *= s[r].i;"),
    ("batch.c", "join(bit[-1], *bit, op == FAST_AND ? JOIN_AND : JOIN_OR, words);", "join(bit[-1], *bit, JOIN_OR, words);"),
    ("verify.c", "raise(k, CORDON_ZERO_DIVISION);", drop),
    ("verify.c", ".steps = p->count,", ".steps = p->count - 1,"),
    ("verify.c", "k.c->stack = highest;", "k.c->stack = highest - (highest > 2);"),
    ("verify.c", "sum += i->op == OP_SUB ? ints : quotient;", drop),
    ("verify.c", "                       ? ints\n                       : text;", "                       ? ints\n                       : ints;"),
    ("eval.c", "steps++;", drop),
    ("eval.c", "highest = top > highest ? top : highest;", drop),
    ("eval.c", "run->height = (uint32_t)(top - run->stack) - 1;", "run->height = 0;"),
    ("batch.c", "b->k->greatest((const uint8_t *)c->data + first, words) < c->dict_count", "1"),
    ("batch.c", "pc += text != JOIN_PUSH;", drop),
    ("explain.c", "*ret_count = shrink(&x, root, todo, reasons, *ret_count);", drop, "expr"),
    ("verify.c", "(uint64_t)big + 1);", "(uint64_t)big);"),
    ("domain.c", "v.can_false = v.can_false || op != CMP_NE;", drop, "expr"),
    ("domain.c", "d->lo_open = open;", "d->lo_open = true;", "expr"),
    ("explain.c", "n->use_right = r->truth == stop && r->cost < l->cost;", "n->use_right = false;", "expr"),
    ("explain.c", "n->use_left = r->truth != stop;", "n->use_left = false;", "expr"),
    ("save.c", "if (get_int(&r, 4) != sum)", "if (0)", "expr"),
]
# Kernels are compiled for one architecture each; the processor must also have what a set of them needs.
KERNELS = {
    "aarch64": [("asimd", "kernels_neon.c", "vcgtq_f64, 0)", "vcgeq_f64, 0)", "batch")],
    "x86_64": [("sse2", "kernels_x86.c", "_mm_cmpgt_pd", "_mm_cmpge_pd", "batch"),
               ("avx2", "kernels_x86.c", "AVXF(_CMP_GT_OQ", "AVXF(_CMP_GE_OQ", "batch"),
               ("avx512bw", "kernels_x86.c", "EIGHTF(_CMP_GT_OQ", "EIGHTF(_CMP_GE_OQ", "batch")],
}
processor = set(next(line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                     if line.lower().startswith(("flags", "features"))).split())
MUTANTS += [m for feature, *m in KERNELS[platform.machine()] if feature in processor]
for feature, name, *_ in KERNELS[platform.machine()]:
    if feature not in processor:
        print(f"# {name}: this processor has no {feature}, so those kernels are compiled and never entered")


def compiled(text, tmp):
    """The machine code of a source, or why there is none. The name in it is always the same."""
    (tmp / "mutant.c").write_text(text)
    made = subprocess.run(["gcc", *FLAGS, "-c", str(tmp / "mutant.c"), "-o", str(tmp / "mutant.o")], capture_output=True, text=True)
    return (tmp / "mutant.o").read_bytes() if made.returncode == 0 else made.stderr[:300]


count = failures = 0
with tempfile.TemporaryDirectory() as tmp:
    tmp = pathlib.Path(tmp)
    for name, old, new, *unit in MUTANTS:
        count += 1
        text = (root / "src/expr" / name).read_text()
        what = f"{name}: {old.strip().splitlines()[0][:70]}"
        if text.count(old) < 1:
            failures += 1
            print(f"not ok {count} - {what} (is no longer there)")
            continue
        if compiled(text, tmp) == compiled(text.replace(old, new, 1), tmp):
            failures += 1
            print(f"not ok {count} - {what} (changes no machine code on {platform.machine()})")
            continue
        prog = tmp / "prog"
        main = [f"{root}/src/expr/test_{unit[0]}.c"] if unit else [f"{root}/tests/expr/diff_driver.c", f"{root}/tests/expr/gen.c"]
        cmd = ["gcc", *FLAGS, *main, str(tmp / "mutant.o"), f"{build}/src/expr/libexpr.a", f"{build}/src/base/libbase.a", "-lm", "-o", str(prog)]
        made = subprocess.run(cmd, capture_output=True, text=True)
        if made.returncode:
            failures += 1
            print(f"not ok {count} - {what} (does not build)\n# {made.stderr[:300]}")
            continue
        run = [str(prog)] if unit else [sys.executable, f"{root}/tests/expr/diff.py", str(prog), "--count", "40000", "--seed", "5"]
        try:
            noticed = subprocess.run(run, capture_output=True, timeout=300).returncode != 0
        except subprocess.TimeoutExpired:
            noticed = True
        failures += not noticed
        print(f"{'ok' if noticed else 'not ok'} {count} - noticed: {what}", flush=True)
print(f"1..{count}")
sys.exit(failures > 0)
