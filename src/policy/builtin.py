# SPDX-License-Identifier: Apache-2.0
"""policies/default.yaml + keys.inc -> the built-in policy as a C table, at build time.

usage: builtin.py KEYS_INC DEFAULT_YAML OUT

Every key has a value and every value a key, or the build fails with what is missing. Bounds are for the C side:
test_policy.c reads the same file through the reader that operators' files go through, and compares."""
import re
import sys

import yaml

keys_inc, default, out = sys.argv[1:]


def keys():
    text = re.sub(r"/\*.*?\*/", "", open(keys_inc, encoding="utf-8").read(), flags=re.S)
    rows = re.findall(r'^KEY\((\w+), "([^"]+)", ([\w.]+), (\w+), (\w+), "([^"]*)", "([^"]*)"\)$', text, re.M)
    if len(rows) != text.count("KEY("):
        raise SystemExit(f"{keys_inc}: a row that is not KEY(type, \"path\", field, least, most, \"words\", \"what\")")
    return rows


class Texts(yaml.BaseLoader):
    """Every scalar as the text that stands there: types are the keys' business."""


def number(text, factors, path):
    m = re.fullmatch(r"(\d+)([a-z]*)", text)
    if not m or m.group(2) not in factors:
        raise SystemExit(f"{default}: {path}: {text!r}")
    return int(m.group(1)) * factors[m.group(2)]


UNITS = {"COUNT": {"": 1}, "MILLIS": {"ms": 1, "s": 1000, "m": 60000, "h": 3600000},
         "BYTES": {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}}
RISKS = ["low", "medium", "high", "critical"]


def c_string(s):
    return '"%s"' % "".join(chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else "\\%03o" % b for b in s.encode())


def words(items):
    """A list of words as an initialiser; the array is a compound literal of static life."""
    if not items:
        return "{NULL, 0}"
    return "{(const char *const[]){%s, NULL}, %d}" % (", ".join(map(c_string, items)), len(items))


with open(default, encoding="utf-8") as f:
    policy = yaml.load(f, Loader=Texts)

lines = []
for kind, path, field, least, most, allowed, doc in keys():
    at = policy
    for part in path.split("."):
        if not isinstance(at, dict) or part not in at:
            raise SystemExit(f"{default}: {path} is missing")
        holder, at = at, at[part]
    del holder[part]
    if kind in UNITS:
        value = f"{number(at, UNITS[kind], path)}ULL"
    elif kind == "BOOL" and at in ("true", "false"):
        value = at
    elif kind == "ENUM" and at in allowed.split():
        value = allowed.split().index(at)
    elif kind in ("NAME", "FILE") and isinstance(at, str):
        value = c_string(at)
    elif kind == "WORDS" and isinstance(at, list) and (not allowed or set(at) <= set(allowed.split())):
        value = words(at)
    else:
        raise SystemExit(f"{default}: {path}: {at!r} is no {kind}")
    lines.append(f"    .{field} = {value},\n")

naming = policy.pop("naming")
roles = policy.pop("roles")
tools = policy.pop("tools")
if policy["arena"].pop("judges") != []:
    raise SystemExit(f"{default}: arena.judges: the built-in policy has none")
if policy["proxy"].pop("clients") != []:
    raise SystemExit(f"{default}: proxy.clients: the built-in policy has none")
left = [k if not policy[k] else f"{k}.{sub}" for k in policy for sub in policy[k] or [""] if policy[k] != {}]
if left:
    raise SystemExit(f"{default}: no such key: {', '.join(left)}")

role_rows = "".join(f"    {{.name = {c_string(name)}, .tools = {words(role['tools'])}}},\n" for name, role in roles.items())
tool_rows = "".join(f"    {{.name = {c_string(name)}, .risk = (enum policy_risk){RISKS.index(tool['risk'])}}},\n"
                    for name, tool in tools.items())

naming_rows = "".join(f"    {{.path = {c_string(r['path'])}, .pattern = {c_string(r['pattern'])}, .message = {c_string(r['message'])}, "
                      f".exports = {r['exports']}}},\n" for r in naming)

with open(out, "w", encoding="ascii") as f:
    f.write("/* Made by src/policy/builtin.py of policies/default.yaml and keys.inc: edit those. */\n"
            "#include \"policy/policy.h\"\n\n"
            f"static const struct policy_role roles[] = {{\n{role_rows}}};\n\n"
            f"static const struct policy_tool tools[] = {{\n{tool_rows}}};\n\n"
            f"static const struct naming_rule naming[] = {{\n{naming_rows}}};\n\n"
            "static const char *const files[] = {\"built-in\"};\n\n"
            f"const struct policy policy_builtin = {{\n{''.join(lines)}"
            f"    .roles = roles,\n    .nroles = {len(roles)},\n    .tools = tools,\n    .ntools = {len(tools)},\n"
            f"    .naming = naming,\n    .nnaming = {len(naming)},\n"
            "    .files = files,\n    .nfiles = 1,\n};\n")
