"""The page for raters in a real browser; see test_html_browser.py."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from entaug.report.ratings.page import RatedItem, Scale, packaged_scales, render_rating_page, sample_items
from entaug.report.ratings.results import key_text, read_key, read_ratings
from helpers.browser import OpenedPage
from helpers.pages import examples, hard

SCALES = [packaged_scales()[name] for name in ("fluent", "right", "diverse")]
GROUP = packaged_scales()["entda"]


def write(folder: Path, name: str, items: list[RatedItem], scales: list[Scale]) -> None:
    page = render_rating_page(items, scales)
    (folder / f"{name}.html").write_text(page.html, encoding="utf-8")
    (folder / f"{name}.key.json").write_text(key_text(page.digest, scales, items, 0), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ratings")
    write(folder, "texts", sample_items(examples(), SCALES, sample=2, with_gold=True)[0], SCALES)
    write(folder, "hard", sample_items(hard(), SCALES, sample=9)[0], SCALES)
    texts = examples().methods["mr"]
    groups = [
        RatedItem("mr", tuple(p.augmented for p in texts[n : n + 3]), texts[n].source, ("entda",)) for n in (0, 9)
    ]
    write(folder, "groups", groups, [GROUP])
    return folder


class Rater(OpenedPage):
    """The page of a rater."""

    def __init__(self, browser: Any, file: Path, name: str | None = "Ada", **options: Any) -> None:
        super().__init__(browser, file, **options)
        if name is not None:
            self.enter(name)

    def enter(self, name: str) -> None:
        self.page.fill("#name", name)
        self.page.keyboard.press("Enter")

    def press(self, keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    @property
    def place(self) -> str:
        return str(self.page.inner_text("#place"))

    @property
    def rated(self) -> str:
        return str(self.page.inner_text("#rated"))

    def scales(self) -> list[str]:
        return [str(text) for text in self.page.locator("#scales legend b").all_inner_texts()]

    def checked(self) -> list[tuple[str, str]]:
        found = self.page.evaluate(
            "[...document.querySelectorAll('#scales input:checked')].map((i) => [i.name.slice(6), i.value])"
        )
        return [(scale, value) for scale, value in found]

    def export(self, file: Path, button: str = "#export") -> list[dict[str, Any]]:
        with self.page.expect_download() as download:
            self.page.click(button)
        download.value.save_as(file)
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.fixture
def rater(browser: Any, folder: Path) -> Iterator[Rater]:
    rater = Rater(browser, folder / "texts.html")
    yield rater
    rater.close()


def test_two_raters_by_keyboard_and_their_files_are_merged(browser: Any, folder: Path, tmp_path: Path) -> None:
    key = read_key(folder / "texts.key.json")
    first = Rater(browser, folder / "texts.html", "Zoë Ōta")
    assert first.place == f"Text 1 of {len(key.items)}"
    for item in key.items:
        first.press("4" if item.method == "gold" else "2")
        first.press("53"[: len(item.scales) - 1])  # the last rating goes on to the next text
    assert first.page.inner_text("#end-title") == "All done, thank you"
    assert first.rated == f"{len(key.items)} of {len(key.items)}"
    lines = first.export(tmp_path / "1.jsonl", "#export-at-end")
    assert lines[0] == {"entaug": "ratings", "version": 1, "page": key.page, "rater": "Zoë Ōta"}
    assert len(lines) == 1 + key.size
    # Another rater at the same browser sees nothing of it.
    first.page.reload()
    assert first.page.input_value("#name") == "Zoë Ōta"
    first.enter("Bo")
    assert first.rated == f"0 of {len(key.items)}"
    assert first.checked() == []
    first.press("1")
    assert len(first.export(tmp_path / "2.jsonl")) == 2
    first.close()
    ratings = read_ratings([tmp_path / "1.jsonl", tmp_path / "2.jsonl"], key)
    assert ratings.raters["Bo"] == {(0, "fluent"): 1}
    for number, item in enumerate(key.items):
        given = ratings.raters["Zoë Ōta"]
        assert given[number, "fluent"] == (4 if item.method == "gold" else 2)
        assert given[number, "right"] == 5
        assert given.get((number, "diverse")) == (None if item.method == "gold" else 3)


def test_the_original_appears_after_the_ratings_of_the_text_alone(rater: Rater, folder: Path) -> None:
    items = read_key(folder / "texts.key.json").items
    number = next(n for n, item in enumerate(items) if item.method != "gold")
    rater.press("j" * number)
    assert rater.scales() == ["fluent", "right"]
    assert rater.page.locator(".original").count() == 0
    rater.press("4")
    assert rater.page.locator(".original").count() == 0
    rater.press("4")
    assert rater.page.locator(".original .sentence").count() == 1
    assert rater.scales() == ["fluent", "right", "diverse"]
    assert "original is shown" in rater.page.inner_text("#status")
    rater.page.keyboard.press("u")
    assert rater.page.locator(".original").count() == 0
    gold = next(n for n, item in enumerate(items) if item.method == "gold")
    rater.press("k" * number + "j" * gold + "44k")  # rated: nothing more is asked
    assert rater.place == f"Text {gold + 1} of {len(items)}"
    assert rater.scales() == ["fluent", "right"]
    assert rater.page.locator(".original").count() == 0


def test_ratings_survive_a_reload_and_can_be_changed_and_removed(rater: Rater, folder: Path, tmp_path: Path) -> None:
    items = read_key(folder / "texts.key.json").items
    number = next(n for n, item in enumerate(items) if len(item.scales) == 3)
    rater.press("j" * number + "2")
    rater.page.reload()
    rater.enter("Ada")
    rater.press("j" * number)
    assert rater.checked() == [("0", "2")]
    # With the mouse and with the keys of radio buttons.
    rater.page.check("input[name=scale-0][value='5']")
    assert rater.checked() == [("0", "5")]
    rater.page.keyboard.press("ArrowLeft")
    assert rater.checked() == [("0", "4")]
    rater.press("3")  # of the scale that has the focus; the next one has it then
    assert rater.checked() == [("0", "3")]
    assert rater.page.evaluate("document.activeElement.dataset.scale") == "1"
    rater.press("4")
    assert rater.page.evaluate("document.activeElement.dataset.scale") == "2"
    rater.page.focus("input[name=scale-1]:checked")
    rater.press("0")
    assert rater.checked() == [("0", "3")]
    rater.press("u")
    assert rater.checked() == [("0", "3"), ("1", "4")]
    rater.press("uuuuu9")
    lines = rater.export(tmp_path / "r.jsonl")
    assert lines[1:] == [{"item": number + 1, "scale": "fluent", "rating": 2}]  # what was there on coming back


def test_texts_may_be_left_out(rater: Rater, folder: Path) -> None:
    size = len(read_key(folder / "texts.key.json").items)
    rater.page.click("#next")
    rater.press("j" * (size - 1))
    assert rater.page.inner_text("#end-title") == "The last one is done"
    assert f"{size} of {size} lack a rating" in rater.page.inner_text("#end-text")
    rater.page.click("#back")
    assert rater.place == f"Text 1 of {size}"
    assert rater.page.is_disabled("#export")
    rater.press("jjn")
    assert rater.place == f"Text 4 of {size}"


def test_ratings_go_on_in_another_browser(browser: Any, rater: Rater, folder: Path, tmp_path: Path) -> None:
    rater.press("23")
    file = tmp_path / "r.jsonl"
    lines = rater.export(file)
    other = Rater(browser, folder / "texts.html", None)
    other.page.set_input_files("#file", file)
    other.page.wait_for_function("() => document.getElementById('message').textContent")
    assert other.page.inner_text("#message") == "2 ratings of Ada imported."
    assert other.export(tmp_path / "again.jsonl") == lines
    head, first, *_ = lines
    for faulty, message in (
        ([], "Line 1 does not begin a file of ratings"),
        (["{"], "Line 1 is not a JSON object"),
        ([first], "Line 1 does not begin a file of ratings"),
        ([head | {"version": 2}], "Line 1 has version 2 of the format"),
        ([head | {"page": "00"}], "Line 1 names another page"),
        ([head | {"rater": " "}], "Line 1 names no rater"),
        ([head, first, first | {"item": 999}], "Line 3 names no item of this page"),
        ([head, first | {"scale": "nice"}], "Line 2 names no scale of this item"),
        ([head, first | {"rating": 6}], "Line 2 needs a rating from 1 to 5"),
        ([head, first | {"rating": 1.5}], "Line 2 needs a rating from 1 to 5"),
        ([head, None], "Line 2 is not a JSON object"),
    ):
        file.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in faulty))
        other.page.set_input_files("#file", file)
        other.page.wait_for_function(
            "told => document.getElementById('message').textContent.startsWith(told)", arg=message
        )
    assert other.export(tmp_path / "again.jsonl") == lines  # nothing of faulty files is taken
    other.close()


def test_groups_show_all_texts_beside_the_original(browser: Any, folder: Path, tmp_path: Path) -> None:
    rater = Rater(browser, folder / "groups.html")
    assert rater.place == "Group 1 of 2"
    assert rater.page.locator("#texts li .sentence").count() == 3
    assert rater.page.locator(".original .sentence").count() == 1
    labels = rater.page.locator("#scales label").all_inner_texts()
    assert len(labels) == 5
    assert labels[4].split("\n")[-1] == GROUP.anchors[4]
    rater.press("5")
    assert rater.place == "Group 2 of 2"
    assert rater.export(tmp_path / "r.jsonl")[1:] == [{"item": 1, "scale": "entda", "rating": 5}]
    rater.close()


def test_keys_in_the_name_are_letters_and_text_is_text(browser: Any, folder: Path) -> None:
    rater = Rater(browser, folder / "hard.html", None)
    rater.page.click("#name")
    rater.page.keyboard.type("j?k1")
    assert rater.page.input_value("#name") == "j?k1"
    assert not rater.page.locator("#keys").is_visible()
    rater.page.keyboard.press("Enter")
    for _ in read_key(folder / "hard.key.json").items:
        rater.press("11")
        assert rater.page.evaluate("window.hacked") is None
        rater.press("j")
    rater.page.reload()
    rater.enter("  ")
    assert rater.page.inner_text("#message") == "Enter a name or a code first."
    rater.press("?")  # still in the field
    rater.page.locator("h1").first.click()
    rater.press("?")
    assert rater.page.locator("#keys").is_visible()
    rater.page.keyboard.press("Escape")
    rater.close()


@pytest.mark.parametrize(("name", "scheme"), [("texts", "light"), ("groups", "dark")])
def test_rules_of_accessibility_are_kept(browser: Any, folder: Path, name: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    options = {"color_scheme": scheme, "bypass_csp": True, "viewport": {"width": 360, "height": 740}}
    rater = Rater(browser, folder / f"{name}.html", None, **options)

    def violations() -> list[str]:
        assert rater.page.evaluate("document.documentElement.scrollWidth") <= 360
        found = axe.Axe().run(rater.page)
        return [f"{r['id']}: {[node['target'] for node in r['nodes']][:3]}" for r in found.response["violations"]]

    assert violations() == []
    rater.enter("Ada")
    rater.press("4")
    assert violations() == []
    rater.press("4?")
    assert violations() == []
    rater.page.keyboard.press("Escape")
    rater.press("jjjjjjjjj")
    assert rater.page.locator("#end").is_visible()
    assert violations() == []
    rater.close()


def test_without_a_store_the_page_says_so_and_goes_on(browser: Any, folder: Path, tmp_path: Path) -> None:
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('forbidden'); } });")
    page.goto((folder / "groups.html").as_uri())
    assert "does not store ratings for this page" in page.inner_text("#message")
    page.fill("#name", "Ada")
    page.keyboard.press("Enter")
    page.keyboard.press("3")
    with page.expect_download() as download:
        page.click("#export")
    assert download.value.suggested_filename == "ratings-ada.jsonl"
    context.close()


def test_a_damaged_store_is_ignored(browser: Any, folder: Path) -> None:
    rater = Rater(browser, folder / "groups.html")
    rater.press("3")
    key = rater.page.evaluate("Object.keys(localStorage).find((name) => name.startsWith('entaug-ratings'))")
    for stored in ('{"raters": [["Ada", [[9]]]]}', '{"raters": [["Ada", null]]}', "{", '{"raters": 3}', "null", "[]"):
        rater.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [key, stored])
        rater.page.reload()
        rater.enter("Ada")
        assert rater.rated == "0 of 2"
    rater.close()


@pytest.mark.skipif("ENTAUG_PICTURES" not in os.environ, reason="pictures are written by: make pictures")
def test_picture_for_the_documentation(browser: Any, folder: Path) -> None:
    rater = Rater(browser, folder / "texts.html", viewport={"width": 1000, "height": 900})
    items = read_key(folder / "texts.key.json").items
    rater.press("j" * next(n for n, item in enumerate(items) if item.method == "mr") + "45")
    rater.page.evaluate("scrollTo(0, 0)")
    rater.page.screenshot(path=ROOT / "docs" / "pictures" / "rating-page.png")
    rater.close()
