# SPDX-License-Identifier: Apache-2.0
"""Messages of the channel as bytes, made from the table in src/wire/msg.h: for tests that forge them."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
source = (ROOT / "src/wire/msg.h").read_text()
parts = dict(re.findall(r"#define (WIRE_(?:\w+_)?MESSAGES)\(X\)(.*?)\n\n", source, re.S))
ROWS = re.findall(r'X\((\w+), "(\w*)"', re.sub(r"(WIRE_\w+_MESSAGES)\(X\)", lambda m: parts[m[1]], parts["WIRE_MESSAGES"]))
TYPES = {name: (i + 1, signature) for i, (name, signature) in enumerate(ROWS)}


def head(kind, n):
    return bytes([kind << 5 | n]) if n < 24 else bytes([kind << 5 | 24, n]) if n < 256 else bytes([kind << 5 | 25]) + n.to_bytes(2, "big") if n < 65536 else bytes([kind << 5 | 26]) + n.to_bytes(4, "big") if n < 2**32 else bytes([kind << 5 | 27]) + n.to_bytes(8, "big")


def encode(letter, value):
    if letter in "ui":
        return head(0, value)
    if letter in "tb":
        return head(3 if letter == "t" else 2, len(value)) + value
    return head(4, len(value)) + b"".join(encode({"U": "u", "T": "t", "B": "b"}[letter], v) for v in value)


def frame(name, *values):
    number, signature = TYPES[name]
    usual = {"u": 1, "i": 0, "t": b"x", "b": b"x", "U": [1], "T": [b"x"], "B": [b"A=b"]}
    values = values or [usual[c] for c in signature]
    return head(4, 1 + len(signature)) + head(0, number) + b"".join(encode(c, v) for c, v in zip(signature, values))
