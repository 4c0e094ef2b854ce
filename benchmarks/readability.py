r"""What each method writes, read blind: 30 new sentences a method on six corpora, before and after a change.

    python benchmarks/readability.py                              # generate, join the verdicts, show the table

The steps of a reading, with DIR a folder outside the repository (``--work DIR``); all but the last can be interrupted:

    python benchmarks/readability.py generate --version before    # with the old package on PYTHONPATH
    python benchmarks/readability.py generate --version after     # with the new one
    python benchmarks/readability.py sheet                        # DIR/sheets/reader1-1.txt ... reader2-1.txt ...
    python benchmarks/readability.py count                        # marks in DIR/marks, the same names; writes results

`generate` takes the first five sentences that a method makes on each corpus, one a source, in a fixed order of sources.
`sheet` mixes the sentences of all versions with gold sentences, without their origin, identical ones once; each sheet
begins with the instructions, and the second reader has another order. `count` reads lines ``NUMBER MARK``. What is
committed, `benchmarks/results/readability.jsonl`, has a digest of each sentence and the marks of both readers: the text
of corpora stays out of the repository, and a sentence that is made again finds its verdict. Others count as unread.

The sources are sentences that nobody looked at when the methods were made; do not tune a method on them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from places import DATA

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: sums depend on the number of threads

HERE = Path(__file__).resolve().parent
RECORDS = HERE / "results" / "readability.jsonl"
PAGE = HERE / "results" / "readability.md"
WORK = Path(tempfile.gettempdir()) / "entaug-readability"

POOL = 200  # at most; sentences with mentions that the methods are fitted to
TRAINED_POOL = 100  # the same for methods that fine-tune a language model: minutes for each corpus on one core
EACH = 5  # sentences of a method on a corpus
LINES = 150  # of a sheet
READERS = (1, 2)
MARKS = {"+": "good", "-": "not fluent or not sensible", "x": "a wrong or missing label"}
UNREAD = "?"


@dataclass(frozen=True)
class CorpusInfo:
    """A corpus: its kind, where it is, and what the reader is told about its labels."""

    kind: str
    path: Path
    labels: str
    genres: tuple[str, ...] = ()


CORPORA = {
    "N1": CorpusInfo(
        "news",
        DATA / "uner/en_ewt/en_ewt-ud-test.iob2",
        "newsgroups and weblogs. PER, LOC, ORG: names only (no adjectives such as French)",
        ("newsgroup", "weblog"),
    ),
    "N2": CorpusInfo(
        "news", HERE / "corpora/news.conll", "news. PER, LOC, ORG; MISC: adjectives of nations, works, events, products"
    ),
    "Q1": CorpusInfo(
        "queries",
        DATA / "multiconer-v1/15000/en_dev.conll",
        "lower-case sentences. PER, LOC, CORP (companies), GRP (other groups), "
        "PROD (products, also kinds of them), CW (creative works)",
    ),
    "Q2": CorpusInfo(
        "queries",
        HERE / "corpora/queries.conll",
        "lower-case queries. 20 labels that say what they mean (CUISINE, TITLE ...); LOCATION, PRICE, RATING and "
        "AMENITY may be phrases (near me, under 20 dollars), DATE is no time of day, GENRE is of films",
    ),
    "B1": CorpusInfo(
        "biomedical", DATA / "ncbi-disease/devel.tsv", "abstracts. Disease: diseases, also within other names (HD gene)"
    ),
    "B2": CorpusInfo("biomedical", DATA / "bc2gm/devel.tsv", "abstracts. GENE: genes and proteins"),
}
KINDS = tuple(dict.fromkeys(corpus.kind for corpus in CORPORA.values()))

PAPER = {"preset": "paper", "copies": 1}
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "mr": ("mr", {}),
    "mr, best of 8": ("mr", {"candidates": 8}),
    "mr, nearest": ("mr", {"donors": "nearest"}),
    "mr, nearest, best of 8": ("mr", {"donors": "nearest", "candidates": 8}),
    "sr": ("sr", {}),
    "lm": ("lm", {}),
    "bt": ("bt", {}),
    "cr": ("cr", {}),
    "crop": ("crop", {}),
    "rotate": ("rotate", {}),
    "cassi": ("cassi", {}),
    "sis": ("sis", {}),
    "lwtr": ("lwtr", {}),
    "daga": ("daga", {}),
    "melm": ("melm", {}),
    "entda": ("entda", {}),
    "mulda": ("mulda", {}),
    "aclm": ("aclm", {}),
    "mr, paper": ("mr", PAPER),
    "sr, paper": ("sr", PAPER),
    "lm, paper": ("lm", {**PAPER, "masked_lm": "mpnet-mlm"}),
    "bt, paper": ("bt", {**PAPER, "translator": "pt"}),
    "cr, paper": ("cr", {**PAPER, "constituency_parser": "projected"}),
    "cassi, paper": (
        "cassi",
        {
            **PAPER,
            "encoder": "minilm",
            "encoder_layer": 4,
            "exact": False,
            "masked_lm": "mpnet-mlm",
            "dependency_parser": "en_core_web_sm",
        },
    ),
    "entda, paper": ("entda", {**PAPER, "generator": "smollm2", "constrained": True}),
    "entda, paper, same lists": ("entda", {**PAPER, "generator": "smollm2", "constrained": True, "operation": "none"}),
}
"""The methods with the parameters that are not the default. `gal`, `selftrain` and `rewrite` are left out: they need
text of one's own, or a server with a language model, and what they write is as good as that."""
FINE_TUNED = ("melm", "entda", "mulda", "aclm")

