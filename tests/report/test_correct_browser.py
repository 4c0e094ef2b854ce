"""The bar of progress and the correction of labels in a real browser; see test_html_browser.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import EXAMPLE
from entaug import Mention, Sentence
from entaug.commands.main import main
from entaug.report.html.page import render_html_report
from helpers.browser import OpenedFile, data_of
from helpers.pages import examples, hard


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {name: folder / f"{name}.html" for name in ("examples", "hard")}
    found["examples"].write_text(render_html_report(examples()), encoding="utf-8")
    found["hard"].write_text(render_html_report(hard()), encoding="utf-8")
    return found


def exported(page: Any, folder: Path) -> list[dict[str, Any]]:
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(folder / "review.json")
    found: list[dict[str, Any]] = json.loads((folder / "review.json").read_text())["decisions"]
    return found


LABELS = "article[data-pair='0'] .sides > div:last-child .sentence .label"


# ------------------------------------------------------------------------------------------------------------- the bar


@pytest.mark.parametrize(
    "opened",
    [
        ("examples", {"viewport": {"width": width, "height": 780}, "color_scheme": scheme})
        for width, scheme in ((1200, "light"), (400, "dark"))
    ],
    indirect=True,
)
def test_progress_and_export_stay_in_view(opened: OpenedFile, files: dict[str, Path], tmp_path: Path) -> None:
    page = opened.page
    everything = sum("r" not in pair for pair in data_of(files["examples"])["pairs"])
    progress = page.get_by_role("progressbar", name="Judged")
    assert page.inner_text("#judged") == f"0 of {everything}"
    for key in "jarj":
        page.keyboard.press(key)
    page.evaluate("scrollBy(0, 5000)")
    page.wait_for_timeout(200)
    assert page.evaluate("scrollY") > 5000
    for part in (progress, page.locator("#decided"), page.locator("#export"), page.locator("#search")):
        place = part.bounding_box()
        assert 0 <= place["y"] < 250
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= page.viewport_size["width"]
    assert (progress.get_attribute("max"), progress.evaluate("one => one.value")) == (str(everything), 2)
    assert page.inner_text("#judged") == f"2 of {everything}"
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    assert page.locator("#bar").bounding_box()["height"] < 200
    assert [one["decision"] for one in exported(page, tmp_path)] == ["accept", "reject"]
    # The filters fold away.
    is_wide = page.viewport_size["width"] > 800
    assert page.locator("#method").is_visible() == is_wide
    page.click("#more")
    assert page.locator("#method").is_visible() != is_wide
    assert page.get_attribute("#more", "aria-expanded") == str(not is_wide).lower()


def test_what_has_the_focus_is_not_under_the_bar(opened: OpenedFile) -> None:
    page = opened.page
    page.evaluate("scrollBy(0, 3000)")
    page.wait_for_timeout(200)
    page.keyboard.press("j")
    for _ in range(12):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.closest('.pair') === null"):
            break
        top = page.evaluate("document.activeElement.getBoundingClientRect().top")
        bar = page.locator("#bar").bounding_box()
        assert top >= bar["y"] + bar["height"] - 1


# ----------------------------------------------------------------------------------------------------------- provenance


def test_provenance_is_told_in_words(opened: OpenedFile, files: dict[str, Path]) -> None:
    page = opened.page
    opened.choose(method="mr")
    first = page.locator("article").first
    told = first.locator(".why").inner_text()
    assert told == data_of(files["examples"])["pairs"][int(first.get_attribute("data-pair"))]["p"]
    assert told.startswith("mr: '")
    assert "in place of" in told
    first.locator("summary").click()
    assert "{" not in first.locator("dl").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_methods_have_colours_symbols_and_names(browser: Any, files: dict[str, Path], scheme: str) -> None:
    one = OpenedFile(browser, files["examples"], color_scheme=scheme)
    found = {}
    for name in ("mr", "lwtr", "sis"):
        one.choose(method=name)
        row = one.page.locator("article").first
        assert row.locator("h3").inner_text() == name
        style = "one => [getComputedStyle(one).borderLeftColor, getComputedStyle(one.querySelector('.mark')).color]"
        border, colour = row.evaluate(style)
        assert border == colour
        assert row.locator(".mark").get_attribute("aria-hidden") == "true"
        found[name] = (colour, row.locator(".mark").inner_text())
        card = one.page.locator(".methods li", has=one.page.locator(f"h2:has-text('{name}')")).locator(".mark")
        assert (card.evaluate("one => getComputedStyle(one).color"), card.inner_text()) == found[name]
        plot = one.page.locator(".series li", has_text=name).locator("text").first
        assert (plot.evaluate("one => getComputedStyle(one).fill"), plot.text_content()) == found[name]
    assert len({colour for colour, _ in found.values()}) == len({symbol for _, symbol in found.values()}) == 3
    one.close()


# ----------------------------------------------------------------------------------------------------------- correction


def check_that_it_is_kept(one: OpenedFile, shown: list[str], folder: Path) -> None:
    """A correction survives a reload, and its export by an import."""
    page = one.page
    page.reload()
    assert one.decided() == "0 accepted, 0 rejected, 1 corrected"
    assert page.locator(LABELS).all_inner_texts() == shown
    [decision] = exported(page, folder)
    assert decision["decision"] == "correct"
    page.evaluate("localStorage.clear()")
    page.reload()
    page.set_input_files("#file", folder / "review.json")
    page.wait_for_function("() => document.getElementById('message').textContent")
    assert page.inner_text("#message") == "1 decision imported."
    assert exported(page, folder) == [decision]


def test_labels_are_corrected_with_the_mouse_and_the_command_line_applies_it(browser: Any, tmp_path: Path) -> None:
    train, new, html = str(EXAMPLE / "train.conll"), tmp_path / "new.jsonl", tmp_path / "page.html"
    assert main(["augment", train, "-m", "mr", "--only-new", "--seed", "3", "-o", str(new)]) == 0
    assert main(["report", str(new), "--gold", train, "--no-models", "-o", str(html)]) == 0
    first, second = list(entaug.read(new))[:2]
    assert [m.label for m in first.mentions] == ["PER", "ORG", "LOC"]
    one = OpenedFile(browser, html)
    page = one.page
    page.click("article[data-pair='0'] button.correct")
    # Another label, then other words, and one mention less.
    page.locator(".editor .chips button", has_text=" ".join(first.mention_tokens(first.mentions[0]))).click()
    page.locator(".editor [data-does^=label]", has_text="EVENT").click()
    page.locator(".editor [data-does=mention-1]").click()
    page.locator(".editor .word").nth(first.mentions[1].end).click()
    page.locator(".editor [data-does=mention-2]").click()
    page.click(".editor .remove")
    # A new one, over words that are dragged over.
    last = len(first) - 1
    start, end = (page.locator(".editor .word").nth(i).bounding_box() for i in (last - 2, last))
    page.mouse.move(start["x"] + 2, start["y"] + 4)
    page.mouse.down()
    page.mouse.move(end["x"] + 2, end["y"] + 4, steps=8)
    page.mouse.up()
    page.locator(".editor [data-does^=label]", has_text="PRODUCT").click()
    page.click(".editor .save")
    assert "✎ corrected" in page.inner_text("article[data-pair='0']")
    assert one.decided() == "0 accepted, 0 rejected, 1 corrected"
    wanted = (
        Mention("EVENT", first.mentions[0].spans),
        Mention("ORG", [(first.mentions[1].start, first.mentions[1].end + 1)]),
        Mention("PRODUCT", [(last - 2, last + 1)]),
    )
    shown = page.locator(LABELS).all_inner_texts()
    assert shown == [mention.label for mention in wanted]
    assert page.locator("article[data-pair='0'] .corrections li").count() == 4
    check_that_it_is_kept(one, shown, tmp_path)
    one.choose(decision="corrected")
    assert one.count().startswith("1 of ")
    one.choose(type="EVENT")  # of the labels as they are corrected
    assert one.count().startswith("1 of ")
    one.close()
    before = new.read_bytes()
    good = tmp_path / "good.jsonl"
    assert (
        main(["filter", str(new), "--gold", train, "--apply-review", f"{tmp_path}/review.json", "-o", str(good)]) == 0
    )
    applied = list(entaug.read(good))
    assert applied[0].mentions == wanted
    assert applied[1] == second
    assert new.read_bytes() == before
    assert len((tmp_path / "good.jsonl.changes.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize("opened", [("hard", {"viewport": {"width": 1280, "height": 1400}})], indirect=True)
def test_nested_and_discontinuous_mentions_by_keyboard(
    opened: OpenedFile, files: dict[str, Path], tmp_path: Path
) -> None:
    page, data = opened.page, data_of(files["hard"])
    page.keyboard.press("j")
    page.keyboard.press("c")
    assert page.evaluate("document.activeElement.textContent") == "Both"
    assert page.get_attribute(".editor .word >> nth=0", "role") == "option"
    # "Both rowers ... met": the first word, then from the third one two.
    page.keyboard.press(" ")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".word[aria-selected=true]").all_inner_texts() == ["Both", "trained", "on"]
    assert "Both … trained on" in page.inner_text(".editor [role=status]")
    page.keyboard.press(str(data["types"].index("ORG") + 1))
    assert page.evaluate("document.activeElement.dataset.does") == "new"
    # A mention is chosen with Enter, loses its last word, and another is removed.
    mentions = page.locator(".editor .chips button[data-does^=mention]")
    assert mentions.count() == 4
    assert page.evaluate("document.querySelector('.editor').contains(document.activeElement)")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.dataset.does") == "mention-3"
    page.locator(".editor [data-does=mention-1]").focus()
    page.keyboard.press("Enter")
    assert page.get_attribute(".editor [data-does=mention-1]", "aria-pressed") == "true"
    page.locator(".editor .word[tabindex='0']").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press(" ")  # "Games"
    page.locator(".editor [data-does=mention-0]").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Delete")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("document.activeElement.dataset.does") == "correct"
    [decision] = exported(page, tmp_path)
    pair = data["pairs"][0]

    def told(mention: list[Any]) -> dict[str, Any]:
        return {"label": data["types"][mention[0]], "spans": mention[1:]}

    loc, event, _ = pair["m"]["m"]
    assert told(event) == {"label": "EVENT", "spans": [[8, 9], [11, 13]]}
    assert decision["correction"] == {
        "of": pair["f"],
        "changes": [
            {"given": told(loc), "suggested": None},
            {"given": None, "suggested": {"label": "ORG", "spans": [[0, 1], [2, 4]]}},
            {"given": told(event), "suggested": {"label": "EVENT", "spans": [[8, 9], [11, 12]]}},
        ],
    }
    # Undo takes it back; Escape leaves the editor, and nothing is changed.
    page.keyboard.press("u")
    assert opened.decided() == "0 accepted, 0 rejected, 0 corrected"
    page.keyboard.press("c")
    page.keyboard.press("1")  # nothing is selected: no label is set
    page.keyboard.press("Escape")
    assert page.locator(".editor").count() == 0
    page.keyboard.press("c")
    page.keyboard.press("Control+Enter")
    assert page.inner_text("#message") == "No label is changed."
    assert opened.decided() == "0 accepted, 0 rejected, 0 corrected"


def test_words_go_from_right_to_left_where_they_are_written_so(browser: Any, files: dict[str, Path]) -> None:
    one = OpenedFile(browser, files["hard"], viewport={"width": 1280, "height": 3000})
    page = one.page
    page.click("article[data-pair='2'] button.correct")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.textContent") == "בן"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "דוד"
    one.close()


def test_an_editor_that_opens_is_in_view(opened: OpenedFile) -> None:
    page = opened.page
    for key in "jjjc":
        page.keyboard.press(key)
    bar, place = page.locator("#bar").bounding_box(), page.locator("article.current").bounding_box()
    assert bar["y"] + bar["height"] <= place["y"]
    assert place["y"] + place["height"] <= page.viewport_size["height"]


def test_an_editor_outlives_scrolling_and_text_stays_text(opened: OpenedFile) -> None:
    page = opened.page
    page.click("article[data-pair='0'] button.correct")
    page.locator(".editor .word").nth(0).click()
    page.evaluate("scrollBy(0, 20000)")
    page.wait_for_timeout(300)
    assert page.locator(".editor").count() == 0
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)
    assert page.locator(".editor .word[aria-selected=true]").count() == 1
    page.keyboard.press("j")  # elsewhere keys do what they did
    page.click("article[data-pair='1'] button.correct")
    assert page.locator(".editor").count() == 2
    page.click("article[data-pair='1'] .cancel")
    page.click("article[data-pair='0'] button.correct")
    assert page.locator(".editor").count() == 0
    opened.choose(reason="filtered out: not consistent with the tagger")
    assert page.locator("article button.correct").count() == 0
    page.keyboard.press("j")
    page.keyboard.press("c")
    assert "is not corrected" in page.inner_text("#message")


def test_corrections_that_do_not_fit_are_refused(opened: OpenedFile, files: dict[str, Path], tmp_path: Path) -> None:
    page, pair = opened.page, data_of(files["examples"])["pairs"][0]
    mention = {"label": "PER", "spans": [[0, 1]]}
    for number, changes in enumerate(
        (
            None,
            [],
            [{"given": None, "suggested": None}],
            [{"given": mention, "suggested": {"label": "", "spans": [[0, 1]]}}],
            [{"given": mention, "suggested": {"label": "X", "spans": [[0, 500]]}}],
            [{"given": mention, "suggested": {"label": "X", "spans": [[2, 3], [0, 1]]}}],
        )
    ):
        path = tmp_path / f"{number}.json"
        decision = {"fingerprint": pair["f"], "method": pair["n"], "id": pair["i"], "decision": "correct"}
        correction = {"of": pair["f"], "changes": changes}
        path.write_text(
            json.dumps({"entaug": "review", "version": 1, "decisions": [{**decision, "correction": correction}]})
        )
        page.evaluate("document.getElementById('message').textContent = ''")
        page.set_input_files("#file", path)
        page.wait_for_function("() => document.getElementById('message').textContent.includes('does not fit')")
        assert opened.decided() == "0 accepted, 0 rejected, 0 corrected"
    # A label that the page does not know is shown all the same.
    correction = {
        "of": pair["f"],
        "changes": [{"given": None, "suggested": {"label": "<b>NEW</b>", "spans": [[0, 1]]}}],
    }
    path.write_text(
        json.dumps({"entaug": "review", "version": 1, "decisions": [{**decision, "correction": correction}]})
    )
    page.set_input_files("#file", path)
    page.wait_for_function("() => document.getElementById('message').textContent.includes('imported')")
    assert "<b>NEW</b>" in page.inner_text("article[data-pair='0']")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_editor_keeps_the_rules_of_accessibility(browser: Any, files: dict[str, Path], scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    one = OpenedFile(browser, files["hard"], color_scheme=scheme, bypass_csp=True)
    one.page.click("article[data-pair='0'] button.correct")
    one.page.keyboard.press(" ")
    one.page.click("article[data-pair='1'] button.correct")
    one.page.click("article[data-pair='1'] [data-does=mention-0]")
    found = axe.Axe().run(one.page)
    assert [(rule["id"], [n["target"] for n in rule["nodes"]][:3]) for rule in found.response["violations"]] == []
    one.close()


# ---------------------------------------------------------------------------------------------------- suspicious labels


def test_a_suspicious_label_gets_another_one_than_is_suggested(browser: Any, tmp_path: Path) -> None:
    corpus = [
        *(Sentence([name, "Rome", "."], [Mention("LOC", [(1, 2)])], id=f"s{i}") for i, name in enumerate("abcde")),
        Sentence(["so", "Rome", "sang", "twice"], [Mention("PER", [(1, 2)]), Mention("ORG", [(2, 3)])], id="wrong"),
        Sentence(["dear", "Rome", "!"], id="missing"),
        Sentence(["old", "Paris"], [Mention("EVENT", [(1, 2)])], id="rare"),
    ]
    path, html, new = tmp_path / "corpus.jsonl", tmp_path / "page.html", tmp_path / "new.jsonl"
    entaug.write(corpus, path)
    entaug.audit(path, tmp_path / "tasks.jsonl", html=html, teacher="none")
    data = data_of(html)
    place = next(i for i, pair in enumerate(data["pairs"]) if pair["i"] == "wrong")
    assert set(data["types"]) == {"LOC", "PER", "ORG", "EVENT"}  # also those of other sentences
    one = OpenedFile(browser, html)
    page = one.page
    row = f"article[data-pair='{place}']"
    page.click(f"{row} button.correct")
    page.click(f"{row} .editor [data-does=mention-0]")
    page.locator(f"{row} [data-does^=label]", has_text="EVENT").click()
    page.click(f"{row} .save")
    assert one.decided() == "0 accepted, 0 rejected, 1 corrected"
    [decision] = exported(page, tmp_path)
    changes = decision["correction"]["changes"]
    assert decision["correction"]["of"] == corpus[5].fingerprint().hex()
    assert changes == [
        {"given": {"label": "PER", "spans": [[1, 2]]}, "suggested": {"label": "EVENT", "spans": [[1, 2]]}}
    ]
    # What is suggested is accepted, and what is annotated keeps it.
    page.click(f"{row} button.correct")
    page.click(f"{row} .editor [data-does=mention-0]")
    page.locator(f"{row} [data-does^=label]", has_text="LOC").click()
    page.click(f"{row} .save")
    assert one.decided() == "1 accepted, 0 rejected, 0 corrected"
    page.keyboard.press("u")
    assert one.decided() == "0 accepted, 0 rejected, 1 corrected"
    exported(page, tmp_path)
    one.close()
    before = path.read_bytes()
    assert main(["audit", str(path), "--apply-review", str(tmp_path / "review.json"), "-o", str(new)]) == 0
    assert path.read_bytes() == before
    fixed = Sentence(corpus[5].tokens, [Mention("EVENT", [(1, 2)]), Mention("ORG", [(2, 3)])]).mentions
    assert [one.mentions for one in entaug.read(new)] == [
        fixed if one.id == "wrong" else one.mentions for one in corpus
    ]
    [line] = map(json.loads, (tmp_path / "new.jsonl.changes.jsonl").read_text().splitlines())
    assert (line["kind"], line["old"]["label"], line["new"]["label"]) == ("type", "PER", "EVENT")
