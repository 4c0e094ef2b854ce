"""The workflow behind ``entaug augment --executor ray``: one corpus, augmented by the machines of a Ray cluster.

The first process fits the method, and divides the input into parts. Actors of Ray Data, each of which loads the models
once, make the drafts of parts; the first process writes them to the files that ``--shard`` writes, in any order, and
merges them at the end. So the output is that of one process, and every part that is complete survives a kill.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from entaug._version import __version__
from entaug.backends.compute import ComputeSettings, compute_settings, use_compute_settings
from entaug.backends.processes import check_jobs
from entaug.core.corpus import CorpusStream, SentenceKeys
from entaug.core.data import Sentence
from entaug.core.progress import Progress, no_progress
from entaug.errors import EntaugError, InputError, LossError, OutputError, ParameterError
from entaug.files.checkpoints import DirectWriter
from entaug.files.locks import claim
from entaug.files.review import Review, read_review
from entaug.files.streams import is_special, is_stdout
from entaug.formats import CorpusFile
from entaug.formats.base import ReadReport
from entaug.formats.file_job import (
    Options,
    check_apart,
    check_output,
    check_rejected_output,
    instruct_models,
    open_corpora,
)
from entaug.methods.accepting import AugmentSummary, ReviewCounts
from entaug.methods.augment import content_digest, new_summary, processes_for, run_key
from entaug.methods.augmentation import Augmentation
from entaug.methods.base import Augmenter
from entaug.methods.combined import CombinedAugmenter
from entaug.methods.drafting import DraftJob, Made, draft_sources
from entaug.methods.fitted import augmenter_of, fitted_content
from entaug.methods.ray_pool import connected
from entaug.methods.shard_files import Shard, ShardFolder, end_line, json_line, manifest, next_sum, plain_drafts
from entaug.methods.shards import fitted_digest, merge_shards
from entaug.methods.surveys import Sharing, in_parts_or_whole
from entaug.teacher.relabel import check_soft_labels

__all__ = ["augment_on_ray"]

_AT_LEAST = 64  # parts of an input that is large enough
_MAX_PARTS = 99_999
# Sources of a part, at least and at most: a few seconds of work, and much more than it costs to send them.
_WITH_MODELS = (16, 256)
_BY_RULES = (1_000, 20_000)
_SAME = "install the same version and models on all machines, and name one --precision for those with and without a GPU"


@dataclass(frozen=True)
class _Plan:
    """Everything that a worker needs to make the drafts of any part."""

    fitted: bytes | None
    augmenter: bytes
    gold: Sequence[Sentence]
    version: str
    signature: str
    settings: ComputeSettings
    source: CorpusFile
    to: CorpusFile
    review: Review
    with_gold: bool

    def job(self) -> DraftJob:
        """Load the method and its models, and fit it or take over its fit."""
        augmenter: Augmenter | CombinedAugmenter
        if self.version != __version__:
            raise EntaugError(f"a worker has entaug {__version__}, and the first process {self.version}", remedy=_SAME)
        if self.fitted is not None:
            augmenter = augmenter_of(self.fitted)
        else:
            augmenter = pickle.loads(self.augmenter)  # noqa: S301 - written by the first process
            augmenter.fit(self.gold)
        if augmenter.signature != self.signature:
            raise EntaugError(
                f"a worker has {augmenter.signature}, and the first process {self.signature}",
                remedy=_SAME,
            )
        with_rejected = bool(augmenter.filters_) or augmenter.teacher_ is not None
        return DraftJob(augmenter, self.source, self.to, False, self.review, with_rejected, self.with_gold)


class Drafter:
    """Actor that makes the drafts of parts."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._job: DraftJob | None = None

    def __call__(self, part: bytes) -> tuple[int, bytes]:
        """Make the drafts of a part."""
        settings = self._plan.settings
        with use_compute_settings(**vars(settings)):
            if self._job is None:
                self._job = self._plan.job()
                self._plan = replace(self._plan, fitted=None, augmenter=b"", gold=())  # weights may be among these
            job = self._job
            sources, keys = pickle.loads(part)  # noqa: S301 - written by the first process
            made, lines, total = 0, [], ""
            for drafts in draft_sources(job, job.run(), sources, keys, with_examples=lambda: False):
                made += sum(isinstance(outcome, Made) for outcome in drafts.outcomes)
                lines.append(json_line([*plain_drafts(drafts)]))
                total = next_sum(total, lines[-1])
        lines.append(json_line(end_line(len(sources), total)))
        return made, gzip.compress("".join(lines).encode(), compresslevel=6, mtime=0)


