"""Digests of what is written, measured, scored, drawn and trained on the example corpus; see `benchmarks/golden.py`.

    .venv/bin/python benchmarks/golden_files.py --check              # all parts: a minute
    .venv/bin/python benchmarks/golden_files.py --check --fast       # without models
    .venv/bin/python benchmarks/golden_files.py --check quality      # some parts
    .venv/bin/python benchmarks/golden_files.py --write              # when an output was meant to change

The record is `tests/golden/files.json`: by part, names and what was found under them. A file stands as the SHA-256 of
its content; files are written without provenance, whose text may change. Numbers are rounded to nine places.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":  # read by libraries when they are imported
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
    os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import gzip
import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

import entaug
import golden
from entaug.errors import EntaugError, LossError
from entaug.formats.files import FORMATS, find_format, open_file
from entaug.metrics.likelihood import log_likelihood
from entaug.study.engine import run_experiment
from entaug.taggers.base import TaggerTrainingConfig, create_tagger
from golden import ROOT, SEED, corpus, digest, environment, recorded, stamped, store
from helpers import fakes

GOLDEN = ROOT / "tests" / "golden" / "files.json"
EXAMPLE = ROOT / "examples" / "corpus"
SEEDS = ROOT / "fuzz" / "seeds"
FAKE_LM = {"show_source": False, "p": 1.0, "dependency_parser": None, "causal_lm": None}
CORPORA = ("train", "nested", "spaced", "nested-spaced", "overlapping")

# Layouts besides the usual one: (name, format, corpora, options of the format).
LAYOUTS: tuple[tuple[str, str, tuple[str, ...], dict[str, Any]], ...] = (
    ("space", "conll", ("train",), {"separator": "space"}),
    ("iobes", "conll", ("train",), {"scheme": "IOBES"}),
    ("bilou", "conll", ("train",), {"scheme": "BILOU"}),
    ("iob1", "conll", ("train",), {"scheme": "IOB1"}),
    ("ids", "conll", ("nested-spaced",), {"ids": True, "texts": True, "overlap": "outermost"}),
    ("outermost", "conll", ("nested",), {"overlap": "outermost"}),
    ("innermost", "conll", ("nested",), {"overlap": "innermost"}),
    ("two columns", "conll", ("nested",), {"tag_columns": "1,2", "overlap": "outermost"}),
    ("three columns", "conll", ("nested",), {"tag_columns": "1,2,3", "overlap": "outermost"}),
    ("numbered", "conll", ("train",), {"numbered_from": 1, "token_column": 1}),
    ("offsets", "jsonl", ("train",), {"entities": "offsets"}),
    ("spans", "jsonl", ("train", "nested"), {"entities": "spans", "label": "label"}),
    ("ids", "jsonl", ("train", "spaced"), {"ids": True, "texts": True}),
    ("outermost", "docbin", ("nested",), {"overlap": "outermost", "mentions": "ents"}),
    ("spans", "docbin", ("train",), {"mentions": "spans", "spans_key": "x"}),
    ("outermost", "parquet", ("nested",), {"overlap": "outermost", "mentions": "tags"}),
    ("entities", "parquet", ("train",), {"mentions": "entities"}),
    ("iobes", "parquet", ("train",), {"scheme": "IOBES"}),
    ("array", "gliner", ("train",), {"array": True}),
    ("lines", "gliner", ("train",), {"array": False}),
    ("tuples", "spacy-json", ("train", "spaced"), {"form": "tuples"}),
    ("lines", "spacy-json", ("train",), {"array": False}),
    ("outermost", "spacy-json", ("nested",), {"overlap": "outermost", "mentions": "ents"}),
    ("tuples", "spacy-json", ("overlapping",), {"form": "tuples"}),
    ("entities", "docbin", ("overlapping",), {"mentions": "spans"}),
    ("completions", "label-studio", ("train",), {"annotations": "completions", "from_name": "ner"}),
    ("no tokens", "label-studio", ("spaced",), {"tokens": False}),
    ("objects", "doccano", ("train", "overlapping"), {"objects": True, "field": "entities"}),
    ("no tokens", "doccano", ("spaced",), {"tokens": False}),
    ("no ws", "prodigy", ("spaced",), {"ws": False}),
)

Found = dict[str, Any]


class Part(NamedTuple):
    """One part of the record.

    Args:
        function: given an empty folder, what it finds, by name.
        kind: ``"fast"`` or ``"models"``.
        libraries: those that its files depend on.
    """

    function: Callable[[Path], Found]
    kind: str = "fast"
    libraries: tuple[str, ...] = ()


# --------------------------------------------------------------------------------------------------------------- files


def of_bytes(data: bytes) -> str:
    """Sixteen figures that stand for the content of a file."""
    return sha256(data).hexdigest()[:16]


def of_sentences(sentences: Sequence[entaug.Sentence]) -> str:
    """The same for sentences without provenance, and their number before it."""
    return f"{len(sentences)} {of_bytes(' '.join(map(digest, sentences)).encode())}"


def of_path(path: Path) -> Any:
    """The same for a file, unpacked since versions of zlib pack differently, or for each in a folder."""
    if not path.is_dir():
        return of_bytes(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
    return {file.relative_to(path).as_posix(): of_path(file) for file in sorted(path.rglob("*")) if file.is_file()}


def rounded(value: Any) -> Any:
    """A value with its numbers rounded, as JSON would have it."""
    if isinstance(value, Mapping):
        return {str(name): rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(one) for one in value]
    return value if value is None or isinstance(value, bool | int | str) else round(float(value), 9)


def _input(name: str, folder: Path) -> Path:
    """A corpus as a file: that of the examples, or JSON lines."""
    if name in ("train", "dev", "nested"):
        return EXAMPLE / {"train": "train.conll", "dev": "dev.conll", "nested": "nested.jsonl"}[name]
    path = folder / f"{name}.jsonl"
    if not path.exists():
        entaug.write(corpus(name), path)
    return path


def _converted(name: str, source: Path, folder: Path, options: Mapping[str, Any]) -> Any:
    """A file in another format, and what is read back of it."""
    form: Any = find_format(name)
    folder.mkdir(parents=True)
    folders = getattr(form, "folder", False)
    path = folder / ("out" if folders or not form.extensions else f"out{form.extensions[0]}")
    found: Found = {}
    try:
        summary = entaug.convert(source, path, to_format=name, allow_loss=["all"], write_options=dict(options))
    except LossError:
        return "refused"
    found["lost"] = sum(summary.lost.values())
    found["file"] = of_path(path)
    back = folder / "back.jsonl"
    entaug.convert(path, back, from_format=name, to_format="jsonl", allow_loss=["all"])
    found["back"] = of_path(back)
    found["sentences"] = of_sentences(list(entaug.read(back)))
    found["recognised"] = open_file(path).format.name == name
    return found


def formats(folder: Path) -> Found:
    """Every format: the example corpora converted to it and back."""
    found: Found = {}
    for name in FORMATS:
        for source in CORPORA:
            found[f"{name}, {source}"] = _converted(name, _input(source, folder), folder / name / source, {})
    for layout, name, sources, options in LAYOUTS:
        for source in sources:
            where = folder / name / layout / source
            found[f"{name}, {layout}, {source}"] = _converted(name, _input(source, folder), where, options)
    return found


def seeds(folder: Path) -> Found:
    """The seeds of the fuzzer: each read, and written like itself."""
    found: Found = {}
    for file in sorted(file for file in SEEDS.rglob("*") if file.is_file()):
        name, own = file.parent.name, folder / file.parent.name / file.name
        form: Any = find_format(name)
        path = own / f"in{'' if getattr(form, 'folder', False) or not form.extensions else form.extensions[0]}"
        own.mkdir(parents=True)
        if getattr(form, "folder", False):
            path.mkdir()
            parts = re.split(rb"=== ([\w.-]{1,40})\n", file.read_bytes())[1:]
            for part, content in zip(parts[::2], parts[1::2], strict=True):
                (path / part.decode()).write_bytes(content)
        else:
            path.write_bytes(file.read_bytes())
        try:
            read = list(entaug.read(path, name, repair=True))
            again = own / path.name.replace("in", "again")
            entaug.write(read, again, name, like=path)
        except EntaugError:
            found[f"{name}/{file.name}"] = "refused"
        else:
            found[f"{name}/{file.name}"] = {"sentences": of_sentences(read), "file": of_path(again)}
    return found


def conll(folder: Path) -> Found:
    """Columns, broken tags and what is counted of them."""
    rows = [
        f"{i}\t{t}\t{t[::-1]}\t{tag}"
        for s in corpus("train")
        for i, (t, tag) in enumerate(zip(s.tokens, s.iob(), strict=True))
    ]
    lines = iter(rows)
    text = "\n".join("".join(f"{next(lines)}\n" for _ in s.tokens) for s in corpus("train"))
    (folder / "columns.conll").write_text(text)
    (folder / "broken.conll").write_text(text.replace("\tB-", "\tI-").replace("in\tni\tO", "in\tni\tI-LOC"))
    found: Found = {}
    for name in ("columns", "broken"):
        path = folder / f"{name}.conll"
        for repair in (False, True):
            summary = entaug.check(path, repair=repair)
            counts = summary.counts
            found[f"{name}, check, repair {repair}"] = {
                "faults": len(summary.errors),
                "repaired": sum(summary.repaired.values()),
                "repeated": summary.repeated,
                "sentences": counts.sentences,
                "mentions": dict(sorted(counts.mentions.items())),
            }
        made = folder / f"{name}.made.conll"
        entaug.augment_file(path, made, entaug.create_augmenter("mr", p=1.0, seed=SEED), repair=True)
        found[f"{name}, augmented"] = of_path(made)
        only = folder / f"{name}.only.jsonl"
        entaug.augment_file(
            path, only, entaug.create_augmenter("lwtr", copies=2, seed=SEED), repair=True, only_new=True
        )
        found[f"{name}, new alone"] = of_sentences(list(entaug.read(only)))
    return found


# -------------------------------------------------------------------------------------------------- methods and filters


def jobs(folder: Path) -> Found:
    """Files augmented, filtered and read back with their sources."""
    found: Found = {}
    for name, method, params in (
        ("train", "mr", {"p": 1.0}),
        ("train", "sis", {}),
        ("nested", "lwtr", {"copies": 3}),
        ("nested-spaced", "mr", {"p": 1.0}),
    ):
        path, source = folder / f"{name}.{method}.jsonl", _input(name, folder)
        aside = folder / f"{name}.{method}.rejected.jsonl"
        augmenter = entaug.create_augmenter(method, seed=SEED, filters="validity+mentions:match_words=false", **params)
        summary = entaug.augment_file(source, path, augmenter, to_format="jsonl", rejected=aside)
        tally = summary.statistics
        key = f"{name}, {method}"
        found[key] = {
            "sentences": of_sentences(list(entaug.read(path))),
            "rejected": of_sentences(list(entaug.read(aside))) if aside.stat().st_size else None,
            "tally": [tally.sources, tally.requested, tally.accepted, tally.missing.total(), tally.rejected.total()],
            "lengths": [summary.before.sentences, summary.after.sentences],
        }
        made = entaug.formats.read_augmented([path], source)
        pairs = [pair for some in made.methods.values() for pair in some]
        told = [
            f"{pair.augmented.id} {pair.source.id if pair.source else None} {len(pair.other_sources)}" for pair in pairs
        ]
        found[f"{key}, pairs"] = of_bytes("\n".join(told).encode())
        for wanted in (
            "duplicates:threshold=0.9",
            "similarity:min_similarity=0.8,max_similarity=0.95",
            "validity:min_length_ratio=0.9+mentions",
        ):
            kept = folder / "kept.jsonl"
            filtered = entaug.filter(path, kept, wanted, gold=source, force=True)
            found[f"{key}, filtered by {wanted}"] = {
                "counts": [filtered.gold, filtered.filtered, filtered.kept, filtered.rejected.total()],
                "sentences": of_sentences(list(entaug.read(kept))),
            }
    return found


def online(folder: Path) -> Found:
    """Sentences drawn anew in each epoch."""
    del folder
    found: Found = {}
    for name, method, params in (
        ("train", "mr", {"p": 1.0}),
        ("train", "lwtr", {"copies": 2}),
        ("nested", "sis", {"p": 1.0}),
        ("train", "crop", {"drop": "roles", "dependency_parser": fakes.FakeDependencyParser()}),
        (
            "train",
            "lm",
            {**FAKE_LM, "masked_lm": fakes.FakeMaskedLM(), "guard": False},
        ),
        ("train", "lwtr", {"filters": "validity+similarity:min_similarity=0.6"}),
    ):
        gold = corpus(name)
        data = entaug.OnlineDataset(gold, entaug.create_augmenter(method, seed=SEED, **params).fit(gold))
        for epoch in range(3):
            found[f"{name}, {method}, {', '.join(params)}, epoch {epoch}"] = of_sentences(list(data.set_epoch(epoch)))
    return found


# ------------------------------------------------------------------------------------------------- measures and scores


def quality(folder: Path) -> Found:
    """All measures of what some methods make; those that need a model with a fake."""
    del folder
    found: Found = {}
    for name, method, params in (
        ("train", "mr", {"p": 1.0}),
        ("train", "lwtr", {}),
        ("nested", "lwtr", {"p": 0.5}),
        ("train", "crop", {"drop": "roles", "dependency_parser": fakes.FakeDependencyParser()}),
    ):
        gold = corpus(name)
        made = list(entaug.create_augmenter(method, copies=2, seed=SEED, **params).fit(gold).augment(gold))
        plain = entaug.metrics.measure_quality(made, gold, causal_lm=None, masked_lm=None, encoder=None)
        found[f"{name}, {method}"] = rounded(plain.values)
        for measure, values in plain.by_sentence.items():
            found[f"{name}, {method}, {measure} by sentence"] = of_bytes(str(rounded(list(values))).encode())
        some = entaug.metrics.measure_quality(
            made[:40],
            gold,
            causal_lm=fakes.FakeCausalLM(),
            masked_lm=fakes.FakeMaskedLM(),
            encoder=fakes.FakeEncoder(),
        )
        # A fake's vectors are of single precision, whose sums may differ in the last places from machine to machine.
        found[f"{name}, {method}, fakes"] = {measure: _short(value) for measure, value in some.values.items()}
    gold = corpus("dev")
    found["log-likelihood"] = _short(list(log_likelihood(gold, fakes.FakeCausalLM())))
    found["pseudo-log-likelihood"] = _short(
        list(entaug.metrics.pseudo_log_likelihood(gold, fakes.FakeMaskedLM(), per_word=True))
    )
    found["best by likelihood"] = entaug.metrics.best_by_likelihood(gold, 5, fakes.FakeMaskedLM())
    found["bertscore"] = _short([list(row) for row in entaug.metrics.pairwise_bertscore(gold[:8], fakes.FakeEncoder())])
    return found


def _short(value: Any) -> Any:
    """As `rounded`, to four places."""
    if isinstance(value, Mapping):
        return {name: _short(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_short(one) for one in value]
    return None if value is None else round(float(value), 4)


def _predicted(sentences: Sequence[entaug.Sentence], every: int) -> Iterator[entaug.Sentence]:
    """Sentences with some faults in their mentions: left out, of another label, a token longer, in the wrong place."""
    number = 0
    for sentence in sentences:
        mentions = set()
        for mention in sentence.mentions:
            number += 1
            fault = number % every
            spans = mention.spans
            if fault == 1:
                continue
            if fault == 2:
                mention = entaug.Mention("LOC", spans)  # noqa: PLW2901
            elif fault == 3 and mention.end < len(sentence):
                mention = entaug.Mention(mention.label, [*spans[:-1], (spans[-1][0], mention.end + 1)])  # noqa: PLW2901
            mentions.add(mention)
        if number % every == 4:
            mentions.add(entaug.Mention("NEW", [(0, 1)]))
        yield sentence.with_(mentions=tuple(mentions))


def scores(folder: Path) -> Found:
    """Predictions scored, and two systems compared."""
    found: Found = {}
    for name in ("train", "nested"):
        gold = corpus(name)
        outcomes = {}
        for every in (5, 7, 11):
            path = folder / f"{name}.{every}.jsonl"
            entaug.write(_predicted(gold, every), path)
            outcome = outcomes[every] = entaug.evaluate(_input(name, folder), path)
            found[f"{name}, every {every}"] = rounded(outcome.to_dict())
            found[f"{name}, every {every}, by sentence"] = of_bytes(str(outcome.sentence_counts()).encode())
        for seed in (0, 1):
            one = entaug.metrics.paired_bootstrap([outcomes[7]], [outcomes[5]], samples=200, seed=seed)
            more = entaug.metrics.paired_bootstrap(
                [outcomes[7], outcomes[11]], [outcomes[5]] * 2, samples=200, seed=seed
            )
            found[f"{name}, bootstrap, seed {seed}"] = rounded([one.gain, one.low, one.high])
            found[f"{name}, bootstrap of two, seed {seed}"] = rounded([more.gain, more.low, more.high])
    return found


def subsets(folder: Path) -> Found:
    """Subset files drawn in every way."""
    found: Found = {}
    for name in ("train", "nested"):
        for how in ("progressive", "first", "fraction", "stratified"):
            for seed in (0, SEED):
                where = folder / name / how / str(seed)
                sizes: list[float] = [0.25, 0.5, 3] if how == "fraction" else [3, 7, 15]
                entaug.subset(_input(name, folder), where, sizes, how=how, seed=seed, with_rest=True)
                found[f"{name}, {how}, seed {seed}"] = of_path(where)
    return found


# -------------------------------------------------------------------------------------------------------------- taggers


def taggers(folder: Path) -> Found:
    """Taggers trained for some steps: what they predict, and how sure they are."""
    import torch

    torch.set_num_threads(1)
    del folder
    found: Found = {}
    for name, source, params, steps in (
        ("linear", "train", {}, 20),
        ("linear", "nested", {"overlap": "outermost"}, 10),
        ("bilstm-crf", "train", {}, 8),
        ("static-bilstm-crf", "train", {}, 20),
        ("w2ner", "nested", {}, 6),
        ("seq2seq", "nested", {}, 6),
    ):
        gold, dev = corpus(source), corpus("dev" if source == "train" else "nested")
        tagger = create_tagger(name, **params)
        tagger.fit(gold, config=TaggerTrainingConfig(steps=steps, batch_size=8, seed=SEED))
        predicted = tagger.predict(dev)
        found[f"{name}, {source}"] = {
            "sentences": of_sentences(predicted),
            "mentions": sum(len(sentence.mentions) for sentence in predicted),
            "f1": rounded(entaug.score(dev, predicted).micro.f1),
            "confidences": (
                [] if name == "w2ner" else [round(float(one), 6) for one in tagger.confidences(corpus("dev")[:10])]
            ),
            "losses": [round(float(one), 6) for one in getattr(tagger, "history_").losses],  # noqa: B009
        }
    kept = create_tagger("linear")
    kept.fit(
        corpus("train")[:30], corpus("dev"), TaggerTrainingConfig(epochs=3, batch_size=16, checkpoint="best", seed=SEED)
    )
    found["linear, the best epoch"] = of_sentences(kept.predict(corpus("dev")))
    return found


def models(folder: Path) -> Found:
    """Measures and likelihoods with the starter models."""
    import torch

    torch.set_num_threads(1)
    del folder
    gold = corpus("train")
    made = list(islice(entaug.create_augmenter("mr", p=1.0, seed=SEED).fit(gold).augment(gold), 12))
    found: Found = {}
    measured = entaug.metrics.measure_quality(made, gold, masked_lm="tiny-bert")
    found["quality"] = {name: None if value is None else round(value, 6) for name, value in measured.values.items()}
    likely = entaug.metrics.pseudo_log_likelihood(made[:3], per_word=True)
    found["pseudo-log-likelihood"] = [round(float(one), 5) for one in likely]
    return found


_PLAN = """\
output = "runs"
seeds = [1]
ratios = [1]
threads = 1

