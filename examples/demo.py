"""Augment the example corpus and show the result: `make demo` and `make demo-all`.

Augments the training sentences through the command line, checks the result, shows sentences before and after on the
terminal, and writes the report, a page to open in the browser. With ``--all`` every method is shown.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

import entaug

ROOT = Path(__file__).parent.parent
# Relative to ROOT, where the commands run.
OUTPUT = Path("demo-output")
TRAIN, NESTED = Path("examples/corpus/train.conll"), Path("examples/corpus/nested.jsonl")
COLORS = {"PER": "cyan", "ORG": "magenta", "LOC": "green", "PRODUCT": "yellow", "EVENT": "blue"}
LEGEND = Text("  ").join(Text(label, f"bold {color}") for label, color in COLORS.items()) + "   new words underlined"
# Methods that train a model or score many candidates get the first sentences only.
SLOW_METHODS = {"aclm": 12, "cassi": 15, "entda": 12, "gal": 12, "melm": 24, "mulda": 24}


def colored(sentence: entaug.Sentence, source: entaug.Sentence | None = None) -> Text:
    """Color the mentions of a sentence by type and, if a source is given, underline the tokens that differ from it.

    Args:
        sentence: the sentence to show.
        source: the gold sentence that it was augmented from.

    Returns:
        The text for the terminal.
    """
    text = Text()
    new_positions: set[int] = set()
    if source is not None:
        matcher = difflib.SequenceMatcher(None, source.tokens, sentence.tokens, autojunk=False)
        new_positions = {
            j for op, _, _, start, end in matcher.get_opcodes() if op != "equal" for j in range(start, end)
        }
    for position, token in enumerate(sentence.tokens):
        labels = [mention.label for mention in sentence.mentions if position in mention.positions()]
        style = f"bold {COLORS[labels[0]]}" if labels else ""
        text.append(token, f"{style} underline" if position in new_positions else style)
        text.append(" ")
    return text


def run(console: Console, *arguments: str) -> None:
    """Print a command of entaug and run it.

    Args:
        console: where the command is printed.
        arguments: the arguments of the command.
    """
    console.print(f"$ {shlex.join(['entaug', *arguments])}", style="dim", soft_wrap=True)
    subprocess.run([sys.executable, "-m", "entaug", *arguments], check=True)


def show_examples(console: Console, sentences: Iterable[entaug.Sentence], count: int = 3) -> None:
    """Print some of the shorter augmented sentences below their sources, of each method in turn.

    Args:
        console: where they are printed.
        sentences: the gold sentences and the augmented ones.
        count: how many to print.
    """
    by_method: dict[str, list[tuple[entaug.Sentence, entaug.Sentence]]] = {}
    for pair in entaug.formats.pair_with_sources(sentences):
        if pair and pair.source and pair.source.mentions and 8 < len(pair.source) < 17:
            by_method.setdefault(pair.provenance.method, []).append((pair.source, pair.augmented))
    for i in range(count if by_method else 0):
        pairs = list(by_method.values())[i % len(by_method)]
        source, augmented = pairs[i * len(pairs) // count]
        console.print(Text.assemble(("  before  ", "dim"), colored(source)), soft_wrap=True)
        console.print(Text.assemble(("  after   ", "dim"), colored(augmented, source)), soft_wrap=True)
        console.print()


def show_methods(console: Console) -> list[Path]:
    """Run every method and show three examples of each.

    Args:
        console: where they are printed.

    Returns:
        The files of augmented sentences.
    """
    paths = []
    for name in [*entaug.methods.METHODS, "lwtr"]:
        train, label = TRAIN, name
        if name == "rewrite":
            console.print(f"{name} is not shown: it asks an instruct model (--generator http://HOST:PORT/v1#MODEL)\n")
            continue
        if name in SLOW_METHODS:
            train = OUTPUT / f"first-sentences-{name}.conll"
            entaug.write(list(entaug.read(TRAIN))[: SLOW_METHODS[name]], train)
        elif OUTPUT / f"{name}.jsonl" in paths:  # the last one: nested mentions
            train, label = NESTED, f"nested.{name}"
        path = OUTPUT / f"{label}.jsonl"
        more = ["--unlabelled", str(TRAIN.with_name("dev.conll"))] if name == "selftrain" else []
        console.rule(f"[bold]{label}[/]: {entaug.methods.METHODS[name].info.summary}", align="left")
        run(console, "augment", str(train), "-m", name, "--seed", "13", "--force", "--only-new", "-o", str(path), *more)
        show_examples(console, [*entaug.read(train), *entaug.read(path)])
        paths.append(path)
    return paths


def draw_picture(sentences: Iterable[entaug.Sentence], title: str) -> str:
    """Draw examples as SVG.

    Args:
        sentences: the gold sentences and the augmented ones.
        title: the title of the picture.

    Returns:
        The picture, which needs no network: the web fonts that rich refers to are left out.
    """
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
        console = Console(
            record=True, width=96, highlight=False, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print(Text("          ") + LEGEND + "\n")
        show_examples(console, sentences)
        svg = console.export_svg(title=title, theme=MONOKAI)
    return re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL).replace(
        "Fira Code", "DejaVu Sans Mono, Menlo, Consolas"
    )


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="Augment the example corpus and show the result.")
    parser.add_argument("--all", action="store_true", help="show every method")
    parser.add_argument("--picture", metavar="FILE", help="draw the examples as SVG into FILE, for the README")
    options = parser.parse_args()
    picture = Path(options.picture).absolute() if options.picture else None
    os.chdir(ROOT)
    console = Console(highlight=False)
    OUTPUT.mkdir(exist_ok=True)

    console.rule("[bold]1. augment[/]: mentions replaced, words replaced by a language model", align="left")
    augmented = OUTPUT / "train.augmented.jsonl"
    method = "mr:copies=2+lm"
    run(console, "augment", str(TRAIN), "--method", method, "--seed", "13", "--force", "-o", str(augmented))
    console.rule("[bold]2. before and after[/]", align="left")
    console.print(LEGEND)
    show_examples(console, entaug.read(augmented))
    console.rule("[bold]3. check[/]: the file to train on", align="left")
    conll = augmented.with_suffix(".conll")
    run(console, "convert", str(augmented), str(conll), "--provenance", "--allow-loss", "id", "--force")
    run(console, "check", str(conll))
    paths = [augmented, *(show_methods(console) if options.all else [])]
    console.rule("[bold]4. inspect[/]: every new sentence beside its source", align="left")
    page = OUTPUT / "report.html"
    gold = [str(TRAIN), str(NESTED)] if options.all else []
    run(console, "report", *gold, *map(str, paths), "--no-models", "--title", "entaug demo", "--force", "-o", str(page))
    console.print(f"open in a browser: {page.absolute()}", soft_wrap=True)
    if picture:
        title = f"entaug augment train.conll --method {method}"
        picture.write_text(draw_picture(entaug.read(augmented), title), encoding="utf-8")


if __name__ == "__main__":
    main()
