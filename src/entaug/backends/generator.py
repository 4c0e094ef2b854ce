"""Generators of transformers: fine-tuned on pairs of texts, whole or by low-rank adapters, and written with."""

from __future__ import annotations

import abc
import copy
import json
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from entaug.align import in_word
from entaug.backends.fine_tuning import learn, read_learned, write_learned
from entaug.backends.protocols import Decoding, Pairs, Tuning
from entaug.backends.sampling import GumbelTopK, Insist, RankPenalty, Wanted
from entaug.backends.torch_base import Batcher, TorchBackend, find, load, quiet, torch, transformers
from entaug.errors import InputError, MissingExtraError, OutputError, ParameterError

__all__ = ["CausalGenerator", "Seq2SeqGenerator", "TransformersGenerator", "open_generator"]

MASK = "<mask>"
_CONFIG, _LEARNED = "generator.json", "generator.safetensors"
_HOW = ("beams", "diverse", "sample")
_ENDING = re.compile(r"['\"”’)\]]*[.!?…。！？؟।]+['\"”’)\]]*")  # noqa: RUF001
_GLUE = "-/_&+#@"
_OPEN = "([{\"'“‘«„"  # noqa: RUF001  (behind these stands no space before a word)
_IGNORED = -100
_RANK = 16
_STEP = 32  # widths of inputs to write from are multiples of it


