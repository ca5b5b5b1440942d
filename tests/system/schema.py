# SPDX-License-Identifier: Apache-2.0
"""Objects that `cordon` prints, against the schemas that clients rely on (schemas/*.schema.json)."""
import json
import pathlib

try:
    import jsonschema
except ImportError:  # in a virtual machine of tests/vm; the test of the schemas themselves fails without
    jsonschema = None

FOLDER = pathlib.Path(__file__).resolve().parent.parent.parent / "schemas"
NAMES = ("result", "event", "check", "audit")
seen = 0
faults = []  # of all that this process has looked at
validators = {}


def validator(name):
    if name not in validators:
        every = {p.name: json.loads(p.read_text()) for p in FOLDER.glob("*.schema.json")}
        own = every[f"{name}.schema.json"]
        jsonschema.Draft202012Validator.check_schema(own)
        resolver = jsonschema.RefResolver("", own, store={key: text for key, text in every.items()})
        validators[name] = jsonschema.Draft202012Validator(own, resolver=resolver)
    return validators[name]


def of(name, value):
    """What is wrong with VALUE, in words."""
    return [f"{name}: {'/'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in validator(name).iter_errors(value)]


def look(value):
    """Notes what is wrong with an object that is a result or a report by its keys."""
    global seen
    name = "result" if "violations_total" in value and "stdout_bytes" in value else \
        "check" if "is_safe" in value or "conditions" in value and "findings" in value else None
    if jsonschema and name and FOLDER.is_dir():
        seen += 1
        faults.extend(of(name, value))
