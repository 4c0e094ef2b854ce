"""The main job on the example corpus: what `make demo` and `make demo-all` show.

Augments the training sentences through the command line, checks the result, shows sentences before and after on the
terminal, and writes the report, a page to open in the browser. With ``--all`` every method is shown.
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.text import Text

import entaug

HERE = Path(__file__).parent
OUTPUT = HERE.parent / "demo-output"
TRAIN, NESTED = HERE / "corpus" / "train.conll", HERE / "corpus" / "nested.jsonl"
COLORS = {"PER": "cyan", "ORG": "magenta", "LOC": "green", "PRODUCT": "yellow", "EVENT": "blue"}
# Methods that train a model or score many candidates get the first sentences only.
SLOW_METHODS = {"aclm": 12, "cassi": 15, "entda": 12, "melm": 24, "mulda": 24}


def colored(sentence: entaug.Sentence, source: entaug.Sentence | None = None) -> Text:
    """Mentions in the color of their type and, where a source is given, the tokens that differ from it underlined.

    Args:
        sentence: the sentence to show.
        source: the sentence that it was made from.

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
    shown = " ".join(["entaug", *arguments]).replace(f"{HERE.parent}/", "")
    console.print(f"$ {shown}", style="dim", soft_wrap=True)
    subprocess.run([sys.executable, "-m", "entaug", *arguments], check=True)


def show_examples(console: Console, path: Path, gold: Iterable[entaug.Sentence], count: int) -> None:
    """Print some of the shorter augmented sentences below their sources.

    Args:
        console: where they are printed.
        path: the augmented sentences, as JSON lines.
        gold: the gold sentences.
        count: how many to print.
    """
    pairs = [pair for pair in entaug.pair_with_sources([*gold, *entaug.read(path)]) if pair and pair.source]
    short = [pair for pair in pairs if pair.source and 6 < len(pair.source) < 20 and pair.source.mentions]
    for pair in short[:: max(1, len(short) // count)][:count]:
        assert pair.source is not None
        console.print(Text("  before  ", "dim") + colored(pair.source), soft_wrap=True)
        console.print(Text("  after   ", "dim") + colored(pair.augmented, pair.source), soft_wrap=True)
        console.print()


def show_methods(console: Console) -> list[Path]:
    """Run every method and show three examples of each.

    Args:
        console: where they are printed.

    Returns:
        The files of augmented sentences.
    """
    paths = []
    for name in [*entaug.METHODS, "lwtr"]:
        train, label = TRAIN, name
        if name in SLOW_METHODS:
            train = OUTPUT / f"first-sentences-{name}.conll"
            entaug.write(list(entaug.read(TRAIN))[: SLOW_METHODS[name]], train)
        elif OUTPUT / f"{name}.jsonl" in paths:  # the last one: nested mentions
            train, label = NESTED, f"nested.{name}"
        path = OUTPUT / f"{label}.jsonl"
        console.rule(f"[bold]{label}[/]: {entaug.METHODS[name].info.summary}", align="left")
        run(console, "augment", str(train), "-m", name, "--seed", "13", "--force", "--only-new", "-o", str(path))
        show_examples(console, path, entaug.read(train), 3)
        paths.append(path)
    return paths


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description="Augment the example corpus and show the result.")
    parser.add_argument("--all", action="store_true", help="show every method")
    parser.add_argument("--picture", metavar="FILE", help="draw the examples as SVG into FILE, for the README")
    options = parser.parse_args()
    console = Console(highlight=False)
    OUTPUT.mkdir(exist_ok=True)
    legend = Text("mentions: ") + Text("  ").join(Text(label, f"bold {color}") for label, color in COLORS.items())

    console.rule("[bold]1. augment[/]: mentions replaced, words replaced by a language model", align="left")
    augmented = OUTPUT / "train.augmented.conll"
    new = OUTPUT / "new.jsonl"
    methods = ["--method", "mr:copies=2+lm", "--seed", "13", "--force", "-o"]
    run(console, "augment", str(TRAIN), *methods, str(augmented))
    run(console, "augment", str(TRAIN), *methods, str(new), "--to", "jsonl", "--only-new", "--quiet")
    console.rule("[bold]2. before and after[/]", align="left")
    console.print(legend + Text("   (new words underlined)"))
    show_examples(console, new, entaug.read(TRAIN), 3)
    console.rule("[bold]3. check[/]: the file to train on", align="left")
    run(console, "check", str(augmented))
    paths = [new, *(show_methods(console) if options.all else [])]
    console.rule("[bold]4. look[/]: every new sentence beside its source", align="left")
    page = OUTPUT / "report.html"
    gold = [str(TRAIN), *([str(NESTED)] if options.all else [])]
    run(console, "report", *gold, *map(str, paths), "--no-models", "--title", "entaug demo", "--force", "-o", str(page))
    console.print(f"open in a browser: {page}", soft_wrap=True)
    if options.picture:
        picture = Console(record=True, width=96, highlight=False, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
        show_examples(picture, new, entaug.read(TRAIN), 3)
        Path(options.picture).write_text(picture.export_svg(title="entaug augment train.conll --method mr:copies=2+lm"))


if __name__ == "__main__":
    main()