class TransformersGenerator(TorchBackend, abc.ABC):
    """What both kinds share, as a `entaug.backends.protocols.Generator`.

    Args:
        name: a folder or a name on the hub.
        device: see `entaug.backends.torch_base.choose`.
        precision: see `entaug.backends.torch_base.choose`.
        budget: sub-words of a batch when generating; by default by device.
        adapters: whether low-rank adapters learn (Hu et al. 2022) and not the whole model; by default on a CPU.

    Raises:
        MissingModelError: there is no such model.
        MissingExtraError: adapters are wanted, and peft is not installed.
    """

    task: str  # what peft calls it

    def __init__(
        self,
        name: str | Path,
        *,
        device: str | None = None,
        precision: str | None = None,
        budget: int | None = None,
        adapters: bool | None = None,
    ) -> None:
        super().__init__(name, device=device, precision=precision, budget=budget)
        self.adapters = self.device.type == "cpu" if adapters is None else adapters
        if self.adapters:
            _peft()
        self.markers: dict[str, str] = {}
        self.losses: list[tuple[float, float | None]] = []
        """Of each epoch of the fine-tuning: the mean loss of a sub-word, and the same on the pairs held out."""
        self.kept: int | None = None
        """The epoch whose weights were kept, from 1."""
        self.left_out = 0
        """Pairs that were longer than the model takes and not learned from."""
        self.said: int | None = None
        """How many sub-words the longest text has that it learned."""
        self._learned: dict[str, Any] = {}

    # --------------------------------------------------------------------------------------------------- for subclasses

    @abc.abstractmethod
    def _row(self, source: str, target: str) -> tuple[list[int], list[int]]:
        """Sub-words of a pair as the model takes them, and what it is to say."""

    @abc.abstractmethod
    def _prompt(self, source: str) -> list[int]:
        """Sub-words of an input."""

    @abc.abstractmethod
    def _room(self, prompt: list[int], longest: int) -> bool:
        """Whether an input leaves room for a text."""

    @abc.abstractmethod
    def _fits(self, source: list[int], target: list[int]) -> bool:
        """Whether the model can take a pair."""

    @abc.abstractmethod
    def _batch(self, rows: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        """What the model is called with to learn from some rows."""

    def _pads_left(self) -> bool:
        return False

    # --------------------------------------------------------------------------------------------------------- learning

    def fit(
        self,
        pairs: Pairs,
        tuning: Tuning = Tuning(),  # noqa: B008 (immutable)
        *,
        markers: Mapping[str, str] | None = None,
        folder: Path | None = None,
        progress: Callable[[int, int, float], None] | None = None,
    ) -> Self:
        """See `entaug.backends.protocols.Generator.fit`.

        Raises:
            InputError: there is no pair that the model can take.
            EntaugError: there is not even memory for a single pair.
        """
        made = copy.copy(self)
        made.learn(pairs, tuning, markers or {}, folder, progress)
        return made

    def learn(
        self,
        pairs: Pairs,
        tuning: Tuning,
        markers: Mapping[str, str],
        folder: Path | None = None,
        progress: Callable[[int, int, float], None] | None = None,
    ) -> None:
        """What `fit` does, to this very generator."""
        self.tokenizer = self._load_tokenizer()
        self.markers = dict(markers)
        self.model = self._marked(self.dtype if self.adapters else torch.float32)

        def rows(epoch: int) -> list[tuple[list[int], list[int]]]:
            found = [self._row(*pair) for pair in (pairs(epoch) if callable(pairs) else pairs)]
            if not epoch:
                self.said = max((sum(id_ != _IGNORED for id_ in said) for _, said in found), default=None)
            return found

        rate = tuning.rate or (5e-4 if self.adapters else 5e-5)
        outcome = learn(self.model, rows, self._fits, self._batch, tuning, rate, self.dtype, folder, progress)
        self._learned, self.losses, self.kept = outcome.learned, outcome.losses, outcome.kept
        self.left_out = outcome.left_out
        self._take_up()

    def _marked(self, dtype: Any) -> Any:
        """The model as it was, with tokens for the markers, and with adapters where these are what learns."""
        model = load(self.auto, self.folder, dtype=dtype, **self._options())
        known = len(self.tokenizer)
        starts = {m: self.encode([f" {words}"])[0] for m, words in self.markers.items()}
        new = [m for m in self.markers if not (m == MASK and self.tokenizer.mask_token_id is not None)]
        added = transformers.AddedToken
        self.tokenizer.add_tokens([added(m, lstrip=True, normalized=False, special=False) for m in new])
        count = len(self.tokenizer) - known
        table = model.get_input_embeddings()
        if len(self.tokenizer) > table.weight.shape[0]:
            with quiet():
                model.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
            table = model.get_input_embeddings()
        with torch.no_grad():
            for weight in {id(w): w for w in (table.weight, _output(model)) if w is not None}.values():
                for marker in new:
                    if starts[marker]:
                        weight[self.tokenizer.convert_tokens_to_ids(marker)] = weight[starts[marker]].mean(0)
        if self.adapters:
            peft = _peft()
            config = peft.LoraConfig(
                r=_RANK,
                lora_alpha=2 * _RANK,
                target_modules="all-linear",
                trainable_token_indices=list(range(known, known + count)) or None,
                task_type=self.task,
            )
            # The weights that adapters begin with are random, and come from a seed of their own.
            with quiet(), torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                model = peft.get_peft_model(model, config)
        return model.to(self.device)

    def _take_up(self) -> None:
        """Write with what was learned: the same way after learning and after reading it from a folder."""
        self.tokenizer = self._load_tokenizer()
        model = self._marked(torch.float32)
        wanted = dict(model.named_parameters())
        for name, tensor in self._learned.items():
            if name not in wanted or wanted[name].shape != tensor.shape:
                raise InputError(f"what was learned does not fit the model ({name})", remedy="fine-tune it again")
            wanted[name].data.copy_(tensor)
        if self.adapters:
            model = model.merge_and_unload()
        self.model = model.to(self.dtype).eval()
        # What a checkpoint brings along (a forced end, no n-gram twice, a least length) is not what was asked for.
        own = self.model.generation_config
        plain: Any = transformers.GenerationConfig
        self.model.generation_config = plain(
            bos_token_id=own.bos_token_id, decoder_start_token_id=own.decoder_start_token_id
        )
        for name in ("_said", "_stops", "_marks", "_unsayable"):
            self.__dict__.pop(name, None)  # they are of the tokenizer that was
        self.model.requires_grad_(requires_grad=False)

    def _ids(self, text: str) -> list[int]:
        """Sub-words of a text in which markers are one token each."""
        if not self.markers:
            return self.encode([text])[0]
        ids: list[int] = []
        for part in re.split("|".join(f"( *{re.escape(m)})" for m in self.markers), text):
            if part is None or not part:
                continue
            marker = part.lstrip(" ")
            if marker in self.markers:
                own = self.tokenizer.mask_token_id if marker == MASK else None
                ids.append(int(self.tokenizer.convert_tokens_to_ids(marker)) if own is None else own)
            else:
                ids += self.encode([part])[0]
        return ids

    # ------------------------------------------------------------------------------------------------------- generating

    def generate(
        self,
        inputs: Sequence[str],
        decoding: Decoding = Decoding(),  # noqa: B008 (immutable)
        seeds: Sequence[int] | None = None,
        wanted: Sequence[Sequence[Sequence[str]]] | None = None,
        unwanted: Sequence[str] = (),
    ) -> list[list[str]]:
        """See `entaug.backends.protocols.Generator.generate`.

        Raises:
            ParameterError: sampling without one seed an input, or a parameter that cannot be.
            EntaugError: there is not even memory for a single input.
        """
        _check(decoding, len(inputs), seeds)
        if self.said is not None:  # what is twice as long as anything it learned has lost its way
            decoding = decoding._replace(longest=min(decoding.longest, 2 * self.said + 8))
        prompts = [self._prompt(text) for text in inputs]
        made: list[list[str]] = [[] for _ in prompts]
        work = [i for i, prompt in enumerate(prompts) if self._room(prompt, decoding.longest)]
        of_each = [[self._parts(parts) for parts in pieces] for pieces in wanted or ()]
        if wanted is not None:  # a piece that cannot be written would keep a text from ending
            work = [i for i in work if all(self._sayable(part) for parts in of_each[i] for part in parts)]
        barred = self._parts(unwanted) if wanted is not None else []

        def compute(batch: list[int], width: int) -> None:
            chosen = [work[i] for i in batch]
            ids, mask = self.padded([prompts[i] for i in chosen], width)
            if self._pads_left():
                ids, mask = _rolled(ids, mask)
            some = None if seeds is None else [seeds[i] for i in chosen]
            pieces = None if wanted is None else [of_each[i] for i in chosen]
            for i, texts in zip(chosen, self._written(ids, mask, decoding, some, pieces, barred), strict=True):
                made[i] = texts

        # A row costs as many as there are beams; and few batches are worth more than little padding, as each of them
        # takes as many steps as its longest text.
        batcher = Batcher(max(1, self.batcher.budget // decoding.beams), step=_STEP)
        batcher.run([len(prompts[i]) for i in work], compute)
        self.batcher.halved += batcher.halved
        return made

    def _parts(self, parts: Sequence[str]) -> list[Wanted]:
        """Pieces of text as sub-words."""
        forms = [form for part in parts for form in (f" {part}", part, part[:1].upper() + part[1:])]
        ids = iter(map(tuple, map(self._ids, forms) if self.markers else self.encode(forms)))
        return [Wanted(*three) for three in zip(ids, ids, ids, strict=True)]

    def _sayable(self, part: Wanted) -> bool:
        """Whether a piece can be written at all."""
        return bool(part.spaced) and {*self._unsayable, *self._stops}.isdisjoint(part.spaced)

    @cached_property
    def _said(self) -> list[str]:
        """What each sub-word adds to a text, a space before it included; nothing for special ones."""
        before = self.encode(["a"])[0]
        skip = len(self._decoded([before])[0])
        return [text[skip:] for text in self._decoded([[*before, id_] for id_ in range(len(self.tokenizer))])]

    def _decoded(self, rows: list[list[int]]) -> list[str]:
        texts: list[str] = self.tokenizer.batch_decode(
            rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    @cached_property
    def _stops(self) -> list[int]:
        """The sub-words that end a text: what it learns from are single lines, so a new line is as good as an end."""
        return [self._end, *(id_ for id_, text in enumerate(self._said) if "\n" in text and id_ != self._end)]

    @cached_property
    def _marks(self) -> tuple[Any, Any]:
        """The sub-words that end a text or a sentence, and those that make one word with what stands before them."""
        said = list(enumerate(self._said))
        ends = {*self._stops, *(id_ for id_, text in said if _ENDING.fullmatch(text.strip(" ")))}
        glues = [id_ for id_, text in said if text and (in_word(text[0]) or text[0] in _GLUE)]
        return torch.tensor(sorted(ends), device=self.device), torch.tensor(glues, device=self.device)

    @cached_property
    def _unsayable(self) -> list[int]:
        """The special sub-words that do not end a text: nobody sees them in it, but what follows them reads oddly.

        And what a model has room for, but its tokenizer no word.
        """
        rows = self.model.get_input_embeddings().weight.shape[0]
        return sorted({*self.tokenizer.all_special_ids, *range(len(self.tokenizer), rows)} - {self._end})

    def _is_open(self, id_: int) -> bool:
        """Whether a word can stand right behind a sub-word."""
        return id_ < len(self._said) and self._said[id_][-1:] in set(_OPEN)

    def _written(
        self,
        ids: Any,
        mask: Any,
        decoding: Decoding,
        seeds: Sequence[int] | None,
        wanted: Sequence[Sequence[Sequence[Wanted]]] | None,
        unwanted: Sequence[Wanted],
    ) -> list[list[str]]:
        count, many = len(ids), decoding.beams
        options: dict[str, Any] = {"num_beams": many, "num_return_sequences": decoding.texts}
        # The first beams to end would end it all, those that differ least from the best one among them.
        options["early_stopping"] = decoding.how != "diverse"
        processors: list[Any] = []
        if wanted is not None:
            begun = self._before_text(ids)
            processors.append(Insist(wanted, many, begun, self._end, *self._marks, self._is_open, unwanted))
        if decoding.how == "diverse":
            processors.append(RankPenalty(many, decoding.penalty))
        elif decoding.how == "sample":
            ids, mask = ids.repeat_interleave(many, 0), mask.repeat_interleave(many, 0)
            drawn = [[seed, draw] for seed in seeds or () for draw in range(many)]
            processors.append(GumbelTopK(drawn, decoding.top_k, decoding.temperature))
            options = {"num_beams": 1}
        with torch.inference_mode(), quiet():
            out = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                **self._begun(len(ids)),
                max_new_tokens=decoding.longest,
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                pad_token_id=self._pad,
                eos_token_id=self._stops,
                suppress_tokens=self._unsayable or None,
                logits_processor=transformers.LogitsProcessorList(processors),
                **options,
            )
        rows = [self._ended(row) for row in out[:, self._before_text(ids) :].tolist()]
        of_each = len(rows) // count
        scores = _means(processors[-1].log_probs, rows) if decoding.how == "sample" else [0.0] * len(rows)
        best = []
        for i in range(count):
            own = [row for row in range(i * of_each, (i + 1) * of_each) if rows[row][1] or not decoding.whole]
            own.sort(key=lambda row: -scores[row])
            best.append([self._text(rows[row][0]) for row in own[: decoding.texts]])
        return best

    def _begun(self, count: int) -> dict[str, Any]:
        """What else a model is given, for so many rows."""
        del count
        return {}

    @abc.abstractmethod
    def _before_text(self, ids: Any) -> int:
        """How many sub-words of a row stand before what is written."""

    def _ended(self, row: list[int]) -> tuple[list[int], bool]:
        """A text up to its end, and whether it came to one."""
        length = next((i for i, id_ in enumerate(row) if id_ in self._stops), len(row))
        return row[:length], length < len(row)

    def _text(self, row: list[int]) -> str:
        text: str = self.tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()

    @property
    def _end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    @property
    def _pad(self) -> int:
        return int(self.tokenizer.pad_token_id if self.tokenizer.pad_token_id is not None else self._end)

    # ----------------------------------------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path) -> None:
        """See `entaug.backends.protocols.Generator.save`.

        Raises:
            OutputError: the folder holds something already, or cannot be written.
            ParameterError: it has learned nothing.
        """
        folder = Path(folder)
        if not self._learned:
            raise ParameterError("this generator has learned nothing", remedy="fit it")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError("is there already", path=str(folder), remedy="name a folder that is new or empty")
        config = {
            "model": self.name.rpartition("/")[0],
            "adapters": self.adapters,
            "markers": self.markers,
            "losses": self.losses,
            "kept": self.kept,
            "said": self.said,
        }
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as beside:
                made = Path(beside, "generator")
                made.mkdir()
                write_learned(made / _LEARNED, self._learned)
                text = json.dumps(config, ensure_ascii=False, indent=1)
                (made / _CONFIG).write_text(text + "\n", encoding="utf-8")
                if folder.exists():
                    folder.rmdir()
                made.rename(folder)
        except OSError as error:
            raise OutputError(
                f"cannot be written ({error.strerror or error})", path=str(folder), remedy="name another folder"
            ) from None

    def restore(self, folder: str | Path) -> Self:
        """See `entaug.backends.protocols.Generator.restore`.

        Raises:
            InputError: there is no generator, it is damaged, or it learned from another model.
        """
        made = copy.copy(self)
        made.read(Path(folder))
        return made

    def read(self, folder: Path) -> None:
        """What `restore` does, to this very generator."""
        remedy = "name a folder that a generator was saved to, or fine-tune it again"
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            model, own = str(config["model"]), self.name.rpartition("/")[0]
            self.markers = {str(marker): str(words) for marker, words in config["markers"].items()}
            self.losses = [(mean, outside) for mean, outside in config["losses"]]
            self.kept, self.adapters = int(config["kept"]), bool(config["adapters"])
            self.said = int(config["said"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"holds no generator ({error})", path=str(folder), remedy=remedy) from None
        if model != own:
            raise InputError(f"learned from {model}, and this is {own}", path=str(folder), remedy=remedy)
        self._learned = read_learned(folder / _LEARNED)
        try:
            self._take_up()
        except InputError as error:
            error.path = str(folder)
            raise


class CausalGenerator(TransformersGenerator):
    """Any model that ``AutoModelForCausalLM`` loads; it reads an input, a new line, and says the output.

    See `TransformersGenerator`. Only what it says counts for the loss.
    """

    auto = transformers.AutoModelForCausalLM
    task = "CAUSAL_LM"

    def _prompt(self, source: str) -> list[int]:
        return [*self.before, *self._ids(source), *self.encode(["\n"])[0]]

    def _row(self, source: str, target: str) -> tuple[list[int], list[int]]:
        prompt, said = self._prompt(source), [*self._ids(target), self._end]
        return [*prompt, *said], [*[_IGNORED] * len(prompt), *said]

    def _fits(self, source: list[int], target: list[int]) -> bool:
        del target
        return len(source) <= self.longest

    def _room(self, prompt: list[int], longest: int) -> bool:
        return len(prompt) + longest <= self.longest

    def _batch(self, rows: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        width = max(len(ids) for ids, _ in rows)
        ids, mask = self.padded([ids for ids, _ in rows], width)
        return {"input_ids": ids, "attention_mask": mask, "labels": _labels([said for _, said in rows], ids.device)}

    def _pads_left(self) -> bool:
        return True

    def _before_text(self, ids: Any) -> int:
        return int(ids.shape[1])


class Seq2SeqGenerator(TransformersGenerator):
    """Any model that ``AutoModelForSeq2SeqLM`` loads: T5, BART, mBART and their like. See `TransformersGenerator`."""

    auto = transformers.AutoModelForSeq2SeqLM
    task = "SEQ_2_SEQ_LM"

    def _prompt(self, source: str) -> list[int]:
        return [*self.before, *self._ids(source), *self.after]

    def _row(self, source: str, target: str) -> tuple[list[int], list[int]]:
        return self._prompt(source), self._prompt(target)

    def _fits(self, source: list[int], target: list[int]) -> bool:
        return max(len(source), len(target)) <= self.longest

    def _room(self, prompt: list[int], longest: int) -> bool:
        return max(len(prompt), longest) <= self.longest

    def _batch(self, rows: Sequence[tuple[list[int], list[int]]]) -> dict[str, Any]:
        width = max(len(ids) for ids, _ in rows)
        ids, mask = self.padded([ids for ids, _ in rows], width)
        return {"input_ids": ids, "attention_mask": mask, "labels": _labels([said for _, said in rows], ids.device)}

    def _begun(self, count: int) -> dict[str, Any]:
        # It has learned texts that begin with what its tokenizer puts before one (a language, for mBART).
        config = self.model.config
        start = self.model.generation_config.decoder_start_token_id
        start = getattr(config, "decoder_start_token_id", None) if start is None else start
        row = [self._end if start is None else start, *self.before]
        return {"decoder_input_ids": torch.tensor([row] * count, device=self.device)}

    def _before_text(self, ids: Any) -> int:
        del ids
        return 1 + len(self.before)


def open_generator(name: str) -> TransformersGenerator:
    """The generator of a folder or a name on the hub, of the kind that its configuration names.

    Raises:
        MissingModelError: there is no such model.
    """
    folder = find(name)
    config = load(transformers.AutoConfig, folder) if (folder / "config.json").exists() else None
    kind = Seq2SeqGenerator if getattr(config, "is_encoder_decoder", False) else CausalGenerator
    return kind(folder)


def _peft() -> Any:
    try:
        import peft
    except ImportError as error:
        raise MissingExtraError(error.name or "peft", "models") from None
    return peft


def _output(model: Any) -> Any:
    layer = model.get_output_embeddings()
    return None if layer is None else layer.weight


def _labels(rows: Sequence[Sequence[int]], device: Any) -> Any:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[_IGNORED] * (width - len(row))] for row in rows], device=device)


def _rolled(ids: Any, mask: Any) -> tuple[Any, Any]:
    """Rows that are filled up at their ends, filled up at their beginnings."""
    for i, length in enumerate(mask.sum(1).tolist()):
        shift = mask.shape[1] - int(length)
        ids[i], mask[i] = ids[i].roll(shift), mask[i].roll(shift)
    return ids, mask


def _means(steps: Sequence[Any], rows: Sequence[tuple[list[int], bool]]) -> list[float]:
    """For each row the mean log-probability of what was drawn up to its end."""
    table = torch.stack(list(steps), dim=1).tolist()
    lengths = [len(row) + ended for row, ended in rows]
    return [math.fsum(values[:n]) / max(1, n) for values, n in zip(table, lengths, strict=True)]


def _check(decoding: Decoding, count: int, seeds: Sequence[int] | None) -> None:
    if decoding.how not in _HOW:
        raise ParameterError(f"how must be one of {', '.join(_HOW)}, not {decoding.how!r}")
    if not 1 <= decoding.texts <= decoding.beams:
        raise ParameterError(f"texts must be between 1 and the {decoding.beams} beams, not {decoding.texts!r}")
    if decoding.longest < 1 or decoding.top_k < 1 or decoding.temperature <= 0 or decoding.penalty < 0:
        raise ParameterError("longest and top_k must be at least 1, temperature above 0, and penalty not below 0")
    if decoding.how == "sample" and (seeds is None or len(seeds) != count):
        raise ParameterError(f"{0 if seeds is None else len(seeds)} seeds for {count} inputs")
