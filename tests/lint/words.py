# SPDX-License-Identifier: Apache-2.0
"""Words that were retired do not come back: tests/lint/retired.txt says which, what to say instead, and where each may stand.
The glossary of CONTRIBUTING.md stays short and true: at most TERMS rows, one word each, and what a row names exists.

Usage: words.py SOURCE-ROOT. TAP on stdout. Code, comments, strings, documents, policies, cases and file names are read; so a name
that was replaced cannot return by a copied line. The head of the table explains its columns."""
import fnmatch
import pathlib
import re
import sys

from tap import case, done

PLACES = ("src", "tests", "docs", "man", "policies", "include", "bindings", "completions", "schemas", "scripts", "bench", "demo")
TABLE = "tests/lint/retired.txt"
TERMS = 30
SELF = {TABLE, "tests/lint/words.py"}


def parts(text):
    """[(part, token number)]: the words of a line in small letters; identifiers are taken apart at `_`, digits and capitals."""
    found = []
    for number, token in enumerate(re.findall(r"[A-Za-z0-9_]+", text)):
        pieces = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", token)
        found += [(piece.lower(), number) for piece in pieces]
    return found


class Row:
    def __init__(self, line):
        fields = [f.strip() for f in re.split(r"\s\|(?:\s|$)", line.strip() + " ")]
        if len(fields) != 3 or not fields[0] or not fields[1]:
            raise ValueError(f"it is `WORD | what to say instead | where it is allowed`: {line}")
        self.word, self.instead, allowed = fields
        self.prefix = self.word.endswith("*")
        self.wanted = [p for p, _ in parts(self.word)]
        self.one_token = "_" in self.word
        entries = allowed.split()
        self.only = [e[5:] for e in entries if e.startswith("only:")]
        self.lines = {e: re.compile(e[1:-1]) for e in entries if len(e) > 2 and e[0] == e[-1] == "/"}
        self.files = [e for e in entries if e not in self.lines and not e.startswith("only:")]
        self.used = set()
        if not self.wanted:
            raise ValueError(f"no word in {line}")

    def fits(self, part, wanted, last):
        return part == wanted or last and (part == wanted + "s" or self.prefix and part.startswith(wanted))

    def stands_in(self, words):
        n = len(self.wanted)
        for i in range(len(words) - n + 1):
            piece = words[i:i + n]
            if self.one_token and len({number for _, number in piece}) > 1:
                continue
            if all(self.fits(p, w, k == n - 1) for k, ((p, _), w) in enumerate(zip(piece, self.wanted))):
                return True
        return False

    def allows(self, path, line):
        for glob in self.files:
            if fnmatch.fnmatch(path, glob):
                self.used.add(glob)
                return True
        for entry, pattern in self.lines.items():
            if pattern.search(line):
                self.used.add(entry)
                return True
        return bool(self.only) and not any(fnmatch.fnmatch(path, glob) for glob in self.only)


def table(text):
    return [Row(line) for line in text.splitlines() if line.strip() and not line.startswith("#")]


def faults(rows, path, text):
    """What is wrong in one file: its name first, then line by line. A line is taken apart only if it has the letters of a row."""
    found = []
    whole = f"{path}\n{text}".lower()
    near = [row for row in rows if all(w in whole for w in row.wanted)]
    for number, line in enumerate([path, *text.splitlines()] if near else ()):
        small = line.lower()
        nearer = [row for row in near if all(w in small for w in row.wanted)]
        words = parts(line) if nearer else ()
        for row in nearer:
            if row.stands_in(words) and not row.allows(path, line):
                where = f"{path}:{number}" if number else f"{path} (its name)"
                found.append(f"{where}: `{row.word}` is retired; say {row.instead}")
    return found


def files(root):
    for place in PLACES:
        yield from (p for p in sorted((root / place).rglob("*")) if p.is_file() and "__pycache__" not in p.parts)
    yield from (p for p in sorted(root.iterdir()) if p.is_file() and (p.suffix in (".md", ".txt", ".build") or p.name == "Makefile"))


