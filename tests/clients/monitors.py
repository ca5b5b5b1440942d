# SPDX-License-Identifier: Apache-2.0
"""The monitor of the libraries (C, Python, Node) against `cordon monitor score`: the same traces, the same verdicts, metrics and settings.

Usage: monitors.py BUILD SOURCE."""
import array
import dataclasses
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

BUILD, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "tests/system"), str(BUILD / "bindings/python")]
import tapsys  # noqa: E402

import cordon  # noqa: E402

tap = tapsys.Tap()
HERE = pathlib.Path(__file__).resolve().parent
C_DRIVER = BUILD / "tests/clients/monitor_driver"
rng = random.Random(7)
FIELDS = ("abort", "reason", "detector", "onset", "onset_byte", "period", "repeats", "tokens", "settings")
WORDS = "the a model writes what it was asked to write and then some more of it while nobody looks at how much there is already".split()


def pieces(text, size):
    return [{"text": text[i:i + size]} for i in range(0, len(text), size)]


def logits(peak):
    """Of 200 tokens; a higher peak, a lower entropy."""
    return [round(rng.uniform(0, 1), 4) for _ in range(199)] + [peak]


def drifting():
    cycle = [rng.choice(WORDS) + str(i % 3) * (i % 4 == 0) for i in range(12)]
    return " ".join(rng.choice(WORDS) if rng.random() < 0.1 else w for _ in range(90) for w in cycle)


prose = " ".join(rng.choice(WORDS) + rng.choice(["", "", ",", "."]) for _ in range(500))
spiking = [{"token": i, "logits": logits(0.0 if i == 80 else 14.0)} for i in range(150)]
TRACES = {
    "a loop in pieces of 3": ({}, pieces("It begins well. " + "I will look at it again. " * 60, 3)),
    "a loop in one piece": ({"tier": "architect", "task": "code"}, pieces("It begins well. " + "I will look at it again. " * 60, 9999)),
    "a number that grows": ({}, pieces("".join(f"Step {i} is to try the same thing once more and see. " for i in range(60)), 11)),
    "a drifting loop": ({}, pieces(drifting(), 40)),
    "prose": ({"settings": {"ngram_size": "2", "combined_threshold": "0.75"}}, pieces(prose, 17)),
    "prose, literal": ({"mode": "literal"}, pieces(prose, 17)),
    "runaway length": ({"expected": 100}, pieces(prose, 17)),
    "numbers of tokens": ({}, [{"token": i % 5} for i in range(100)]),
    "logits": ({}, [{"token": i, "logits": logits(i / 10)} for i in range(120)]),
    "logits that are high, literal": ({"mode": "literal", "task": "reasoning"}, [{"token": i, "logits": logits(0.0)} for i in range(120)]),
    "a spike, literal": ({"mode": "literal", "settings": {"entropy_threshold": "9.5"}}, spiking),
    "the most probable tokens": ({"vocabulary": 5000}, [{"text": " w%d" % i, "top_logprobs": [math.log(0.5), math.log(0.3), math.log(0.1)]} for i in range(60)]),
}


def rounded(metrics):
    return {k: round(v, 3) for k, v in metrics.items() if not k.startswith("entropy_")}


def near(a, b):
    """Three places are printed; arithmetic of another compiler may round the last one the other way."""
    return set(a) == set(b) and all(math.isclose(a[k], b[k], rel_tol=1e-4, abs_tol=0.0011) for k in a)


def offline(folder):
    """What `cordon monitor score` says of each trace."""
    said = {}
    programs = tapsys.Programs(BUILD)
    for name, (options, events) in TRACES.items():
        file = pathlib.Path(folder, name.replace(" ", "_"))
        file.write_text("".join(json.dumps(e) + "\n" for e in events))
        args = []
        for k, v in options.items():
            args += [x for n, w in v.items() for x in ("--set", f"{n}={w}")] if k == "settings" else [f"--{k}", str(v)]
        r = subprocess.run([*programs.command(["monitor", "score", "--format", "events", *args, str(file)], "root" if os.geteuid() == 0 else "user")],
                           capture_output=True, text=True, env=tapsys.clean_env(), timeout=60)
        said[name] = json.loads(r.stdout) if r.stdout else {"error": r.stderr}
    return said


def compare(name, language, got, want):
    tap.eq({k: got.get(k) for k in FIELDS}, {k: want.get(k) for k in FIELDS}, f"{language}: {name}: the verdict of `cordon monitor score`")
    tap.ok(near(rounded(got.get("metrics", {})), want.get("metrics", {})), f"{language}: {name}: the metrics are those of `cordon monitor score`", got.get("metrics"), want.get("metrics"))


