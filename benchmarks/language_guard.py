"""How often the language guard refuses text: by corpus, by the number of sentences, as it is and in capitals.

Run it as ``python benchmarks/language_guard.py FOLDER > benchmarks/results/language-guard.md``, with the folder of the
corpora. No text is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import entaug
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile

_SIZES = (5, 25, 100)
_MAX_SENTENCES = 1000
_CORPORA = {
    "wnut17 (tweets)": ("wnut17/wnut17train.conll", "en"),
    "wnut17 dev (YouTube)": ("wnut17/emerging.dev.conll", "en"),
    **{
        f"crossner {d}": (f"crossner/{d}/train.txt", "en") for d in ("politics", "science", "music", "literature", "ai")
    },
    "ncbi-disease": ("ncbi-disease/train.tsv", "en"),
    "bc2gm": ("bc2gm/train.tsv", "en"),
    "tdmsci": ("tdmsci/train_1500_v2.conll", "en"),
    "mascip": ("mascip/data", "en"),
    "genia nested": ("genia/nested-jsonl/train.jsonl", "en"),
    "uner en_ewt (web)": ("uner/en_ewt/en_ewt-ud-dev.iob2", "en"),
    "uner hr_set": ("uner/hr_set/hr_set-ud-train.iob2", "hr"),
    "uner da_ddt": ("uner/da_ddt/da_ddt-ud-train.iob2", "da"),
    "danplus news": ("danplus/da_news_train.tsv", "da"),
    "danplus twitter": ("danplus/da_twitter_dev.tsv", "da"),
    "danplus arto": ("danplus/da_arto_dev.tsv", "da"),
    **{
        f"multiconer {code}": (f"multiconer-v1/1000/{code}_sample_train.conll", code)
        for code in ("en", "de", "es", "nl", "tr", "ru", "hi", "bn", "ko", "zh")
    },
}
_OPTIONS = {"mascip": {"misaligned": "skip"}}


def _share(chunks: Sequence[Sequence[Sentence]], language: str) -> str:
    refused = sum(LanguageProfile(chunk).mismatch([language]) is not None for chunk in chunks)
    return f"{refused}/{len(chunks)}"


def _upper(sentence: Sentence) -> Sentence:
    return Sentence([token.upper() for token in sentence.tokens])


def main(folder: Path) -> None:
    """Print the table.

    Args:
        folder: the folder of the corpora.
    """
    print("# The language guard on real corpora\n")
    print("Parts of a corpus that are refused, of all parts of so many sentences (the first 1,000 sentences at most).")
    print(
        "`own`: checked as for a model of the corpus' own language, which must never be refused; `own, capitals`: the"
    )
    print("same text in capitals; `other`: as for a model of English (of German for English corpora).\n")
    print("Command: `python benchmarks/language_guard.py FOLDER`\n")
    kinds = [f"{what}, {size}" for what in ("own", "own, capitals", "other") for size in _SIZES]
    print("| corpus | language | recognised |", " | ".join(kinds), "|")
    print("|---|---|---|" + "---|" * len(kinds))
    for name, (path, language) in _CORPORA.items():
        if not (folder / path).exists():
            sys.stderr.write(f"no {path}\n")
            continue
        text = list(entaug.read(folder / path, repair=True, **_OPTIONS.get(name, {})))[:_MAX_SENTENCES]
        cells = []
        other = "de" if language == "en" else "en"
        for sentences, code in ((text, language), (list(map(_upper, text)), language), (text, other)):
            for size in _SIZES:
                chunks = [sentences[i : i + size] for i in range(0, len(sentences) - size + 1, size)] or [sentences]
                cells.append(_share(chunks, code))
        print(f"| {name} | {language} | {LanguageProfile(text).language} |", " | ".join(cells), "|")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
