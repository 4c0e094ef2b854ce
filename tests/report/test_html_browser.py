"""The page in a real browser without a head: Chromium of the machine, driven by Playwright.

``make browser`` installs Chromium where it may; without it these tests skip. With ``ENTAUG_PICTURES`` set (``make
pictures``) the pictures of the README are written too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from test_report import CELL, seeds, written

from conftest import ROOT
from entaug.commands.main import main
from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.formats import read
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.metrics.quality import measure_corpus
from entaug.report.html.page import render_html_report
from entaug.study.records import read_run_records
from helpers.browser import OpenedFile, data_of
from helpers.pages import examples, hard, many


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    records = read_run_records(
        [written(folder / "runs", [*CELL, *seeds("gold-steps", 1, [5, 6, 7]), *seeds("mr", 1, [7, 8, 9])])]
    )
    made = examples()
    texts = {
        "whole": render_html_report(made, records, qualities=measure_corpus(made, causal_lm=None, encoder=None)),
        "examples": render_html_report(examples(), title="The example corpus, three times anew"),
        "hard": render_html_report(hard(), title="Hard <b>cases</b>"),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


def test_search_and_filters_show_the_right_pairs(opened: OpenedFile, files: dict[str, Path]) -> None:
    data = data_of(files["examples"])
    pairs, page = data["pairs"], opened.page
    everything = len(pairs)
    kept = sum("r" not in pair for pair in pairs)
    assert kept == everything - 10
    assert opened.count() == f"{kept} of {everything} shown"  # refused drafts only when asked for

    def texts(pair: dict[str, Any]) -> str:
        sides = [data["gold"][number]["t"] for number, _, _ in pair["s"]]
        return "\n".join(text.lower() for text in [pair["m"]["t"], *sides])

    page.fill("#search", "lisbon the")
    wanted = sum("r" not in p and "lisbon" in texts(p) and "the" in texts(p) for p in pairs)
    assert opened.count() == f"{wanted} of {everything} shown"
    assert 0 < wanted < kept
    assert page.locator("#feed .hit").count() > 0
    page.fill("#search", "no-such-word")
    assert page.locator("#feed .nothing").is_visible()
    page.click("#clear")
    assert opened.count() == f"{kept} of {everything} shown"
    assert page.locator("#feed .nothing").count() == 0
    opened.choose(method="sis", type="EVENT")
    event, sis = data["types"].index("EVENT"), [m["name"] for m in data["methods"]].index("sis")
    wanted = sum(p["g"] == sis and any(m[0] == event for m in p["m"]["m"]) for p in pairs)
    assert opened.count() == f"{wanted} of {everything} shown"
    assert page.get_attribute("#legend [aria-pressed=true]", "data-type") == str(event)
    page.click("#clear")
    opened.choose(reason="filtered out: not consistent with the tagger")
    assert opened.count() == f"10 of {everything} shown"
    assert "filtered out: not consistent with the tagger" in page.inner_text("article >> nth=0")
    assert page.locator("article button.accept").count() == 0  # read only
    page.click("#clear")
    opened.choose(score="words changed, %")
    assert float(page.get_attribute("#most", "placeholder")) == round(max(p["v"][0] for p in pairs), 2)
    page.fill("#least", "20")
    page.fill("#most", "40")
    wanted = sum("r" not in p and p["v"][0] is not None and 20 <= p["v"][0] <= 40 for p in pairs)
    assert opened.count() == f"{wanted} of {everything} shown"
    opened.choose(order="words changed, %: highest first")
    first = int(page.get_attribute("article >> nth=0", "data-pair"))
    assert pairs[first]["v"][0] == max(p["v"][0] for p in pairs if "r" not in p and 20 <= (p["v"][0] or 0) <= 40)


def test_decisions_survive_a_reload_and_are_exported(
    opened: OpenedFile, files: dict[str, Path], tmp_path: Path
) -> None:
    page, pairs = opened.page, data_of(files["examples"])["pairs"]
    page.click("article[data-pair='0'] button.accept")
    page.click("article[data-pair='1'] button.reject")
    page.click("article[data-pair='2'] button.reject")
    page.click("article[data-pair='2'] button.reject")  # once more takes it back
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    page.reload()
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    assert page.get_attribute("article[data-pair='0'] button.accept", "aria-pressed") == "true"
    assert "✗ rejected" in page.inner_text("article[data-pair='1']")
    opened.choose(decision="rejected")
    assert opened.count().startswith("1 of ")
    with page.expect_download() as download:
        page.click("#export")
    file = tmp_path / "review.json"
    download.value.save_as(file)
    wanted = [
        {"fingerprint": pairs[i]["f"], "method": pairs[i]["n"], "id": pairs[i]["i"], "decision": decision}
        for i, decision in enumerate(("accept", "reject"))
    ]
    assert json.loads(file.read_text()) == {"entaug": "review", "version": 1, "decisions": wanted}
    # And taken back from the file, with what concerns no sentence here counted.
    page.evaluate("localStorage.clear()")
    page.reload()
    assert opened.decided() == "0 accepted, 0 rejected, 0 corrected"
    changed = {**json.loads(file.read_text())}
    changed["decisions"].append({"fingerprint": "00" * 8, "method": "mr", "id": None, "decision": "accept"})
    file.write_text(json.dumps(changed))
    page.set_input_files("#file", file)
    page.wait_for_function("() => document.getElementById('message').textContent")
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    assert "2 decisions imported; 1 concern no sentence of this page" in page.inner_text("#message")
    # Of a file with a fault nothing is taken.
    first = {**changed["decisions"][1], "fingerprint": changed["decisions"][1]["fingerprint"].upper(), "method": None}
    for amiss, told in ((None, "is not an object"), ({**first, "decision": "no"}, "must be accept, reject or correct")):
        file.write_text(json.dumps({**changed, "decisions": [{**first, "decision": "accept"}, amiss]}))
        page.set_input_files("#file", file)
        page.wait_for_function(f"() => document.getElementById('message').textContent.includes('Decision 2 {told}')")
        assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    file.write_text(json.dumps({**changed, "decisions": [{**first, "decision": "accept"}]}))
    page.set_input_files("#file", file)
    page.wait_for_function("() => document.getElementById('message').textContent.startsWith('1 decision imported')")
    assert opened.decided() == "2 accepted, 0 rejected, 0 corrected"
    for bad, told in (
        ("{", "This is not JSON"),
        ("[]", "not a file of decisions"),
        ('{"entaug":"review"}', "not a file of"),
    ):
        file.write_text(bad)
        page.set_input_files("#file", file)
        page.wait_for_function("told => document.getElementById('message').textContent.includes(told)", arg=told)
    assert opened.decided() == "2 accepted, 0 rejected, 0 corrected"


def test_what_is_rejected_in_the_page_the_command_line_leaves_out(browser: Any, tmp_path: Path) -> None:
    train = str(ROOT / "examples" / "corpus" / "train.conll")
    first, html, review = tmp_path / "first.jsonl", tmp_path / "report.html", tmp_path / "review.json"
    again = tmp_path / "again.jsonl"
    augment = ["augment", train, "-m", "mr", "--only-new", "-o"]
    assert main([*augment, str(first)]) == 0
    assert main(["report", str(first), "--gold", train, "--no-models", "-o", str(html)]) == 0
    one = OpenedFile(browser, html)
    for key in "jrjr":  # the first and the third: a decision goes on to the next
        one.page.keyboard.press(key)
    with one.page.expect_download() as download:
        one.page.click("#export")
    download.value.save_as(review)
    one.close()
    rejected = {decision["id"] for decision in json.loads(review.read_text())["decisions"]}
    assert len(rejected) == 2
    assert main([*augment, str(again), "--apply-review", str(review)]) == 0
    assert list(read(again)) == [sentence for sentence in read(first) if sentence.id not in rejected]


def test_all_of_it_goes_by_keyboard(opened: OpenedFile) -> None:
    page = opened.page
    for key in "jjk":
        page.keyboard.press(key)
    assert opened.current() == 0
    assert page.evaluate("document.activeElement.dataset.pair") == "0"
    page.keyboard.press("a")  # and on to the next
    page.keyboard.press("r")
    assert opened.decided() == "1 accepted, 1 rejected, 0 corrected"
    assert opened.current() == 2
    page.keyboard.press("u")
    assert opened.decided() == "1 accepted, 0 rejected, 0 corrected"
    assert opened.current() == 1
    page.keyboard.press("ArrowDown")
    assert opened.current() == 2
    page.keyboard.press("p")
    assert "signature" in page.inner_text("article.current dl")
    page.keyboard.press("/")
    page.keyboard.type("jar")  # letters in the search are letters
    assert page.input_value("#search") == "jar"
    assert opened.decided() == "1 accepted, 0 rejected, 0 corrected"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#keys").is_visible()
    page.click("#clear")
    for _ in range(40):
        page.keyboard.press("j")
    place = page.locator("article.current").bounding_box()
    bar = page.locator("#bar").bounding_box()
    assert bar["y"] + bar["height"] <= place["y"]  # not under the bar
    assert place["y"] + place["height"] <= 900
    # Every button is reached with Tab alone, and shows it.
    page.focus(".skip")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {"theme", "search", "method", "type", "order", "score", "clear", "import", "help"} <= reached


@pytest.mark.parametrize("opened", [("hard", {"viewport": {"width": 1280, "height": 3000}})], indirect=True)
def test_text_is_shown_as_text(opened: OpenedFile, files: dict[str, Path]) -> None:
    page = opened.page
    opened.choose(reason="kept and filtered out")
    assert page.evaluate("window.hacked") is None
    assert page.inner_text("h1") == "Hard <b>cases</b>"
    assert page.inner_text(".notes") == "a note with <b>markup</b>"
    row = page.locator("article", has_text="<b>evil</b>")
    assert "filtered out: no <b>good</b>" in row.inner_text()
    shown = row.locator(".sentence").all_text_contents()
    assert shown[0].startswith("<script>window.hacked=1</script><b>X</b> </script> <!-- \"q' 😀 a\u2028b &amp;")
    assert shown[1].startswith("<img<b>X</b> src=x")
    row.locator("summary").click()
    assert "</script><script>window.hacked=3</script>" in row.inner_text()
    assert page.locator("#feed img, #feed script, #feed b:not(.scores b)").count() == 0


@pytest.mark.parametrize("opened", [("hard", {"viewport": {"width": 1280, "height": 3000}})], indirect=True)
def test_mentions_are_drawn_line_by_line(opened: OpenedFile) -> None:
    page = opened.page
    [_, made] = page.locator("article[data-pair='0'] .sentence").all_text_contents()
    # The inner mention is named first; parts of the discontinuous one have its number.
    assert made == "Both rowers trained on Loch NessLOC for the 20201 and 2024 Olympic GamesEVENTEVENT1 ."
    lines = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll("article[data-pair='0'] .sides > :last-child .run")]
           .map((run) => [run.textContent, run.style.backgroundImage]))"""
    )
    assert lines["2020"].startswith("linear-gradient")
    assert lines[" and "].startswith("repeating-linear-gradient")  # the gap
    assert lines["2024 "].count("linear-gradient") == 2  # a mention, above the gap of the other
    assert lines["2024 "].count("repeating") == 1
    assert lines["Olympic Games"].count("linear-gradient") == 2
    assert "repeating" not in lines["Olympic Games"]
    [_, school] = page.locator("article[data-pair='1'] .sentence").all_text_contents()
    assert school == "The University of GalwayLOCORG Medical SchoolORG met ."
    depth = page.evaluate(
        """() => [...document.querySelectorAll("article[data-pair='1'] .run")]
           .filter((run) => run.textContent === "Galway").map((run) => run.style.backgroundPosition)"""
    )
    # Browsers normalise the last one differently.
    assert [value.replace("+ 0px", "- 0px") for value in depth] == [
        "0px calc(100% - 8px), 0px calc(100% - 4px), 0px calc(100% - 0px)"
    ]
    assert (
        page.evaluate("getComputedStyle(document.querySelector(\"article[data-pair='2'] .sentence\")).direction")
        == "rtl"
    )
    assert page.get_attribute("article[data-pair='2'] .sentence >> nth=0", "lang") == "he"
    crossing = page.locator("article[data-pair='3'] .sentence").all_text_contents()
    assert crossing[0] == "a b cX dY"
    graft = page.locator("article[data-pair='4']")
    assert graft.locator("mark.transferred").all_text_contents() == ["car of my aunt", "car of my aunt"]
    assert graft.locator("mark.removed").all_text_contents() == ["old car"]


