# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/policy.md, made of keys.inc and policies/default.yaml.

usage: reference.py KEYS_INC DEFAULT_YAML PROFILE_H DOCS_POLICY_MD [--write]

Without --write it is a test: TAP, one case a section; a table that is not what the keys say fails. A table begins
with the line <!-- keys: SECTION --> and goes to the next empty line."""
import re
import sys

import yaml

keys_inc, default, profile_h, doc, *write = sys.argv[1:]
text = re.sub(r"/\*.*?\*/", "", open(keys_inc, encoding="utf-8").read(), flags=re.S)
rows = re.findall(r'^KEY\((\w+), "([^"]+)", ([\w.]+), (\w+), (\w+), "([^"]*)", "([^"]*)"\)$', text, re.M)
with open(default, encoding="utf-8") as f:
    policy = yaml.load(f, Loader=yaml.BaseLoader)
TYPES = {"COUNT": "number", "MILLIS": "duration", "BYTES": "size", "BOOL": "`true`, `false`", "NAME": "name", "FILE": "path"}


def value_of(path):
    at = policy
    for part in path.split("."):
        at = at[part]
    return "[%s]" % ", ".join(at) if isinstance(at, list) else at or '""'


def table(section):
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for kind, path, _, _, _, words, meaning in rows:
        head = path.split(".")[0] if "." in path else ""
        if head != section:
            continue
        listed = ", ".join(f"`{w}`" for w in words.split())
        value = TYPES.get(kind) or (listed if kind == "ENUM" else "list of " + (listed or "words"))
        lines.append(f"| `{path}` | {value} | `{value_of(path)}` | {meaning} |")
    return "\n".join(lines)


page = open(doc, encoding="utf-8").read()
sections = list(dict.fromkeys(path.split(".")[0] if "." in path else "" for _, path, *_ in rows))
count = failures = 0
for section in sections:
    mark = f"<!-- keys: {section or 'top'} -->\n"
    wanted = mark + table(section) + "\n\n"
    found = re.search(re.escape(mark) + r".*?\n\n", page, re.S)
    if write and found:
        page = page.replace(found.group(0), wanted)
    count += 1
    good = bool(found) and (bool(write) or found.group(0) == wanted)
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - docs/policy.md has the keys of {section or 'the top'}")
    if not good:
        print(f"# run: src/policy/reference.py src/policy/keys.inc policies/default.yaml src/policy/profile.h docs/policy.md --write")

def case(good, name, *details):
    global count, failures
    count += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for d in details if not good else ():
        print("#", d)


header = open(profile_h, encoding="utf-8").read()
for macro, what in (("POLICY_RULE_KINDS", "kind of rule"), ("POLICY_CONSTRUCTS", "construct")):
    body = re.search(r"#define %s\(X\)(.*?)\n\n" % macro, header, re.S).group(1)
    for word in re.findall(r'X\(\w+,\s*(?:\\\n\s*)?"([^"]+)"', body):
        case(f"`{word}`" in page, f"docs/policy.md has the {what} {word}")
for word in ("roles", "tools", "naming", "profiles"):
    case(f"### {word}\n" in page, f"docs/policy.md has a section on {word}")
if write:
    open(doc, "w", encoding="utf-8").write(page)
print(f"1..{count}")
sys.exit(failures > 0)
