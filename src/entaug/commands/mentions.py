"""``entaug mentions``: let an instruct model write new mentions of the types of a corpus."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import orjson

from entaug.backends.instruct import HOW_TO_NAME, InstructModel, Usage
from entaug.backends.prompts import packaged_prompt, read_prompt
from entaug.backends.resolve import resolve
from entaug.commands.command import Command, FileSummary, OptionGroup
from entaug.commands.options import FORCE, JSON, READING, REQUESTS, add_held_out_option, held_out_sentences
from entaug.config.params import PositiveInt, check_arguments
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import EntaugError, ParameterError, UnknownNameError
from entaug.formats.base import ReadReport
from entaug.formats.file_job import FileJob, FileOptions, check_apart, read_sentences, require_mentions, write_text
from entaug.methods.shared.new_mentions import NewMentions, write_mentions
from entaug.metrics.tables import padded, quantity


@dataclass(kw_only=True)
class MentionsSummary(FileSummary):
    """Result of `mentions`."""

    generator: str
    written: dict[str, int] = field(default_factory=dict)
    missing: dict[str, int] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    def count_lines(self) -> Iterator[str]:
        for label, count in self.written.items():
            missing = self.missing.get(label, 0)
            short = f"; {missing:,} of {count + missing:,} are missing" if missing else ""
            yield f"  {padded(label, 20)} {quantity(count, 'new mention')}{short}"
        for what, counts in (("line not accepted", self.rejected), ("request without an answer", self.failed)):
            yield from (f"  {what}: {count:,} ({reason})" for reason, count in sorted(counts.items()))


def mentions(
    input: str | Path,
    output: str | Path,
    generator: str | InstructModel,
    *,
    labels: Sequence[str] = (),
    number: PositiveInt = 100,
    rounds: PositiveInt = 5,
    temperature: float = 0.8,
    seed: int = 0,
    prompt: str | Path | None = None,
    held_out: Iterable[Sentence] = (),
    progress: Progress = no_progress,
    **files: Unpack[FileOptions],
) -> MentionsSummary:
    r"""Write new mentions of the types of a corpus, one a line in JSON: a list for augment -m mr --mentions FILE.

    Whether a mention is of its type only a reader knows: look through the list before it is used.

    Args:
        input: the training file.
        output: the new list, or ``"-"`` for standard output.
        generator: an instruct model, or its name: ``http://HOST:PORT/v1#MODEL``, or ``FILE.gguf``.
        labels: the types; by default all of the corpus.
        number: how many mentions of each type.
        rounds: how often the model is asked again for those that are missing.
        temperature: temperature of sampling.
        seed: the random seed.
        prompt: a file with the prompt, in place of the packaged one.
        held_out: dev and test sentences, mentions of which are left out.
        progress: the progress callback.
        files: how the files are read and written, see `FileJob`.

    Returns:
        A summary with counts.

    Raises:
        InputError: the input or the prompt is invalid.
        OutputError: the output exists or cannot be written.
        UnknownNameError: the corpus has no mentions of a type.
        ParameterError: the generator is no instruct model.
        EntaugError: no mention was accepted.

    Example:
        >>> import pathlib, tempfile
        >>> from entaug.backends.fakes import FakeInstructModel
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "train.conll").write_text("Ada B-PER\nsings O\n")
        >>> model = FakeInstructModel(answer=lambda request: "Bo\nEve")
        >>> mentions(folder / "train.conll", folder / "new.jsonl", model, number=2).written
        {'PER': 2}
        >>> (folder / "new.jsonl").read_text().splitlines()
        ['{"mention":"Bo","label":"PER"}', '{"mention":"Eve","label":"PER"}']
    """
    check_arguments(mentions, {"number": number, "rounds": rounds})
    job = FileJob(input, output, **files)
    job.check(folders=False)
    text = packaged_prompt("mentions") if prompt is None else read_prompt(prompt, "mentions")
    reading = ReadReport(repair=job.repair)
    with job.open_input() as source:
        corpus = list(read_sentences(source, reading, progress=progress))
    require_mentions(corpus, input)
    known = sorted({mention.label for sentence in corpus for mention in sentence.mentions})
    for label in labels:
        if label not in known:
            raise UnknownNameError("type: the corpus has none that is called", label, known)
    model = resolve("generator", generator)
    if not isinstance(model, InstructModel):
        problem = f"{model.name} is a model to fine-tune, not to ask"
        raise ParameterError(problem, parameter="generator", remedy=HOW_TO_NAME)
    summary = MentionsSummary(input=str(input), output=str(output), generator=model.name)
    notes = [f"mentions of the corpus are sent to {model.remote_host}"] if model.remote_host else []
    excluded = list(held_out)
    results: list[NewMentions] = []
    settings: dict[str, Any] = {"rounds": rounds, "temperature": temperature, "seed": seed, "held_out": excluded}
    wanted = list(dict.fromkeys(labels)) or known
    for done, label in enumerate(wanted):
        progress(f"asking for {label}", done, len(wanted))
        results.append(write_mentions(model, text, corpus, label, number, **settings))
    for new in results:
        summary.written[new.label] = len(new.texts)
        summary.rejected.update(new.rejected)
        summary.failed.update(new.failed)
        if len(new.texts) < number:
            summary.missing[new.label] = number - len(new.texts)
    summary.usage = model.usage
    notes += [f"language model: {line}" for line in model.usage.describe()]
    if not any(summary.written.values()):
        reasons = (summary.rejected + summary.failed).most_common(1)
        reason = f" (most often: {reasons[0][0]})" if reasons else ""
        raise EntaugError(f"no new mention was accepted{reason}", path=str(input), remedy="try another model or prompt")
    records = [{"mention": text, "label": new.label} for new in results for text in new.texts]
    write_text("".join(orjson.dumps(record).decode() + "\n" for record in records), output, force=job.force)
    return summary.finish(reading, notes)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_held_out_option(parser, "mentions of which are left out; may be repeated")
    parser.add_argument("--offline", action="store_true", default=argparse.SUPPRESS, help="use no other machine")


def _values(args: argparse.Namespace) -> dict[str, Any]:
    check_apart([args.output], [*args.held_out, getattr(args, "prompt", None)])
    return {"held_out": held_out_sentences(args) if args.held_out else ()}


COMMAND = Command(
    mentions,
    {
        "generator": {"flags": ("--generator",), "required": True},
        "labels": {"flags": ("--label",), "metavar": "TYPE"},
        "held_out": None,
    },
    (FORCE, JSON, OptionGroup(_add_options, _values), READING, REQUESTS),
)
