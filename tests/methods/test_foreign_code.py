"""Methods, filters and backends of other packages with faults: each is told in one line that names them."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import entaug
from conftest import EXAMPLE
from entaug.backends import resolve as backends
from entaug.backends.component import code_digest
from entaug.backends.processes import with_plain_errors
from entaug.config.params import Probability
from entaug.config.registry import Registry
from entaug.core.data import Sentence
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, ParameterError
from entaug.filters import FILTERS, Filter, _check_filter
from entaug.formats.files import _check_format, find_format
from entaug.methods import METHODS
from entaug.methods.augment import augment_file
from entaug.methods.base import Augmenter, MethodInfo
from entaug.methods.names import _check_method
from entaug.study.engine import run_error
from entaug.study.plan import MethodPlan

GOLD = [Sentence("Ada left Rome .".split(), [Mention("PER", [(0, 1)])], id="s1"), Sentence(["Bo", "sat"], id="s2")]


@dataclass(kw_only=True, eq=False)
class Mine(Augmenter):
    """Do what a test says."""

    info: ClassVar[MethodInfo] = MethodInfo(name="mine", long_name="my-own", summary="of a test", paper="none")
    p: Probability = 0.5
    table: dict[str, float] = field(default_factory=dict)
    returned: ClassVar[Any] = None

    def _rewrite(self, sentence: Sentence, rng: Random) -> Any:
        return type(self).returned(sentence)


class TwoArgumentsError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


NAMED = r"the method mine \(test_foreign_code\.Mine\)"


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda _: None, f"{NAMED}: returned NoneType, not a Sentence or a Rejection, for the sentence s1; correct"),
        (lambda s: list(s.tokens), f"{NAMED}: returned list, not a Sentence"),
        (lambda s: Sentence(s.tokens[:1], [Mention("PER", [(0, 3)])]), rf"{NAMED}, sentence s1: span \(0, 3\)"),
        (lambda s: s.edit([Edit(0, 9, ())]), f"{NAMED}, sentence s1: "),
        (lambda _: importlib.import_module("absent_one"), f"{NAMED} needs 'absent_one', which is not installed; ins"),
    ],
)
def test_what_a_method_returns_is_checked(monkeypatch: pytest.MonkeyPatch, returned: Any, message: str) -> None:
    monkeypatch.setattr(Mine, "returned", returned)
    with pytest.raises(EntaugError, match=message):
        list(Mine().augment(GOLD))


def test_the_number_of_results_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Mine, "_rewrite_batch", lambda _, requests: [r.sentence for r in requests][:-1])
    with pytest.raises(EntaugError, match=f"{NAMED}: 1 results for 2 requests"):
        list(Mine().augment(GOLD))


def test_other_errors_name_the_method_and_reach_the_first_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Sentence) -> None:
        raise TwoArgumentsError("no", "luck")

    monkeypatch.setattr(Mine, "returned", fail)
    with pytest.raises(TwoArgumentsError) as caught:
        list(Mine().augment(GOLD))
    note = "raised in the method mine (test_foreign_code.Mine), sentence s1, which is not a part of entaug"
    assert caught.value.__notes__ == [note]
    with pytest.raises(RuntimeError, match="TwoArgumentsError: no luck") as sent:
        with_plain_errors(lambda: list(Mine().augment(GOLD)))
    received = pickle.loads(pickle.dumps(sent.value))  # noqa: S301 - packed here
    assert received.__notes__ == [note]
    corpus = SimpleNamespace(name="c")
    split, tagger = SimpleNamespace(corpus=corpus, size=1), SimpleNamespace(label="t")
    shown: Any = SimpleNamespace(split=split, tagger=tagger, arm="mine", ratio=1, seed=1)
    assert "failed in the method mine (test_foreign_code.Mine) (RuntimeError: " in str(run_error(shown, received))


def test_a_fault_of_the_corpus_is_none_of_the_method(tmp_path: Path) -> None:
    class Reading(Mine):
        def _fit(self, corpus: Any) -> None:
            list(corpus)

    (tmp_path / "a.conll").write_text("Ada B-PER\nsits O\n\nBo I-PER\nsits X-PER\n")
    with pytest.raises(InputError) as caught:
        Reading().fit(entaug.stream(tmp_path / "a.conll"))
    assert str(caught.value).startswith(f"{tmp_path / 'a.conll'}:")
    assert "mine" not in str(caught.value)


@dataclass(kw_only=True, eq=False)
class Judge(Filter):
    """Decide as a test says."""

    name: ClassVar[str] = "judge"
    summary: ClassVar[str] = "of a test"
    reasons: ClassVar[tuple[str, ...]] = ("bad",)
    decisions: ClassVar[Any] = ()

    def _judge(self, sentences: Sequence[Sentence], sources: Sequence[Sentence | None]) -> Any:
        return type(self).decisions


@pytest.mark.parametrize(
    ("decisions", "message"),
    [((), "0 decisions for 2 sentences"), ((None, True), "a decision must be a reason or None, not True")],
)
def test_what_a_filter_decides_is_checked(monkeypatch: pytest.MonkeyPatch, decisions: Any, message: str) -> None:
    monkeypatch.setattr(Judge, "decisions", decisions)
    with pytest.raises(EntaugError, match=rf"the filter judge \(test_foreign_code\.Judge\): {message}; correct"):
        Judge().fit(GOLD).judge(GOLD, GOLD)


def of_method(**members: Any) -> Any:
    return type("Other", (Augmenter,), members)


INFO = MethodInfo(name="other", long_name="other-one", summary="x", paper="none")


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (of_method(info=INFO), "neither a method _rewrite nor _rewrite_batch"),
        (of_method(_rewrite=print), "no class attribute `info`"),
        (
            of_method(info=INFO, _rewrite=print, p=0.5, __annotations__={"p": Probability}),
            "'p' is no parameter: write @d",
        ),
        (
            dataclass(of_method(info=INFO, _rewrite=print, p=1, __annotations__={"p": "Nowhere"}), kw_only=True),
            "name 'Nowhere' is not defined",
        ),
    ],
)
def test_declarations_of_methods_are_checked(cls: Any, message: str) -> None:
    with pytest.raises((TypeError, NameError), match=message):
        _check_method("other", cls)


def test_names_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    cls = of_method(info=MethodInfo("mention-replacement", "x", "x", "none"), _rewrite=print)
    with pytest.raises(TypeError, match="mention-replacement is the long name of mr"):
        _check_method("mention-replacement", cls)
    with pytest.raises(TypeError, match="its class attribute `name` is not 'other'"):
        _check_filter("other", Judge)
    points = [importlib.metadata.EntryPoint(name, "json:dumps", "g") for name in ("a+b", "OURS", "fine")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    registry: Registry[Any] = Registry("codec", {"ours": "json:loads"}, group="g")
    assert [*registry.usable()] == ["ours", "fine"]
    first, second = registry.problems()
    assert "'a+b' of the package json cannot be used (ValueError: a name has letters" in first
    assert "'OURS' of the package json is not used: entaug has one of that name" in second


class Half:
    name = "half"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            "test_foreign_code:Half",
            r"\(test_foreign_code.Half\) is not a constituency_parser: it lacks parse \(ConstituencyParser\)",
        ),
        ("builtins:open", r"cannot be created \(TypeError: "),
    ],
)
def test_backends_are_checked(monkeypatch: pytest.MonkeyPatch, place: str, message: str) -> None:
    kind = backends.BackendKind("constituency_parser", backends.BACKENDS["constituency_parser"].protocols)
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [importlib.metadata.EntryPoint("m", place, "g")]
    )
    monkeypatch.setitem(backends.BACKENDS, "constituency_parser", kind)
    with pytest.raises(ParameterError, match=f"the constituency parser 'm' .*{message}"):
        backends.resolve("constituency_parser", "m")


def test_a_tagger_of_another_package_is_a_teacher_too(monkeypatch: pytest.MonkeyPatch) -> None:
    point = importlib.metadata.EntryPoint("theirs", "json:JSONDecoder", "entaug.taggers")
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point] if group == point.group else [])
    monkeypatch.setitem(backends.BACKENDS, "tagger", replace(backends.BACKENDS["tagger"]))  # with a registry of its own
    assert backends.is_alias("tagger", "theirs")


def test_parameters_without_a_text_form_are_in_the_signature() -> None:
    first, second = (Mine(table={"PER": share}).signature for share in (0.5, 1.0))
    assert "|table=PER:0.5|" in first
    assert first != second


def test_changed_code_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    for name, text in (("one", "x = 1"), ("two", "x = 2"), ("same", "x = 1")):
        package = tmp_path / f"foreign_{name}"
        package.mkdir()
        (package / "__init__.py").write_text("class Thing: pass\n")
        (package / "helper.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        digests.append(code_digest(importlib.import_module(package.name).Thing))
    first, second, same = digests
    assert first == same != second
    assert code_digest(METHODS["mr"]) is None
    mine, judge = code_digest(Mine), code_digest(Judge)
    assert Mine(filters=Judge()).signature.endswith(f"|entaug={entaug.__version__}|code={mine}")
    monkeypatch.setitem(METHODS._built_in, "mine", "test_foreign_code:Mine")
    monkeypatch.setitem(FILTERS._built_in, "judge", "test_foreign_code:Judge")
    plan = MethodPlan(name="mine", label="mine", ratios=(1,), params={"filters": "judge"})
    assert plan.identity == {"filters": "judge", "code of other packages": [mine, judge]}
    assert MethodPlan(name="mr", label="mr", ratios=(1,), params={"p": 0.5}).identity == {"p": 0.5}


PLUGIN = '''
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from entaug.core.edits import Edit
from entaug.core.mentions import Mention
from entaug.methods.base import Augmenter, MethodInfo

@dataclass(kw_only=True, eq=False)
class Swap(Augmenter):
    """Replace the first word.

    Args:
        output: the word that is written.
    """

    output: str = "x"
    file: Path = Path("list.txt")
    info: ClassVar[MethodInfo] = MethodInfo(name="swap", long_name="first-word", summary="s", paper="none")

    def _rewrite(self, sentence, rng):
        return sentence.edit([Edit(0, 1, (self.output,))])

@dataclass(kw_only=True, eq=False)
class Needy(Swap):
    word: str
    info: ClassVar[MethodInfo] = MethodInfo(name="needy", long_name="needy-one", summary="s", paper="none")
'''


def test_a_parameter_may_have_the_name_of_an_option(tmp_path: Path) -> None:
    (tmp_path / "entaug_swap.py").write_text(PLUGIN)
    (folder := tmp_path / "entaug_swap-1.dist-info").mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: entaug-swap\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[entaug.methods]\nswap = entaug_swap:Swap\nneedy = entaug_swap:Needy\n")
    source = str(Path(entaug.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), source])}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "entaug", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    train, out = str(EXAMPLE / "train.conll"), tmp_path / "new.jsonl"
    assert "swap:output=..." in " ".join(run("augment", "-m", "swap", "--help").split())
    for method, word in (("swap", "x"), ("swap:output=yes", "yes")):
        run("augment", train, "-m", method, "--only-new", "--force", "-o", str(out))
        assert word in {sentence.tokens[0] for sentence in entaug.read(out)}
    listed = run("list", "methods", "swap")
    assert listed.startswith("swap, first-word (entaug_swap.Swap): s\n")
    assert "\n  output = 'x': the word that is written" in listed
    assert "\n  word (must be given): " in run("list", "methods", "needy")
    values = {one["name"]: one["parameters"] for one in json.loads(run("list", "methods", "--json"))}
    assert values["swap"]["file"] == "list.txt"
    assert "word" not in values["needy"]


def test_formats_are_checked() -> None:
    base = type(find_format("jsonl"))
    for members, message in (({"carries": None}, "no class attribute `carries`"), ({"extensions": ".x"}, "not '.x'")):
        with pytest.raises(TypeError, match=message):
            _check_format("jsonl", type("Other", (base,), members))


def test_what_cannot_be_sent_to_processes_has_a_remedy(tmp_path: Path) -> None:
    method = Mine()
    method.table = {"lock": threading.Lock()}  # type: ignore[dict-item]
    with pytest.raises(ParameterError, match=r"cannot be sent to other processes .* in `_load` or `_fit`"):
        augment_file(EXAMPLE / "train.conll", tmp_path / "new.jsonl", method, jobs=2)
