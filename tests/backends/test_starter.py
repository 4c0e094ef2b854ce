"""The real starter models, as `entaug models prepare` made them, straight through the libraries that read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from entaug.backends.models import catalogue as models
from entaug.backends.models.preparation import verify_models
from entaug.errors import MissingModelError


def mlm_tops(name: str, text: str, mask: str) -> list[str]:
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    from entaug.backends.transformers.base import load_pretrained

    folder = models.model_path(name)
    tokenizer = load_pretrained(AutoTokenizer, folder)
    model = load_pretrained(AutoModelForMaskedLM, folder).eval()
    assert tokenizer.mask_token == mask
    given = tokenizer(text, return_tensors="pt")
    [place] = (given["input_ids"][0] == tokenizer.mask_token_id).nonzero()[:, 0].tolist()
    with torch.no_grad():
        best = model(**given).logits[0, place].topk(5).indices
    return [tokenizer.decode([i]).strip() for i in best.tolist()]


@pytest.mark.models
def test_the_real_mpnet_fills_masks() -> None:
    assert mlm_tops("mpnet-mlm", "The capital of France is <mask>.", "<mask>")[0] == "paris"
    assert {"went", "walked", "came"} & set(mlm_tops("mpnet-mlm", "She <mask> to the store.", "<mask>"))


@pytest.mark.models
def test_the_real_tiny_bert_is_a_masked_lm() -> None:
    tops = mlm_tops("tiny-bert", "The capital of France is [MASK].", "[MASK]")
    assert len(set(tops)) == 5


@pytest.mark.models
def test_the_real_smollm2_knows_good_sentences() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from entaug.backends.transformers.base import load_pretrained

    folder = models.model_path("smollm2")
    tokenizer = load_pretrained(AutoTokenizer, folder)
    model = load_pretrained(AutoModelForCausalLM, folder).eval()

    def perplexity(text: str) -> float:
        # The first token is end-of-text, id 0: what stood before each text in training; the BOS is of the chat format.
        ids = torch.tensor([[0, *tokenizer(text, add_special_tokens=False)["input_ids"]]])
        with torch.no_grad():
            return float(model(ids, labels=ids).loss.exp())

    assert tokenizer.decode([0]) == "<|endoftext|>"
    good = "The capital of France is Paris.", "He was treated with antibiotics for two weeks."
    scrambled = "Paris is the France capital. of", "two He weeks with. treated antibiotics was for"
    for right, wrong in zip(good, scrambled, strict=True):
        assert perplexity(wrong) > 20 * perplexity(right)
    assert perplexity(good[0]) < 30


@pytest.mark.models
def test_the_real_minilm_knows_like_from_unlike() -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from entaug.backends.transformers.base import load_pretrained

    folder = models.model_path("minilm")
    given = load_pretrained(AutoTokenizer, folder)(
        ["The film was great.", "A wonderful movie!", "Tax law is complicated."], padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        hidden = load_pretrained(AutoModel, folder).eval()(**given).last_hidden_state
    mask = given["attention_mask"][:, :, None]
    rows = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1))
    like, unlike = float(rows[0] @ rows[1]), float(rows[0] @ rows[2])
    assert like > 0.6
    assert unlike < 0.3


def multilingual_e5() -> Path:
    try:
        return models.model_path("multilingual-e5")
    except MissingModelError as error:  # it is optional
        pytest.skip(str(error))


@pytest.mark.models
def test_the_real_multilingual_e5_knows_translations() -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    from entaug.backends.transformers.base import load_pretrained

    folder = multilingual_e5()
    tokenizer = load_pretrained(AutoTokenizer, folder)
    encoder = load_pretrained(AutoModel, folder).eval()
    fires = ["The house is on fire.", "Das Haus brennt.", "La casa está en llamas.", "房子着火了。", "Дом горит."]
    taxes = [
        "Tax law is complicated.",
        "Steuerrecht ist kompliziert.",
        "El derecho fiscal es complicado.",
        "税法很复杂。",
    ]
    given = tokenizer([*fires, *taxes], padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = encoder(**given).last_hidden_state
    mask = given["attention_mask"][:, :, None]
    rows = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1))
    likeness = (rows @ rows.T).numpy()
    n = len(fires)
    assert min(likeness[:n, :n].min(), likeness[n:, n:].min()) > likeness[:n, n:].max() + 0.02


@pytest.mark.models
def test_the_real_multilingual_e5_splits_words_of_many_scripts() -> None:
    from transformers import AutoTokenizer

    from entaug.backends.transformers.base import load_pretrained

    tokenizer = load_pretrained(AutoTokenizer, multilingual_e5())
    special = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
    assert tokenizer.convert_tokens_to_ids(list(special)) == [0, 1, 2, 3, 250_001]
    words = ["Åse", "пришла", "в", "ﬁnance", "東京", "ประเทศไทย", "שלום", "e\u0301te\u0301", "\uff11\uff12"]
    given = tokenizer(words, is_split_into_words=True)
    assert tokenizer.unk_token_id not in given["input_ids"]
    assert sorted({*given.word_ids()} - {None}) == list(range(len(words)))
    assert tokenizer.decode(given["input_ids"], skip_special_tokens=True) == (
        "Åse пришла в finance 東京 ประเทศไทย שלום été 12"  # as NFKC has them
    )


@pytest.mark.models
def test_the_real_glove_knows_kings_and_queens() -> None:
    import numpy as np

    folder = models.model_path("glove")
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")[:-1]
    vectors = np.load(folder / "vectors.npy", allow_pickle=False)
    assert vectors.shape == (len(words), 50) == (400_000, 50)
    assert vectors.dtype == np.float32
    row = {word: i for i, word in enumerate(words)}
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = units @ units[row["king"]]
    assert words[int(np.argsort(near)[-2])] in {"prince", "queen"}
    assert near[row["queen"]] > 0.7
    assert near[row["sodium"]] < 0.3


@pytest.mark.models
def test_the_real_spacy_pipeline_parses() -> None:
    import spacy

    parsed = spacy.load(models.model_path("en_core_web_sm"))("The old dog chased a cat in the garden.")
    assert [(t.text, t.dep_, t.head.text) for t in parsed if t.dep_ in {"nsubj", "dobj"}] == [
        ("dog", "nsubj", "chased"),
        ("cat", "dobj", "chased"),
    ]


@pytest.mark.models
def test_the_real_translation_pair_is_whole() -> None:
    verify_models(["en-pt"])


@pytest.mark.models
def test_all_that_methods_use_is_prepared() -> None:
    assert [asset.name for asset in models.list_models() if asset.by_default and not asset.installed] == []
