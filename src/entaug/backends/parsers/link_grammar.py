"""Constituents by link-grammar: ``link-parser`` of the package link-grammar, for English, offline, without weights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from entaug.backends.protocols import Constituent
from entaug.errors import EntaugError, MissingModelError

__all__ = ["LinkGrammar", "read_bracketed"]

_PROGRAM = "link-parser"
_PARTS = re.compile(r"\((?P<opens>[A-Z]+) |(?P<closes>\))|(?P<word>[^\s()]+)")
_MARK = re.compile(r"\{[?!~]\}")  # guessed, a capital, spelled otherwise
_LONGEST = 2000  # bytes of a line; at a little more the program stops
_SUBSCRIPT = re.compile(r"\.[a-z]+(-[a-z]+)?$")
_BRACKETS = str.maketrans("()", "{}")  # what it prints for them


class LinkGrammar:
    """A `entaug.backends.protocols.ConstituencyParser` of link-grammar (Sleator and Temperley 1991).

    Its words are laid beside the tokens letter by letter, so that it does not matter where it parts them otherwise, or
    writes the first one small; a phrase that begins or ends within a token is left out. A sentence that it cannot
    parse in time, or that is longer than it takes (2,000 bytes), or of which it prints other words, has no phrases
    (`unparsed` counts them).

    Args:
        language: a dictionary of link-grammar, by its code.
        seconds: what a sentence may take. The program counts in processor time, so that other work on the machine
            makes no difference; a time near what a sentence needs would.

    Raises:
        MissingModelError: there is no such program.
    """

    def __init__(self, language: str = "en", seconds: int = 20) -> None:
        found = shutil.which(_PROGRAM)
        if found is None:
            raise MissingModelError(
                f"there is no program {_PROGRAM}",
                remedy="install link-grammar (Debian: apt-get install link-grammar link-grammar-dictionaries-en), "
                "or use constituency_parser=projected",
            )
        self._program = found
        self._language = language
        self._options = ("constituents=3", "graphics=0", "verbosity=0", "echo=1", "spell=0", f"timeout={seconds}")
        told = self._run(["--version"], "")
        version = re.search(r"link-grammar-(\d[\d.]*)", told)
        self.name = f"link-grammar-{language}-{version[1] if version else 'unknown'}"
        self.unparsed = 0

    def parse(self, sentences: Sequence[Sequence[str]]) -> list[tuple[Constituent, ...]]:
        """See `entaug.backends.protocols.ConstituencyParser.parse`.

        Raises:
            EntaugError: the program failed.
        """
        wanted = [tuple(sentence) for sentence in sentences]
        todo = sorted(set(wanted))
        # A space in front, or it would take a line that begins with "!" for a command and one with "%" for a remark.
        lines = [" " + " ".join("_".join(token.split()) or "_" for token in words) for words in todo]
        short = [len(line.encode("utf-8", "replace")) <= _LONGEST for line in lines]
        self.unparsed += short.count(False)
        todo = [words for words, fits in zip(todo, short, strict=True) if fits]
        lines = [line for line, fits in zip(lines, short, strict=True) if fits]
        answer = self._run([self._language, *(f"-{option}" for option in self._options)], "\n".join(lines) + "\n")
        if lines and f"\n{lines[-1]}\n" not in answer:
            raise EntaugError(f"{_PROGRAM} stopped before the end", remedy="use constituency_parser=projected")
        found: dict[tuple[str, ...], tuple[Constituent, ...]] = {}
        for words, printed in zip(todo, self._printed(lines, answer), strict=True):
            read = read_bracketed(printed, words)
            self.unparsed += read is None
            found[words] = read or ()
        return [found.get(words, ()) for words in wanted]

    def _printed(self, lines: Sequence[str], answer: str) -> Iterator[str]:
        """What stands behind the echo of each line."""
        place = answer.find("\n")
        for line in lines:
            begun = answer.find(f"\n{line}\n", place)
            if begun < 0:
                yield ""
                continue
            place = begun + len(line) + 1
            end = answer.find("\n\n", place)
            yield answer[place + 1 : end if end >= 0 else None]

    def _run(self, arguments: list[str], text: str) -> str:
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(  # noqa: S603 (a program of the system, and no shell)
                [self._program, *arguments],
                input=text.encode("utf-8", "replace"),
                capture_output=True,
                check=True,
                env=environment,
            )
        except (OSError, subprocess.CalledProcessError) as error:
            told = getattr(error, "stderr", b"") or b""
            reason = " ".join(told.decode("utf-8", "replace").split())[-200:] or str(error)
            raise EntaugError(f"{_PROGRAM} failed ({reason})", remedy="check that it runs by itself") from None
        return (done.stdout if text else done.stdout + done.stderr).decode("utf-8", "replace")


def read_bracketed(printed: str, words: Sequence[str]) -> tuple[Constituent, ...] | None:
    """The phrases of a sentence from what link-grammar prints for it.

    Args:
        printed: nested brackets, words with marks and subscripts; what stands in front is passed over.
        words: the tokens.

    Returns:
        Phrases, outer before inner; None where its words are not those of the sentence, or it printed none.

    Example:
        >>> read_bracketed("(S (NP she) (VP had.v-d (NP it)) .)", ["She", "had", "it", "."])[1:]
        (Constituent(category='NP', start=0, end=1), Constituent(category='VP', start=1, end=3), \
Constituent(category='NP', start=2, end=3))
    """
    text = "".join("_".join(word.split()) or "_" for word in words).translate(_BRACKETS)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    place = 0
    for i, word in enumerate(words):
        starts[place] = i
        place += len("_".join(word.split()) or "_")
        ends[place] = i + 1
    opened: list[tuple[str, int]] = []
    found: list[tuple[int, Constituent]] = []
    at = 0
    for part in _PARTS.finditer(printed[max(0, printed.find("(")) :]):
        if part["opens"]:
            opened.append((part["opens"], at))
        elif part["closes"]:
            if not opened:
                return None
            category, begun = opened.pop()
            if begun in starts and at in ends and begun < at:
                found.append((len(opened), Constituent(category, starts[begun], ends[at])))
        else:
            length = _same(part["word"], text, at)
            if not length:
                return None
            at += length
    if opened or at != len(text) or not found:
        return None
    found.sort(key=lambda pair: (pair[1].start, -pair[1].end, pair[0]))
    return tuple(one for _, one in found)


def _same(word: str, text: str, at: int) -> int:
    """How many letters of a text a printed word stands for: as many as possible, 0 where it is another word."""
    plain = _MARK.sub("", word)
    forms = {word, plain, _SUBSCRIPT.sub("", plain), _SUBSCRIPT.sub("", word)}
    # A word that it could not connect stands between braces.
    forms |= {form[1:-1] for form in set(forms) if len(form) > 2 and form[0] == "{" and form[-1] == "}"}
    fits = [form for form in forms if form and text[at : at + len(form)].casefold() == form.casefold()]
    return max(map(len, fits), default=0)
