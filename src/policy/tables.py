# SPDX-License-Identifier: Apache-2.0
"""policies/*.yaml -> C tables, at build time: the profiles that are compiled in.

usage: tables.py PROFILE_H OUT YAML...   (the first YAML is the default profile)

The kinds and constructs are read from profile.h, so that there is one list of them. A line that says too
little, says it twice or means nothing fails the build with its place."""
import re
import sys

import yaml

header, out, *files = sys.argv[1:]
text = open(header, encoding="utf-8").read()


def macro(name):
    body = re.search(r"#define %s\(X\)(.*?)\n\n" % name, text, re.S).group(1)
    return {word: const for const, word in re.findall(r'X\((\w+),\s*(?:\\\n\s*)?"([^"]+)"', body)}


KINDS, CONSTRUCTS = macro("POLICY_RULE_KINDS"), macro("POLICY_CONSTRUCTS")
MODES = {"listed": "POLICY_IMPORTS_LISTED", "any": "POLICY_IMPORTS_ANY"}
REFUSES = {k for k in KINDS if k.endswith("deny") or k in ("descriptor-method", "builtin-remove")}
DOTTED = {"import-allow", "module-deny", "facade", "preload"}
MEMBER = {"member-allow", "member-deny"}
KEYS = {"profile": str, "summary": str, "imports": str, "guards": bool, "threads": bool, "compute_only": bool,
        "files": bool, "source_max": int, "rules": list}


class Lines(yaml.SafeLoader):
    """Mappings that know their line, and refuse a key that comes twice."""


def mapping(loader, node):
    keys = [k.value for k, _ in node.value]
    for k in keys:
        if keys.count(k) > 1:
            raise SystemExit(f"{node.start_mark.name}:{node.start_mark.line + 1}: {k!r} comes twice")
    found = loader.construct_mapping(node, deep=True)
    found["__line__"] = node.start_mark.line + 1
    return found


Lines.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)


def c_string(s):
    escaped = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else "\\%03o" % b for b in s.encode())
    return f'"{escaped}"'


def check_rule(place, rule, seen, ids):
    def need(good, what):
        if not good:
            raise SystemExit(f"{place}:{rule['__line__']}: {what}")

    need(set(rule) - {"__line__"} == {"kind", "name", "id", "reason", "hint"}, "a rule has kind, name, id, reason and hint")
    need(all(isinstance(rule[k], str) for k in ("kind", "name", "id", "reason", "hint")), "a rule's values are strings")
    kind, name = rule["kind"], rule["name"]
    need(kind in KINDS, f"no such kind: {kind}")
    need(name and rule["id"] and rule["reason"], "name, id and reason say something")
    need(kind not in REFUSES or rule["hint"], "a refusal has a hint: what to write instead")
    need((kind, name) not in seen, f"{kind} {name} comes twice")
    need(rule["id"] not in ids, f"the id {rule['id']} comes twice")
    need(re.fullmatch(r"[a-z]+(\.[\w-]+)+", rule["id"]), f"an id is words with dots, the language first: {rule['id']}")
    need("*" not in name[:-1], "a pattern has one * and that is its end")
    need("*" not in name or kind not in DOTTED | MEMBER | {"construct-deny"}, f"{kind} takes no pattern")
    need(kind not in DOTTED or re.fullmatch(r"\w+(\.\w+)*", name), f"no module name: {name}")
    need(kind not in MEMBER or re.fullmatch(r"\w+(\.\w+)+", name), f"no module.member: {name}")
    need(kind != "construct-deny" or name in CONSTRUCTS, f"no such construct: {name}")
    need(all(len(rule[k].encode()) < 1024 for k in rule if k != "__line__"), "a text is shorter than 1024 bytes (LIMIT_HINT)")
    seen.add((kind, name))
    ids.add(rule["id"])


tables, names = [], []
for path in files:
    with open(path, encoding="utf-8") as f:
        profile = yaml.load(f, Loader=Lines)
    profile.pop("__line__")
    if set(profile) != set(KEYS) or not all(type(profile[k]) is t for k, t in KEYS.items()):
        raise SystemExit(f"{path}: a profile has exactly {', '.join(KEYS)}")
    if profile["imports"] not in MODES:
        raise SystemExit(f"{path}: imports is {' or '.join(MODES)}")
    if not 1 <= profile["source_max"] <= 64 << 20:
        raise SystemExit(f"{path}: source_max is 1 byte to 64 MiB")
    name, seen, ids = profile["profile"], set(), set()
    if name in names or not re.fullmatch(r"[a-z]\w*", name):
        raise SystemExit(f"{path}: {name!r} is no name for a profile, or comes twice")
    rows, blob, places = [], [], {}

    def place(text):
        """Where a text stands among all of this profile's; equal ones stand there once."""
        if text not in places:
            places[text] = sum(len(t.encode()) + 1 for t in blob)
            blob.append(text)
        return places[text]

    for rule in profile["rules"]:
        check_rule(path, rule, seen, ids)
        where = ", ".join(str(place(rule[k])) for k in ("name", "id", "reason", "hint"))
        rows.append(f"    {{POLICY_{KINDS[rule['kind']]}, {where}}}, /* {rule['name'].replace('*/', '* /')} */\n")
    names.append(name)
    flag = {True: "true", False: "false"}
    text_rows = "".join(f'    {c_string(t)[:-1]}\\0"\n' for t in blob) or '    ""\n'
    # a table of nothing is no C: the count says that it is empty
    tables.append(f"static const char text_{name}[] =\n{text_rows.rstrip()};\n"
                  f"static const struct policy_packed_rule packed_{name}[] = {{\n{''.join(rows) or '    {0},' + chr(10)}}};\n"
                  f"static struct policy_rule rules_{name}[{max(len(rows), 1)}];\n"
                  f"static struct policy_profile profile_{name} = {{\n"
                  f"    .name = \"{name}\",\n    .summary = {c_string(profile['summary'])},\n"
                  f"    .imports = {MODES[profile['imports']]},\n    .guards = {flag[profile['guards']]},\n"
                  f"    .threads = {flag[profile['threads']]},\n    .compute_only = {flag[profile['compute_only']]},\n    .files = {flag[profile['files']]},\n    .packages = {flag[not profile['guards']]},\n    .source_max = {profile['source_max']},\n"
                  f"    .rule_count = {len(rows)},\n}};\n")

with open(out, "w", encoding="ascii") as f:
    f.write("/* Made by src/policy/tables.py of policies/: edit those. */\n#include \"policy/profile.h\"\n\n")
    f.write("\n".join(tables))
    f.write("\nconst struct policy_packed_profile policy_packed_profiles[] = {\n")
    f.writelines(f"    {{&profile_{n}, rules_{n}, packed_{n}, text_{n}}},\n" for n in names)
    f.write("    {0},\n};\n")
