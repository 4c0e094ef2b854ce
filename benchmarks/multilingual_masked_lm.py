"""Whether training a head makes a masked language model of the starter model ``multilingual-e5``.

    entaug models prepare multilingual-e5
    python benchmarks/multilingual_masked_lm.py --minutes 20 [--examples]

Trained are the last layers and the head; the output embeddings are those of the input. Text: the samples of 1,000
sentences of MultiCoNER v1 in ten languages, and as many of its English and German training part. Measured, before and
after, on the development part of each language: the share of hidden words of one sub-word that are predicted first,
and among the first five; beside it the share that the most frequent words of the language would get. Minutes are
those of the processor. ``--examples`` prints fills, which are not committed.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from transformers import BertForMaskedLM

from entaug import Sentence
from entaug.backends.models.catalogue import model_path
from entaug.core.alignment import detokenize

DATA = Path(os.environ.get("ENTAUG_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "multiconer-v1"
LANGUAGES = ("bn", "de", "en", "es", "hi", "ko", "nl", "ru", "tr", "zh")
LAYERS = 4  # the last ones, which are trained
TOKENS = 1024  # sub-words of a step, about
LONGEST = 48
HIDDEN = 0.2
MEASURED = 100  # sentences of a language
MASK = "<mask>"


def load() -> tuple[BertForMaskedLM, Tokenizer]:
    """Load the starter model with a fresh head, and its tokenizer.

    Returns:
        The model and the tokenizer.
    """
    folder = model_path("multilingual-e5")
    model = BertForMaskedLM.from_pretrained(folder)
    head = model.cls.predictions
    with torch.no_grad():
        head.transform.dense.weight.copy_(torch.eye(model.config.hidden_size))
        head.transform.dense.bias.zero_()
        head.bias.zero_()
    return model, Tokenizer.from_file(str(folder / "tokenizer.json"))


def texts(path: Path) -> list[Sentence]:
    """The sentences of a file that have a usual length.

    Args:
        path: the file.

    Returns:
        The sentences.
    """
    blocks = path.read_text("utf-8").split("\n\n")
    rows = [[line.split("\t")[0] for line in block.split("\n") if line] for block in blocks]
    return [Sentence(row) for row in rows if len(row) > 4]


def batches(rows: list[list[int]], rng: random.Random) -> Iterator[list[list[int]]]:
    """Rows of about equal length, again and again.

    Args:
        rows: the ids of each text.
        rng: the random numbers.

    Yields:
        The rows of a step.
    """
    while True:
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i]) + rng.random() * 8, i))
        groups: list[list[list[int]]] = [[]]
        for i in order:
            if (len(groups[-1]) + 1) * len(rows[i]) > TOKENS:
                groups.append([])
            groups[-1].append(rows[i])
        rng.shuffle(groups)
        yield from groups


class Filler:
    """The model with output over the sub-words that occur in the training text.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        rows: the training text.
    """

    def __init__(self, model: BertForMaskedLM, tokenizer: Tokenizer, rows: list[list[int]]) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.mask = int(tokenizer.token_to_id(MASK) or 0)
        self.known = torch.tensor(sorted({i for row in rows for i in row[1:-1]}))
        self.place = {int(i): n for n, i in enumerate(self.known)}
        embeddings: Any = model.get_input_embeddings()
        self.output: Tensor = embeddings.weight.detach()[self.known]

    def scores(self, rows: list[list[int]], positions: list[list[int]]) -> Tensor:
        """The scores of the known sub-words at hidden positions.

        Args:
            rows: the ids of each text, with masks.
            positions: the hidden positions of each.
        """
        width = max(map(len, rows))
        ids = torch.tensor([row + [1] * (width - len(row)) for row in rows])
        with torch.autocast("cpu", torch.bfloat16):
            states = self.model.bert(ids, attention_mask=(ids != 1).long()).last_hidden_state
            hidden = torch.cat([states[n, places] for n, places in enumerate(positions)])
            head = self.model.cls.predictions
            scores: Tensor = (head.transform(hidden) @ self.output.T).float() + head.bias[self.known]
            return scores


def train(filler: Filler, rows: list[list[int]], minutes: float) -> int:
    """Train the last layers and the head.

    Args:
        filler: the model; changed in place.
        rows: the training text.
        minutes: how long.

    Returns:
        The number of steps.
    """
    head = filler.model.cls.predictions
    trained = [*filler.model.bert.encoder.layer[-LAYERS:].parameters(), *head.transform.parameters(), head.bias]
    filler.model.requires_grad_(False)
    for parameter in trained:
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(trained, lr=3e-4, weight_decay=0.01)
    rng, begun, steps, running = random.Random(1), time.process_time(), 0, 0.0
    for group in batches(rows, rng):
        passed = (time.process_time() - begun) / (60 * minutes)
        if passed >= 1:
            return steps
        for settings in optimizer.param_groups:
            settings["lr"] = 3e-4 * min(1, (steps + 1) / 30) * (1 - passed)
        masked, positions, targets = [], [], []
        for row in group:
            places = sorted(rng.sample(range(1, len(row) - 1), max(1, round(HIDDEN * (len(row) - 2)))))
            targets += [filler.place[row[i]] for i in places]
            masked.append([filler.mask if i in places else id_ for i, id_ in enumerate(row)])
            positions.append(places)
        loss = functional.cross_entropy(filler.scores(masked, positions), torch.tensor(targets))
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        steps += 1
        running = 0.95 * running + 0.05 * loss.item() if steps > 1 else loss.item()
        if steps % 20 == 0:
            print(f"step {steps}: loss {running:.2f}, {passed:.0%} of the time", flush=True)
    return steps


def measure(filler: Filler, sentences: list[Sentence]) -> tuple[list[tuple[str, str, list[str]]], float, float]:
    """Hide one word of each sentence that is one sub-word.

    Args:
        filler: the model.
        sentences: the sentences.

    Returns:
        Each text with the word and its five first predictions, and the shares of words among the first one and five.
    """
    rng, cases = random.Random(2), []
    for sentence in sentences:
        places = [i for i, token in enumerate(sentence.tokens) if token.isalpha()]
        rng.shuffle(places)
        for i in places:
            text = detokenize([*sentence.tokens[:i], MASK, *sentence.tokens[i + 1 :]])
            ids = filler.tokenizer.encode(f" {sentence.tokens[i]}").ids[1:-1]
            row = filler.tokenizer.encode(text).ids
            if len(ids) == 1 and ids[0] in filler.place and row.count(filler.mask) == 1 and len(row) <= LONGEST:
                cases.append((text, sentence.tokens[i], ids[0], row))
                break
    results, first, five = [], 0, 0
    for text, word, id_, row in cases:
        with torch.no_grad():
            best = filler.scores([row], [[row.index(filler.mask)]])[0].topk(5).indices
        ids = filler.known[best].tolist()
        first, five = first + (ids[0] == id_), five + (id_ in ids)
        results.append((text, word, [str(filler.tokenizer.id_to_token(i)).replace("\u2581", "_") for i in ids]))
    return results, first / max(1, len(cases)), five / max(1, len(cases))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--examples", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model, tokenizer = load()
    files = [DATA / "1000" / f"{code}_sample_train.conll" for code in LANGUAGES]
    files += [DATA / "15000" / f"{code}_train.conll" for code in ("en", "de")]
    by_file = [texts(path) for path in files]
    gold = [*(s for some in by_file[:-2] for s in some), *(s for some in by_file[-2:] for s in some[:1000])]
    rows = [tokenizer.encode(detokenize(s.tokens)).ids for s in gold]
    rows = [row if len(row) <= LONGEST else [*row[: LONGEST - 1], row[-1]] for row in rows]
    model.train(mode=False)
    filler = Filler(model, tokenizer, rows)
    held_out = {code: texts(DATA / "15000" / f"{code}_dev.conll")[:MEASURED] for code in LANGUAGES}
    before = {code: measure(filler, some)[1:] for code, some in held_out.items()}
    steps = train(filler, rows, args.minutes)
    print(f"\n{len(rows)} texts, {len(filler.known)} sub-words, {steps} steps of about {TOKENS} sub-words\n")
    print("| language | hidden words | most frequent word, first / five | before, first / five | after, first / five |")
    print("|---|---:|---:|---:|---:|")
    for code, own in zip(LANGUAGES, by_file, strict=False):
        cases, *after = measure(filler, held_out[code])
        usual = [word for word, _ in Counter(t for s in own for t in s.tokens if t.isalpha()).most_common(5)]
        words = [word for _, word, _ in cases]
        shares = [sum(word in usual[:n] for word in words) / max(1, len(words)) for n in (1, 5)]
        pairs = (shares, before[code], after)
        print(f"| {code} | {len(cases)} | {' | '.join(f'{a:.0%} / {b:.0%}' for a, b in pairs)} |")
        if args.examples:
            for text, word, fills in cases[:8]:
                print(f"    {text} [{word}] -> {' '.join(fills)}")


if __name__ == "__main__":
    main()
