"""Every command and every block of Python in README.md, CONTRIBUTING.md, the pages and the plug-in's README runs.

A command runs in a folder that holds the files it names. Commands that download models from the hub are parsed only;
those that use starter models run on a few sentences, and those that train one are marked slow as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

import entaug
import page_text
from conftest import EXAMPLE, ROOT
from entaug.commands.main import _parse, main
from entaug.methods import METHODS
from helpers.scripted_server import Reply, echo, serving

PAGES = [*page_text.PAGES, ROOT / "CONTRIBUTING.md", ROOT / "examples" / "plugin" / "README.md"]
# Parsed only: what they name is downloaded, installed or prepared elsewhere.
PARSED_ONLY = (
    "allenai/scibert",
    "dslim/",
    "urchade/",
    "Helsinki-NLP/",
    "facebook/bart",
    "google-t5/",
    "--preset paper",
    "de_dep_news_trf",
    "stanza:en",
    "models prepare --source",
    "--merge",
    ".gguf",
    "entaug serve",
)
# Any other program than entaug that a page may name.
OTHER_PROGRAMS = (
    *("pip install", "python -m spacy ", "make ", "head -n", "python docs/record.py"),
    *("label-studio start", "export "),
)
# Filters and commands that need starter models.
MODEL_FILTERS = ("fluency", "consistency", "similarity")
TRAINED = ("aclm", "daga", "entda", "melm", "mulda", "selftrain")
SERVER = "http://localhost:8080/v1"  # stands for a scripted one
FEW = 8  # sentences for methods with models
AUTO_FEW = 40  # sentences for cross-validation


class Block(NamedTuple):
    """A fenced block."""

    page: str
    kind: str
    mark: str  # of an HTML comment on the line before
    text: str


class Line(NamedTuple):
    """A command in a block."""

    page: str
    text: str


def blocks(path: Path) -> list[Block]:
    pattern = re.compile(r"(?:<!-- ([^\n]*?) -->\n)?^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    page = path.relative_to(ROOT).as_posix()
    return [Block(page, kind, mark, text) for mark, kind, text in pattern.findall(path.read_text("utf-8"))]


BLOCKS = [block for path in PAGES for block in blocks(path)]


def commands() -> Iterator[Line]:
    for block in BLOCKS:
        if block.kind in ("", "sh", "console"):
            for line in block.text.splitlines():
                if block.kind != "console" or line.startswith("$ "):
                    yield Line(block.page, line.removeprefix("$ ").strip())


def needs_models(arguments: list[str]) -> tuple[bool, bool]:
    """Whether a command uses starter models, and whether it takes minutes."""
    text = " ".join(arguments)
    command, *rest = arguments
    if command == "augment":
        method = next(rest[i + 1] for i, option in enumerate(rest) if option in ("-m", "--method"))
        names = [name for part in method.split("+") for name in part.partition(":")[0].split(",")]
        needs = any(METHODS[name].info.needs for name in names if name != "lowercase") and SERVER not in text
        needs = needs or any(option in text for option in ("--teacher", "--candidates"))
        needs = needs or any(f"--filter {name}" in text for name in MODEL_FILTERS)
        is_slow = (bool(set(names) & set(TRAINED)) and SERVER not in text) or (
            "cassi" in names and "causal" not in rest
        )
        return needs, is_slow or "--teacher" in text
    if command == "experiment":
        return "--check" not in text, "--check" not in text
    if command in ("quality", "report"):
        return "--no-models" not in text and ".md" not in text and "--list" not in text, False
    if command in ("train", "predict", "suggest", "audit", "auto", "advise", "relabel", "export"):
        is_trained = "--teacher none" not in text and not (command == "audit" and "--apply-review" in text)
        return is_trained, is_trained
    if command == "evaluate":
        is_trained = any(Path(argument).name == "tagger" for argument in rest)
        return is_trained or "spacy:" in text, is_trained
    is_prepared = command == "models" and rest[0] != "list"
    options = ("--phrases", *(f"--filter {name}" for name in MODEL_FILTERS))
    return is_prepared or any(option in text for option in options), False


def cases() -> Iterator[object]:
    seen = set()
    for page, text in commands():
        arguments = shlex.split(re.sub(r"(^|\s)#.*", "", text))  # a # in a word is no comment
        if arguments[:1] != ["entaug"] or tuple(arguments) in seen:
            continue
        seen.add(tuple(arguments))
        marks = []
        if not any(name in text for name in PARSED_ONLY):
            with_models, trained = needs_models(arguments[1:])
            is_slow = trained or SERVER in text or (with_models and page != "README.md")
            marks = [pytest.mark.models] * with_models + [pytest.mark.slow] * is_slow
        yield pytest.param(arguments[1:], marks=marks, id=f"{page}: {shlex.join(arguments)}")


def chain_trees(sentences: list[entaug.Sentence]) -> str:
    """Dependency trees in CoNLL-U, in which every token depends on the one before it."""
    texts = []
    for sentence in sentences:
        rows = [
            f"{i}\t{token}\t_\t{'VERB' if i == 1 else 'NOUN'}\t_\t_\t{i - 1}\t{'root' if i == 1 else 'obj'}\t_\t_"
            for i, token in enumerate(sentence.tokens, 1)
        ]
        texts.append("\n".join(rows))
    return "\n\n".join(texts) + "\n\n"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages name."""
    folder = tmp_path_factory.mktemp("prepared")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("plan-runs"))
    for name in ("train", "dev", "test"):
        shutil.copy(EXAMPLE / f"{name}.conll", folder)
    gold = list(entaug.read(EXAMPLE / "train.conll"))
    test = list(entaug.read(EXAMPLE / "test.conll"))
    new = list(entaug.augment(gold[:FEW], "mr", seed=13))
    entaug.write([*gold, *new], folder / "bigger.conll")
    entaug.write([*gold, *new], folder / "bigger.jsonl")
    entaug.write([*gold, *new], folder / "final.jsonl")
    entaug.write(new, folder / "new.jsonl")
    entaug.write(new, folder / "mr.jsonl")
    for name in ("lwtr", "other"):
        entaug.write(entaug.augment(gold[:FEW], "lwtr", seed=13), folder / f"{name}.jsonl")
    entaug.write(test, folder / "predicted.conll")
    entaug.write(gold, folder / "papers", format="brat")
    (folder / "news.txt").write_text("Ada Moss left Lisbon on Monday. Nobody knew why.\nThe BreezeBox sells well.\n")
    nested = [s for s in entaug.read(EXAMPLE / "nested.jsonl") if all(m.is_contiguous for m in s.mentions)]
    entaug.write(nested, folder / "export.json", format="label-studio")
    entaug.write(nested, folder / "nested.jsonl")
    entaug.write(gold, folder / "inception.tsv", format="webanno", layer="Drug")
    (folder / "ner_dataset.csv").write_text("Sentence #,Word,Tag\nSentence: 1,Zoë,B-PER\n,sang,O\n", encoding="cp1252")
    entaug.write(gold, folder / "wiki.conll")
    entaug.write([dataclasses.replace(s, meta={"language": "en"}) for s in gold[:FEW]], folder / "en-and-de.jsonl")
    (folder / "train.conllu").write_text(chain_trees(gold), "utf-8")
    decision = {"fingerprint": new[0].fingerprint().hex(), "decision": "reject", "method": "mr", "id": new[0].id}
    (folder / "review.json").write_bytes(orjson.dumps({"entaug": "review", "version": 1, "decisions": [decision]}))
    wrong = gold[0].with_(mentions=())
    correction = {"of": gold[0].fingerprint().hex(), "given": gold[0].to_dict()["mentions"][0], "suggested": None}
    accepted = {"fingerprint": wrong.fingerprint().hex(), "decision": "accept", "correction": correction}
    (folder / "label-review.json").write_bytes(
        orjson.dumps({"entaug": "review", "version": 1, "decisions": [accepted]})
    )
    prepare_ratings(folder, gold)
    records = ROOT / "benchmarks" / "results" / "first-study" / "runs.jsonl"
    for runs in ("runs", "examples/plan-runs"):
        (folder / runs).mkdir()
        shutil.copy(records, folder / runs / "runs.jsonl")
    (folder / "new-names.jsonl").write_text('{"mention": "Ines Quark", "label": "PER"}\n')
    (folder / "more.txt").write_text("Ada Moss returned to Lisbon.\nThe BreezeBox sells well again.\n")
    (folder / "result").mkdir()
    entaug.write(new, folder / "result" / "augmented.jsonl")
    (folder / "names.txt").write_text("Ada Moss\n")
    (folder / "cities.txt").write_text("Lisbon\n")
    (folder / "sources.toml").write_text('sources = ["lists:names.txt=PER", "lists:cities.txt=LOC"]\n')
    (folder / "mine.toml").write_text('user = "{sentence}"\n')
    return folder


