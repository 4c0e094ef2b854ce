"""A report as one page of HTML: what was made of what, how good it is, whether it helped, and examples to look through.

The page is one file without a reference to any other: it can be opened from a disk, mailed and archived. Decisions that
are made in it (accept, reject) can be exported for the option ``--apply-review`` of ``entaug filter`` and ``augment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from entaug.augmented import AugmentedCorpus, read_augmented
from entaug.augmenters import METHODS
from entaug.errors import InputError, ParameterError
from entaug.files.streams import STDIN, read_beginning
from entaug.quality import Quality, measure_corpus
from entaug.report.comparison import Run, is_record, parts_of, read_run_records
from entaug.report.html.assembly import assembled
from entaug.workflows.common import Progress, check_output
from entaug.workflows.evaluate import write_text

__all__ = ["PageSummary", "Sorted", "page", "sort_inputs", "write_html_report"]


def _silent(what: str, done: int, total: int | None) -> None:
    pass


@dataclass(frozen=True)
class Sorted:
    """The inputs of a report.

    Args:
        runs: folders of experiments, and files of records.
        augmented: files of sentences.
        notes: those that hold nothing, in words.
    """

    runs: tuple[str, ...] = ()
    augmented: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class PageSummary:
    """What `write_html_report` did.

    Args:
        output: the file.
        pairs: how many examples it shows.
        methods: how many new sentences each method made.
        runs: how many records of experiments there were.
        notes: what the page says that a user should know.
    """

    output: str
    pairs: int = 0
    methods: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    notes: list[str] = field(default_factory=list)


def sort_inputs(inputs: Iterable[str | Path]) -> Sorted:
    """Tell experiments from augmented files by looking at them.

    Raises:
        InputError: one is not there.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "new.jsonl").write_text('{"tokens": ["Ada"]}')
        >>> _ = (folder / "none.jsonl").write_text("")
        >>> found = sort_inputs([folder / "new.jsonl", folder / "none.jsonl"])
        >>> [Path(path).name for path in found.augmented], [note.rpartition("/")[2] for note in found.notes]
        (['new.jsonl'], ['none.jsonl is empty'])
    """
    runs, augmented, notes = [], [], []
    for given in map(str, inputs):
        path = Path(given)
        if not path.exists():
            raise InputError("no such file or folder", path=given, remedy="check the path")
        records = path / "runs.jsonl" if path.is_dir() else path
        if path.is_dir() and not records.is_file():
            augmented.append(given)  # some formats are folders
            continue
        start = read_beginning(records, 1 << 20).lstrip()
        if not start and path.is_file() and records.name != "runs.jsonl":
            notes.append(f"{given} is empty")
        elif not start:
            notes.append(f"{given} holds no record of a run yet")
        elif records.name == "runs.jsonl" or _holds_records(start):
            runs.append(given)
        else:
            augmented.append(given)
    return Sorted(tuple(runs), tuple(augmented), tuple(notes))


def _holds_records(start: bytes) -> bool:
    try:
        return is_record(orjson.loads(start.partition(b"\n")[0]))
    except orjson.JSONDecodeError:
        return False


def page(
    made: AugmentedCorpus | None = None,
    runs: Sequence[Run] = (),
    *,
    qualities: Sequence[Quality] = (),
    title: str = "What augmentation made",
    notes: Sequence[str] = (),
    by_type: bool = False,
) -> str:
    """The page as text.

    Args:
        made: gold and augmented sentences, as `entaug.augmented.read_augmented` gives them.
        runs: records of experiments, as `entaug.read_run_records` gives them.
        qualities: what was measured of methods and of the gold sentences, as `entaug.quality.measure_corpus` gives it.
        title: of the page.
        notes: what a reader should know.
        by_type: tables of F1 by entity type too.

    Raises:
        InputError: runs of one cell have different test sets.
        MissingExtraError: what draws the page is not installed.

    Example:
        >>> from entaug import Sentence
        >>> from entaug.augmented import AugmentedPair
        >>> gold = Sentence(["Ada", "laughs"])
        >>> text = page(AugmentedCorpus([gold], {"mr": [AugmentedPair(Sentence(["Bo", "laughs"]), gold)]}), title="A & B")
        >>> "<title>A &amp; B</title>" in text, "https://" in text
        (True, False)
    """
    parts = parts_of(runs, by_type=by_type) if runs else None
    summaries = {name: METHODS[name].info.summary for name in METHODS}
    return assembled(made or AugmentedCorpus(), parts, qualities, title=title, notes=notes, summaries=summaries)


def write_html_report(
    inputs: str | Path | Iterable[str | Path],
    output: str | Path,
    *,
    gold: str | Path | None = None,
    models: bool = True,
    title: str | None = None,
    force: bool = False,
    by_type: bool = False,
    progress: Progress = _silent,
    **options: Any,
) -> PageSummary:
    """Write a page about augmented files and experiments.

    Args:
        inputs: one or more files of augmented sentences in any format, those of rejected drafts too; folders of
            experiments or their ``runs.jsonl``. Which is which is told by their content.
        output: the file to write.
        gold: the file that was augmented; wanted where the augmented files hold new sentences alone.
        models: measure with language models and encoders too (perplexity, similarity ...).
        title: of the page.
        force: replace a file that exists.
        by_type: tables of F1 by entity type too.
        progress: called now and then.
        options: how augmented files are read, as `entaug.read` takes it.

    Returns:
        What the page holds.

    Raises:
        InputError: an input is missing or faulty.
        MissingExtraError: what draws the page is not installed.
        MissingModelError: a model is not prepared.
        OutputError: the output exists, is an input, or cannot be written.

    Example:
        >>> import entaug, tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> gold = [entaug.Sentence("a b c d e".split())]
        >>> _ = entaug.write([*gold, *entaug.create_augmenter("sis").augment(gold)], folder / "new.jsonl")
        >>> write_html_report([folder / "new.jsonl"], folder / "report.html", models=False).methods
        {'sis': 1}
    """
    files = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    if not all(isinstance(one, str | Path) for one in files):
        raise ParameterError("a page is made of files", remedy="write the sentences to one first: entaug.write")
    given = sort_inputs(files)
    # Before minutes of measuring. A page may stand in the folder of its experiment, but not in one of a corpus.
    check_output(output, STDIN, force=force)
    records = [path for path in given.runs if not Path(path).is_dir()]
    for path in (*given.augmented, *records, *([str(gold)] if gold is not None else [])):
        check_output(output, path, force=force)
    progress("reading", 0, None)
    runs = read_run_records(given.runs) if given.runs else []
    made = (
        read_augmented(given.augmented, gold, **options) if given.augmented or gold is not None else AugmentedCorpus()
    )
    qualities = []
    if any(made.methods.values()):
        chosen: dict[str, Any] = {} if models else {"causal_lm": None, "encoder": None}
        qualities = measure_corpus(made, progress=progress, **chosen)
    notes = list(given.notes)
    stems = [Path(path).stem if Path(path).name != "runs.jsonl" else Path(path).parent.name for path in given.augmented]
    named = title or (f"What was made: {', '.join(stems)}" if 0 < len(stems) < 4 else "What augmentation made")
    text = page(made, runs, qualities=qualities, title=named, notes=notes, by_type=by_type)
    write_text(text, output, force=force)
    kept = {name: sum(pair.rejection is None for pair in pairs) for name, pairs in made.methods.items()}
    pairs = sum(map(len, made.methods.values()))
    told = dict.fromkeys([*notes, *made.notes, *(note for quality in qualities[:1] for note in quality.notes)])
    return PageSummary(str(output), pairs, kept, len(runs), list(told))
