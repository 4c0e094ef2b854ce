"""Conversations for fine-tuning language models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import entaug
from conftest import examples
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError
from entaug.formats.base import ReadReport
from entaug.formats.files import open_file
from entaug.methods import create_augmenter
from entaug.methods.augment import augment_file
from helpers.strategies import sentences

pytest.importorskip("spacy")

CORPUS = [
    Sentence(
        "Mira beat Bo in Rome .".split(), [Mention("PER", [(0, 1)]), Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])]
    ),
    Sentence(["Nobody", "ran", "."]),
]


def conversation(text: str, answer: Any, system: str | None = None) -> bytes:
    said = [("system", system)] if system is not None else []
    said += [("user", text), ("assistant", answer if isinstance(answer, str) else json.dumps(answer))]
    return orjson.dumps({"messages": [{"role": role, "content": content} for role, content in said]}) + b"\n"


def put(folder: Path, *lines: bytes, name: str = "a.jsonl") -> Path:
    path = folder / name
    path.write_bytes(b"".join(lines))
    return path


def plain(corpus: Any) -> list[tuple[tuple[str, ...], tuple[Mention, ...]]]:
    return [(s.tokens, s.mentions) for s in corpus]


def told(path: Path, **options: Any) -> tuple[list[str], dict[str, int]]:
    reading = ReadReport()
    return [str(s) for s in open_file(path, **options).sentences(reading)], dict(reading.notes)


def test_what_is_written_is_what_trainers_take(tmp_path: Path) -> None:
    entaug.write(CORPUS, tmp_path / "a.jsonl", "chat")
    first, second = (orjson.loads(line) for line in (tmp_path / "a.jsonl").read_bytes().splitlines())
    assert list(first) == ["messages"]
    system, user, assistant = first["messages"]
    assert [list(message) for message in first["messages"]] == [["role", "content"]] * 3
    assert system["role"] == "system"
    assert "The types are: LOC, PER." in system["content"]
    assert user == {"role": "user", "content": "Mira beat Bo in Rome."}
    assert assistant["role"] == "assistant"
    assert orjson.loads(assistant["content"]) == [
        {"text": "Mira", "type": "PER"},
        {"text": "Bo", "type": "PER"},
        {"text": "Rome", "type": "LOC"},
    ]
    assert second["messages"][2]["content"] == "[]"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shape": "prompt"},
        {"shape": "completion", "question": "Find the names in this text:\n{text}"},
        {"shape": "instruction", "offsets": True},
        {"system": "", "array": True},
        {"system": "Types: {labels}", "with_ids": True, "tokens": True},
    ],
    ids=str,
)
def test_every_shape_comes_back_and_is_written_alike(tmp_path: Path, options: dict[str, Any]) -> None:
    corpus = [s.with_(id=f"s{i}") for i, s in enumerate(CORPUS)]
    path = tmp_path / "a.jsonl"
    entaug.write(corpus, path, "chat", **options)
    opened = open_file(path)
    assert opened.format.name == "chat"
    back = list(opened.sentences())
    assert plain(back) == plain(corpus)
    assert [s.id for s in back] == (["s0", "s1"] if options.get("with_ids") else [None, None])
    entaug.write(back, tmp_path / "b.jsonl", like=path)
    assert (tmp_path / "b.jsonl").read_bytes() == path.read_bytes()
    augment_file(path, tmp_path / "c.jsonl", create_augmenter("sis", copies=2))
    assert plain(entaug.read(tmp_path / "c.jsonl"))[:1] == plain(corpus)[:1]


def test_answers_as_models_and_people_write_them(tmp_path: Path) -> None:
    text = "Mira beat Bo in Rome."
    mentions = [{"text": "Mira", "type": "PER"}, {"text": "Bo", "type": "PER"}, {"text": "Rome", "type": "LOC"}]
    answers: list[Any] = [
        mentions,
        {"entities": mentions},
        {"PER": ["Mira", "Bo"], "LOC": ["Rome"], "ORG": []},
        f"```json\n{json.dumps(mentions)}\n```",
        [{"entity": m["text"], "label": m["type"]} for m in mentions],
        [{"word": m["text"], "entity": m["type"]} for m in mentions],
        [{**m, "start": text.index(m["text"]), "end": text.index(m["text"]) + len(m["text"])} for m in mentions],
        list(reversed(mentions)),
    ]
    path = put(tmp_path, *(conversation(text, answer) for answer in answers))
    assert plain(entaug.read(path)) == plain(CORPUS[:1]) * len(answers)
    empty = put(tmp_path, *(conversation(text, answer) for answer in ("[]", "{}", '{"entities": []}', '{"PER": []}')))
    assert [s.mentions for s in entaug.read(empty)] == [()] * 4


def test_places_are_found_in_order(tmp_path: Path) -> None:
    def mentions(text: str, *pairs: str) -> str:
        answer = [{"text": pair.rsplit("/", 1)[0], "type": pair.rsplit("/", 1)[1]} for pair in pairs]
        return told(put(tmp_path, conversation(text, answer)))[0][0]

    assert mentions("Rome beat Rome .", "Rome/LOC", "Rome/ORG") == "[Rome]LOC beat [Rome]ORG ."
    assert mentions("Rome beat Mira in Rome .", "Mira/PER", "Rome/LOC") == "Rome beat [Mira]PER in [Rome]LOC ."
    assert mentions("New York Times of New York", "New York Times/ORG", "New York/LOC") == (
        "[New York Times]ORG of [New York]LOC"
    )
    assert mentions("New York Times", "New York Times/ORG", "New York/LOC") == "[[New York]LOC Times]ORG"
    assert mentions("Rome ran", "Rome/LOC", "Rome/ORG") == "[[Rome]ORG]LOC ran"
    assert mentions("Also Al ran", "Al/PER") == "Also [Al]PER ran"


def test_a_mention_that_is_not_in_the_text_is_named(tmp_path: Path) -> None:
    answer = [{"text": "Mira", "type": "PER"}, {"text": "Zoe", "type": "PER"}, {"text": "Mira", "type": "PER"}]
    path = put(tmp_path, conversation("Bo ran", []), conversation("Mira ran", answer))
    with pytest.raises(InputError, match=r"a\.jsonl:2: mention PER 'Zoe' is not in the text, .* `missing='skip'`"):
        entaug.read(path)
    sentences_, notes = told(path, missing="skip")
    assert sentences_ == ["Bo ran", "[Mira]PER ran"]
    what = "is not in the text, or is given more often than it is there"
    assert notes == {f"left out: mention PER 'Zoe' {what}": 1, f"left out: mention PER 'Mira' {what}": 1}
    offsets = [{"text": "Mira", "type": "PER", "start": 1, "end": 5}]
    with pytest.raises(InputError, match="mention PER 'Mira' is not in the text"):
        entaug.read(put(tmp_path, conversation("Mira ran", offsets)))


def test_a_place_that_the_words_do_not_tell_is_a_named_loss(tmp_path: Path) -> None:
    source = tmp_path / "a.conll"
    entaug.write(
        [Sentence("Rome beat Mira in Rome".split(), [Mention("LOC", [(0, 1)]), Mention("PER", [(2, 3)])])], source
    )
    second = [Sentence("Rome beat Mira in Rome".split(), [Mention("LOC", [(4, 5)])])]
    entaug.convert(source, tmp_path / "b.jsonl", to_format="chat")
    entaug.write(second, source)
    with pytest.raises(
        LossError, match=r"cannot store place of a mention among several .* pass `allow_loss=\['place'\]` to drop it"
    ):
        entaug.convert(source, tmp_path / "c.jsonl", to_format="chat")
    entaug.convert(source, tmp_path / "c.jsonl", to_format="chat", write_options={"offsets": True})
    assert plain(entaug.read(tmp_path / "c.jsonl")) == plain(second)
    rich = Sentence(["a"], id="x", columns={"pos": ["X"]}, meta={"doc": 1})
    assert open_file(tmp_path / "c.jsonl").lost(rich) == ["column 'pos'", "id", "field 'doc'"]


def test_instructions(tmp_path: Path) -> None:
    lines = [
        conversation(f"Extract all entities from this: {text}", [{"text": text[:2], "type": "X"}], "Be brief.")
        for text in ("Bo ran", "Al sat")
    ]
    path = put(tmp_path, *lines)
    assert told(path) == (["[Bo]X ran", "[Al]X sat"], {})
    entaug.write(list(entaug.read(path)), tmp_path / "b.jsonl", like=path)
    again = [orjson.loads(line)["messages"][:2] for line in (tmp_path / "b.jsonl").read_bytes().splitlines()]
    assert again == [orjson.loads(line)["messages"][:2] for line in lines]
    other = put(tmp_path, *lines, conversation("Bo", "[]", "Be long."))
    with pytest.raises(InputError, match=r":3: the text is not given as in 'Extract all entities from this: \{text\}'"):
        list(open_file(other, question="Extract all entities from this: {text}").sentences())
    assert told(put(tmp_path, lines[0], conversation("Bo", "[]", "Be long."), b'{"id":1,"n":2,' + lines[1][1:]))[1] == {
        "other instructions than those of the first line, left out": 1,
        "field 'n' left out": 1,
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (conversation("Bo", "There are none."), "the answer is no JSON: 'There are none.'; answer with a JSON list"),
        (conversation("Bo", "3"), "the answer is no list of mentions: '3'"),
        (conversation("Bo", {"PER": "Bo"}), "the answer holds no lists of texts"),
        (conversation("Bo", [{"text": "Bo"}]), "a mention without a text or a type: {'text': 'Bo'}"),
        (conversation("Bo", [["Bo", "PER"]]), "a mention without a text or a type: ['Bo', 'PER']"),
        (
            b'{"messages":[{"role":"user","content":"Bo"}]}\n',
            "1 messages of the user and 0 of the assistant; write one",
        ),
        (b'{"messages":[{"role":"robot","content":"Bo"}]}\n', "a message of an unknown role or without a text: 'ro"),
        (b'{"messages":[{"role":"user","content":3}]}\n', "a message of an unknown role or without a text: 'user'"),
        (b'{"prompt":"a","completion":3}\n', "no strings in prompt, completion"),
    ],
)
def test_a_fault_is_one_line_that_names_it(tmp_path: Path, line: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        entaug.read(put(tmp_path, line))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'a.jsonl'}:1: ")
    assert caught.value.remedy


@settings(max_examples=examples(150))
@given(st.lists(sentences(gaps=False), min_size=1, max_size=3), st.booleans())
def test_sentences_come_back_or_the_loss_is_named(tmp_path: Path, corpus: list[Sentence], offsets: bool) -> None:
    path = tmp_path / "a.jsonl"
    corpus = [s.with_(spaces=None) for s in corpus]
    entaug.write(corpus, path, "chat", offsets=offsets, tokens=True)
    to = open_file(path)
    exact = [not any(loss.startswith("place") for loss in to.lost(s)) for s in corpus]
    assert all(exact) or not offsets
    for sentence, back, is_exact in zip(
        corpus, entaug.read(path, missing="skip", misaligned="skip"), exact, strict=True
    ):
        assert back.tokens == sentence.tokens
        assert (back.mentions == sentence.mentions) == is_exact


@settings(max_examples=examples(100))
@given(st.integers(0, 150), st.binary(max_size=3))
def test_nothing_but_clear_errors_whatever_the_bytes(tmp_path: Path, cut: int, byte: bytes) -> None:
    good = conversation("Mira ran", [{"text": "Mira", "type": "PER"}], "Be brief.")
    try:
        entaug.read(put(tmp_path, good[:cut] + byte + good[cut + 1 :]), "chat")
    except EntaugError as error:
        assert "\n" not in str(error)  # noqa: PT017
