r"""Whether new sentences keep the meaning of their sources, read blind (backtranslation, section 4.5).

    python benchmarks/readability.py generate --work DIR --only lwtr sr lm bt "bt, paper"
    python benchmarks/meaning.py sheet --work DIR    # DIR/sheets/reader1-1.txt, reader2-1.txt
    python benchmarks/meaning.py count --work DIR    # marks in DIR/marks, the same names; writes results/meaning.md

The sentences are those of `readability.py`, each beside its source, mixed and shuffled without their method. What is
committed, `benchmarks/results/meaning.jsonl`, has a digest of each pair and the marks of both readers, no text.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import readability
from readability import CORPORA, HERE, Record, agreement, count

RECORDS = HERE / "results" / "meaning.jsonl"
PAGE = HERE / "results" / "meaning.md"

INSTRUCTIONS = """\
You read pairs: a sentence, an arrow, and another sentence. Put one mark for each line into your file of marks: its
number, a space, and the mark.

+  the same meaning: who knows one of them learns nothing else from the other. Other words for the same are no fault,
   nor are grammar, tone, capitals or punctuation, as long as a reader understands the same.
-  another meaning: a fact, name, number, time, negation or degree of certainty differs, or something is lost or added.
x  the second sentence cannot be understood.

The lines are: NUMBER | KIND OF TEXT | SENTENCE => OTHER SENTENCE. Names are in brackets, with their label behind them.

"""


def pairs(work: Path) -> list[tuple[str, dict[str, Any]]]:
    """What `readability.py` generated, each sentence behind its source."""
    return [
        ("after", {**made, "sentences": [" => ".join(p) for p in zip(made["sources"], made["sentences"], strict=True)]})
        for made in readability.generated(work / "after.jsonl")
    ]


def write_counts(work: Path) -> None:
    """Join the marks of both readers, and write the records and the table of the page."""
    records = readability.joined(pairs(work), readability.verdicts_of(work, {}))
    readability.write_records(RECORDS, records)
    text = PAGE.read_text("utf-8") if PAGE.is_file() else "# Meaning, read blind\n\n"
    PAGE.write_text(readability.page_of(text, f"\n{table(records)}\n", INSTRUCTIONS.rstrip()), encoding="utf-8")


def table(records: list[Record]) -> str:
    """The counts as Markdown, by method, both readers in each cell."""
    kinds = dict.fromkeys(corpus.kind for corpus in CORPORA.values())
    rows = []
    for method in dict.fromkeys(record.method for record in records):
        own = [record for record in records if record.method == method]
        by_kind = [count([record for record in own if CORPORA[record.corpus].kind == kind], "+") for kind in kinds]
        rows.append([f"`{method}`", count(own, "+"), *by_kind, count(own, "x"), agreement(own)])
    head = ["method", "same meaning", *kinds, "not understood", "agreement"]
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Write the sheets, or count the marks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("sheet", "count"))
    parser.add_argument("--work", type=Path, required=True, help="where readability.py generated")
    args = parser.parse_args()
    if args.step == "sheet":
        readability.write_sheets_of(pairs(args.work), args.work, INSTRUCTIONS, {})
    else:
        write_counts(args.work)


if __name__ == "__main__":
    main()