@pytest.mark.slow
def test_words_of_chinese_are_found(browser: Any, tmp_path: Path) -> None:
    gold = Sentence("他 住 在 北 京 。".split(), [Mention("LOC", [(3, 5)])], id="g")
    texts = {"海": "他 住 在 上 海 。", "北": "他 住 在 北 海 。"}
    own = {"method": "mr", "signature": "mr|p=0.3", "sources": ["g"]}
    made = [
        AugmentedPair(Sentence(text.split(), gold.mentions, id=name, **split_fields({"entaug": own})), gold)
        for name, text in texts.items()
    ]
    file = tmp_path / "chinese.html"
    file.write_text(render_html_report(AugmentedCorpus([gold], {"mr": made})), encoding="utf-8")
    one = OpenedFile(browser, file)
    assert one.page.locator("article >> nth=0").locator(".sentence").last.inner_text().startswith("他住在上海")
    one.page.fill("#search", "上海")
    assert one.count() == "1 of 2 shown"
    assert "".join(one.page.locator("#feed .hit").all_inner_texts()) == "上海"
    one.close()


@pytest.mark.slow
def test_ten_thousand_pairs_open_at_once_and_scroll(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "many.html"
    file.write_text(render_html_report(many()), encoding="utf-8")
    one = OpenedFile(browser, file)
    page = one.page
    assert one.count() == "10,000 of 10,000 shown"
    most = page.evaluate(
        """async () => {
          document.getElementById("examples").scrollIntoView();
          let most = 0;
          for (let i = 0; i < 90; i += 1) {
            scrollBy(0, i < 60 ? 150 : 20000);
            await new Promise((done) => requestAnimationFrame(done));
            most = Math.max(most, document.querySelectorAll("article").length);
          }
          return most;
        }"""
    )
    assert most < 40
    # The list ends where the page thinks it ends, and what is at the end is the last pair.
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_timeout(300)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.wait_for_timeout(300)
    assert page.locator("article").last.get_attribute("data-pair") == "9999"
    # Where nothing has been seen yet heights are guessed; scrolling up there moves rows by as much and no more.
    moved = page.evaluate(
        """async () => {
          const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          const places = () => new Map([...document.querySelectorAll("article")]
            .map((row) => [row.dataset.pair, row.getBoundingClientRect().top]));
          scrollTo(0, 900000);
          await frame();
          const moved = [];
          for (let i = 0; i < 20; i += 1) {
            const before = places();
            scrollBy(0, -200);
            await frame();
            for (const [pair, top] of places()) if (before.has(pair)) moved.push(top - before.get(pair));
          }
          return moved;
        }"""
    )
    assert len(moved) > 40
    assert max(abs(by - 200) for by in moved) < 2
    page.fill("#search", "longer42")
    one.close()


@pytest.mark.parametrize(
    "opened",
    [
        (name, {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme, "has_touch": True})
        for name, scheme in (("whole", "light"), ("hard", "dark"))
    ],
    indirect=True,
)
def test_a_phone_needs_no_scrolling_sideways(opened: OpenedFile) -> None:
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#examples").scroll_into_view_if_needed()
    above, below = page.evaluate(
        """() => { const sides = document.querySelectorAll("article:first-child .side");
           return [sides[0].getBoundingClientRect().bottom, sides[1].getBoundingClientRect().top]; }"""
    )
    assert below >= above
    page.click("#more")
    assert page.get_attribute("#more", "aria-expanded") == "true"
    page.select_option("#method", label="mr")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["whole", "hard"])
