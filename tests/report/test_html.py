"""The page: what is marked as changed, its data, plots and parts, with expectations worked out by hand."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import sys
from dataclasses import replace
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any

import orjson
import pytest
from test_report import CELL, seeds, written

import entaug
from conftest import ROOT
from entaug.commands.main import main
from entaug.commands.report import classify_inputs
from entaug.core.data import Provenance, Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.errors import InputError, MissingExtraError, OutputError
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair
from entaug.methods import METHODS
from entaug.metrics.quality import Quality
from entaug.report.html import page, plots
from entaug.report.html.examples import find_changes, report_data
from entaug.report.html.marks import COLOURS, method_marks
from entaug.report.html.page import read_part, render_html_report
from entaug.report.markdown import report_parts
from entaug.report.ratings import page as rating_page
from entaug.study.records import read_run_records
from helpers.sentences import sentence


def told(**own: Any) -> dict[str, Any]:
    return {"entaug": own}


GOLD = sentence("Ada met Bo in Rome .", ("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5), id="g1")
NEW = sentence(
    "Ada met Cy in Oslo .",
    *(("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 5)),
    id="g1/mr-1",
    **split_fields(
        told(method="mr", signature="mr|copies=1|p=0.3|entaug=0.1.0", sources=["g1"], copy=1, lm_score=-1.25)
    ),
)


# ----------------------------------------------------------------------------------------------------- what has changed


def test_words_that_went_came_and_moved() -> None:
    found = find_changes(AugmentedPair(sentence("in Rome Ada met Bo ."), GOLD))
    # By the longest common parts "Ada met Bo" and ".": "in Rome" stands elsewhere, nothing is new.
    assert found.marks == ((0, 2, "moved"),)
    assert found.sides[0].marks == ((3, 5, "moved"),)
    found = find_changes(AugmentedPair(NEW, GOLD))
    assert found.marks == ((2, 3, "added"), (4, 5, "added"))
    assert found.sides[0].marks == ((2, 3, "removed"), (4, 5, "removed"))
    assert found.changed == pytest.approx(2 / 6)
    mixed = find_changes(AugmentedPair(sentence("a b c x"), sentence("x y a b c")))
    assert mixed.marks == ((3, 4, "moved"),)
    assert mixed.sides[0].marks == ((0, 1, "moved"), (1, 2, "removed"))


def test_a_text_written_anew_has_no_marks() -> None:
    found = find_changes(AugmentedPair(sentence("one two three four five six seven ."), GOLD))
    assert found.is_rewritten
    assert found.marks == found.sides[0].marks == ()
    assert found.changed == pytest.approx(7 / 8)
    assert find_changes(AugmentedPair(NEW)).sides == ()
    assert find_changes(AugmentedPair(NEW)).changed is None


@pytest.mark.parametrize("frame", [0, 1])
def test_an_exchange_is_told_by_its_provenance(frame: int) -> None:
    # The frame loses "old car" (2-4) for "car of my aunt" (1-5); comparing words would take "car" for what stayed.
    keeps, gives = sentence("the very old car stopped"), sentence("a car of my aunt hid")
    made = sentence(
        "the very car of my aunt stopped",
        **split_fields(told(method="cassi", frame=frame, out=[2, 4], into=[1, 5], graft=[2, 6])),
    )
    source, other = (keeps, gives) if frame == 0 else (gives, keeps)
    found = find_changes(AugmentedPair(made, source, (other,)))
    assert [(side.sentence, side.role, side.marks) for side in found.sides] == [
        (keeps, "recipient", ((2, 4, "removed"),)),
        (gives, "donor", ((1, 5, "transferred"),)),
    ]
    assert found.marks == ((2, 6, "transferred"),)
    assert found.changed == pytest.approx(4 / 7)
    # Edited by hand since: then the words are compared.
    edited = Sentence(["A", *made.tokens[1:]], **split_fields(made.fields))
    assert {kind for _, _, kind in find_changes(AugmentedPair(edited, source, (other,))).marks} <= {"added", "moved"}


def test_several_phrases_are_told_by_their_provenance() -> None:
    one, two = sentence("x y z", id="one"), sentence("v w", id="two")
    grafts = [
        {"category": "NP", "out": [4, 5], "from": "two", "into": [0, 2]},
        {"category": "NP", "out": [0, 2], "from": "one", "into": [1, 2]},
    ]
    made = sentence("y c d v w", **split_fields(told(method="cr", sources=["s", "two", "one"], grafts=grafts)))
    found = find_changes(AugmentedPair(made, sentence("a b c d e"), (two, one)))
    assert found.marks == ((0, 1, "transferred"), (3, 5, "transferred"))
    assert [side.marks for side in found.sides] == [
        ((0, 2, "removed"), (4, 5, "removed")),
        ((0, 2, "transferred"),),
        ((1, 2, "transferred"),),
    ]
    for broken in ([{"out": [0, 9], "from": "one", "into": [1, 2]}], ["?"], [{"out": [0, 1], "from": "none"}]):
        faulty = made.with_(**split_fields(told(method="cr", sources=["s", "two", "one"], grafts=broken)))
        assert {
            kind for _, _, kind in find_changes(AugmentedPair(faulty, sentence("a b c d e"), (two, one))).marks
        } <= {"added", "moved"}


# ------------------------------------------------------------------------------------------------------------- the data


def test_the_data_by_hand() -> None:
    refused = AugmentedPair(sentence("Bo Bo", id="x"), GOLD, (), "no mention")
    found = report_data(AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW, GOLD), refused]}))
    data = json.loads(found.json)
    assert data["types"] == ["PER", "LOC"]
    assert data["methods"] == [
        {"name": "mr", "signature": "mr|copies=1|p=0.3|entaug=0.1.0", "colour": 11, "symbol": "●"}
    ]
    assert [score["name"] for score in data["scores"]] == ["changed", "own:lm_score"]
    assert data["reasons"] == ["no mention"]
    [gold] = data["gold"]
    assert gold == {"t": "Ada met Bo in Rome .", "m": [[0, [0, 1]], [0, [2, 3]], [1, [4, 5]]], "i": "g1"}
    first, second = data["pairs"]
    assert first["f"] == NEW.fingerprint().hex()
    assert (first["n"], first["i"], first["g"]) == ("mr", "g1/mr-1", 0)
    assert first["s"] == [[0, "source", [[2, 3, "removed"], [4, 5, "removed"]]]]
    assert first["v"] == [33.3333, -1.25]
    # Without the score, which stands among the scores.
    assert first["p"] == "mr: 'Cy' (PER) in place of 'Bo'; 'Oslo' (LOC) in place of 'Rome'; from sentence g1"
    assert "r" not in first
    assert second["r"] == 0
    assert second["v"][1] is None
    assert found.size == 2


def test_tokens_with_spaces_stay_apart() -> None:
    one = Sentence(["New York", "is", "big"])
    encoded = json.loads(report_data(AugmentedCorpus([one], {"mr": [AugmentedPair(one, one)]})).json)
    assert encoded["pairs"][0]["m"]["t"] == ["New York", "is", "big"]
    assert "p" not in encoded["pairs"][0]


def test_chinese_is_shown_as_it_is_printed() -> None:
    own = split_fields(told(method="mr", sources=["g"]))
    gold = sentence("他 住 在 北 京 。 用 app 。", ("LOC", 3, 5), id="g")
    new = sentence("他 住 在 上 海 。 用 app 。", ("LOC", 3, 5), id="n", **own)
    data = json.loads(report_data(AugmentedCorpus([gold], {"mr": [AugmentedPair(new, gold)]})).json)
    assert data["gold"][0]["s"] == ["", "", "", "", "", "", " ", "", ""]
    assert data["pairs"][0]["p"] == "mr: '上海' (LOC) in place of '北京'; from sentence g"


def test_names_beside_a_plot_have_room() -> None:
    text = page.template_environment().from_string("{% for name in names %}{{ name|short }}|{% endfor %}")
    names = ["A" * 22, "A" * 23, "组织机构名称十一字", "组织机构的名称有十二个字"]
    assert text.render(names=names) == f"{'A' * 22}|{'A' * 21}…|组织机构名称十一字|组织机构的名称有十二…|"


def test_the_digest_names_the_data() -> None:
    one = report_data(AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW, GOLD)]}))
    assert report_data(AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW, GOLD)]})).digest == one.digest
    assert (
        report_data(AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW.with_(id="other"), GOLD)]})).digest != one.digest
    )


@pytest.mark.parametrize(
    "token", ["<script>", "</script>", "<!--", "-->", "]]>", '"', "'", "\\", "\u2028", "\u2029", "😀", "אב", "\ud800"]
)
def test_text_is_data(token: str) -> None:
    nasty = Sentence(
        [token], [Mention(f"L{token}", [(0, 1)])], id=token, **split_fields(told(method=token, signature=token))
    )
    found = report_data(AugmentedCorpus([nasty], {token: [AugmentedPair(nasty, nasty, (), token)]}))
    assert not set("<>&\u2028\u2029") & set(found.json)
    data = json.loads(found.json)
    assert data["pairs"][0]["m"]["t"] == token
    assert data["types"] == [f"L{token}"]
    assert data["reasons"] == [token]


# ------------------------------------------------------------------------------------------------------------ the plots


def test_types_before_and_after_by_hand() -> None:
    plot = plots.label_plot(
        AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW), AugmentedPair(sentence("Rio", ("LOC", 0, 1)))], "none": []})
    )
    assert plot
    assert plot.table.head == ["type", "gold", "mr"]  # what made nothing has no column
    assert plot.table.rows == [["PER", "2 (66.7 %)", "2 (50.0 %)"], ["LOC", "1 (33.3 %)", "2 (50.0 %)"]]
    assert plots.label_plot(AugmentedCorpus([GOLD], {})) is None


def test_lengths_before_and_after_by_hand() -> None:
    gold = [sentence(" ".join("x" * n)) for n in range(1, 22)]
    plot = plots.length_plot(AugmentedCorpus(gold, {"mr": [AugmentedPair(NEW)]}))
    assert plot
    # Of 1 to 21 the twentieths are the whole numbers.
    assert plot.table.rows == [["gold", "21", "2", "6", "11", "16", "20"], ["mr", "1", "6", "6", "6", "6", "6"]]


def test_f1_against_the_amount_by_hand(tmp_path: Path) -> None:
    cells = report_parts(read_run_records([written(tmp_path / "a", CELL)])).results
    [(cell, rows)] = cells.items()
    plot = plots.f1_plot(cell, rows)
    assert plot
    assert plot.title == "F1 on toy, 100, linear"
    assert {row[0]: tuple(row[1:]) for row in plot.table.rows} == {
        "gold": ("50.0", "-", "-"),
        "gold-steps 2N": ("60.0", "-", "-"),
        "duplicate 2N": ("60.0", "60.0 to 60.0", "no difference seen"),
        "lwtr 2N": ("70.0", "70.0 to 70.0", "helps"),
        "mr 2N": ("40.0", "40.0 to 40.0", "hurts"),
    }
    several = [*CELL, *seeds("gold-steps", 1, [5, 6, 7]), *seeds("mr", 1, [7, 8, 9])]
    [(cell, rows)] = report_parts(read_run_records([written(tmp_path / "b", several)])).results.items()
    lines = plots.f1_plot(cell, rows)
    assert lines
    assert [name for name, _ in lines.rows if name.startswith("mr")] == ["mr 1N", "mr 2N"]
    assert "With one seed" not in lines.text
    once = [*seeds("gold-steps", 1, [5]), *seeds("mr", 1, [7])]
    [(cell, rows)] = report_parts(read_run_records([written(tmp_path / "c", once)])).results.items()
    plot = plots.f1_plot(cell, rows)
    assert plot
    assert "With one seed they do not cover the variance of training: no verdict." in plot.text
    assert plot.table.rows[-1][2:] == [
        "70.0 to 70.0 (1 seed, so without the variance of training)",
        "one seed: run three",
    ]
    # Gold alone has 60 at both amounts; mr has 80 with one, 40 with two.
    assert {row[0]: row[1] for row in lines.table.rows}["mr 1N"] == "80.0"


def test_marks_stand_at_their_values_on_an_axis_with_round_numbers() -> None:
    plot = plots.label_plot(AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW)]}))
    assert plot
    assert [name for name, _ in plot.rows] == ["PER", "LOC"]
    [(_, [bar, symbol]), _] = plot.rows
    assert (bar.kind, bar.colour, symbol.symbol) == ("bar", "gold", plot.legend[1].symbol)
    assert list(plot.limits) == pytest.approx([0, 70])
    assert (plot.x(0), plot.x(35), plot.x(70), plot.x(99)) == (170, 385, 600, 600)
    assert plot.ticks == [0, 10, 20, 30, 40, 50, 60, 70]
    for limits, ticks in (((0.1, 0.52), [0.1, 0.2, 0.3, 0.4, 0.5]), ((38, 82), list(range(40, 81, 10)))):
        found = replace(plot, limits=limits).ticks
        assert found == pytest.approx(ticks)


def test_labels_of_a_plot_are_text() -> None:
    nasty = sentence("a", ("$x^2$ <b> אב 中", 0, 1))
    text = render_html_report(AugmentedCorpus([nasty], {"m": [AugmentedPair(nasty)]}))
    assert text.count("$x^2$ &lt;b&gt; אב 中</text>") == 1
    assert "<b> אב" not in text.partition("<script")[0]


# ------------------------------------------------------------------------------------------------------------- the page


def test_methods_stand_side_by_side_with_what_measures_mean() -> None:
    refused = AugmentedPair(sentence("Bo Bo"), GOLD, (), "no mention")
    made = AugmentedCorpus([GOLD], {"mr": [refused, AugmentedPair(NEW, GOLD)]})
    qualities = [
        Quality("gold", 1, {"perplexity": 50.0, "new_words": None}, {}, ("a note on all",)),
        Quality("mr", 1, {"perplexity": 1234.5, "new_words": 0.25}, {"new_words": [0.25]}, ("one was too long",)),
    ]
    text = render_html_report(made, qualities=qualities)
    definition = (
        r"Share of words that do not occur in the source, mean over sentences\. Higher: further from the source\."
    )
    row = rf"New words</button>.*>{definition}<"
    assert re.search(row + r".*>-</td><td class=\"figure\">25.0%</td>", text)
    assert re.search(r">Perplexity</button>.*>50.0</td><td class=\"figure\">1,234</td>", text)
    assert "Self-BERTScore" not in text  # a measure that nobody has a figure for
    assert "mr: one was too long" in text
    assert re.search(r"<li[^>]*>a note on all", text)
    data = json.loads(re.findall(r'data-digest="\w+">(.*?)</script>', text)[0])
    names = [score["name"] for score in data["scores"]]
    # What was refused was not measured; what was kept has the figure, though it stands second.
    assert [pair["v"][names.index("new_words")] for pair in data["pairs"]] == [None, 25]


def test_of_many_examples_a_sample_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def pairs(of: str, number: int) -> list[AugmentedPair]:
        return [AugmentedPair(sentence(f"{of}{i} Bo"), GOLD, (), "odd" if i % 3 == 0 else None) for i in range(number)]

    made = AugmentedCorpus([GOLD], {"lwtr": pairs("l", 40), "mr": pairs("m", 2), "sis": pairs("s", 30)})
    kept = {name: [i for i, pair in enumerate(some) if pair.rejection is None] for name, some in made.methods.items()}
    qualities = [Quality(name, len(some), {}, {"length": [float(i) for i in some]}) for name, some in kept.items()]
    monkeypatch.setattr("entaug.report.html.page.MAX_EXAMPLES", 12)
    text = render_html_report(made, qualities=qualities)
    assert text == render_html_report(made, qualities=qualities)
    data = json.loads(re.findall(r'data-digest="\w+">(.*?)</script>', text)[0])
    shown = [(pair["g"], int(pair["m"]["t"].split()[0][1:])) for pair in data["pairs"]]
    assert shown == sorted(shown)
    assert [[g for g, _ in shown].count(g) for g in range(3)] == [5, 2, 5]  # of each method as many, if it has them
    place = [score["name"] for score in data["scores"]].index("length")
    assert [pair["v"][place] for pair in data["pairs"]] == [None if i % 3 == 0 else i for _, i in shown]
    assert "of 72 augmented sentences, 12 drawn at random are shown as examples" in text
    assert "<b>47</b> new sentences" in text  # counts are of all
    monkeypatch.setattr("entaug.report.html.page.MAX_EXAMPLES", 72)
    assert "drawn at random" not in render_html_report(made, qualities=qualities)


def test_the_policy_lets_through_what_the_page_holds_and_nothing_else() -> None:
    text = render_html_report(AugmentedCorpus([GOLD], {"mr": [AugmentedPair(NEW, GOLD)]}))
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="(.*?)"', text)[0])
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    for what, content in (("style", style), ("script", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{what}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert " style=" not in text
    assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", text)


def test_the_page_says_what_is_not_there(tmp_path: Path) -> None:
    assert "There is nothing to show" in render_html_report()
    assert "1 gold sentence and no augmented sentence" in render_html_report(AugmentedCorpus([GOLD]))
    text = render_html_report(AugmentedCorpus([GOLD], {"sis": []}))
    assert "No sentence was kept" in text
    assert "There are no augmented sentences." in text
    text = render_html_report(AugmentedCorpus([], {"(new)": [AugmentedPair(sentence("a b"))]}))
    assert "The file does not say how these sentences were made." in text
    none = {"gold": 100, "new": 0}
    runs = [*seeds("gold-steps", 1, [5, 5]), *seeds("sis", 1, [5, 5], sentences=none), *seeds("mr", 1, [6])]
    text = render_html_report(records=read_run_records([written(tmp_path / "runs", runs)]))
    assert "sis 1N: made no new sentence" in text
    assert "incomplete: 1 of 2 seeds, without 2" in text
    assert "With one seed there is no verdict" in text


def test_inputs_are_told_apart_by_looking(tmp_path: Path) -> None:
    runs = written(tmp_path / "runs", CELL)
    new = tmp_path / "new.jsonl"
    entaug.write([NEW], new)
    renamed = tmp_path / "records.jsonl"
    renamed.write_bytes((runs / "runs.jsonl").read_bytes())
    (tmp_path / "empty.jsonl").write_text("\n")
    begun = written(tmp_path / "begun", [])
    experiments, augmented, notes = classify_inputs([runs, new, renamed, tmp_path / "empty.jsonl", begun])
    assert [Path(path).name for path in experiments] == ["runs", "records.jsonl"]
    assert [Path(path).name for path in augmented] == ["new.jsonl"]
    assert [note.split("/")[-1] for note in notes] == ["empty.jsonl is empty", "begun holds no record of a run yet"]
    with pytest.raises(InputError, match="no such file or folder; check the path"):
        classify_inputs([tmp_path / "none"])


def test_report_page_from_files(tmp_path: Path) -> None:
    entaug.write([NEW], tmp_path / "new.jsonl")
    entaug.write([GOLD], tmp_path / "gold.jsonl")
    runs = written(tmp_path / "runs", CELL)
    out = tmp_path / "report.html"
    inputs = [tmp_path / "new.jsonl", runs]
    summary = entaug.write_report(inputs, out, gold=tmp_path / "gold.jsonl", models=False, title="<Mine>")
    assert (summary.pairs, summary.methods, summary.runs, summary.notes) == (1, {"mr": 1}, 15, [])
    text = out.read_text()
    assert "<title>&lt;Mine&gt;</title>" in text
    assert "<strong>Use lwtr 2N</strong>: toy, 100, linear" in text
    with pytest.raises(OutputError, match="exists"):
        entaug.write_report(inputs, out, models=False)
    gold = (tmp_path / "gold.jsonl").rename(tmp_path / "gold.html")  # named as no corpus is
    with pytest.raises(OutputError, match="is an input; inputs are never overwritten"):
        entaug.write_report(inputs, gold, gold=gold, models=False, force=True)
    gold.rename(tmp_path / "gold.jsonl")
    before = out.read_bytes()
    entaug.write_report(inputs, out, gold=tmp_path / "gold.jsonl", models=False, title="<Mine>", force=True)
    assert out.read_bytes() == before
    summary = entaug.write_report(inputs, out, models=False, force=True)
    assert "the source of 1 augmented sentences is not among the gold sentences; name the gold file" in summary.notes


def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = read_run_records([written(tmp_path / "runs", CELL)])
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"is not installed; run: pip install 'entaug\[report\]'"):
        render_html_report(records=runs)


def test_report_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entaug.write([GOLD, NEW], tmp_path / "new.jsonl")
    runs, out = written(tmp_path / "runs", CELL), tmp_path / "report.html"
    assert main(["report", str(runs), str(tmp_path / "new.jsonl"), "-o", str(out), "--no-models"]) == 0
    assert "report.html: 15 runs and 1 augmented sentence of 1 method" in capsys.readouterr().err
    assert main(["report", str(runs), "-o", str(out)]) == 3
    assert main(["report", str(tmp_path / "new.jsonl"), "-o", str(out), "--force", "--no-models", "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["methods"] == {"mr": 1}
    assert main(["report", str(tmp_path / "new.jsonl")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "new.jsonl: sentences, --gold and --title are for HTML only" in error
    assert error.endswith("name an output that ends in .html\n")
    assert main(["report", str(runs), "--title", "x"]) == 2
    assert "--gold and --title are for HTML only" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------------- its colours


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_by_hand() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_colour_of_text_can_be_read(theme: int) -> None:
    css = (ROOT / "src/entaug/report/html/page.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", css)
    colours = {name: both[theme] for name, *both in found}
    types = [name for name in colours if name.startswith("type-")]
    assert len(types) == 12
    grounds = ("paper", "card", "well")
    pairs = [(text, ground) for text in ("ink", "muted", "accent", "good", "bad") for ground in grounds]
    pairs += [(text, ground) for text in types for ground in ("paper", "card", "added", "transferred")]
    pairs += [("ink", "added"), ("ink", "transferred"), ("ink", "hit"), ("on-accent", "good"), ("on-accent", "bad")]
    for text, ground in pairs:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for line in ("strong", "augmented", "gold", "accent"):  # what is no text
        assert contrast(colours[line], colours["card"]) >= 3, line


# Machado, Oliveira and Fernandes (2009): full protanopia, deuteranopia and tritanopia, on linear RGB.
BLINDNESS: list[list[list[float]]] = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
]


def seen(colour: str, sight: list[list[float]]) -> list[float]:
    """A colour in Oklab, as it is seen."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    light = [min(1.0, max(0.0, sum(a * b for a, b in zip(row, linear, strict=True)))) for row in sight]
    cones = (
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    )
    long, middle, short = (sum(a * b for a, b in zip(row, light, strict=True)) ** (1 / 3) for row in cones)
    return [
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    ]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_colours_of_methods_differ_for_every_eye(theme: int) -> None:
    css = (ROOT / "src/entaug/report/html/page.css").read_text()
    found = re.findall(r"--(\S+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", css)
    colours = {name: both[theme] for name, *both in found}
    methods = [colours[f"method-{number}"] for number in range(COLOURS)]
    for number, colour in enumerate(methods):
        assert f".method-{number} {{ --method: var(--method-{number}); }}" in css
        assert all(contrast(colour, colours[ground]) >= 3 for ground in ("paper", "card"))
    # About 0.02 can just be told apart side by side; colours of the same lightness do not differ by much more for
    # those who see two hues.
    for sight, least in zip(BLINDNESS, (0.09, 0.055, 0.055, 0.045), strict=True):
        places = [seen(colour, sight) for colour in methods]
        assert min(dist(a, b) for a, b in combinations(places, 2)) >= least