INSTRUCTIONS = """\
You read single sentences. Put one mark for each line into your file of marks: its number, a space, and the mark.

+  good: a native speaker would keep it. It is fluent, it makes sense, and the labels are right.
-  not fluent or not sensible: broken grammar, a word that does not fit, parts that do not belong together, a word
   missing or twice, a pronoun or article that does not agree, capitals in the wrong places, text that breaks off.
x  a wrong or missing label, whatever else: a name with the wrong type, words that belong to a name outside of its
   brackets or others inside, a name of a labelled kind without brackets, brackets around what is not of that kind.
   Corpora have rules of their own, such as for articles, titles and general words: only a clear fault counts.

- A surprising, unlikely or false fact is no fault: "Paris is the capital of Kenya" is good. What nobody could mean is:
  "The river signed the treaty", "a fever of the mayor of protein".
- Judge a sentence as what it is: a headline, a table row or a list as one; a line of a newsgroup may be informal; a
  query may be short, in lower case and without punctuation, as people type or say it. Where a corpus is in lower case,
  lower case is no fault. A sentence of an abstract may need what was said before.
- Judge what stands there, not what its source may have said; do not guess who or what wrote it.
- Text is split into tokens: spaces before full stops and around brackets and hyphens are no fault. Labels stand inside
  brackets, behind the words: [Ada Lovelace PER].
- Slips that an editor would not notice are no fault. In doubt between + and -: would you keep the line in a set of
  examples of good English of its kind?
"""


# ---------------------------------------------------------------------------------------------------------- sentences


def shown(sentence: Any) -> str:
    """The tokens of a sentence with its labels in brackets."""
    opens: Counter[int] = Counter()
    closes: dict[int, str] = {}
    # Of nested mentions the inner one is closed first.
    for mention in sorted(sentence.mentions, key=lambda m: m.spans[-1][1] - m.spans[0][0]):
        for start, end in mention.spans:
            opens[start] += 1
            closes[end - 1] = closes.get(end - 1, "") + f" {mention.label}]"
    return " ".join(f"{'[' * opens[i]}{t}{closes.get(i, '')}" for i, t in enumerate(sentence.tokens))