def test_rules_of_accessibility_are_kept(browser: Any, files: dict[str, Path], name: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    one = OpenedFile(browser, files[name], color_scheme=scheme, bypass_csp=True)
    for details in one.page.locator("details").all():
        details.evaluate("(element) => { element.open = true; }")
    found = axe.Axe().run(one.page)
    told = [
        f"{rule['id']}: {rule['help']}: {[node['target'] for node in rule['nodes']][:3]}"
        for rule in found.response["violations"]
    ]
    assert told == []
    one.close()


def test_the_theme_follows_the_system_and_the_button(browser: Any, files: dict[str, Path]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(251, 250, 247)", "rgb(23, 25, 28)"
    for scheme, wanted in (("light", light), ("dark", dark)):
        one = OpenedFile(browser, files["examples"], color_scheme=scheme)
        assert one.page.evaluate(ground) == wanted
        one.page.click("#theme")
        assert one.page.evaluate(ground) == light
        one.page.click("#theme")
        assert one.page.evaluate(ground) == dark
        one.page.reload()
        assert one.page.evaluate(ground) == dark  # kept
        one.page.click("#theme")
        assert one.page.evaluate(ground) == wanted
        one.close()


@pytest.mark.parametrize("opened", [("whole", {})], indirect=True)
def test_what_a_measure_means_is_told_to_pointer_keys_and_finger(opened: OpenedFile) -> None:
    page = opened.page
    button = page.locator("button.definition-of", has_text="New words")
    meaning = page.locator(".definition", has_text="Share of words that do not occur in the source")
    button.scroll_into_view_if_needed()
    assert not meaning.is_visible()
    button.hover()
    assert meaning.is_visible()
    place, above = meaning.bounding_box(), button.bounding_box()
    # Beside what it explains, not over it.
    gap = max(place["y"] - above["y"] - above["height"], above["y"] - place["y"] - place["height"])
    assert 0 <= gap < 20
    page.mouse.move(5, 5)
    assert not meaning.is_visible()
    page.locator("button.definition-of").first.focus()
    for _ in range(20):
        if meaning.is_visible():
            break
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == button.text_content()
    page.keyboard.press("Escape")
    assert not meaning.is_visible()
    page.keyboard.press("Enter")
    assert meaning.is_visible()
    page.evaluate("document.activeElement.blur()")
    button.dispatch_event("click")  # as a finger does, which neither hovers nor focuses
    assert meaning.is_visible()


def test_without_a_store_the_page_says_so_and_goes_on(browser: Any, files: dict[str, Path]) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('forbidden'); } });")
    page.goto(files["examples"].as_uri())
    page.wait_for_selector("article")
    assert "does not store decisions for this page" in page.inner_text("#message")
    page.click("article >> nth=0 >> button.accept")
    assert page.inner_text("#decided") == "1 accepted, 0 rejected, 0 corrected"
    context.close()


