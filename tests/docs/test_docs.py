"""What README.md, CONTRIBUTING.md and the architecture page state is true; the demo runs."""

from __future__ import annotations

import dataclasses
import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import entaug
from conftest import ROOT
from entaug.commands.main import COMMANDS, main
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.methods import METHODS

README = (ROOT / "README.md").read_text("utf-8")
MAX_README_LINES = 100


def test_generated_tables_are_up_to_date() -> None:
    """In a process of its own: what other tests of this one have registered is in no table."""
    from method_pages import choosing_tables
    from page_tables import TABLES
    from page_text import WITH_TABLES

    check = [sys.executable, str(ROOT / "docs" / "_ext" / "page_tables.py"), "--check"]
    outdated = subprocess.run(check, capture_output=True, text=True, check=False)
    assert outdated.returncode == 0, f"run: python docs/_ext/page_tables.py ({outdated.stderr})"
    texts = "".join(page.read_text("utf-8") for page in WITH_TABLES)
    assert sorted(re.findall(r"<!-- table: (\w+) -->", texts)) == sorted(TABLES)
    kinds = [line.split(" | ")[0] for line in choosing_tables()["facts"].splitlines()]
    assert not any(f"`{name}`" in kind for name in METHODS for kind in kinds)  # which methods those are is derived


def test_the_pages_show_on_github_as_they_are() -> None:
    """No directives of Sphinx, and links are followed by `test_links_and_pictures_lead_to_files`."""
    from page_text import PAGES

    for page in PAGES:
        text = page.read_text("utf-8")
        assert not re.search(r"^(```|:::)\{|\{\w+:?\w*\}`", text, re.MULTILINE), page.name
        assert "](/" not in text, page.name


def test_the_five_lines_of_the_readme_print_what_stands_below_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Outside of a checkout: they need no file."""
    match = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert match
    code, output = match.groups()
    assert len([line for line in code.splitlines() if line]) == 5
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == output


def test_the_readme_is_short_and_its_counts_are_right() -> None:
    assert len(README.splitlines()) <= MAX_README_LINES
    assert "Eighteen methods, twenty-three formats" in README
    assert (len(METHODS), len(FORMATS)) == (18, 23)
    compared = (ROOT / "docs" / "choose.md").read_text("utf-8")
    assert f"| methods for NER | {len(METHODS)} |" in compared
    assert f"| corpus formats | {len(FORMATS)} |" in compared


def test_links_and_pictures_lead_to_files() -> None:
    from page_text import PAGES

    for page in (*PAGES, ROOT / "CONTRIBUTING.md"):
        check_links(page)


def check_links(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if not target.startswith("http")]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing, page.name
    if page.name in ("README.md", "look.md"):
        assert any("pictures/" in target for target in targets)


def test_the_picture_of_the_readme_needs_no_network() -> None:
    svg = (ROOT / "docs" / "pictures" / "before-after.svg").read_text("utf-8")
    assert re.findall(r"https?://[^\"' )<]+", svg) in ([], ["http://www.w3.org/2000/svg"])
    words = re.findall(r"before|after", re.sub(r"<[^>]+>", "", svg))
    assert words.count("before") == words.count("after") == 3


def test_the_architecture_page_shows_the_real_tree() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tree = text.split("```text\nsrc/entaug/\n", 1)[1].split("tests/", 1)[0]
    listed = {name.rstrip("/") for name in re.findall(r"^  ([a-z_]+(?:\.py|/))", tree, re.MULTILINE)} | {"__init__.py"}
    package = ROOT / "src" / "entaug"
    modules = {path.name for path in package.glob("*.py")} - {"__main__.py", "_version.py"}
    packages = {path.name for path in package.iterdir() if (path / "__init__.py").is_file()}
    assert listed == modules | packages
    named = re.findall(r"`([\w/]+\.(?:py|js|toml))`", text)
    files = [
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in ("src", "tests", "docs")
        for path in (ROOT / folder).rglob("*.*")
    ]
    named = [name.replace("COMMAND", "augment") for name in named]
    assert not [name for name in named if not any(file.endswith(f"/{name}") for file in files)]


def test_the_architecture_page_lists_the_real_floors() -> None:
    from test_architecture import FLOORS

    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^1\. (`.*`)$", text, re.MULTILINE)
    assert [tuple(re.findall(r"`([\w.]+)`", row)) for row in rows] == list(reversed(FLOORS))


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_the_guide_describes_every_filter(name: str) -> None:
    assert f"| `{name}` |" in (ROOT / "docs" / "guide.md").read_text("utf-8")


def example(part: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    match = re.search(rf"<!-- example: {part} -->\n```python\n(.*?)```\n<!-- end -->", text, re.DOTALL)
    assert match
    return match[1]


def test_the_worked_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class and test of CONTRIBUTING.md run as they stand, the doctest too, and pass the conformance suite."""
    (tmp_path / "entaug_example.py").write_text(example("class"), "utf-8")  # other processes import it, too
    monkeypatch.syspath_prepend(tmp_path)
    module = import_module("entaug_example")
    monkeypatch.setitem(sys.modules, "entaug.methods.deletion", module)
    exec(compile(example("test"), "CONTRIBUTING.md", "exec"), module.__dict__)  # noqa: S102
    tests = [name for name in vars(module) if name.startswith("test_")]
    assert tests
    for name in tests:
        vars(module)[name]()
    cls: Any = vars(module)["WordDropout"]
    for case in doctest.DocTestFinder().find(cls, "WordDropout", globs=vars(module)):
        assert doctest.DocTestRunner().run(case).failed == 0

    monkeypatch.setitem(METHODS._built_in, "wd", "entaug_example:WordDropout")
    monkeypatch.syspath_prepend(ROOT / "tests" / "methods")
    import test_conformance as suite

    assert dataclasses.is_dataclass(cls)
    suite.test_constructor_loads_nothing_and_parameters_make_it_again("wd")
    suite.test_output_is_new_valid_and_signed("wd")
    suite.test_keeps_the_rules("wd")
    suite.test_bad_parameters_are_refused_before_any_work("wd")
    suite.test_draws_anew_each_epoch_on_line("wd")