def prepare_ratings(folder: Path, gold: list[entaug.Sentence]) -> None:
    """A page for raters with its key, what two raters exported from it, and scales of a user."""
    entaug.write(entaug.augment(gold[:FEW], "mr", copies=3, seed=13), folder / "copies.jsonl")
    page = entaug.rate([folder / "mr.jsonl"], folder / "rate.html", gold=folder / "train.conll")
    for rater, rating in (("ada", 4), ("bo", 5)):
        head = {"entaug": "ratings", "version": 1, "page": page.page, "rater": rater}
        lines = [head, {"item": 1, "scale": "fluent", "rating": rating}]
        (folder / f"ratings-{rater}.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    (folder / "mine-scales.toml").write_text('[useful]\nquestion = "Useful?"\nanchors = ["no", "yes"]\n')


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workspace"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder


def test_every_line_of_the_blocks_is_known() -> None:
    """A line is a command of entaug, another known program, or continues one of them; so none is skipped unseen."""
    lines = [line for line in commands() if line.text and not line.text.startswith("#")]
    programs = [line for line in lines if not line.text.startswith(("entaug ", *OTHER_PROGRAMS))]
    # What is left is not a command: a line of METHODS and the tree of a package.
    assert [line.text for line in programs] == ['"wd": "entaug.methods.deletion:WordDropout",']
    assert len([line for line in lines if line.text.startswith("entaug ")]) > 50


@pytest.mark.parametrize("arguments", list(cases()))
def test_commands(
    arguments: list[str], workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shlex.join(["entaug", *arguments])
    if "lowercase" in arguments:  # the plug-in, which another test installs
        monkeypatch.syspath_prepend(ROOT / "examples" / "plugin" / "src")
        monkeypatch.setitem(METHODS._built_in, "lowercase", "entaug_lowercase:LowercaseMentions")
    train_named_taggers(arguments)
    args = _parse(arguments)
    if any(name in text for name in PARSED_ONLY):
        return
    with_models, _ = needs_models(arguments)
    if with_models:
        is_split = arguments[0] in ("auto", "advise")
        few = list(entaug.read("train.conll"))[: AUTO_FEW if is_split else FEW]
        for name in ("train.conll", "examples/corpus/train.conll"):
            Path(name).unlink()
            entaug.write(few, name)
    output = getattr(args, "output", None)
    if output and output != "-" and output not in (getattr(args, "input", None), "examples/plan-runs"):
        target = workspace / output
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    if arguments[0] == "rate" and output:
        Path(output).with_suffix(".key.json").unlink(missing_ok=True)
    if arguments[0] == "experiment" and "--check" not in arguments:
        shutil.rmtree("examples/plan-runs")
        plan = Path("examples/plan.toml")
        small = {"seeds = [1, 2, 3]": "seeds = [1]", "epochs = 10": "epochs = 1", "sizes = [50]": "sizes = [4]"}
        plan.write_text(replace_all(plan.read_text("utf-8"), small), "utf-8")
    arguments = [*arguments, *limits_of_study(arguments)]
    is_trained = arguments[0] == "augment" and args.method in TRAINED and SERVER not in text
    extra = ["--epochs", "1"] if is_trained and args.method != "selftrain" else []
    extra += ["--ensemble-steps", "2"] if is_selftrain(arguments) else []
    extra += ["--steps", "2"] if "--steps" in arguments else []
    extra += quick_teacher(arguments) if with_models else []
    if is_trained and "generator" in METHODS[args.method].info.needs:  # hardly trained, it seldom ends a text by itself
        extra += ["--max-new-tokens", "32"]
    with contextlib.ExitStack() as stack:
        if SERVER in text:
            pytest.importorskip("httpx")
            url = stack.enter_context(serving(replies_of_a_model)).url
            arguments = [argument.replace(SERVER, url) for argument in arguments]
            monkeypatch.setenv("ENTAUG_LLM_ANSWERS", "answers.sqlite")
        code = main([*arguments, *extra])
    captured = capsys.readouterr()
    # What is hardly trained may write nothing that is accepted; then the command has done its work too.
    is_empty = code == 2 and is_trained and "generated no sentence" in captured.err
    assert code == 0 or is_empty, captured.err
    if output and output != "-" and not is_empty:
        assert (workspace / output).exists()


def limits_of_study(arguments: list[str]) -> list[str]:
    """Options with which a command that trains many taggers ends soon."""
    if arguments[0] == "auto":
        return ["--steps", "2", "--repeats", "1", *([] if "--dev" in arguments else ["--folds", "2"])]
    return ["--steps", "2", "--jobs", "1", "--budget", "0.01"] if arguments[0] == "advise" else []


def train_named_taggers(arguments: list[str]) -> None:
    """Train the taggers that a command reads; they must be there when its options are parsed."""
    names = {"result/tagger", "larger-tagger"} & set(arguments) if arguments[0] == "augment" else set()
    if arguments[0] == "evaluate" and "--tagger" not in arguments and Path(arguments[2]).name == "tagger":
        names.add(arguments[2])
    if arguments[0] in ("predict", "export") and ":" not in arguments[1]:
        names.add(arguments[1])
    for name in names:
        assert main(["train", "train.conll", "-o", name, "--epochs", "1"]) == 0


def quick_teacher(arguments: list[str]) -> list[str]:
    """Options that cut the training of the teachers of an audit short."""
    tagger = "w2ner" if "nested.jsonl" in arguments else "linear"
    return ["--teacher", f"{tagger}:steps=2", "--folds", "2"] if arguments[0] == "audit" else []


def is_selftrain(arguments: list[str]) -> bool:
    """Whether a command labels unlabelled text by an ensemble of its own, whose training can be cut short."""
    return arguments[0] == "augment" and "selftrain" in arguments and "--tagger" not in arguments


def replies_of_a_model(body: dict[str, Any], before: int) -> Reply:
    """Answers like those of a model: some names, a new sentence, or the input with another word, as requested."""
    if "of one type" in body["messages"][0]["content"]:
        return Reply("\n".join(f"{first} {last}" for first in ("Ines", "Otto", "Uwe") for last in ("Quark", "Zeh")))
    if "Write one new sentence" in body["messages"][0]["content"]:
        return Reply(f"They closed the old bridge for {2 + body['seed'] % 7} weeks while workers repaired it .")
    reply = echo(body, before)
    reply.text = re.sub(r"\b[A-Z]+: ", "", reply.text).replace(" | ", " , ")  # a list of mentions, without its types
    return reply


def replace_all(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text
        text = text.replace(old, new)
    return text


def python_pages() -> Iterator[object]:
    for path in PAGES:
        if any(block.kind == "python" and not block.mark.startswith("example") for block in blocks(path)):
            name = path.relative_to(ROOT).as_posix()
            marks = [pytest.mark.models, pytest.mark.slow] if name == "docs/scoring.md" else []
            yield pytest.param(path, id=name, marks=marks)


@pytest.mark.parametrize("path", list(python_pages()))
def test_python(path: Path, workspace: Path) -> None:
    """The blocks of a page run one after the other; those of CONTRIBUTING.md are run by tests/docs/test_docs.py."""
    assert workspace
    namespace: dict[str, object] = {}
    for block in blocks(path):
        if block.kind == "python" and not block.mark.startswith("example"):
            exec(compile(block.text, block.page, "exec"), namespace)  # noqa: S102