def test_a_method_has_its_colour_in_every_report() -> None:
    def of(*names: str) -> dict[str, Any]:
        pairs = {name: [AugmentedPair(NEW.with_(provenance=Provenance(name.partition(" ")[0])))] for name in names}
        return dict(method_marks(AugmentedCorpus([GOLD], pairs)))

    marks = of(*METHODS)
    assert len({mark.colour for mark in marks.values()}) == COLOURS == len(METHODS)
    assert len(set(marks.values())) == len(METHODS)
    assert of("sis", "mr")["mr"].colour == marks["mr"].colour
    assert [mark.symbol for mark in of("sis", "mr").values()] == ["●", "■"]
    # Of two runs of a method the first has the colour; one of others has a colour that nobody else wants.
    twice = of("", "mr (a)", "mr (b)", "lwtr")
    assert twice["mr (a)"].colour == marks["mr"].colour
    assert twice["lwtr"].colour == marks["lwtr"].colour
    assert len({mark.colour for mark in twice.values()}) == 4
    assert len(of(*METHODS, "one", "two")) == COLOURS + 2


def test_the_parts_of_the_page_are_package_data() -> None:
    for name in ("page.html", "rate.html"):
        assert read_part(name).startswith("<!doctype html>")
    for name in ("page.css", "page.html", "rate.css", "rate.html", *page.SCRIPTS, *rating_page.SCRIPTS):
        lines = (ROOT / "src/entaug/report/html" / name).read_text().splitlines()
        assert len(lines) <= 600
