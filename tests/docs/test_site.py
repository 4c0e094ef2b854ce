"""The documentation builds without warnings, is complete and self-contained, and its tutorial prints what it shows."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import entaug
from conftest import EXAMPLE, ROOT
from entaug.commands.main import COMMANDS
from entaug.config.params import parameters
from entaug.filters import FILTERS
from entaug.formats import FORMATS
from entaug.formats.augmented import read_augmented
from entaug.methods import METHODS
from entaug.metrics.quality import MEASURES

DOCS = ROOT / "docs"
# What a browser loads by itself.
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
    "audio": "src",
    "video": "src",
}


class Page(HTMLParser):
    """The links, anchors and resources of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.resources: list[str] = []
        self.text = path.read_text("utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id") or "")
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"] or "")
        if (resource := attributes.get(LOADED.get(tag, ""))) and "search" not in (attributes.get("rel") or ""):
            self.resources.append(resource)


def sphinx(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build pages, warnings as errors."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(target / "trees")]
    return subprocess.run(
        [*command, str(source), str(target / "html")], capture_output=True, text=True, check=False, cwd=ROOT
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages, built as `make docs` builds them."""
    pytest.importorskip("sphinx", reason="pages are built with the extra docs")
    target = tmp_path_factory.mktemp("site")
    done = sphinx(DOCS, target)
    assert done.returncode == 0, done.stderr
    return target / "html"


@pytest.fixture(scope="module")
def site(built: Path) -> dict[str, Page]:
    """The pages, by their path."""
    return {path.relative_to(built).as_posix(): Page(path) for path in built.rglob("*.html")}


@pytest.mark.slow
def test_whatever_is_registered_has_a_page(site: dict[str, Page]) -> None:
    for name in METHODS:
        page = site[f"methods/{name}.html"]
        assert f"entaug.methods.{METHODS[name].__name__}" in page.anchors
        assert f"methods/{name}.html" in " ".join(site["methods/index.html"].links + site["choose.html"].links)
        for field in ("--copies", "--seed"):
            assert field in page.text
    assert all(f"formats/{name}.html" in site for name in FORMATS)
    assert all(f"filters/{name}.html" in site for name in FILTERS)
    assert all(f"measures/{name}.html" in site for name in MEASURES)
    assert all(f"commands/{name}.html" in site for name in COMMANDS)
    anchors = {anchor for page in site.values() for anchor in page.anchors}
    wanted = {f"entaug.{name}" for name in entaug.__all__} - {"entaug.__version__"}
    modules = {f"entaug.{name}" for name in entaug.__all__ if inspect.ismodule(getattr(entaug, name))}
    assert {name for name in wanted if name not in anchors} <= modules


@pytest.mark.slow
def test_every_link_within_leads_somewhere(site: dict[str, Page]) -> None:
    lost = defaultdict(list)
    followed = 0
    for path, page in site.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            aim = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path  # noqa: PTH118, PTH120
            if aim not in site or (parts.fragment and unquote(parts.fragment) not in site[aim].anchors):
                lost[path].append(link)
    assert followed > 1000
    assert not lost


@pytest.mark.slow
def test_nothing_is_fetched_from_elsewhere(site: dict[str, Page], built: Path) -> None:
    found = [resource for page in site.values() for resource in page.resources]
    assert found
    assert not [one for one in found if re.match(r"(\w+:)?//", one)]
    beside = {kind: list(built.rglob(f"*.{kind}")) for kind in ("css", "js")}
    assert all(beside.values())
    for sheet in beside["css"]:
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text("utf-8")), sheet.name
    for script in beside["js"]:
        assert not re.search(r"//[\w./-]+\.(js|css|woff2?|png|svg)\b['\"]", script.read_text("utf-8")), script.name


@pytest.mark.slow
def test_the_page_of_a_method_shows_its_properties(site: dict[str, Page]) -> None:
    text = re.sub(r"<[^>]+>", "", site["methods/mr.html"].text)
    # By hand, from the class: of five promises `mr` makes two, and it has the parameter p besides the shared ones.
    assert "tokens and mentions stay in order; every sentence keeps the number and labels of its mentions" in text
    assert "every sentence keeps its number of tokens" not in text
    assert "the probability of replacing each mention; at least one is replaced." in text
    assert "Dai and Adel 2020" in text


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].info.needs])
def test_recorded_examples_are_of_the_example_corpus(name: str) -> None:
    path = DOCS / "recorded" / f"{name}.jsonl"
    assert path.is_file(), f"run: python docs/record.py {name}"
    gold = {(s.tokens, s.mentions) for s in entaug.read(EXAMPLE / "train.conll")}
    [(recorded, pairs)] = read_augmented([path]).methods.items()
    assert (recorded, len(pairs)) == (name, 3)
    for pair in pairs:
        assert pair.source is not None
        assert {(s.tokens, s.mentions) for s in (pair.source, *pair.other_sources)} <= gold
        given = set(re.findall(r"\|(\w+)=", pair.augmented.fields["entaug"]["signature"]))
        # A signature names the teacher only where there is one, and prompts only of instruct models.
        given |= {"guard", "num_examples", "prompt", "teacher"}
        required = [p for p in parameters(METHODS[name]) if not {"local", "only_if_set"} & p.metadata.keys()]
        missing = {p.name for p in required} - given
        assert not missing, f"{name} has had no {missing} when it was recorded; run: python docs/record.py {name}"


@dataclass(frozen=True)
class Measure:
    """A measure as a record."""

    title: str
    unit: str = ""
    compute: Any = None


def test_any_registry_makes_pages() -> None:
    """Entries of a registry may be classes, functions, records, or ``module:Class``."""
    from reference_pages import pages_of_registry

    registry = {"a": Measure("how long", "tokens", len), "b": sphinx, "c": "entaug.filters:Consistency"}
    pages = pages_of_registry("x", "Some", registry, "entaug.filters")
    assert list(pages) == ["x/index.md", "x/a.md", "x/b.md", "x/c.md"]
    assert "| [`a`](a.md) | how long |" in pages["x/index.md"]
    assert f"| [`c`](c.md) | {FILTERS['consistency'].summary} |" in pages["x/index.md"]
    assert "| unit | tokens |" in pages["x/a.md"]
    assert "compute" not in pages["x/a.md"]
    assert f".. autofunction:: {sphinx.__module__}.sphinx" in pages["x/b.md"]
    assert "| `min_confidence` | `None` |" in pages["x/c.md"]


def test_links_of_the_readme_lead_to_pages() -> None:
    from page_text import links_to_pages

    text = "[a](benchmarks/speed.md) [b](CONTRIBUTING.md) [c](docs/architecture.md) [d](https://x.org/y) [e](#f)"
    expected = "[a](/measured/speed.md) [b](/contributing.md) [c](/architecture.md) [d](https://x.org/y) [e](#f)"
    assert links_to_pages(text) == expected


def test_a_name_that_means_nothing_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="pages are built with the extra docs")
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\nimport name_links\nnitpicky = True\n"
        "default_role = 'py:obj'\nextensions = ['sphinx.ext.autodoc']\n"
        "def setup(app):\n    app.add_post_transform(name_links.NameTransform)\n"
        "    app.connect('missing-reference', name_links.resolve)\n"
    )
    text = "T\n=\n\n.. autoclass:: entaug.Mention\n\n`Mention`, `Sentence.edit`, `entaug.core.data` and `len`"
    for more, faults in (("", 0), (", `Sentence.exit`", 1)):
        (tmp_path / "index.rst").write_text(f"{text}{more}\n")
        done = sphinx(tmp_path, tmp_path / "out")
        assert done.stderr.count("WARNING") == faults, done.stderr
        assert bool(done.returncode) == bool(faults)
        assert ("Sentence.exit" in done.stderr) == bool(faults)


def blocks(kind: str, mark: str = "run") -> list[str]:
    text = (DOCS / "start.md").read_text("utf-8")
    found = re.findall(rf"<!-- {mark} -->\n```{kind}\n(.*?)```", text, re.DOTALL)
    assert found
    return found


def run_in_shell(commands: str, folder: Path) -> str:
    """What commands print in a shell, in which `entaug` is the version under test."""
    script = f'entaug() {{ "{sys.executable}" -m entaug "$@"; }}\n{commands}'
    done = subprocess.run(
        ["bash", "-euc", script], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture
def beside_examples(tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples", target_is_directory=True)
    return tmp_path


def test_the_first_five_minutes(beside_examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command prints what stands below it, seconds and version apart, and the Python makes the same file."""

    def same(text: str) -> str:
        return re.sub(r"\(\d+\.\d s\)|entaug=[\d.]+\w*", "", text)

    for block in blocks("console"):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            assert same(run_in_shell(command, beside_examples)) == same(shown), command
    monkeypatch.chdir(beside_examples)
    [code] = blocks("python")
    exec(compile(code, "start.md", "exec"), {})  # noqa: S102
    assert (beside_examples / "again.conll").read_bytes() == (beside_examples / "bigger.conll").read_bytes()


@pytest.mark.models
@pytest.mark.slow
def test_the_first_tagger(beside_examples: Path) -> None:
    [code] = blocks("console", "run: models")
    commands = [line.removeprefix("$ ") for line in code.splitlines()]
    augment = next(line[2:] for block in blocks("console") for line in block.splitlines() if "bigger.conll" in line)
    output = run_in_shell("\n".join([augment, *commands]), beside_examples)
    assert re.search(r"^micro +\d+\.\d", output, re.MULTILINE)