def digest(text: str) -> str:
    """The key of a sentence: a digest of its text with labels, as shown."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def divided(corpus: str) -> tuple[list[Any], list[Any]]:
    """The sentences that methods are fitted to, in a fixed random order, and gold sentences for the reader."""
    import entaug

    info = CORPORA[corpus]
    sentences = [s for s in entaug.read(info.path) if s.mentions]
    if info.genres:
        sentences = [s for s in sentences if (s.id or "").startswith(info.genres)]
    sentences = list({s.tokens: s for s in sentences}.values())
    random.Random(corpus).shuffle(sentences)
    controls, sentences = sentences[:EACH], sentences[EACH:][:POOL]
    return [s.with_(id=f"{corpus}-{i}") for i, s in enumerate(sentences)], controls


def first_source(arm: str, number: int) -> int:
    """Where an arm begins in the order of sources: methods have other sources, so that readers meet each seldom."""
    names = sorted({name for name, _ in ARMS.values()})
    return number * names.index(ARMS[arm][0]) // len(names)


@dataclass
class Record:
    """What a method made on a corpus: the marks of both readers for the digest of each sentence."""

    version: str
    method: str
    corpus: str
    tried: int
    marks: dict[str, str] = field(default_factory=dict)


def generate(arm: str, corpus: str, block: int = 5) -> dict[str, Any]:
    """Write the first new sentences of a method on a corpus, one a source."""
    import entaug

    name, options = ARMS[arm]
    pool = divided(corpus)[0][: TRAINED_POOL if name in FINE_TUNED else POOL]
    begun = time.monotonic()
    method = entaug.create_augmenter(name, **options).fit(pool)
    fitted = time.monotonic()
    first = first_source(arm, len(pool))
    sources = pool[first:] + pool[:first]
    made: dict[str, int] = {}  # and the number of the source
    rejected: Counter[str] = Counter()
    # In blocks, because models are asked for batches; results do not depend on them.
    for start in range(0, len(sources), block):
        places = {source.id: start + i for i, source in enumerate(sources[start : start + block])}
        for sentence in method.augment(sources[start : start + block]):
            assert sentence.provenance is not None
            made.setdefault(shown(sentence), places[sentence.provenance.sources[0]])
        rejected.update(method.statistics_.rejected)
        if len(made) >= EACH:
            break
    first_made = list(made)[:EACH]
    return {
        "method": arm,
        "corpus": corpus,
        "tried": made[first_made[-1]] + 1 if len(first_made) == EACH else len(sources),
        "sentences": first_made,
        "sources": [shown(sources[made[text]]) for text in first_made],
        "rejected": dict(rejected),
        "seconds": [round(fitted - begun), round(time.monotonic() - fitted)],
    }


def generate_all(work: Path, version: str, arms: Sequence[str], corpora: Sequence[str]) -> None:
    """Append what is not in the file of a version yet."""
    import entaug

    work.mkdir(parents=True, exist_ok=True)
    path = work / f"{version}.jsonl"
    print(f"{version}: entaug of {Path(entaug.__file__).parent}", flush=True)
    for arm in arms:
        for corpus in corpora:
            if (arm, corpus) in {(one["method"], one["corpus"]) for one in generated(path)}:
                continue
            try:
                result = generate(arm, corpus)
            except (entaug.EntaugError, OSError) as error:
                print(f"{arm} on {corpus}: {error}", flush=True)
                continue
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, ensure_ascii=False) + "\n")
            print(
                f"{arm} on {corpus}: {len(result['sentences'])} of {result['tried']}, {result['seconds']} s", flush=True
            )


def generated(path: Path) -> list[dict[str, Any]]:
    """The results in the file of a version."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def texts_of(work: Path) -> list[tuple[str, dict[str, Any]]]:
    """What stands in the work folder, by version, and the gold sentences."""
    gold = [
        {"method": "gold", "corpus": name, "tried": EACH, "sentences": list(map(shown, divided(name)[1]))}
        for name in CORPORA
    ]
    versions = [(path.stem, result) for path in sorted(work.glob("*.jsonl")) for result in generated(path)]
    return [*versions, *(("gold", result) for result in gold)]


# ------------------------------------------------------------------------------------------------------------- sheets