def augment_on_ray(
    input: str | Path,
    output: str | Path,
    augmenter: Augmenter | CombinedAugmenter,
    *,
    address: str | None = None,
    only_new: bool = False,
    force: bool = False,
    repair: bool = False,
    from_format: str | None = None,
    to_format: str | None = None,
    read_options: Options = None,
    write_options: Options = None,
    rejected: str | Path | None = None,
    review: str | Path | None = None,
    allow_empty: bool = False,
    jobs: int | None = None,
    progress: Progress = no_progress,
) -> AugmentSummary:
    """Augment a file on a Ray cluster, to the bytes that one process writes."""
    # Input and output are files of the machine that this process runs on; the sentences travel through Ray's object
    # store. Workers need the same version of entaug and the same models. Until the output is written, the folder
    # `OUTPUT.parts` holds the parts that are complete, and a manifest with the sums of input, options, models and fit;
    # an interrupted call goes on from there, also on another cluster.
    begun = time.monotonic()
    check_jobs(jobs)
    if is_stdout(output) or is_special(Path(output)):
        raise OutputError("what a cluster makes is written to a file", path=str(output), remedy="name one")
    check_output(output, input, force=force, folders=True)
    check_rejected_output(rejected, input, output, force=force)
    check_apart([output, rejected], [review])
    decisions = read_review(review, augmenter.name) if review is not None else Review()
    folder = Path(output).with_name(Path(output).name + ".parts")
    with contextlib.ExitStack() as stack:
        source, to = stack.enter_context(
            open_corpora(
                input,
                output,
                force=force,
                from_format=from_format,
                to_format=to_format,
                read_options=read_options,
                write_options=write_options,
            )
        )
        cluster = stack.enter_context(connected(address))
        unfitted = _packed(augmenter)
        augmenter.load()
        _check_models(augmenter)
        pool = cluster.pool(augmenter, jobs)
        check_soft_labels(augmenter.teacher_, to)
        settings = (only_new, repair, sorted(map(repr, decisions.decisions.items())))
        whole, taken = _fitted(augmenter, input, source, to, repair, progress)
        stack.enter_context(claim(folder))
        run = ShardFolder.open(
            folder,
            _manifest(augmenter, whole, source, to, run_key(augmenter, source, to, *settings), decisions, only_new),
            force=force,
        )
        gold = CorpusStream(lambda: source.sentences(ReadReport(repair=repair)))
        content = fitted_content(augmenter, gold)
        plan = _Plan(
            content,
            b"" if content else unfitted,
            () if content else list(gold),
            __version__,
            augmenter.signature,
            compute_settings(),
            source,
            to,
            decisions,
            not only_new,
        )
        missing = run.missing()
        total = whole.before.sentences
        resumed = done = total - sum(_size(shard, total) for shard in missing)
        try:
            for number, (_, lines) in cluster.map(
                pool, Drafter, plan, _work(missing, source, total, taken, repair=repair)
            ):
                shard = Shard(number, run.manifest["of"])
                run.write(shard, lines)
                done += _size(shard, total)
                progress("augmenting", done, total)
            summary = merge_shards(
                [folder / shard.name for shard in run.shards],
                output,
                force=force,
                rejected=rejected,
                allow_empty=allow_empty,
                progress=progress,
            )
        except (InputError, LossError):  # the same run would end in the same way
            run.remove()
            raise
        run.remove()
    summary.resumed_at = max(resumed, summary.resumed_at)
    summary.notes += augmenter.advice(summary.statistics)
    summary.seconds = time.monotonic() - begun
    return summary


def _packed(augmenter: Augmenter | CombinedAugmenter) -> bytes:
    """The method as it was created, for workers that have to fit it themselves."""
    try:
        return pickle.dumps(augmenter)
    except Exception as error:
        raise ParameterError(
            f"{augmenter.name} cannot be sent to other machines ({error})", remedy="give its models by name"
        ) from error


def _check_models(augmenter: Augmenter | CombinedAugmenter) -> None:
    """Check that the method asks no server: cost and requests are counted in one process."""
    for model in instruct_models(augmenter):
        if model.remote_host is not None:
            raise ParameterError(
                f"{augmenter.name} asks {model.name} behind a server, which one process does with many requests at "
                "a time",
                remedy="leave out --executor ray, and set --concurrency",
            )


def _fitted(
    augmenter: Augmenter | CombinedAugmenter,
    input: str | Path,
    source: CorpusFile,
    to: CorpusFile,
    repair: bool,
    progress: Progress,
) -> tuple[AugmentSummary, set[str]]:
    """Fit the method on the input here, by all cores where worth it; return the counts and the ids that are taken."""
    taken: set[str] = set()

    def attempt(jobs: int) -> AugmentSummary:
        whole = new_summary(augmenter, input, "", source, to)
        nothing = DirectWriter(io.BytesIO())
        with Sharing.start(jobs, source) as sharing:
            Augmentation(augmenter, source, to, nothing, whole, repair, progress, sharing, taken).fit(copy_gold=False)
        return whole

    return in_parts_or_whole(attempt, processes_for(None, augmenter, source)), taken


def _manifest(
    augmenter: Augmenter | CombinedAugmenter,
    whole: AugmentSummary,
    source: CorpusFile,
    to: CorpusFile,
    key: str,
    review: Review,
    only_new: bool,
) -> dict[str, Any]:
    """The manifest that all parts of a run share."""
    least, most = _WITH_MODELS if augmenter.uses_models else _BY_RULES
    total = whole.before.sentences
    size = max(least, min(most, total // _AT_LEAST), -(-total // _MAX_PARTS))
    counts = ReviewCounts(len(review.decisions), len(review.rejected), review.others)
    first = Shard(1, max(1, -(-total // size)))
    said = manifest(first, key, whole, to, counts, with_gold=not only_new, fitted=fitted_digest(augmenter))
    del said["shard"]
    # As JSON gives it back.
    return orjson.loads(orjson.dumps({**said, "entaug": "parts", "content": content_digest(source)}))  # type: ignore[no-any-return]


def _size(shard: Shard, total: int) -> int:
    start, stop = shard.range_of(total)
    return stop - start


def _work(
    shards: Iterable[Shard], source: CorpusFile, total: int, taken: Collection[str], *, repair: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers of parts, with their sentences and keys."""
    sentences = source.sentences(ReadReport(repair=repair))
    keys = SentenceKeys(taken)
    done = 0
    for shard in shards:
        start, stop = shard.range_of(total)
        for sentence in islice(sentences, start - done):
            keys.assign(sentence)
        held = list(islice(sentences, stop - start))
        done = stop
        yield shard.number, pickle.dumps((held, [keys.assign(sentence) for sentence in held]))
