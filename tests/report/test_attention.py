"""The picture of the attention that ACLM selects keywords by."""

from __future__ import annotations

from pathlib import Path

import pytest

from entaug import Mention, Sentence
from entaug.backends.fakes import FakeTagger
from entaug.errors import ParameterError
from entaug.methods import ACLM
from entaug.methods.aclm import AttentionMap
from entaug.report.attention import draw_attention_map
from helpers.fakes import FakeEncoder, FakeGenerator

np = pytest.importorskip("numpy")
pytest.importorskip("matplotlib")

GOLD = Sentence("the band Suede split in May".split(), [Mention("GRP", [(2, 3)]), Mention("DATE", [(5, 6)])])


def fitted(**parameters: object) -> ACLM:
    backends = {"generator": FakeGenerator(), "tagger": FakeTagger(), "encoder": FakeEncoder()}
    return ACLM(candidates=1, **backends, **parameters).fit([GOLD])  # type: ignore[arg-type]


def test_the_map_has_the_keywords_of_the_template() -> None:
    method = fitted()
    attention = method.attention_map(GOLD)
    assert attention.weights.shape == (6, 6)
    assert attention.keywords == method.templates_[GOLD.fingerprint()].keywords != ()


def test_without_attention_there_is_no_map() -> None:
    with pytest.raises(ParameterError, match="no attention map"):
        fitted(keywords="random").attention_map(GOLD)


@pytest.mark.parametrize(("suffix", "head"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_formats_and_equal_bytes(tmp_path: Path, suffix: str, head: bytes) -> None:
    attention = fitted().attention_map(GOLD)
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    draw_attention_map(attention, first)
    draw_attention_map(attention, str(second))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(head)


def test_the_picture_names_words_mentions_and_keywords(tmp_path: Path) -> None:
    weights = np.zeros((6, 6), dtype="float32")
    weights[2, 1] = 0.7
    draw_attention_map(AttentionMap(GOLD, weights, (1,)), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert all(word in text for word in (*GOLD.tokens, "Suede (GRP)", "May (DATE)"))
    bold = [line for line in text.splitlines() if "font-weight: 700" in line]
    assert len(bold) == 1
    assert ">band<" in bold[0]


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    plain = Sentence(["rain"])
    empty = AttentionMap(plain, np.zeros((1, 1), dtype="float32"), ())
    with pytest.raises(ParameterError, match="no mentions"):
        draw_attention_map(empty, tmp_path / "a.svg")
    with pytest.raises(ParameterError, match=r"end it in \.pdf, \.png, \.svg"):
        draw_attention_map(empty, tmp_path / "a.txt")
