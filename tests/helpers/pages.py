"""Pages to open in a browser: the example corpus with what rules made of it, hard cases, and ten thousand pairs."""

from __future__ import annotations

import random
from typing import Any

import entaug
from conftest import EXAMPLE
from entaug.core.data import Sentence, split_fields
from entaug.core.mentions import Mention
from entaug.formats.augmented import AugmentedCorpus, AugmentedPair

__all__ = ["examples", "hard", "many"]


def examples() -> AugmentedCorpus:
    """What four methods that need no model make of the example corpus, with some drafts that were refused."""
    gold = [*entaug.read(EXAMPLE / "train.conll"), *entaug.read(EXAMPLE / "nested.jsonl")]
    by_key = {sentence.key: sentence for sentence in gold}
    made = AugmentedCorpus(gold)
    for name in ("lwtr", "mr", "sis"):
        new = entaug.create_augmenter(name, seed=13).fit(gold).augment(gold)
        made.methods[name] = [AugmentedPair(one, by_key[one.fields["entaug"]["sources"][0]]) for one in new]
    made.methods["mr"][3:3] = [
        AugmentedPair(
            pair.augmented.with_(id=f"{pair.augmented.id}-refused"), pair.source, (), "not consistent with the tagger"
        )
        for pair in made.methods["mr"][5:15]
    ]
    return made


def hard() -> AugmentedCorpus:
    """Nested, discontinuous, crossing, right to left, grafted, and text that looks like markup."""

    def made(source: Sentence, text: str, method: str, mentions: Any = None, **more: Any) -> AugmentedPair:
        own = {"method": method, "signature": f"{method}|p=0.3", "sources": [source.id]}
        new = Sentence(
            text.split(" "),
            source.mentions if mentions is None else mentions,
            id=f"{source.id}/{method}",
            **split_fields({"entaug": own}),
        )
        return AugmentedPair(new, source, **more)

    games = Sentence(
        "Both rowers trained on Lake Windermere for the 2020 and 2024 Olympic Games .".split(),
        [Mention("LOC", [(4, 6)]), Mention("EVENT", [(8, 9), (11, 13)]), Mention("EVENT", [(10, 13)])],
        id="games",
    )
    school = Sentence(
        "The University of Westhaven Medical School met .".split(),
        [Mention("ORG", [(1, 6)]), Mention("ORG", [(1, 4)]), Mention("LOC", [(3, 4)])],
        id="school",
    )
    hebrew = Sentence(
        "דוד בן גוריון נולד בפלונסק שבפולין ב 1886 .".split(),
        [Mention("PER", [(0, 3)]), Mention("LOC", [(4, 5)]), Mention("LOC", [(5, 6)])],
        id="hebrew",
        meta={"language": "he"},
    )
    crossing = Sentence("a b c d".split(), [Mention("X", [(0, 3)]), Mention("Y", [(1, 4)])], id="crossing")
    nasty = ["<script>window.hacked=1</script>", "</script>", "<!--", "\"q'", "😀", "a\u2028b", "&amp;"]
    evil = Sentence(nasty, [Mention("<b>X</b>", [(0, 1)])], id="<i>")
    image = "<img src=x onerror=window.hacked=2> </script> <!-- \"q' 😀 a\u2028b &amp;"
    keeps, gives = (
        Sentence("the very old car stopped".split(), id="k"),
        Sentence("a car of my aunt hid".split(), id="g"),
    )
    own = {"method": "cassi", "frame": 0, "out": [2, 4], "into": [1, 5], "graft": [2, 6], "j_score": 0.5}
    graft = AugmentedPair(
        Sentence("the very car of my aunt stopped".split(), **split_fields({"entaug": own})), keeps, (gives,)
    )
    return AugmentedCorpus(
        [games, school, hebrew, crossing, evil, keeps, gives],
        {
            "mr": [
                made(games, "Both rowers trained on Loch Ness for the 2020 and 2024 Olympic Games .", "mr"),
                made(school, "The University of Galway Medical School met .", "mr"),
                made(hebrew, "דוד בן גוריון נולד בקייב שבאוקראינה ב 1886 .", "mr"),
                made(crossing, "a b e d", "mr"),
            ],
            "cassi": [graft],
            "<b>evil</b>": [made(evil, image, "</script><script>window.hacked=3</script>", rejection="no <b>good</b>")],
        },
        ["a note with <b>markup</b>"],
    )


def many(count: int = 10_000) -> AugmentedCorpus:
    """As many pairs, of sentences of 8 to 45 words."""
    rng = random.Random(1)
    words = [f"word{i}" if i % 3 else f"longer{i}ness" for i in range(3000)]
    gold = []
    for i in range(count // 4):
        tokens = rng.choices(words, k=rng.randrange(8, 46))
        start = rng.randrange(len(tokens) - 2)
        gold.append(Sentence(tokens, [Mention(rng.choice(["PER", "LOC", "ORG"]), [(start, start + 2)])], id=f"g{i}"))
    made = AugmentedCorpus(gold)
    for number in range(count):
        source = gold[number % len(gold)]
        tokens = list(source.tokens)
        for _ in range(4):
            tokens[rng.randrange(len(tokens))] = rng.choice(words)
        method = f"m{number % 4}"
        own = {
            "method": method,
            "signature": f"{method}|p=0.3",
            "sources": [source.id],
            "lm_score": round(-9 * rng.random(), 3),
        }
        pair = AugmentedPair(
            Sentence(tokens, source.mentions, id=f"n{number}", **split_fields({"entaug": own})), source
        )
        made.methods.setdefault(method, []).append(pair)
    return made
