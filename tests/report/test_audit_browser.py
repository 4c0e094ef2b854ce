"""The page of suspicious labels in a real browser; see test_html_browser.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import entaug
from entaug import Mention, Sentence
from entaug.commands.main import main
from helpers.browser import OpenedFile

CORPUS = [
    *(Sentence([word, "Rome", "."], [Mention("LOC", [(1, 2)])], id=f"s{i}") for i, word in enumerate("abcde")),
    Sentence(["so", "Rome", "<b>sang</b>"], [Mention("PER", [(1, 2)])], id="wrong"),
    Sentence(["dear", "Rome", "!"], id="missing"),
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    entaug.write(CORPUS, tmp_path / "corpus.jsonl")
    entaug.audit(tmp_path / "corpus.jsonl", tmp_path / "tasks.jsonl", html=tmp_path / "page.html", teacher="none")
    return tmp_path / "corpus.jsonl"


@pytest.fixture
def opened(browser: Any, corpus: Path) -> Iterator[OpenedFile]:
    one = OpenedFile(browser, corpus.with_name("page.html"))
    yield one
    one.close()


def test_the_most_suspicious_label_is_shown_with_the_suggestion(opened: OpenedFile) -> None:
    page = opened.page
    assert (
        page.inner_text(".lead") == "2 suspicious labels in 7 sentences with 6 mentions of 2 types: 1 type, 1 missing."
    )
    first = page.locator("article >> nth=0")
    assert [text.lower() for text in first.locator("h4").all_inner_texts()] == ["as annotated", "suggested"]
    assert first.locator(".sentence").all_text_contents() == ["so RomePER <b>sang</b>", "so RomeLOC <b>sang</b>"]
    assert '"Rome" is labelled LOC 5 times elsewhere, and 0 times labelled PER' in first.inner_text()
    assert first.locator("mark.moved").all_text_contents() == ["Rome", "Rome"]
    opened.choose(method="missing")
    assert opened.count() == "1 of 2 shown"


def test_an_accepted_suggestion_is_exported_and_corrects_the_corpus(opened: OpenedFile, corpus: Path) -> None:
    page, review, new = opened.page, corpus.with_name("review.json"), corpus.with_name("new.jsonl")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.click("article[data-pair='1'] button.reject")
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(review)
    decisions = json.loads(review.read_text())["decisions"]
    assert [one["decision"] for one in decisions] == ["accept", "reject"]
    assert decisions[0]["correction"]["given"] == {"label": "PER", "spans": [[1, 2]]}
    assert main(["audit", str(corpus), "--apply-review", str(review), "-o", str(new)]) == 0
    right = [s.mentions if s.id != "wrong" else CORPUS[0].mentions for s in CORPUS]
    assert [s.mentions for s in entaug.read(new)] == right
    page.evaluate("localStorage.clear()")
    page.reload()
    assert opened.decided() == "0 accepted, 0 rejected, 0 corrected"
    page.set_input_files("#file", review)
    page.wait_for_function("document.getElementById('message').textContent")
    assert page.inner_text("#message") == "2 decisions imported."
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