def in_c(said, folder):
    for name, (options, events) in TRACES.items():
        lines = "".join(json.dumps(e) + "\n" for e in events)
        r = subprocess.run([C_DRIVER, json.dumps(options)], input=lines, capture_output=True, text=True, timeout=60)
        out = [json.loads(x) for x in r.stdout.splitlines()] or [{}, {}]
        compare(name, "C", out[0], said[name])
        struct = out[1]
        tap.ok(struct.get("whole") and struct.get("between") and (struct["abort"], struct["reason"], struct["tokens"]) == tuple(said[name][k] for k in ("abort", "reason", "tokens"))
               and struct["detector"] == (said[name]["detector"] or "none"), f"C: {name}: the struct says the same", struct)
    r = subprocess.run([C_DRIVER, '{"tier": "boss"}'], input="", capture_output=True, text=True, timeout=60)
    tap.ok(r.returncode == 1 and "architect" in r.stdout, "C: an unknown tier is told the known ones", r.stdout)
    bad = '{"token": 1, "logits": []}\n{"token": 1, "top_logprobs": [0.5]}\n{"token": 2}\n'
    r = subprocess.run([C_DRIVER, "{}"], input=bad, capture_output=True, text=True, timeout=60)
    tap.ok(r.stdout.count("no distribution") == 2 and '"tokens": 1,' in r.stdout, "C: a token whose distribution is none is not taken", r.stdout)
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], capture_output=True, text=True)
    if not pathlib.Path(folder, "de_DE.UTF-8").exists():
        tap.skip("C: in a locale with a decimal comma a verdict is JSON all the same", "Debian's locales are not installed " + made.stderr[:80])
        return
    r = subprocess.run([C_DRIVER, json.dumps(TRACES["prose"][0])], input=lines_of("prose"), capture_output=True, text=True, timeout=60,
                       env={"LOCPATH": folder, "LC_ALL": "de_DE.UTF-8", "PATH": "/usr/bin:/bin"})
    compare("in a locale with a decimal comma", "C", json.loads(r.stdout.splitlines()[0]), said["prose"])


def lines_of(name):
    return "".join(json.dumps(e) + "\n" for e in TRACES[name][1])


def in_python(said):
    for name, (options, events) in TRACES.items():
        m = cordon.Monitor(**options)
        for e in events:
            floats = array.array("f", e["logits"]) if "logits" in e else None
            if m.token(e.get("token"), text=e.get("text"), logits=floats, top_logprobs=e.get("top_logprobs")):
                break
        v = m.end()
        compare(name, "Python", {**json.loads(m.json()), "metrics": v.metrics}, said[name])
        repeats = v.repeats and dataclasses.asdict(v.repeats)
        tap.eq((v.abort, v.reason, v.detector, v.onset, v.onset_byte, v.period, repeats, v.tokens), tuple(said[name][k] for k in FIELDS[:-1]), f"Python: {name}: Verdict has the same")
    for words, bad in (("architect", lambda: cordon.Monitor(tier="boss")), ("ngram_size", lambda: cordon.Monitor(settings={"ngram_size": 99})),
                       ("no distribution", lambda: cordon.Monitor().token(1, logits=[math.nan])), ("no distribution", lambda: cordon.Monitor().token(1, logits=[]))):
        try:
            bad()
            tap.ok(False, f"Python: what is refused is a ValueError that says {words}")
        except ValueError as e:
            tap.ok(words in str(e), f"Python: what is refused is a ValueError that says {words}", e)
    for bad in (lambda: cordon.Monitor().token(), lambda: cordon.Monitor().token(1, text="a"), lambda: cordon.Monitor().token(1, logits=3)):
        try:
            bad()
            tap.ok(False, "Python: a token that is none is a TypeError")
        except TypeError as e:
            tap.ok(True, "Python: a token that is none is a TypeError", e)


class Row(list):
    """A row of scores that is written to as those of numpy and torch are."""

    def __setitem__(self, at, value):
        at = at[0] if isinstance(at, tuple) else at
        super().__setitem__(at, [value] * len(self) if isinstance(at, slice) else value)


def generate(processor, scores_of, eos, most=400):
    """A model that always says the same seven tokens, as a server calls a logits processor."""
    ids = [1, 2, 3]
    while len(ids) < most and ids[-1] != eos:
        scores = processor(ids, scores_of(5 + len(ids) % 7))
        ids.append(max(range(len(scores)), key=lambda i: scores[i]))
    return ids


