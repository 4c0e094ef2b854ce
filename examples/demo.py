"""The main job on the example corpus: what `make demo` shows.

Augments the training sentences with every method, writes the results to ``demo-output/``, checks them with the
command line, and shows a few sentences before and after, mentions in colour. All of them are in the report that it
writes last, a page to be opened in a browser.
"""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

import entaug

HERE = Path(__file__).parent
OUT = HERE.parent / "demo-output"
FEW = {"aclm": 12, "cassi": 15, "entda": 12, "melm": 24, "mulda": 24}  # sentences, where a method takes its time
COLOURS = {"PER": "cyan", "ORG": "magenta", "LOC": "green", "PRODUCT": "yellow", "EVENT": "blue"}


def coloured(sentence: entaug.Sentence, source: entaug.Sentence | None = None) -> Text:
    """The sentence with mentions in the colour of their type and, against a source, new words underlined."""
    text = Text()
    new: set[int] = set()
    if source is not None:
        matcher = difflib.SequenceMatcher(None, source.tokens, sentence.tokens, autojunk=False)
        new = {j for op, _, _, j1, j2 in matcher.get_opcodes() if op != "equal" for j in range(j1, j2)}
    for i, token in enumerate(sentence.tokens):
        labels = [m.label for m in sentence.mentions if i in m.positions()]
        style = f"bold {COLOURS[labels[0]]}" if labels else ""
        text.append(token, f"{style} underline" if i in new else style)
        text.append(" ")
    return text


def show(console: Console, name: str, path: Path, output: Path, wanted: int) -> None:
    """Augment a file through the command line and show what became of some of its shorter sentences."""
    command = ["augment", str(path), "--method", name, "--seed", "13", "--force", "--only-new", "-o", str(output)]
    info = entaug.METHODS[name].info
    console.rule(f"[bold]{name}[/]: {info.summary}", align="left")
    shown = " ".join(["entaug", *command]).replace(str(HERE.parent) + "/", "")
    console.print(shown, style="dim", soft_wrap=True)
    subprocess.run([sys.executable, "-m", "entaug", *command], check=True)
    gold = {sentence.key: sentence for sentence in entaug.read(path)}
    pairs = [(gold[made.fields["entaug"]["sources"][0]], made) for made in entaug.read(output)]
    short = [(source, made) for source, made in pairs if 6 < len(source) < 26 and source.mentions]
    for source, made in short[:: max(1, len(short) // wanted)][:wanted]:
        console.print(Text("  before  ", "dim") + coloured(source), soft_wrap=True)
        console.print(Text("  after   ", "dim") + coloured(made, source), soft_wrap=True)
        console.print()


def report(made: list[Path]) -> Path:
    """Write a page about all that was made; without models, so it takes seconds."""
    page = OUT / "report.html"
    gold = [HERE / "corpus" / "train.conll", HERE / "corpus" / "nested.jsonl"]
    command = ["report", *map(str, (*gold, *made)), "--no-models", "--title", "What the demo made", "--force"]
    subprocess.run([sys.executable, "-m", "entaug", *command, "-o", str(page)], check=True)
    return page


def main() -> None:
    """Run the demonstration."""
    console = Console(highlight=False)
    OUT.mkdir(exist_ok=True)
    train, nested = HERE / "corpus" / "train.conll", HERE / "corpus" / "nested.jsonl"
    legend = Text("mentions: ") + Text("  ").join(Text(label, f"bold {colour}") for label, colour in COLOURS.items())
    console.print(legend + Text("   (new or moved words underlined)"))
    for name in entaug.METHODS:
        path = train
        if name in FEW:
            path = OUT / f"few-for-{name}.conll"
            entaug.write(list(entaug.read(train))[: FEW[name]], path)
        show(console, name, path, OUT / f"{name}.jsonl", 3)
    show(console, "lwtr", nested, OUT / "nested.lwtr.jsonl", 4)
    console.rule("[bold]the file to train on[/]: gold and new", align="left")
    target = OUT / "train.augmented.conll"
    command = ["augment", str(train), "--method", "mr", "--copies", "3", "--seed", "13", "--force", "-o", str(target)]
    subprocess.run([sys.executable, "-m", "entaug", *command], check=True)
    subprocess.run([sys.executable, "-m", "entaug", "check", str(target)], check=True)
    console.rule("[bold]all of it to look through[/]: every new sentence beside its source", align="left")
    page = report([OUT / f"{name}.jsonl" for name in (*entaug.METHODS, "nested.lwtr")])
    console.print(f"open in a browser: {page}", soft_wrap=True)


if __name__ == "__main__":
    main()