[training]
epochs = 3
batch_size = 8

[[taggers]]
name = "linear"

[[corpora]]
name = "news"
train = "EXAMPLE/train.conll"
dev = "EXAMPLE/dev.conll"
test = "EXAMPLE/test.conll"
sizes = [24]
subset = "stratified"

[[methods]]
name = "mr"
p = 0.7

[[methods]]
name = "lwtr"
filters = "validity"
"""


def experiment(folder: Path) -> Found:
    """A small plan: for each run how much was learned from, and the counts on dev and test; and a tagger kept."""
    plan = folder / "plan.toml"
    plan.write_text(_PLAN.replace("EXAMPLE", EXAMPLE.as_posix()))
    run_experiment(plan, jobs=1)
    found: Found = {}
    for number, line in enumerate((folder / "runs" / "runs.jsonl").read_text().splitlines()):
        record = json.loads(line)
        micro = [[record[part]["micro"][count] for count in ("correct", "predicted", "gold")] for part in _HELD_OUT]
        found[f"run {number}"] = [record["steps"], *record["sentences"].values(), *micro]
    tagger = create_tagger("linear")
    summary = entaug.train(
        EXAMPLE / "train.conll",
        folder / "tagger",
        tagger,
        config=TaggerTrainingConfig(steps=20, batch_size=16, seed=SEED),
    )
    outcome = entaug.evaluate(EXAMPLE / "dev.conll", folder / "tagger")
    found["kept"] = [summary.sentences, summary.labels, *outcome.micro]
    return found


_HELD_OUT = ("dev", "test")

PARTS = {
    "formats": Part(formats, libraries=("spacy", "pyarrow", "datasets", "orjson")),
    "seeds": Part(seeds, libraries=("spacy", "pyarrow", "datasets", "orjson")),
    "conll": Part(conll),
    "jobs": Part(jobs),
    "online": Part(online),
    "quality": Part(quality),
    "scores": Part(scores, libraries=("numpy",)),
    "subsets": Part(subsets),
    "taggers": Part(taggers, "models"),
    "models": Part(models, "models"),
    "experiment": Part(experiment, "models"),
}


# --------------------------------------------------------------------------------------------------------- command line


def run(name: str) -> Found:
    """What a part finds."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        return PARTS[name].function(Path(folder))


