"""What a teacher doubts, in the page: the data, and in a browser the order, the filter and the text of each example."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from entaug import Mention, Sentence
from entaug.core.data import Provenance
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.report.html.examples import report_data
from entaug.report.html.page import render_html_report
from entaug.teacher.relabel import changed_mentions
from helpers.browser import OpenedFile


def relabelled() -> AugmentedCorpus:
    gold = Sentence("Ada left Rome".split(), [Mention("PER", [(0, 1)]), Mention("LOC", [(2, 3)])], id="g")

    def pair(name: str, disagreement: float, **changes: Any) -> AugmentedPair:
        details = {"relabelled": {"disagreement": disagreement, **changes}}
        new = Sentence(f"Ada left {name}".split(), gold.mentions, id=name, provenance=Provenance("lm", details=details))
        return AugmentedPair(new, gold)

    def mention(label: str, start: int, probability: float) -> dict[str, Any]:
        return {"label": label, "spans": [[start, start + 1]], "probability": probability}

    made = [
        pair("Oslo", 0.1),
        pair("<b>x</b>", 0.97, softened=[mention("PER", 0, 0.03)]),
        pair("Bonn", 0.99, added=[mention("LOC", 2, 0.96)]),
        pair("Kyiv", 0.98, added=[mention("LOC", 2, 0.95)], softened=[mention("PER", 0, 0.02)]),
    ]
    return AugmentedCorpus([gold], {"lm": made})


def test_the_data_hold_what_the_teacher_says() -> None:
    text = report_data(relabelled()).json
    assert '"name":"teacher"' in text
    assert '"t":[["added","LOC","Bonn",0.96]]' in text
    plain = AugmentedCorpus([Sentence(["a"])], {"mr": [AugmentedPair(Sentence(["b"]), Sentence(["a"]))]})
    assert "teacher" not in report_data(plain).json


@pytest.mark.parametrize(
    "details",
    [
        1,
        {"added": 1},
        {"added": [1]},
        {"added": [{"label": "X"}]},
        {"added": [{"label": "", "spans": [[0, 1]]}]},
        {"added": [{"label": "X", "spans": [[0, 99]]}]},
        {"added": [{"label": "X", "spans": "a"}]},
    ],
)
def test_details_that_were_edited_by_hand_do_no_harm(details: object) -> None:
    new = Sentence(["a"], provenance=Provenance("lm", details={"relabelled": details}))
    assert changed_mentions(new) == []
    assert report_data(AugmentedCorpus([Sentence(["b"])], {"lm": [AugmentedPair(new)]})).size == 1


def test_suspicious_labels_come_first_in_the_browser(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(render_html_report(relabelled(), title="Relabelled"), encoding="utf-8")
    opened = OpenedFile(browser, file, viewport={"width": 1280, "height": 3000})
    page = opened.page

    def shown() -> list[int]:
        page.wait_for_function(  # rows are drawn when they come near the viewport
            "() => document.getElementById('count').textContent.startsWith("
            "`${document.querySelectorAll('article').length} of `)"
        )
        return [int(one.get_attribute("data-pair")) for one in page.query_selector_all("article")]

    assert shown() == [0, 1, 2, 3]
    opened.choose(order="suspicious labels first")
    assert shown() == [2, 3, 1, 0]
    assert "disagreement of the teacher 0.99" in page.inner_text("article >> nth=0")
    assert "added by the teacher: Bonn LOC (probability 0.96)" in page.inner_text("article >> nth=0")
    opened.choose(teacher="mention softened")
    assert shown() == [3, 1]
    opened.choose(teacher="agrees")
    assert shown() == [0]
    opened.choose(teacher="label changed or doubted")
    assert shown() == [2, 3, 1]
    page.click("#clear")
    assert shown() == [0, 1, 2, 3]
    opened.close()
