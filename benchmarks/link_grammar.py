"""Constituents by the program ``link-parser`` of link-grammar, to compare projected ones with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import compress

from entaug.backends.protocols import Constituent
from entaug.errors import EntaugError, MissingModelError

_PROGRAM = "link-parser"
_TOKENS = re.compile(r"\((?P<opens>[A-Z]+) |(?P<closes>\))|(?P<word>[^\s()]+)")
_MARK = re.compile(r"\{[?!~]\}")  # the program guessed a word, or changed its case or spelling
_MAX_BYTES = 2000  # of a line; at a little more the program stops
_SUBSCRIPT = re.compile(r"\.[a-z]+(-[a-z]+)?$")
_BRACKETS = str.maketrans("()", "{}")  # as the program prints them


class LinkGrammar:
    """A `entaug.backends.protocols.ConstituencyParser` of link-grammar (Sleator and Temperley 1991)."""

    # Its output is aligned with the words by characters, so that another tokenisation or a lower-cased first word does
    # not matter; a phrase that begins or ends within a word is dropped. A sentence that cannot be parsed in time, is
    # longer than the program takes (2,000 bytes), or is printed with other words, has no phrases (`num_unparsed` counts
    # such sentences).

    def __init__(self, language: str = "en", seconds: int = 20) -> None:
        program = shutil.which(_PROGRAM)
        if program is None:
            raise MissingModelError(
                f"there is no program {_PROGRAM}",
                remedy="install link-grammar (Debian: apt-get install link-grammar link-grammar-dictionaries-en), "
                "or use constituency_parser=projected",
            )
        self._program = program
        self._language = language
        self.languages = frozenset({language})
        self._options = ("constituents=3", "graphics=0", "verbosity=0", "echo=1", "spell=0", f"timeout={seconds}")
        version = re.search(r"link-grammar-(\d[\d.]*)", self._run(["--version"], ""))
        self.name = f"link-grammar-{language}-{version[1] if version else 'unknown'}"
        self.num_unparsed = 0

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """See `entaug.backends.protocols.ConstituencyParser.parse`."""
        requested = [tuple(sentence) for sentence in sentences]
        todo = sorted(set(requested))
        # The space keeps a line that begins with "!" from being a command, and one with "%" from being a comment.
        lines = [" " + " ".join("_".join(token.split()) or "_" for token in words) for words in todo]
        fits = [len(line.encode("utf-8", "replace")) <= _MAX_BYTES for line in lines]
        self.num_unparsed += fits.count(False)
        todo, lines = list(compress(todo, fits)), list(compress(lines, fits))
        answer = self._run([self._language, *(f"-{option}" for option in self._options)], "\n".join(lines) + "\n")
        if lines and f"\n{lines[-1]}\n" not in answer:
            raise EntaugError(f"{_PROGRAM} stopped before the end", remedy="use constituency_parser=projected")
        constituents: dict[tuple[str, ...], tuple[Constituent, ...]] = {}
        for words, printed in zip(todo, self._trees(lines, answer), strict=True):
            tree = read_bracketed_tree(printed, words)
            self.num_unparsed += tree is None
            constituents[words] = tree or ()
        return [constituents.get(words, ()) for words in requested]

    def _trees(self, lines: Sequence[str], answer: str) -> Iterator[str]:
        """The output after the echo of each line."""
        position = answer.find("\n")
        for line in lines:
            echo = answer.find(f"\n{line}\n", position)
            if echo < 0:
                yield ""
                continue
            position = echo + len(line) + 1
            end = answer.find("\n\n", position)
            yield answer[position + 1 : end if end >= 0 else None]

    def _run(self, arguments: list[str], text: str) -> str:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(
                [self._program, *arguments],
                input=text.encode("utf-8", "replace"),
                capture_output=True,
                check=True,
                env=environment,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            stderr = getattr(error, "stderr", b"") or b""
            reason = " ".join(stderr.decode("utf-8", "replace").split())[-200:] or str(error)
            raise EntaugError(f"{_PROGRAM} failed ({reason})", remedy="check that it runs on its own") from None
        return (done.stdout if text else done.stdout + done.stderr).decode("utf-8", "replace")


def read_bracketed_tree(printed: str, words: Sequence[str]) -> tuple[Constituent, ...] | None:
    """Read the phrases of a sentence from the output of link-grammar."""
    text = "".join("_".join(word.split()) or "_" for word in words).translate(_BRACKETS)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    offset = 0
    for i, word in enumerate(words):
        starts[offset] = i
        offset += len("_".join(word.split()) or "_")
        ends[offset] = i + 1
    opened: list[tuple[str, int]] = []
    closed: list[tuple[int, Constituent]] = []  # with their depth
    offset = 0
    for token in _TOKENS.finditer(printed[max(0, printed.find("(")) :]):
        if token["opens"]:
            opened.append((token["opens"], offset))
        elif token["closes"]:
            if not opened:
                return None
            category, start = opened.pop()
            if start in starts and offset in ends and start < offset:
                closed.append((len(opened), Constituent(category, starts[start], ends[offset])))
        else:
            length = _matching_length(token["word"], text, offset)
            if not length:
                return None
            offset += length
    if opened or offset != len(text) or not closed:
        return None
    closed.sort(key=lambda pair: (pair[1].start, -pair[1].end, pair[0]))
    return tuple(constituent for _, constituent in closed)


def _matching_length(word: str, text: str, offset: int) -> int:
    """The number of characters of a text that a printed word stands for; 0 if it is another word."""
    plain = _MARK.sub("", word)
    forms = {word, plain, _SUBSCRIPT.sub("", plain), _SUBSCRIPT.sub("", word)}
    # A word that the program could not connect is in braces.
    forms |= {form[1:-1] for form in set(forms) if len(form) > 2 and form[0] == "{" and form[-1] == "}"}
    matching = [form for form in forms if form and text[offset : offset + len(form)].casefold() == form.casefold()]
    return max(map(len, matching), default=0)
