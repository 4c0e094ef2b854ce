"""Methods that ask instruct models: what they ask, what they accept, and what of a run depends on nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.backends.fakes import FakeInstructModel
from entaug.backends.instruct import Answer, ChatRequest
from entaug.backends.prompts import PLACEHOLDERS, packaged_prompt, prompt_text, read_prompt
from entaug.commands.main import main
from entaug.errors import InputError, ParameterError
from entaug.methods.shared.generative import one_line
from helpers.fakes import FakeEncoder, FakeGenerator
from helpers.scripted_server import Reply, echo, last_line, serving

GOLD = [
    Sentence("Ada Moss left Lisbon on Monday .".split(), [Mention("PER", [(0, 2)]), Mention("LOC", [(3, 4)])], id="a"),
    Sentence("Nobody saw Bo in Oslo .".split(), [Mention("PER", [(2, 3)]), Mention("LOC", [(4, 5)])], id="b"),
    Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)])], id="c"),
    Sentence("It rained .".split(), id="d"),
]
NESTED = Sentence("the Oslo port burns".split(), [Mention("FAC", [(0, 3)]), Mention("LOC", [(1, 2)])], id="n")
BROKEN = Sentence("arm and leg pain".split(), [Mention("SYM", [(0, 1), (3, 4)])], id="x")


def asking(name: str, answer: Callable[[ChatRequest], str | Answer] | None = None, **params: Any) -> Any:
    """A method with an instruct model, without further models."""
    if name == "aclm":
        params = {"keywords": "random", "mixner_probability": 0.0, "stop_words": None, **params}
    params = {"guard": False, **params}
    return entaug.create_augmenter(name, generator=FakeInstructModel(answer=answer), **{"candidates": 1, **params})


# ------------------------------------------------------------------------------------------------- what is asked for


def test_rewrite_asks_for_the_sentence_and_its_mentions() -> None:
    method = asking("rewrite", style="a post on social media").fit(GOLD)
    list(method.augment(GOLD[:1]))
    system, user = method.generator_.requests[0].messages
    assert (system.role, user.role) == ("system", "user")
    assert "a post on social media" in system.text
    assert '"Ada Moss", "Lisbon"' in user.text
    assert user.text.endswith("Ada Moss left Lisbon on Monday.")


@pytest.mark.parametrize("name", ["entda", "aclm"])
def test_other_sentences_are_earlier_turns(name: str) -> None:
    method = asking(name, num_examples=2).fit(GOLD)
    list(method.augment(GOLD[:1]))
    messages = method.generator_.requests[0].messages
    assert [m.role for m in messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    shown = {m.text for m in messages if m.role == "assistant"}
    assert shown == {"Nobody saw Bo in Oslo.", "the band Suede split in May"}, "never the sentence itself"
    assert "GRP, LOC, PER" in messages[0].text or name == "aclm"
    assert not any("<" in m.text for m in messages), "no label tokens"


def test_a_template_shows_mentions_and_gaps() -> None:
    method = asking("aclm", keywords="none").fit(GOLD)
    list(method.augment(GOLD[:1]))
    assert method.generator_.requests[0].messages[-1].text == "Ada Moss ___ Lisbon ___"


def test_requests_of_one_sentence_differ_and_do_not_depend_on_others() -> None:
    def asked(corpus: list[Sentence]) -> list[ChatRequest]:
        method = asking("entda", copies=3, max_attempts=1).fit(GOLD)
        list(method.augment(corpus))
        return list(method.generator_.requests)

    both = asked(GOLD[:2])
    assert len(set(both)) == 6
    assert asked(GOLD[:1]) + asked(GOLD[1:2]) == both


# --------------------------------------------------------------------------------------------------- what is accepted

ANSWERS = [
    ("On Monday Ada Moss said goodbye to Lisbon.", None),
    ('Here is the sentence:\n\n"On Monday Ada Moss said goodbye to Lisbon."', None),
    ("Lisbon was left by Ada Moss on Monday.", None),
    ("On Monday Ada said goodbye to Lisbon.", "a listed mention is missing"),
    ("On Monday Ada Moss said goodbye to Lisboa.", "a listed mention is missing"),
    ("On Monday ada moss said goodbye to lisbon.", "a listed mention is missing"),
    ("Ada Moss left Lisbon, and Lisbon wept.", "the match of a listed mention is ambiguous"),
    ("Ada Moss left Lisbon for Oslo.", "a known mention that is not in the list"),
    ("Ada Moss left Lisbon on Monday.", "a copy of a training sentence"),
    ("Ada Moss left Lisbon.\nAda Moss was gone.", "the answer is not a single line"),
    ("Keep these names exactly as they are: Ada Moss, Lisbon.", "the answer repeats the prompt"),
    ("```\n```", "the answer is not a single line"),
    ("I cannot help with that.", "a listed mention is missing"),
    ("Ada Moss and Lisbon " + "very " * 99, "much longer than its source"),
    (Answer("", "the server did not answer in time"), "the server did not answer in time"),
    (Answer("Ada Moss and", "the answer reached the maximum length"), "the answer reached the maximum length"),
]


@pytest.mark.parametrize(("answer", "reason"), ANSWERS)
def test_answers_are_accepted_with_their_mentions_or_counted(answer: str | Answer, reason: str | None) -> None:
    method = asking("rewrite", lambda _: answer, max_attempts=2).fit(GOLD)
    made = list(method.augment(GOLD[:1]))
    if reason is None:
        [new] = made
        assert {(m.label, new.mention_tokens(m)) for m in new.mentions} == {
            ("PER", ("Ada", "Moss")),
            ("LOC", ("Lisbon",)),
        }
        assert new.provenance is not None
        assert new.provenance.signature is not None
        assert "rewrite@" in new.provenance.signature
    else:
        assert not made
        assert method.statistics_.rejected == {reason: 2}
        assert method.statistics_.missing == {reason: 1}


@pytest.mark.parametrize("name", ["entda", "aclm"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("He said no.", "a listed mention is missing"),
        ("Ada Moss likes Lisbon, and Oslo too.", "a known mention that is not in the list"),
        (Answer("", "the rate limit was exceeded (429)"), "the rate limit was exceeded (429)"),
    ],
)
def test_answers_for_lists_and_templates_are_checked_in_the_same_way(
    name: str, answer: str | Answer, reason: str
) -> None:
    options = {"operation": "none"} if name == "entda" else {}
    method = asking(name, lambda _: answer, max_attempts=3, **options).fit(GOLD)
    assert not list(method.augment(GOLD[:1]))
    assert method.statistics_.rejected == {reason: 3}


def test_lists_and_templates_give_sentences() -> None:
    for name in ("entda", "aclm"):
        options = {"operation": "none"} if name == "entda" else {}
        method = asking(name, lambda _: "Where is Ada Moss? Lisbon, they say.", **options).fit(GOLD)
        [new] = method.augment(GOLD[:1])
        assert new.tokens == ("Where", "is", "Ada", "Moss", "?", "Lisbon", ",", "they", "say", ".")
        assert new.mentions == (Mention("PER", [(2, 4)]), Mention("LOC", [(5, 6)]))


def test_the_label_guard_sees_the_answers() -> None:
    answers = iter(["On Monday Ada Moss left Lisbon with Peter Parker."] * 99)
    method = asking("rewrite", lambda _: next(answers), guard=True, max_attempts=2).fit(GOLD * 5)
    assert not list(method.augment(GOLD[:1]))
    assert all(reason.startswith("guard: ") for reason in method.statistics_.rejected)


def test_nested_and_discontinuous_mentions_are_kept_together() -> None:
    answers = {"n": "Fire broke out in the Oslo port", "x": "His arm and leg hurt, what a pain"}
    method = asking("rewrite", lambda request: answers["n" if "Oslo" in request.messages[-1].text else "x"])
    nested, broken = method.fit([NESTED, BROKEN]).augment([NESTED, BROKEN])
    assert nested.mentions == (Mention("FAC", [(4, 7)]), Mention("LOC", [(5, 6)]))
    assert [broken.mention_tokens(m) for m in broken.mentions] == [("arm", "pain")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  Yes.  ", "Yes."),
        ("“Yes.”", "Yes."),
        ('"Yes" and "no"', '"Yes" and "no"'),
        ("Sure:\nYes.", "Yes."),
        ("```text\nYes.\n```", "Yes."),
        ("", None),
        ("a\nb", None),
    ],
)
def test_one_line(text: str, line: str | None) -> None:
    assert one_line(text) == line


# ---------------------------------------------------------------------------------------------------- wrong generators


def test_each_method_says_which_generator_it_takes() -> None:
    with pytest.raises(ParameterError, match="rewrite needs an instruct model; give http"):
        entaug.create_augmenter("rewrite").fit(GOLD)
    with pytest.raises(ParameterError, match="fake is a model to fine-tune"):
        entaug.create_augmenter("rewrite", generator=FakeGenerator()).fit(GOLD)
    with pytest.raises(ParameterError, match="mulda fine-tunes its generator"):
        entaug.create_augmenter("mulda", generator=FakeInstructModel()).fit(GOLD)


def test_prompts_are_no_part_of_the_signature_of_a_fine_tuned_generator() -> None:
    tuned = entaug.create_augmenter("entda", candidates=1, generator=FakeGenerator()).fit(GOLD)
    assert "prompt" not in tuned.signature
    assert "num_examples" not in tuned.signature
    assert "|prompt=entda@" in asking("entda").fit(GOLD).signature


# ------------------------------------------------------------------------------------------------------------ prompts


@pytest.mark.parametrize("name", sorted(PLACEHOLDERS))
def test_packaged_prompts_can_be_copied(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "mine.toml"
    copy.write_text(prompt_text(name), "utf-8")
    assert read_prompt(copy, name).digest == packaged_prompt(name).digest


def test_a_prompt_of_the_user_is_used_and_signed_by_its_content(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('user = "Umschreiben: {sentence}"\n', "utf-8")
    method = asking("rewrite", prompt=str(mine)).fit(GOLD)
    list(method.augment(GOLD[:1]))
    assert [m.text for m in method.generator_.requests[0].messages] == ["Umschreiben: Ada Moss left Lisbon on Monday."]
    first = method.signature
    assert str(tmp_path) not in first
    mine.write_text('user = "Anders: {sentence}"\n', "utf-8")
    assert asking("rewrite", prompt=str(mine)).fit(GOLD).signature != first


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('user = "no placeholder"', "lacks the placeholder {sentence}"),
        ('system = ""\nuser = "{sentence} {sentense}"', ":2: has the unknown placeholder {sentense}"),
        ('user = "{sentence}"\nusr = ""', ":2: has the unknown key 'usr'"),
        ('# Rewrite a text.\nuser = """{sentence}\n{text}"""', ":3: has the unknown placeholder {text}"),
        ('# A text of a user.\nuser = "{sentence}"\ntext = ""', ":3: has the unknown key 'text'"),
        ('user = "{sentence}"\n[text]\na = 1', ":2: has the unknown key 'text'"),
        ("user = {sentence}", "is not a TOML file"),
        ("user = 17", 'needs a text named "user"'),
        (b"\xff", "UTF-8"),
        (None, "mine.toml"),
    ],
)
def test_faulty_prompts_are_errors(content: str | bytes | None, says: str, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    if content is not None:
        mine.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError) as caught:
        asking("rewrite", prompt=str(mine)).fit(GOLD)
    assert says in str(caught.value)


def test_braces_in_sentences_are_no_placeholders() -> None:
    gold = [Sentence("use {mentions} here Ada".split(), [Mention("PER", [(3, 4)])])]
    method = asking("rewrite").fit(gold)
    list(method.augment(gold))
    assert method.generator_.requests[0].messages[-1].text.endswith("use {mentions} here Ada")


def test_the_command_prints_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "prompts"]) == 0
    assert re.search(r"^rewrite +\{sentence\}", capsys.readouterr().out, re.MULTILINE)
    assert main(["list", "prompts", "style"]) == 0
    assert capsys.readouterr().out == prompt_text("style")
    assert main(["list", "prompts", "stile"]) == 2
    assert "did you mean 'style'?" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------- whole commands


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("httpx")
    monkeypatch.setenv("ENTAUG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ENTAUG_API_KEY", "sk-very-secret")
    monkeypatch.setattr("entaug.backends.chat.server.retry_delay", lambda attempt, failure: 0.0)
    entaug.write(list(entaug.read(EXAMPLE / "train.conll"))[:40], tmp_path / "train.conll")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(url: str, output: str, *options: str) -> list[str]:
    generator = ["--generator", f"{url}#tiny", "--only-new", "--no-guard"]
    return ["augment", "train.conll", "-m", "rewrite", *generator, "-o", output, *options]


FAULTS = {
    0: Reply("slow down", 429, {"Retry-After": "0"}),
    1: Reply("oh", 500),
    2: Reply("half", cut=True),
    3: Reply(body=b"<html>"),
}
USELESS = {4: Reply("Certainly, here are some ideas about nothing."), 5: Reply("#" * 50, finish_reason="length")}


def troubled(body: dict[str, Any], before: int) -> Reply:
    """All faults: most pass, and some answers are useless; always the same ones."""
    number = sum(map(ord, last_line(body))) % 9
    passing = None if before else FAULTS.get(number)
    return passing or USELESS.get(number) or echo(body, before)


@pytest.mark.slow
def test_the_same_bytes_whatever_the_concurrency_and_nothing_is_lost(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(troubled) as server:
        assert main(run(server.url, "one.jsonl", "--concurrency", "1", "--answers", "one.sqlite", "--json")) == 0
        one = json.loads(capsys.readouterr().out)
        assert main(run(server.url, "many.jsonl", "--concurrency", "9", "--answers", "many.sqlite", "--json")) == 0
        many = json.loads(capsys.readouterr().out)
        asked = len(server.bodies)
        assert main(run(server.url, "again.jsonl", "--answers", "one.sqlite")) == 0
        assert len(server.bodies) == asked, "all answers are kept"
    err = capsys.readouterr().err
    assert Path("one.jsonl").read_bytes() == Path("many.jsonl").read_bytes() == Path("again.jsonl").read_bytes()
    statistics = one["statistics"]
    assert statistics == many["statistics"]
    assert statistics["accepted"] + sum(statistics["missing"].values()) == statistics["requested"] == 40
    assert set(statistics["rejected"]) >= {"a listed mention is missing", "the answer reached the maximum length"}
    for reason in ("(429)", "(500)", "broke off", "is not an answer"):
        assert any("repeated" in note and reason in note for note in one["notes"]), reason
    assert "note: language model: 0 requests" in err
    [usage] = one["usage"].values()
    assert usage["requests"] > usage["from_cache"] == 0
    assert usage["input_tokens"] > 0
    assert usage["output_tokens"] > 0
    assert sum(usage["repeated"].values()) > 0
    [other] = many["usage"].values()
    assert (usage["input_tokens"], usage["failed"]) == (other["input_tokens"], other["failed"])
    assert "sk-very-secret" not in err
    for file in workspace.rglob("*"):
        assert not file.is_file() or b"sk-very-secret" not in file.read_bytes(), file
    assert all(headers["authorization"] == "Bearer sk-very-secret" for headers in server.headers)


def test_an_interrupted_run_continues_with_the_same_bytes_and_asks_nothing_again(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = 0

    def ends(body: dict[str, Any], before: int) -> Reply:
        nonlocal served
        served += 1
        return echo(body, before) if served <= 20 else Reply("no access any more", 403)

    with serving(echo) as server:
        whole, parts = (
            run(server.url, "whole.jsonl", "--answers", "a"),
            run(server.url, "parts.jsonl", "--answers", "b"),
        )
        assert main(whole) == 0
        total = len(server.bodies)
        server.respond = ends
        assert main([*parts, "--concurrency", "3"]) == 2
        assert "refuses access (403" in capsys.readouterr().err
        assert not Path("parts.jsonl").exists()
        answered = 20
        server.respond, server.bodies = echo, []
        assert main(parts) == 0
        assert len(server.bodies) == total - answered
    assert Path("parts.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()


def test_templates_of_two_sentences_are_joined() -> None:
    method = asking("aclm", mixner_probability=1.0, encoder=FakeEncoder()).fit(GOLD)
    list(method.augment(GOLD))
    assert any("Suede" in r.messages[-1].text and "Oslo" in r.messages[-1].text for r in method.generator_.requests)
