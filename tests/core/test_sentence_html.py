"""Sentences as HTML, on pages and in notebooks."""

from __future__ import annotations

import re

import entaug
from conftest import EXAMPLE
from entaug import Corpus, Mention, Sentence
from entaug.core.html import sentence_to_html, versions_to_html
from entaug.formats.augmented import AugmentedPair


def test_mentions_are_marked_within_and_beside_one_another() -> None:
    one = Sentence("a b c d".split(), [Mention("X", [(0, 3)]), Mention("Y", [(1, 2)]), Mention("Z", [(0, 1), (3, 4)])])
    # By hand: X around Y; Z in two pieces, the first within X.
    assert sentence_to_html(one, ["X", "Y", "Z"]) == (
        '<mark class="hue0"><mark class="hue2">a<small> Z 1/2</small></mark> '
        '<mark class="hue1">b<small> Y</small></mark> c<small> X</small></mark> '
        '<mark class="hue2">d<small> Z 2/2</small></mark>'
    )
    crossing = Sentence("a b c".split(), [Mention("X", [(0, 2)]), Mention("Y", [(1, 3)])])
    assert re.sub(r"<small>.*?</small>| class=\"\w+\"", "", sentence_to_html(crossing, ["X", "Y"])) == (
        "<mark>a <mark>b</mark></mark> <mark>c</mark>"
    )
    html = versions_to_html([(Sentence("a < c".split()), [Sentence("a < b".split())])])
    assert "<dt>after</dt><dd>a &lt; <ins>c</ins></dd>" in html


def test_notebooks_show_sentences_corpora_and_pairs() -> None:
    gold = Sentence(["Ada", "<b>"], [Mention("PER", [(0, 1)])])
    new = gold.with_(tokens=["Bo", "<b>"])
    html = gold._repr_html_()
    assert html.startswith("<style>")
    assert '<mark class="hue0">Ada<small> PER</small></mark> &lt;b&gt;' in html
    html = Corpus([gold] * 12, "<file>")._repr_html_()
    assert "12 sentences from &lt;file&gt;; mentions: PER 12" in html
    assert html.count("<mark") == 10, "the first ten are shown"
    assert "0 sentences from memory; mentions: none" in Corpus([])._repr_html_()
    summary = entaug.check(EXAMPLE / "train.conll")
    assert f"<pre>{summary}</pre>" == summary._repr_html_()
    html = AugmentedPair(new, gold, (gold,))._repr_html_()
    assert [name for name in ("before", "and", "after") if f"<dt>{name}</dt>" in html] == ["before", "and", "after"]
    assert "<ins>Bo</ins>" in html