def sheets(results: Iterable[tuple[str, dict[str, Any]]], reader: int, read: Iterable[str] = ()) -> list[list[str]]:
    """The lines of the sheets of a reader: each the kind of text and the sentence, numbered, without its origin.

    Args:
        results: versions with what was generated.
        reader: the number of the reader, which determines the order.
        read: digests that this reader has read.
    """
    texts = {text: result["corpus"] for _, result in results for text in result["sentences"]}
    known = set(read)
    lines = sorted(f"{corpus} | {text}" for text, corpus in texts.items() if digest(text) not in known)
    random.Random(reader).shuffle(lines)
    numbered = [f"{number} | {line}" for number, line in enumerate(lines, start=1)]
    count = -(-len(numbered) // LINES)
    size = -(-len(numbered) // count) if count else 1
    return [numbered[start : start + size] for start in range(0, len(numbered), size)]


def head() -> str:
    """What stands above the lines of a sheet."""
    kinds = "".join(f"{name}  {info.kind}: {info.labels}\n" for name, info in CORPORA.items())
    return (
        f"{INSTRUCTIONS}\nThe lines are: NUMBER | KIND OF TEXT | SENTENCE. Kinds of text and their labels:\n\n{kinds}\n"
    )


def write_sheets(work: Path, unread: bool) -> None:
    """Write the sheets of both readers."""
    write_sheets_of(texts_of(work), work, head(), known_marks(load()) if unread else {})


def write_sheets_of(
    results: Sequence[tuple[str, dict[str, Any]]], work: Path, instructions: str, verdicts: dict[str, str]
) -> None:
    """Write the sheets of both readers, without what a reader has read by these verdicts."""
    folder = work / "sheets"
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} has sheets; marks belong to their numbers: move them away first")
    (work / "marks").mkdir(exist_ok=True)
    for reader in READERS:
        read = [key for key, marks in verdicts.items() if marks[reader - 1] != UNREAD]
        for number, lines in enumerate(sheets(results, reader, read), start=1):
            path = folder / f"reader{reader}-{number}.txt"
            path.write_text(instructions + "".join(f"{line}\n" for line in lines), encoding="utf-8")
            print(f"{path}: {len(lines)} lines")


def read_marks(sheet: str, marks: str, name: str = "marks") -> dict[str, str]:
    """Read the marks of a sheet.

    Args:
        sheet: the text of the sheet.
        marks: lines with a number, a mark and possibly more; others are skipped.
        name: what they are called in messages.

    Returns:
        The mark of each sentence, by its digest.
    """
    lines = {int(m[1]): m[2] for m in re.finditer(r"^(\d+) \| \w+ \| (.*)$", sheet, re.MULTILINE)}
    given: dict[int, str] = {}
    for number, mark in re.findall(r"^\s*(\d+)[ \t|:.)]+([-+x])(?=\s|$)", marks, re.MULTILINE):
        if given.setdefault(int(number), mark) != mark:
            raise SystemExit(f"{name}: two marks for line {number}")
    missing, unknown = sorted(lines.keys() - given.keys()), sorted(given.keys() - lines.keys())
    if missing or unknown:
        raise SystemExit(f"{name}: no marks for {len(missing)} lines {missing[:10]}; no lines {unknown[:10]}")
    return {digest(text): given[number] for number, text in lines.items()}


# ------------------------------------------------------------------------------------------------------------- counts


def load() -> list[Record]:
    """The committed records."""
    return [Record(**record) for record in generated(RECORDS)]


def known_marks(records: Iterable[Record]) -> dict[str, str]:
    """The marks of all sentences that were read, by digest."""
    return {key: marks for record in records for key, marks in record.marks.items() if marks.strip(UNREAD)}


def joined(results: Iterable[tuple[str, dict[str, Any]]], verdicts: dict[str, str]) -> list[Record]:
    """Join what was generated with verdicts."""
    records = []
    for version, result in results:
        keys = map(digest, result["sentences"])
        marks = {key: verdicts.get(key, UNREAD * len(READERS)) for key in keys}
        records.append(Record(version, result["method"], result["corpus"], result["tried"], marks))
    return records


def ordered(records: Iterable[Record]) -> list[Record]:
    """Records in the order of methods, versions and corpora; of the same the last."""
    places = [*ARMS, "gold"]
    last = {(r.version, r.method, r.corpus): r for r in records}
    return sorted(
        last.values(), key=lambda r: (places.index(r.method), r.version != "before", list(CORPORA).index(r.corpus))
    )


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Compute Cohen's kappa of the marks of two readers; None where both gave but one and the same mark."""
    counts = [Counter(marks) for marks in zip(*pairs, strict=True)]
    if not counts:
        return None
    expected = sum(counts[0][mark] * counts[1][mark] for mark in counts[0]) / len(pairs) ** 2
    observed = sum(one == other for one, other in pairs) / len(pairs)
    return None if expected == 1 else (observed - expected) / (1 - expected)


def count(records: Iterable[Record], mark: str) -> str:
    """How many sentences have a mark, by each reader, of those that both have read; of those of one if only one has."""
    verdicts = [marks for record in records for marks in record.marks.values()]
    by_both = [marks for marks in verdicts if UNREAD not in marks]
    read = by_both or [marks for marks in verdicts if marks.strip(UNREAD)]
    if not read:
        return "-"
    has_read = [any(marks[reader - 1] != UNREAD for marks in read) for reader in READERS]
    counts = [sum(marks[reader - 1] == mark for marks in read) for reader in READERS]
    shown_counts = [str(n) if has else "-" for n, has in zip(counts, has_read, strict=True)]
    return f"{', '.join(shown_counts)} of {len(read)}"


def agreement(records: Iterable[Record], good: bool = True) -> str:
    """How often two readers agree, and Cohen's kappa: on whether sentences are good, or on all marks."""
    unique = {key: marks for record in records for key, marks in record.marks.items() if UNREAD not in marks}
    if not unique:
        return "-"
    pairs = [(m[0], m[1]) if not good else (str(m[0] == "+"), str(m[1] == "+")) for m in unique.values()]
    kappa = cohen_kappa(pairs)
    equal = sum(one == other for one, other in pairs)
    return f"{equal} of {len(pairs)}" + ("" if kappa is None else f", {kappa:.2f}")


def made_of(records: Sequence[Record]) -> str:
    """The yield: sentences made of sources tried."""
    return f"{sum(len(r.marks) for r in records)} of {sum(r.tried for r in records)}" if records else "-"


def tables(records: Sequence[Record]) -> str:
    """The counts as Markdown."""
    methods = [name for name in (*ARMS, "gold") if any(record.method == name for record in records)]

    def of(method: str, version: str, kind: str | None = None) -> list[Record]:
        versions = ("gold",) if method == "gold" else (version,)
        found = [r for r in records if r.method == method and r.version in versions]
        return [r for r in found if kind in (None, CORPORA[r.corpus].kind)]

    def columns(names: Sequence[str]) -> str:
        return " | ".join(f"{name} {version}" for name in names for version in ("before", "after"))

    def rows(cells: dict[str, list[str]]) -> list[str]:
        names = {name: name if name == "gold" else f"`{name}`" for name in cells}
        return [f"| {' | '.join([names[name], *row])} |" for name, row in cells.items()]

    whole = {
        name: [
            count(of(name, "before"), "+") if name != "gold" else "",
            count(of(name, "after"), "+"),
            count(of(name, "before"), "x") if name != "gold" else "",
            count(of(name, "after"), "x"),
            made_of(of(name, "before")) if name != "gold" else "",
            made_of(of(name, "after")) if name != "gold" else "",
            agreement([*of(name, "before"), *of(name, "after")]),
        ]
        for name in methods
    }
    kinds = {
        name: [
            count(of(name, version, kind), "+") if (name, version) != ("gold", "before") else ""
            for kind in KINDS
            for version in ("before", "after")
        ]
        for name in methods
    }
    return "\n".join(
        [
            f"| method | {columns(('good', 'wrong labels', 'yield'))} | agreement |",
            "|---|---:|---:|---:|---:|---:|---:|---:|",
            *rows(whole),
            "",
            f"All sentences: both readers give the same mark to {agreement(records, good=False)}; they agree on",
            f"whether sentences are good for {agreement(records)} (count, Cohen's kappa).",
            "",
            "## Good by kind of text",
            "",
            f"| method | {columns(KINDS)} |",
            "|---|" + "---:|" * 2 * len(KINDS),
            *rows(kinds),
            "",
        ]
    )


def unread(records: Iterable[Record]) -> str:
    """How many sentences have no verdict, in words."""
    marks = {key: marks for record in records for key, marks in record.marks.items()}
    missing = sum(UNREAD in verdict for verdict in marks.values())
    return f"{missing} of {len(marks)} different sentences are unread, by one reader or both."


def page(records: Sequence[Record]) -> str:
    """The page with the results: what was done, the tables, and the instructions."""
    text = PAGE.read_text("utf-8") if PAGE.is_file() else "# Sentences read blind\n\n"
    return page_of(text, f"{unread(records)}\n\n{tables(records)}", head())


def page_of(text: str, counts: str, instructions: str) -> str:
    """The text of a page up to its counts, with new ones, and the instructions of the readers."""
    shown_instructions = "".join(f"    {line}".rstrip() + "\n" for line in instructions.splitlines())
    return (
        f"{text.partition('<!-- counts -->')[0]}<!-- counts -->\n{counts}\n"
        f"## Instructions of the readers\n\n{shown_instructions}"
    )


def write_counts(work: Path) -> None:
    """Count the marks in the work folder, and write the records and the page."""
    records = ordered([*load(), *joined(texts_of(work), verdicts_of(work, known_marks(load())))])
    write_records(RECORDS, records)
    PAGE.write_text(page(records), encoding="utf-8")
    print(f"{unread(records)}\n\n{tables(records)}")


def verdicts_of(work: Path, known: dict[str, str]) -> dict[str, str]:
    """The marks in the work folder, in place of those that were known, by digest."""
    verdicts = {key: list(marks) for key, marks in known.items()}
    for path in sorted((work / "marks").glob("reader[12]-*.txt")):
        sheet = (work / "sheets" / path.name).read_text("utf-8")
        place = int(path.name[len("reader")]) - 1
        for key, mark in read_marks(sheet, path.read_text("utf-8"), path.name).items():
            verdicts.setdefault(key, [UNREAD] * len(READERS))[place] = mark
    return {key: "".join(marks) for key, marks in verdicts.items()}


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Write records, one a line."""
    path.write_text("".join(json.dumps(asdict(record)) + "\n" for record in records), encoding="utf-8")


def repeat(work: Path, arms: Sequence[str], corpora: Sequence[str]) -> None:
    """Generate with this package, join the committed verdicts, and show the table."""
    generate_all(work, "after", arms, corpora)
    committed = load()
    new = joined([("after", result) for result in generated(work / "after.jsonl")], known_marks(committed))
    records = ordered([*(record for record in committed if record.version != "after"), *new])
    print(f"\n{unread(records)}\n\n{tables(records)}")
    same = sum(record in committed for record in new)
    print(f"{same} of {len(new)} outputs of a method on a corpus are those in {PAGE.name}.")


def main() -> None:
    """Repeat all that can be done again, or one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", nargs="?", choices=("repeat", "generate", "sheet", "count"), default="repeat")
    parser.add_argument("--work", type=Path, default=WORK, help=f"working folder (default: {WORK})")
    parser.add_argument(
        "--version", choices=("before", "after"), default="after", help="what generate calls its output"
    )
    parser.add_argument("--only", nargs="+", choices=ARMS, default=list(ARMS), metavar="METHOD")
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=list(CORPORA))
    parser.add_argument("--unread", action="store_true", help="leave out of the sheets what a reader has read")
    args = parser.parse_args()
    work = args.work.resolve()
    if work.is_relative_to(HERE.parent):
        sys.exit("the working folder has text of other people's corpora: take one outside of the repository")
    if args.step == "generate":
        generate_all(work, args.version, args.only, args.corpora)
    elif args.step == "sheet":
        write_sheets(work, args.unread)
    elif args.step == "count":
        write_counts(work)
    else:
        repeat(work, args.only, args.corpora)


if __name__ == "__main__":
    main()