def test_the_example_plan_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", str(ROOT / "examples" / "plan.toml"), "--check"]) == 0
    assert "valid; 15 runs" in capsys.readouterr().err


def test_every_option_in_running_text_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """Options in code blocks are parsed by test_commands.py; these are the ones in sentences and tables."""
    from page_text import PAGES  # without the changelog, which names options that are gone

    known = "--help --version"
    for command in [*([name] for name in COMMANDS), *(["augment", "--method", name] for name in METHODS)]:
        with pytest.raises(SystemExit):
            main([*command, "--help-all"])
        known += capsys.readouterr().out
    for path in PAGES:
        named = set(re.findall(r"`(--[a-z][a-z-]+)", path.read_text("utf-8")))
        assert not [option for option in named if not re.search(rf"{option}\b", known)], path.name


def run_demo(*arguments: str) -> str:
    try:
        entaug.create_augmenter("lm").load()
    except entaug.EntaugError as error:
        pytest.skip(str(error))
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def check_demo(output: str, examples: int) -> None:
    counts = [len(re.findall(rf"^  {side} ", output, re.MULTILINE)) for side in ("before", "after")]
    assert counts[0] == counts[1] >= examples
    [page] = re.findall(r"^open in a browser: (.*)$", output, re.MULTILINE)
    assert "entaug demo" in Path(page).read_text(encoding="utf-8")


@pytest.mark.models
@pytest.mark.slow
def test_the_demo_shows_sentences_before_and_after() -> None:
    check_demo(run_demo(), 3)


@pytest.mark.models
@pytest.mark.slow
def test_the_demo_shows_all_methods() -> None:
    output = run_demo("--all")
    for name in METHODS:
        assert (f"-m {name}" if name != "rewrite" else "rewrite is not shown") in output
    check_demo(output, 30)