def test_pages_without_examples_open_quietly(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "empty.html"
    file.write_text(render_html_report(), encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    page.click("#theme")
    assert "There is nothing to show" in page.inner_text("main")
    assert complaints == []
    context.close()


@pytest.mark.skipif("ENTAUG_PICTURES" not in os.environ, reason="pictures are written by: make pictures")
def test_pictures_for_the_readme(browser: Any, files: dict[str, Path]) -> None:
    folder = ROOT / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    wide, phone = {"width": 1200, "height": 800}, {"width": 390, "height": 780}
    shots = {
        "report-examples": ("light", wide, "#bar"),
        "report-correct": ("light", {"width": 1200, "height": 560}, "#bar"),
        "report-plots": ("light", wide, "#plots"),
        "report-phone": ("dark", phone, "#bar"),
    }
    for name, (scheme, viewport, place) in shots.items():
        one = OpenedFile(browser, files["examples"], color_scheme=scheme, viewport=viewport)
        one.page.evaluate(f"document.querySelector('{place}').scrollIntoView()")
        if place == "#bar":
            one.page.fill("#search", "olympic" if scheme == "light" else "westhaven")
            one.page.click("article >> nth=0 >> button.accept")
            one.page.evaluate("document.activeElement.blur()")
        if name == "report-correct":
            one.page.click("article >> nth=1 >> button.correct")
            one.page.click(".editor [data-does=mention-0]")
        one.page.wait_for_timeout(300)
        one.page.screenshot(path=folder / f"{name}.png")
        assert (folder / f"{name}.png").stat().st_size < 300_000
        one.close()
