# SPDX-License-Identifier: Apache-2.0
"""A generation watched while it is written: docs/monitor.md. Monitor takes one token after the other; LogitsProcessor is the same in
the shape that transformers, vLLM and llama-cpp-python call."""
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _monitor


@dataclass(frozen=True)
class Repeat:
    """What the end of a generation repeats token for token, whether it is cut for it or not."""
    onset: int  # the token where the first copy begins
    onset_byte: int
    period: int  # in tokens
    copies: int


@dataclass(frozen=True)
class Verdict:
    """What was decided, why and where; and what was seen last. The names are those of `cordon monitor`."""
    abort: bool
    reason: str
    detector: Optional[str]
    onset: Optional[int]  # the token where the loop's first copy begins
    onset_byte: Optional[int]
    period: Optional[int]  # in tokens
    tokens: int
    metrics: Mapping[str, float]
    repeats: Optional[Repeat] = None


_METRICS = ("entropy", "entropy_low", "entropy_high", "spike", "repetition", "perplexity", "trend", "failure_prob")


def _plain(values: Any) -> Any:
    """A tensor of torch has no buffer of its own: its array has, 32 bits wide and in this memory. Others as they are."""
    if hasattr(values, "detach"):
        values = values.detach()
        values = values.float() if hasattr(values, "float") else values
        values = values.cpu() if hasattr(values, "cpu") else values
        return values.numpy() if hasattr(values, "numpy") else values.tolist()
    return values


class Monitor:
    """One generation. Every call says whether to abort; what is fed afterwards is ignored.

    tier, task, mode, expected and vocabulary are the options of `cordon monitor`; settings are its --set: {"ngram_size": 4}."""

    def __init__(self, *, tier: Optional[str] = None, task: Optional[str] = None, mode: Optional[str] = None,
                 settings: Optional[Mapping[str, float]] = None, expected: int = 0, vocabulary: int = 0) -> None:
        words = tuple(f"{name}={value}" for name, value in (settings or {}).items())
        self._monitor = _monitor.Monitor(tier, task, mode, words, expected, vocabulary)

    def text(self, text: Union[str, bytes]) -> bool:
        """A piece of text, cut anywhere."""
        return self.token(text=text)

    def token(self, id: Optional[int] = None, *, text: Union[str, bytes, None] = None, logits: Any = None,
              top_logprobs: Optional[Sequence[float]] = None) -> bool:
        """One token: its text or its number, and what is known of the distribution it was drawn from: all logits (a buffer of
        32-bit floats, a tensor, a sequence), or the natural logarithms of the highest probabilities. ValueError where that is no
        distribution."""
        if (id is None) == (text is None):
            raise TypeError("a token is given by its text or by its number")
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return self._monitor.token(id, data, None if logits is None else _plain(logits), top_logprobs)

    def distribution(self, logits: Any) -> bool:
        """The logits that the next token will be drawn from, where the token itself comes later."""
        return self._monitor.token(None, b"", _plain(logits), None)

    def end(self) -> Verdict:
        """The generation is over: the last token is complete."""
        self._monitor.end()
        return self.verdict

    @property
    def verdict(self) -> Verdict:
        abort, reason, detector, (onset, onset_byte, period), tokens, metrics, repeat = self._monitor.verdict()
        return Verdict(abort, reason, detector, onset, onset_byte, period, tokens, dict(zip(_METRICS, metrics)), repeat and Repeat(*repeat))

    def json(self) -> str:
        """The verdict as `cordon monitor` prints it, with every setting and where it comes from."""
        return self._monitor.json()


class LogitsProcessor:
    """Called before each token with the tokens so far and the scores of the next: it watches, and where a generation has gone bad
    it leaves only the end-of-text token, so that it ends there.

        transformers        model.generate(..., logits_processor=LogitsProcessorList([p]))      a batch: rows are generations
        llama-cpp-python    llm(..., logits_processor=LogitsProcessorList([p]))                 one generation
        vLLM                what new_req_logits_processor of an AdapterLogitsProcessor returns  one generation a request

    What is there at the first call is the prompt. decode turns numbers of tokens into text (a tokenizer's decode): with it tables and
    code are told from prose, without it any 48 tokens that are four copies or more are a loop. One object for each call of generate."""

    def __init__(self, eos_token_id: int, *, decode: Optional[Callable[[List[int]], str]] = None, **options: Any) -> None:
        self._eos, self._decode, self._options = eos_token_id, decode, options
        self._rows: Dict[int, Any] = {}

    @property
    def verdicts(self) -> List[Verdict]:
        """Of each generation, in the order of the rows."""
        return [row[0].verdict for _, row in sorted(self._rows.items())]

    def __call__(self, ids: Any, scores: Any) -> Any:
        if getattr(scores, "ndim", 1) == 1:
            self._row(0, ids, scores, scores)
        else:
            for n in range(len(scores)):
                self._row(n, ids[n], scores[n], scores, n)
        return scores

    def _row(self, n: int, ids: Any, values: Any, scores: Any, *at: int) -> None:
        count = len(ids)
        if n not in self._rows:
            self._rows[n] = [Monitor(**self._options), count]
        monitor, seen = self._rows[n]
        for i in range(seen, count):
            token = int(ids[i])
            if self._decode is None:
                monitor.token(token)
            else:
                monitor.text(self._decode([token]))
        self._rows[n][1] = count
        if not monitor.verdict.abort:
            monitor.distribution(values)
        if monitor.verdict.abort:
            scores[at[0] if at else slice(None)] = float("-inf")
            scores[(*at, self._eos)] = 0.0