def glossary(text):
    """[(word, meaning)] of the table below the heading Glossary."""
    section = re.search(r"^## Glossary\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    rows = re.findall(r"^\|(.*)\|$", section[1] if section else "", re.M)[2:]  # without its head and the line below that
    return [tuple(cell.strip() for cell in row.split("|", 1)) for row in rows]


def glossary_faults(rows, retired, exists):
    """EXISTS tells whether a path, or a name of the code, is there."""
    found = [f"{len(rows)} terms; at most {TERMS}"] if len(rows) > TERMS else []
    seen = set()
    for word, *meaning in rows:
        if not re.fullmatch(r"[a-z]+", word):
            found.append(f"a row explains one word: {word!r}")
        if word in seen:
            found.append(f"{word} has two rows, and so two meanings")
        seen.add(word)
        if not meaning or len(meaning[0].split()) < 4:
            found.append(f"the meaning of {word} is missing")
            continue
        found += [f"{word}: `{row.word}` is retired" for row in retired if row.stands_in(parts(word)) and not row.only]
        found += [f"{word}: there is no {name}" for name in re.findall(r"`([a-z]\w*(?:[/_-][\w./-]*)+)`", meaning[0]) if not exists(name)]
    return found


def self_test_glossary():
    head = "# Contributing\n\n## Glossary\n\nOne word.\n\n| word | meaning |\n|---|---|\n"
    good = "| room | a folder of the source, `src/flow` |\n| slot | the right to run (`gate_slot`) |\n"
    retired = table("knock* | connect |")
    known = {"src/flow", "gate_slot"}.__contains__
    case(glossary(head + good + "\n## Next\n| a | b |\n") == [("room", "a folder of the source, `src/flow`"), ("slot", "the right to run (`gate_slot`)")],
         "the glossary is the table below its heading, and no other")
    case(not glossary_faults(glossary(head + good), retired, known), "a good glossary passes")
    letters = "abcdefghijklmnopqrstuvwxyz"
    for planted, what in (("".join(f"| term{a}{b} | one meaning of a word |\n" for a in letters for b in "ab"), f"more than {TERMS} terms"),
                          ("| room, step | a folder of the source |\n", "two words in one row"), ("| slot | a place in the queue |\n", "a second meaning"),
                          ("| lease | |\n", "no meaning"), ("| knocking | what the client does first |\n", "a retired word"),
                          ("| lease | a child that is lent, `src/lend.c` |\n", "a file that is gone"),
                          ("| lease | a child that is lent (`pool_loan`) |\n", "a type that is gone")):
        case(glossary_faults(glossary(head + good + planted), retired, known), f"a planted row fails: {what}")


def self_test():
    """The checker itself, on planted text."""
    rows = lambda: table("# a comment\nseed | what is meant | /--seed/ /fuzz/ tests/gen.c\nknock* | connect |\nflow_house | context |\n"
                         "the house | the code | \nveil | hide | only:src/*\n")
    for path, line, wanted in (
            ("docs/a.md", "as the seed has it", "seed"), ("docs/a.md", "The seeds' lists", "seed"), ("src/a.c", "static void seed_rules(void)", "seed"),
            ("src/a.c", "int theSeed;", "seed"), ("src/a.c", "#define SEED_LAYERS 1", "seed"), ("tests/seed-1.case", "print(1)", "seed"),
            ("src/a.c", "int jail_knock(void)", "knock*"), ("docs/a.md", "before knocking", "knock*"), ("src/a.c", "flow_house_new(&x)", "flow_house"),
            ("docs/a.md", "in The House", "the house"), ("src/a.c", "veil_attrs()", "veil")):
        found = faults(rows(), path, line)
        case(len(found) == 1 and f"`{wanted}` is retired" in found[0], f"a planted {wanted!r} is found: {path}: {line}", found)
    for path, line in (("docs/a.md", "run --seed 7"), ("tests/gen.c", "uint64_t seed;"), ("docs/a.md", "a fuzz target's seeds"), ("src/a.c", "exceeded seedling"),
                       ("src/a.c", "flow(house)"), ("docs/a.md", "a veil"), ("src/a.c", "house")):
        found = faults(rows(), path, line)
        case(not found, f"what is allowed or another word is left alone: {path}: {line}", *found)
    for wrong in ("seed", "seed | | docs/*", " | say | "):
        try:
            table(wrong)
            case(False, f"a wrong row is refused: {wrong}")
        except ValueError:
            case(True, f"a wrong row is refused: {wrong}")
    unused = rows()
    faults(unused, "docs/a.md", "run --seed 7")
    case(unused[0].used == {"/--seed/"}, "an entry that allows something is known from one that does not", unused[0].used)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    self_test()
    self_test_glossary()
    rows = table((root / TABLE).read_text())
    case(len(rows) > 0, f"the table of retired words has {len(rows)} rows")
    seen, code = 0, set()
    for p in files(root):
        path = str(p.relative_to(root))
        if path in SELF:
            continue
        try:
            text = p.read_bytes().decode()
        except UnicodeDecodeError:
            text = ""  # an input of a fuzz target, a picture: only its name has words
        seen += 1
        code.update(re.findall(r"[\w-]+", text) if path.startswith("src/") or p.name == "meson.build" else ())
        found = faults(rows, path, text)
        if found:
            case(False, f"{path} has no retired word", *found)
    case(seen > 500, f"{seen} files were read, and those not named above have no retired word")
    terms = glossary((root / "CONTRIBUTING.md").read_text())
    wrong = glossary_faults(terms, rows, lambda name: (root / name).exists() or name in code)
    case(terms and not wrong, f"the glossary has at most {TERMS} terms ({len(terms)}), one word and one meaning each, and what they name exists", *wrong)
    for row in rows:
        idle = [e for e in (*row.files, *row.lines) if e not in row.used]
        case(not idle, f"each entry of `{row.word}` allows something", *(f"take it out of {TABLE}: {e}" for e in idle))
    done()


main()
