"""``entaug audit``: from a corpus to tasks and a page, and from decisions to a corrected corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

import entaug
from entaug import Mention, Sentence
from entaug.commands.audit import AuditSummary, CorrectionSummary, _line
from entaug.commands.main import main
from entaug.core.changes import Change
from entaug.errors import InputError, LossError, OutputError, ParameterError
from entaug.formats.base import ENTITY_FIELDS
from entaug.metrics.consistency import Finding
from entaug.teacher.corrections import log_lines
from helpers.fakes import FakeTagger
from helpers.sentences import sentence

RIGHT = [f"Rome is {word} ." for word in ("old", "big", "far", "hot", "fun")]


CORPUS = [
    *(sentence(text, ("LOC", 0, 1)) for text in RIGHT),
    sentence("Rome is wet .", ("PER", 0, 1)),
    sentence("so Rome is Rome .", ("LOC", 3, 4)),
    sentence("nothing else ."),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    entaug.write(CORPUS, tmp_path / "corpus.conll")
    return tmp_path / "corpus.conll"


def audited(corpus: Path, name: str = "out.jsonl", **options: Any) -> AuditSummary:
    summary = entaug.audit(corpus, corpus.with_name(name), **{"teacher": "none", "force": True, **options})
    assert isinstance(summary, AuditSummary)
    return summary


def corrected(corpus: Path, review: Path, name: str = "new.conll", **options: Any) -> CorrectionSummary:
    summary = entaug.audit(corpus, corpus.with_name(name), review=review, force=True, **options)
    assert isinstance(summary, CorrectionSummary)
    return summary


def decide(page: Path, *decisions: str) -> Path:
    """The file that the page exports after these decisions on its first suggestions."""
    text = page.read_text()
    start = text.index(">", text.index('<script type="application/json"')) + 1
    pairs = json.loads(text[start : text.index("</script>", start)])["pairs"]
    rows = [
        {"fingerprint": pair["f"], "method": pair["n"], "id": pair["i"], "decision": decision, "correction": pair["c"]}
        for pair, decision in zip(pairs, decisions, strict=False)
    ]
    review = page.with_name("review.json")
    review.write_bytes(orjson.dumps({"entaug": "review", "version": 1, "decisions": rows}))
    return review


def test_the_most_suspicious_sentence_first(corpus: Path) -> None:
    before = corpus.read_bytes()
    summary = audited(corpus)
    first, second = entaug.read(corpus.with_name("out.jsonl"))
    assert first.text == "Rome is wet ."
    assert first.mentions == CORPUS[5].mentions, "the labels are those of the corpus"
    [found] = first.meta["audit"]["findings"]
    assert (found["kind"], found["given"]["label"], found["suggested"]["label"]) == ("type", "PER", "LOC")
    assert found["reason"].startswith('"Rome" is labelled LOC 6 times elsewhere, and 0 times labelled PER')
    assert second.meta["audit"]["rank"] == 2
    assert second.meta["audit"]["findings"][0]["suggested"] == {"label": "LOC", "spans": [[1, 2]], "text": "Rome"}
    assert (summary.sentences, summary.mentions, summary.suspicious) == (8, 7, 2)
    assert summary.findings == {"type": 1, "missing": 1}
    assert summary.first[0].startswith("0.87 type: [Rome]PER is wet . -> LOC; ")
    assert corpus.read_bytes() == before
    assert audited(corpus, number=1).findings == {"type": 1}
    assert not audited(corpus, min_score=1.0).first


def test_tasks_for_label_studio_have_labels_and_suggestions(corpus: Path) -> None:
    audited(corpus, "tasks.json", to_format="label-studio")
    task, other = orjson.loads(corpus.with_name("tasks.json").read_bytes())

    def labels(part: str, of: dict[str, Any]) -> list[tuple[int, int, str]]:
        [one] = of[part]
        return [(r["value"]["start"], r["value"]["end"], *r["value"]["labels"]) for r in one["result"]]

    assert labels("annotations", task) == [(0, 4, "PER")]
    assert labels("predictions", task) == [(0, 4, "LOC")]
    assert task["predictions"][0]["score"] == task["data"]["audit"]["score"]
    assert labels("predictions", other) == [(3, 7, "LOC"), (11, 15, "LOC")]
    again = list(entaug.read(corpus.with_name("tasks.json")))
    assert again[0].mentions == CORPUS[5].mentions


@pytest.mark.parametrize("to_format", ["doccano", "prodigy"])
def test_tasks_for_other_tools(corpus: Path, to_format: str) -> None:
    audited(corpus, to_format=to_format)
    first, _ = entaug.read(corpus.with_name("out.jsonl"), format=to_format)
    assert first.mentions == CORPUS[5].mentions
    assert first.meta["audit"]["findings"][0]["suggested"]["label"] == "LOC"


def test_the_accepted_corrections_are_applied_and_logged(corpus: Path) -> None:
    audited(corpus, html=corpus.with_name("page.html"))
    review = decide(corpus.with_name("page.html"), "accept", "reject")
    summary = corrected(corpus, review)
    new = list(entaug.read(corpus.with_name("new.conll")))
    assert [s.mentions for s in new] == [
        *(s.mentions for s in CORPUS[:5]),
        (Mention("LOC", [(0, 1)]),),
        *(s.mentions for s in CORPUS[6:]),
    ]
    assert (summary.corrected, summary.corrections, summary.rejected) == (1, {"type": 1}, 1)
    [line] = map(json.loads, corpus.with_name("new.conll.changes.jsonl").read_text().splitlines())
    assert line == {
        "sentence": 6,
        "id": None,
        "text": "Rome is wet .",
        "kind": "type",
        "old": {"label": "PER", "spans": [[0, 1]], "text": "Rome"},
        "new": {"label": "LOC", "spans": [[0, 1]], "text": "Rome"},
    }
    # The layout is that of the input: only the tag differs.
    old_lines, new_lines = (path.read_text().splitlines() for path in (corpus, corpus.with_name("new.conll")))
    assert [(a, b) for a, b in zip(old_lines, new_lines, strict=True) if a != b] == [("Rome\tB-PER", "Rome\tB-LOC")]
    # Applied to its own result nothing is left to correct.
    again = corrected(corpus.with_name("new.conll"), review, "third.conll")
    assert again.corrections == {}
    assert list(again.notes) == ["1 accepted correction of sentences that are not in this file, or not any more"]
    assert not audited(corpus.with_name("new.conll"), min_score=0.8).findings["type"]


def test_several_corrections_of_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    wrong = sentence("Rome and Oslo", ("PER", 0, 1), id="s1", layout={ENTITY_FIELDS: [{"by": "me"}]})
    texts = [f"{city} was {word}" for city in ("Rome", "Oslo") for word in ("a", "b", "c")]
    entaug.write([wrong, *(sentence(text, ("LOC", 0, 1), id=text) for text in texts)], file)
    audited(file, html=tmp_path / "page.html")
    summary = corrected(
        file, decide(tmp_path / "page.html", "accept", "accept"), "new.jsonl", log=tmp_path / "log.jsonl"
    )
    first = next(iter(entaug.read(tmp_path / "new.jsonl")))
    assert first.mentions == (Mention("LOC", [(0, 1)]), Mention("LOC", [(2, 3)]))
    assert summary.corrections == {"type": 1, "missing": 1}
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 2


def test_mentions_that_stay_keep_their_fields(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    own = sentence("Rome and Oslo", ("LOC", 0, 1), ("PER", 2, 3), layout={ENTITY_FIELDS: [{"by": "me"}, {"by": "you"}]})
    entaug.write([own, *(sentence(f"Oslo was {word}", ("LOC", 0, 1)) for word in "abc")], file)
    audited(file, html=tmp_path / "page.html")
    corrected(file, decide(tmp_path / "page.html", "accept"), "new.jsonl")
    first = next(iter(entaug.read(tmp_path / "new.jsonl")))
    assert first.mentions == (Mention("LOC", [(0, 1)]), Mention("LOC", [(2, 3)]))
    assert first.layout[ENTITY_FIELDS] == [{"by": "me"}, {}]


def test_corrections_that_contradict_one_another(corpus: Path) -> None:
    audited(corpus, html=corpus.with_name("page.html"))
    review = decide(corpus.with_name("page.html"), "accept")
    data = json.loads(review.read_text())
    other = json.loads(json.dumps(data["decisions"][0]))
    other["correction"]["suggested"] = None
    data["decisions"].append(other)
    review.write_text(json.dumps(data))
    summary = corrected(corpus, review)
    assert summary.corrections == {"type": 1}
    assert list(summary.notes) == ["1 accepted correction contradicting an earlier one, or its sentence, left out"]


def test_a_teacher_is_trained_by_folds(corpus: Path) -> None:
    summary = audited(corpus, teacher=FakeTagger(), folds=2, min_score=0.0)
    assert summary.findings.total() >= 7
    assert "the teacher gives" in summary.first[0]


def test_refusals(corpus: Path) -> None:
    with pytest.raises(LossError, match="cannot store field 'audit'"):
        audited(corpus, "out.conll")
    assert not corpus.with_name("out.conll").exists()
    entaug.write([*CORPUS, sentence("so it is .", ("X", 0, 2), ("Y", 1, 3))], corpus.with_name("nested.jsonl"))
    with pytest.raises(LossError, match=rf"nested\.jsonl:{len(CORPUS) + 1}: "):
        audited(corpus.with_name("nested.jsonl"), "out.conll", allow_loss=["field"])
    with pytest.raises(OutputError, match="is an input"):
        entaug.audit(corpus, corpus, teacher="none", force=True)
    with pytest.raises(ParameterError, match="must be a file of its own"):
        audited(corpus, html=corpus.with_name("out.jsonl"))
    with pytest.raises(ParameterError, match="corrections are logged when decisions are applied"):
        audited(corpus, log=corpus.with_name("log.jsonl"))
    review = corpus.with_name("review.json")
    review.write_text('{"entaug": "review", "version": 1, "decisions": []}')
    with pytest.raises(InputError, match="holds no decision about a suspicious label"):
        corrected(corpus, review)
    with pytest.raises(ParameterError, match="a page is made before the decisions"):
        corrected(corpus, review, html=corpus.with_name("page.html"))
    decision = {"fingerprint": "0" * 16, "decision": "accept", "correction": {"of": "x", "given": None}}
    review.write_text(json.dumps({"entaug": "review", "version": 1, "decisions": [decision]}))
    with pytest.raises(InputError, match="the correction of decision 1 is damaged"):
        corrected(corpus, review)
    with pytest.raises(InputError, match="8 different sentences are too few for 9 folds"):
        audited(corpus, teacher=FakeTagger(), folds=9)
    entaug.write([sentence("no mention")], corpus)
    with pytest.raises(InputError, match="has no mentions to compare"):
        audited(corpus)


def test_the_command(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = str(corpus.with_name("tasks.jsonl")), str(corpus.with_name("page.html"))
    assert main(["audit", str(corpus), "-o", out, "--html", page, "--teacher", "none"]) == 0
    told = capsys.readouterr().err
    assert "2 suspicious labels in 2 of 8 sentences with 7 mentions" in told
    assert "0.87 type: [Rome]PER is wet . -> LOC" in told
    assert main(["audit", str(corpus), "--teacher", "none"]) == 0  # to standard output, whose CoNLL has no findings
    assert capsys.readouterr().out == Path(out).read_text()
    review = str(decide(Path(page), "accept", "accept"))
    new = str(corpus.with_name("new.conll"))
    assert main(["audit", str(corpus), "--apply-review", review, "-o", new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["corrections"] == {"type": 1, "missing": 1}
    assert main(["audit", new, "-o", out, "--teacher", "none", "--force"]) == 0
    assert "0 suspicious labels in 0 of 8 sentences with 8 mentions" in capsys.readouterr().err


def test_chinese_is_printed_as_it_is_written() -> None:
    corpus = [Sentence(list("我住在北京。"), [Mention("LOC", [(3, 4)])])]
    finding = Finding(0, corpus[0].mentions[0], Mention("LOC", [(3, 5)]), 0.5, 0.9, "why")
    assert _line(corpus[0], finding).split(": ", 1)[1] == "我住在[北]LOC 京。 -> [北京]LOC; why"
    [told] = map(orjson.loads, log_lines(1, corpus[0], [Change(finding.given, finding.suggested)]))
    assert (told["text"], told["new"]["text"]) == ("我住在北京。", "北京")