def comparable(name: str) -> str | None:
    """Why what a part finds here cannot be compared with the record; None where it can."""
    part = PARTS[name]
    if part.kind == "models":
        return golden.comparable(GOLDEN)
    known, here = recorded(GOLDEN).get("versions", {}), environment()["versions"]
    others = [f"{library} {known.get(library)}" for library in part.libraries if known.get(library) != here[library]]
    return f"recorded with other versions: {', '.join(others)}" if others else None


def differences(old: Found | None, new: Found) -> list[str]:
    """What differs between the record of a part and what was found now."""
    if old is None:
        return ["is not recorded"]
    names = [*old, *(name for name in new if name not in old)]
    return [f"{name}: {old.get(name)} -> {new.get(name)}" for name in names if old.get(name) != new.get(name)]


def main() -> int:
    """Check or record some parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--write", action="store_true", help="record what is found; other parts stay as they are")
    parser.add_argument("--check", action="store_true", help="compare what is found with the record")
    parser.add_argument("--fast", action="store_true", help="only the parts without models")
    args = parser.parse_args()
    if unknown := [name for name in args.parts if name not in PARTS]:
        sys.exit(f"no such part: {', '.join(unknown)}")
    if not (args.write or args.check):
        sys.exit("nothing to do: give --check or --write")
    chosen = [name for name in PARTS if not args.parts or name in args.parts]
    chosen = [name for name in chosen if not (args.fast and PARTS[name].kind == "models")]
    print(f"entaug {entaug.__version__} of {Path(entaug.__file__).parent}", flush=True)
    record = recorded(GOLDEN)
    if args.write and any(map(comparable, chosen)):  # other parts are the same everywhere
        record = stamped(
            record, chosen, [name for name, part in PARTS.items() if part.kind == "models" or part.libraries]
        )
    faulty = 0
    for name in chosen:
        begun = time.monotonic()
        new = run(name)
        found = differences(record["cases"].get(name), new) if args.check else []
        faulty += bool(found)
        told = f"{time.monotonic() - begun:7.1f} s  {name}: {len(new)} entries"
        print("\n      ".join([told, *found]), flush=True)
        if args.write:
            record = {**record, "cases": {**record["cases"], name: new}}
            store(record, list(PARTS), GOLDEN)
    if args.check:
        print(f"{faulty} parts differ" if faulty else "nothing differs")
    return int(bool(faulty))


if __name__ == "__main__":
    sys.exit(main())