def processors():
    def plain(peak):
        return Row([9.0 if i == peak else 0.0 for i in range(50)])
    p = cordon.LogitsProcessor(eos_token_id=2)
    ids = generate(p, plain, 2)
    tap.ok(ids[-1] == 2 and len(ids) < 3 + 60 and p.verdicts[0].detector == "loop" and p.verdicts[0].period == 7 and 0 < p.verdicts[0].metrics["entropy"] < 2,
           "Python: a logits processor ends a loop by the end-of-text token", len(ids), p.verdicts)
    p = cordon.LogitsProcessor(eos_token_id=2, decode=lambda ids: "".join(f" {i}," for i in ids))
    tap.ok(len(generate(p, plain, 2)) == 400 and not p.verdicts[0].abort, "Python: with the text of the tokens a table of numbers goes on", p.verdicts)
    try:
        import numpy
    except ImportError:
        tap.skip("Python: a batch in numpy", "numpy is not installed")
        return
    p = cordon.LogitsProcessor(eos_token_id=2)
    ids = numpy.array([[1, 1, 1], [1, 1, 1]])
    for step in range(70):
        scores = numpy.zeros((2, 50), numpy.float32)
        scores[0, 5 + step % 7] = 9
        scores[1, 5 + (step * step) % 41] = 9
        scores = p(ids, scores)
        ids = numpy.concatenate([ids, scores.argmax(axis=1).reshape(2, 1)], axis=1)
    tap.ok(ids[0, -1] == 2 and (ids[1] != 2).all() and [v.abort for v in p.verdicts] == [True, False],
           "Python: of a batch in numpy the row that loops is ended, and the other goes on", ids[:, -5:], p.verdicts)
    m = cordon.Monitor()
    for kind in (numpy.float32, numpy.float64, numpy.float16):
        m.token(1, logits=numpy.zeros(1000, kind))
        tap.ok(abs(m.verdict.metrics["entropy"] - math.log(1000)) < 1e-4, f"Python: logits of {kind.__name__} are taken", m.verdict.metrics)
    m.token(1, logits=numpy.zeros(1000, numpy.float32)[::2])
    tap.ok(abs(m.verdict.metrics["entropy"] - math.log(500)) < 1e-4, "Python: logits that do not lie side by side are taken", m.verdict.metrics)


def torches():
    """For whoever has python3-torch: transformers gives its processors such tensors. It is 500 MB, and no package of the set-up's:
    the rows above stand in for it."""
    try:
        import torch
    except ImportError:
        return
    p = cordon.LogitsProcessor(eos_token_id=2)
    ids = torch.ones((2, 3), dtype=torch.long)
    for step in range(70):
        scores = torch.zeros((2, 50), dtype=torch.bfloat16 if step % 2 else torch.float32)
        scores[0, 5 + step % 7] = 9
        scores[1, 5 + (step * step) % 41] = 9
        ids = torch.cat([ids, p(ids, scores).argmax(dim=1, keepdim=True)], dim=1)
    tap.ok(int(ids[0, -1]) == 2 and bool((ids[1] != 2).all()), "Python: of a batch of torch's tensors the row that loops is ended", ids[:, -5:])


def in_node(said):
    if not tapsys.NODE or not (BUILD / "bindings/node/monitor.wasm").exists():
        tap.skip("Node: the verdicts of `cordon monitor score`", "node, or wasi-libc to build with, is not installed")
        return
    def numbers(options):
        return {k: ({n: float(w) for n, w in v.items()} if k == "settings" else v) for k, v in options.items()}
    jobs = [{"options": numbers(o), "events": e} for o, e in TRACES.values()]
    jobs += [{"options": {"tier": "boss"}, "events": []}, {"options": {}, "events": [{"token": 1, "logits": []}, {"token": 1, "top_logprobs": [0.5]}, {"token": 2}]},
             {"generate": {"eos": 2, "vocabulary": 50, "most": 400}}, {"generate": {"eos": 2, "vocabulary": 50, "most": 400, "decode": "0,"}}]
    r = subprocess.run([tapsys.NODE, HERE / "drivers/monitor_driver.mjs", BUILD / "bindings/node/monitor.js"], input="".join(json.dumps(j) + "\n" for j in jobs),
                       capture_output=True, text=True, timeout=120)
    out = [json.loads(x) for x in r.stdout.splitlines()]
    tap.eq(len(out), len(jobs), "Node: every job has its answer", r.stderr[-500:])
    for name, got in zip(TRACES, out):
        compare(name, "Node", got.get("verdict", got), said[name])
    tier, bad, loop, table = out[len(TRACES):]
    tap.ok("architect" in tier.get("error", ""), "Node: an unknown tier is told the known ones", tier)
    tap.ok(len(bad["told"]) == 2 and bad["verdict"]["tokens"] == 1, "Node: a token whose distribution is none is not taken", bad)
    tap.ok(loop["ids"][-1] == 2 and len(loop["ids"]) < 63 and loop["verdict"]["period"] == 7, "Node: a logits processor ends a loop by the end-of-text token", loop)
    tap.ok(len(table["ids"]) == 400 and not table["verdict"]["abort"], "Node: with the text of the tokens a table of numbers goes on", table["verdict"])


with tempfile.TemporaryDirectory(prefix="cordon-test-") as folder:
    said = offline(folder)
    kinds = {(v.get("reason"), v.get("detector")) for v in said.values()}
    tap.ok({("none", None), ("high_repetition", "loop"), ("high_repetition", "counter"), ("high_repetition", "drift"), ("runaway_length", "length"),
            ("high_entropy", "threshold"), ("entropy_spike", "threshold")} <= kinds, "the traces reach every detector", kinds)
    in_c(said, folder)
    in_python(said)
    processors()
    torches()
    in_node(said)
tap.done()
