"""New mentions of a type, written by an instruct model and checked against the corpus: lists for `mr`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from entaug.backends.instruct import ChatRequest, InstructModel, Message
from entaug.backends.prompts import Prompt
from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.data import Sentence
from entaug.core.rng import Streams
from entaug.core.words import script_of
from entaug.methods.shared.donors import mention_key, mention_keys

_PER_REQUEST = 20
_SHOWN = 12  # mentions of the corpus in a prompt
_TOKENS_PER_MENTION = 16
_ALMOST_ALL = 0.9
_MARK = re.compile(r"^\s*(?:[-*•·–]|\(?\d+[.):])\s+")  # noqa: RUF001
_QUOTED = re.compile(r"^([\"'“„«])(.+)([\"'”“»])$")
_LETTER = re.compile(r"[^\W_]")

NO_NAME = "no name: punctuation, a heading or a sentence"
KNOWN = "a mention of the corpus"
HELD_OUT = "a mention of a held-out sentence"
REPEATED = "written before"
LONGER = "longer than any mention of its type"
OTHER_SCRIPT = "in another script than the mentions of its type"
OTHER_SHAPE = "without the capital or digit that mentions of its type have"
ORDINARY = "words that the corpus has outside mentions"


@dataclass
class NewMentions:
    """New mentions of one type."""

    label: str
    texts: list[str] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


def write_mentions(
    model: InstructModel,
    prompt: Prompt,
    corpus: Sequence[Sentence],
    label: str,
    number: int,
    *,
    held_out: Iterable[Sentence] = (),
    rounds: int = 5,
    temperature: float = 0.8,
    seed: int = 0,
) -> NewMentions:
    """Let an instruct model write new mentions of a type."""
    # Each request shows other mentions of the corpus. A line of an answer is accepted if it has the form of a name: no
    # longer than the mentions of the type, in a script of theirs, with a capital or digit where almost all of them have
    # one; and if it is neither a mention of the corpus or of a held-out sentence (whatever its type, case, article or
    # tokenisation) nor words that the corpus has outside mentions. Whether it is a name of the type only a reader
    # knows.
    check = _MentionCheck(corpus, label, held_out)
    streams = Streams(seed, "mentions")
    result = NewMentions(label)
    for attempt in range(rounds):
        missing = number - len(result.texts)
        if missing <= 0 or not check.examples:
            break
        requests = []
        for copy in range(-(-missing // _PER_REQUEST)):
            rng = streams.stream(f"{label} {attempt}", copy + 1)
            requests.append(_request(prompt, check.examples, label, temperature, rng))
        for answer in model.answer(requests):
            if answer.failure is not None and not answer.text:
                result.failed[answer.failure] += 1
                continue
            lines = answer.text.splitlines()
            # The last line of an answer that broke off may be half a name.
            for line in lines[:-1] if answer.failure is not None else lines:
                text, reason = check(line)
                if reason is not None:
                    result.rejected[reason] += 1
                elif text:
                    result.texts.append(text)
    del result.texts[number:]
    return result


def _request(prompt: Prompt, mentions: Sequence[str], label: str, temperature: float, rng: Random) -> ChatRequest:
    shown = rng.sample(mentions, min(_SHOWN, len(mentions)))
    system, user = prompt.fill({"label": label, "number": str(_PER_REQUEST), "examples": "\n".join(shown)})
    messages = [Message("system", system)] if system else []
    tokens = _PER_REQUEST * _TOKENS_PER_MENTION
    return ChatRequest((*messages, Message("user", user)), rng.getrandbits(31), tokens, temperature)


class _MentionCheck:
    """Checks lines of answers; an accepted mention is rejected when it comes again."""

    def __init__(self, corpus: Sequence[Sentence], label: str, held_out: Iterable[Sentence]) -> None:
        tokens = {s.mention_tokens(m) for s in corpus for m in s.mentions if m.label == label and m.is_contiguous}
        self.examples = sorted(map(detokenize, tokens))
        self._tokenizer = CorpusTokenizer(sentence.tokens for sentence in corpus)
        self._longest = max(map(_num_words, tokens), default=0)
        self._scripts = {script_of(text) for text in self.examples}
        marked = sum(map(_has_capital_or_digit, self.examples))
        self._needs_mark = bool(self.examples) and marked >= _ALMOST_ALL * len(self.examples)
        self._known, self._held_out = mention_keys(corpus), mention_keys(held_out)
        self._outside = {
            token
            for sentence in corpus
            for token, is_outside in zip(sentence.tokens, sentence.outside_mask(), strict=True)
            if is_outside
        }
        self._accepted: set[str] = set()

    def __call__(self, line: str) -> tuple[str, str | None]:
        """Return the mention of a line, and the reason why it is not accepted; nothing for a blank line."""
        text = " ".join(_MARK.sub("", line).split())
        if quoted := _QUOTED.match(text):
            text = quoted[2].strip()
        if not text:
            return "", None
        return text, self._reason(text)

    def _reason(self, text: str) -> str | None:
        if not text.isprintable() or not _LETTER.search(text) or text[-1] in ":;!?。！？" or "|" in text:  # noqa: RUF001
            return NO_NAME
        key, tokens = mention_key(text), self._tokenizer(text)
        reasons = {
            KNOWN: key in self._known,
            HELD_OUT: key in self._held_out,
            REPEATED: key in self._accepted,
            LONGER: _num_words(tokens) > self._longest,
            OTHER_SCRIPT: script_of(text) not in self._scripts,
            OTHER_SHAPE: self._needs_mark and not _has_capital_or_digit(text),
            ORDINARY: self._outside.issuperset(tokens),
        }
        reason = next((reason for reason, holds in reasons.items() if holds), None)
        if reason is None:
            self._accepted.add(key)
        return reason


def _num_words(tokens: Sequence[str]) -> int:
    return sum(_LETTER.search(token) is not None for token in tokens)


def _has_capital_or_digit(text: str) -> bool:
    return any(character.isupper() or character.isdigit() for character in text)
