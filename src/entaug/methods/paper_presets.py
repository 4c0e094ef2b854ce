"""The presets of the papers: what each paper says, section by section, and what is different here on purpose.

Values that a paper leaves open, or gives as a grid, say so in their comment. From this module come the documentation
of presets and the output of ``entaug list methods NAME``. One file because it is one table.
"""

from __future__ import annotations

from entaug.config.presets import Difference, Preset, Setting

__all__ = [
    "ACLM_PAPER",
    "BT_PAPER",
    "CASSI_PAPER",
    "CROP_PAPER",
    "CR_PAPER",
    "DAGA_PAPER",
    "ENTDA_PAPER",
    "LM_PAPER",
    "MELM_PAPER",
    "MR_PAPER",
    "MULDA_PAPER",
    "ROTATE_PAPER",
    "SR_PAPER",
]

_NO_GUARD = Setting(False, "not in the paper", "the label guard is ours")
_ONCE = "each text is generated once; what is dropped is not replaced"
_WHOLE = "all weights are trained, also on a CPU"
_ALL_EPOCHS = "no sentence is held out, and training does not stop early"
_OPTIMIZER = Difference(
    "Adam or AdamW, without a schedule",
    "experimental setup",
    "AdamW with weight decay 0.01, warm-up over a tenth of the steps and linear decay, as in most code for "
    "fine-tuning: the papers give no schedule, and a constant rate is less stable with few sentences",
)
_NO_DEV = Difference(
    "selection on the dev set",
    "experimental setup",
    "a method sees the training sentences only, so that scores on dev stay valid; `entaug experiment` chooses amounts "
    "and grids of parameters on dev, outside of the method",
)

ACLM_PAPER = Preset(
    "Ghosh et al. 2023",
    {
        "copies": Setting(5, "4.2, appendix A", "R, the number of augmentation rounds"),
        "max_attempts": Setting(1, "3.3", _ONCE),
        "generator": Setting("facebook/mbart-large-50", "4.2"),
        "epochs": Setting(10, "4.2"),
        "batch_size": Setting(32, "4.2"),
        "learning_rate": Setting(1e-5, "4.2", "5.6e-5 in the code of the authors"),
        "validation_fraction": Setting(0.0, "4.2", _ALL_EPOCHS),
        "adapters": Setting(False, "4.2", _WHOLE),
        "keyword_ratio": Setting(0.3, "4.2, appendix A"),
        "num_attention_layers": Setting(4, "3.1, appendix A", "layers 8 to 11 of 24 in the code of the authors"),
        "mask_ratio": Setting(0.5, "4.2", "the standard deviation is one keyword (3.1)"),
        "mixner_probability": Setting(
            0.4, "3.3, 4.2", "mean 0.5, threshold 0.7, standard deviation not given; two rounds of five in the code"
        ),
        "num_neighbors": Setting(2, "3.3", "k is not given; 2 in the code of the authors"),
        "decoding": Setting("sample", "3.3"),
        "num_beams": Setting(5, "3.3", "not given; 5 in the code of the authors"),
        "top_k": Setting(50, "3.3", "not given; 50 in the code of the authors"),
        "temperature": Setting(1.0, "3.3", "not given; the default of the library"),
        "constrained": Setting(False, "3.3"),
        "mentions": Setting("labelled", "3.3, figure 3", "examples in the paper change and add mentions"),
        "unlisted_mentions": Setting("keep", "3.3.1", "texts are not searched for mentions without labels"),
        "guard": _NO_GUARD,
        "stop_words": Setting(
            "en+bn+hi+de+es+ko+nl+ru+tr+zh", "3.1", "lists not given; in the code those of all ten languages are joined"
        ),
        "tagger": Setting(
            "linear:encoder=FacebookAI/xlm-roberta-large;epochs=100;batch_size=16",
            "3.1, 4.2",
            "the learning rate of 1e-2 that is printed does not train this encoder; ours is 1.9e-5",
        ),
        "encoder": Setting(
            "sentence-transformers/distiluse-base-multilingual-cased-v2",
            "3.3",
            "a multilingual Sentence-BERT; this one in the code of the authors",
        ),
    },
    (
        Difference(
            "sampling within beam search",
            "3.3",
            "the likeliest of `num_beams` independent samples: sampled beams depend on the rest of the batch",
        ),
        Difference("the best epoch of the tagger on dev", "4.2", "the last epoch, see the next line"),
        _NO_DEV,
        _OPTIMIZER,
    ),
)

BT_PAPER = Preset(
    "Yaseen and Langer 2021",
    {
        "p": Setting(0.5, "4.4", "tuned on dev over 0.1, 0.3, 0.5, 0.7; see `grid` in plans of experiments"),
        "copies": Setting(3, "4.4", "tuned on dev over 1, 3, 6, 10"),
        "translator": Setting("facebook/wmt19-en-de>facebook/wmt19-de-en", "4.3"),
        "min_tokens": Setting(3, "3"),
        "do_sample": Setting(False, "4.3", "decoding not given; beam search is the default of the models"),
        "whole_sentence": Setting(False, "3"),
        "check_translations": Setting(False, "3", "all translations are taken"),
        "guard": _NO_GUARD,
    },
    (
        Difference(
            "segments that begin or end with punctuation are translated with it",
            "3",
            "punctuation at the ends and the case of the first word are kept: translators of sentences add both",
        ),
        Difference("a draw for each segment", "3", "if none is drawn, one is: the sentence would be a copy"),
        _NO_DEV,
    ),
)

CASSI_PAPER = Preset(
    "Surana et al. 2023",
    {
        "top_k": Setting(5, "3.2.1"),
        "pairing": Setting("bertscore", "2.1"),
        "scorer": Setting("masked", "2.3.1"),
        "selection": Setting("jscore", "2.3.2"),
        "exact": Setting(True, "2.3.1", "the estimates that save time were fitted to another model"),
        "min_tokens": Setting(1, "2.2", "6 in the code of the authors"),
        "encoder_layer": Setting(9, "3.2.1", "not given; the default of BERTScore for this model"),
        "include_punctuation": Setting(True, "2.1"),
        "split_mentions": Setting(True, "2.4"),
        "same_phrase_type": Setting(False, "2.2"),
        "normalize_boundaries": Setting(False, "2.2"),
        "same_number": Setting(False, "2.2"),
        "skip_headlines": Setting(False, "2.2"),
        "guard": _NO_GUARD,
        "encoder": Setting("FacebookAI/xlm-roberta-base", "3.2.1"),
        "masked_lm": Setting("FacebookAI/xlm-roberta-base", "3.2.1"),
        "dependency_parser": Setting(
            "en_core_web_trf",
            "3.2.1",
            "for English; else de_dep_news_trf, es_dep_news_trf, nl_core_news_lg, zh_core_web_trf, hr_core_news_lg",
        ),
    },
    (
        Difference(
            "pairs of the published code",
            "2.1",
            "the index of the code is off by one; here pairs are as the paper says (`pairing=off-by-one`: the code)",
        ),
        Difference(
            "N to 10N augmentations, the amount chosen on dev",
            "3.2.2",
            "`copies`, and `patience` in plans of experiments",
        ),
    ),
)

CR_PAPER = Preset(
    "Sutiono and Hahn-Powell 2022",
    {
        "num_replacements": Setting(1, "4.3", "p; 1, 3 and 5 were tried, the best is not given"),
        "copies": Setting(5, "4.3", "5, 10 and 20 were tried (table 3)"),
        "categories": Setting("VP", "4.3, table 2", "one category at a time: NP, VP, ADJP, ADVP, PP; VP was best"),
        "allow_whole_sentence": Setting(True, "3.4"),
        "require_mention": Setting(False, "3.4", "of the replaced phrase only"),
        "normalize_boundaries": Setting(False, "3.4"),
        "same_form": Setting(False, "3.4", "the same category is enough"),
        "skip_headlines": Setting(False, "3.4"),
        "guard": _NO_GUARD,
        "constituency_parser": Setting("stanza:en", "3.4"),
    },
    (
        Difference(
            "any phrase of the corpus with the same category",
            "3.4",
            "never one of the same sentence, nor one with the same words and mentions: the result would be a copy",
        ),
    ),
)

CROP_PAPER = Preset(
    "Şahin and Steedman 2018; Yaseen and Langer 2021",
    {
        "min_roles": Setting(1, "Yaseen and Langer 2021, 2 (e)"),
        "guard": _NO_GUARD,
        "dependency_parser": Setting("en_core_web_trf", "2 (e)", "a dependency tree is required, no parser is named"),
    },
    (
        Difference(
            "crops that remove dependency links",
            "2 (e)",
            "a mention is kept or dropped whole; no figures for named entities are given",
        ),
    ),
)

ROTATE_PAPER = Preset(
    "Şahin and Steedman 2018; Yaseen and Langer 2021",
    {
        "guard": _NO_GUARD,
        "dependency_parser": Setting(
            "en_core_web_trf",
            "Yaseen and Langer 2021, 2 (f)",
            "a dependency tree is required, no parser is named",
        ),
    },
    (
        Difference(
            "tree fragments moved around the root",
            "2 (f)",
            "orders that split a mention are left out; no figures for named entities are given",
        ),
    ),
)

DAGA_PAPER = Preset(
    "Ding et al. 2020",
    {
        "epochs": Setting(30, "code of the authors"),
        "batch_size": Setting(32, "code of the authors"),
        "patience": Setting(3, "code of the authors", "a third epoch without a lower perplexity stops the training"),
        "validation_fraction": Setting(0.1, "not in the paper", "in place of the dev set, see below"),
        "temperature": Setting(1.0, "code of the authors", "random sampling"),
        "unknown_tokens": Setting("keep", "Ding et al. 2020", "sentences with placeholders only are dropped"),
        "unlisted_mentions": Setting("keep", "Ding et al. 2020"),
        "guard": _NO_GUARD,
        "token_lm": Setting("lstm", "Ding et al. 2020", "embeddings of 300, one layer of 512, dropout 0.5"),
    },
    (
        Difference(
            "SGD with rate 1, halved when the perplexity on dev does not fall",
            "code of the authors",
            "AdamW with rate 2e-3 and linear decay, which needs no dev set",
        ),
        _NO_DEV,
    ),
)

ENTDA_PAPER = Preset(
    "Hu et al. 2023",
    {
        "copies": Setting(3, "5.4", "each list generates three texts"),
        "max_attempts": Setting(1, "4.3", _ONCE),
        "operation": Setting("all", "5.3"),
        "generator": Setting("google-t5/t5-base", "5.4"),
        "epochs": Setting(3, "5.4"),
        "batch_size": Setting(5, "5.4"),
        "learning_rate": Setting(5e-5, "5.4", "illegible in our copy of the paper; the usual rate"),
        "validation_fraction": Setting(0.0, "5.4", _ALL_EPOCHS),
        "adapters": Setting(False, "5.4", _WHOLE),
        "max_new_tokens": Setting(512, "5.4"),
        "decoding": Setting("diverse_beam_search", "4.2, 5.4"),
        "num_beams": Setting(3, "5.4"),
        "diversity_penalty": Setting(10.0, "5.4, appendix C"),
        "constrained": Setting(False, "4.2"),
        "unlisted_mentions": Setting("keep", "4.3", "only the listed mentions are matched"),
        "max_similarity": Setting(1.0, "4.3", "texts are not compared with their source"),
        "guard": _NO_GUARD,
    },
    (
        Difference(
            "exact match of mentions",
            "4.3",
            "on tokens, each occurrence is used once, and a text in which a mention can be located in two ways is "
            "dropped",
        ),
        _OPTIMIZER,
    ),
)

LM_PAPER = Preset(
    "Sutiono and Hahn-Powell 2022",
    {
        "num_replacements": Setting(3, "4.3", "n; 1, 3 and 5 were tried, the best is not given"),
        "copies": Setting(5, "4.3", "5, 10 and 20 were tried (table 3)"),
        "masked_lm": Setting("allenai/scibert_scivocab_uncased", "3.3", "cased or uncased is not given"),
        "min_p": Setting(0.0, "3.3"),
        "single_pass": Setting(True, "3.3", "the selected tokens are masked together"),
        "stop_words": Setting(None, "3.3"),
        "replace_punctuation": Setting(True, "3.3", "any token outside mentions may be selected"),
        "min_similarity": Setting(None, "3.3", "a threshold makes Filtered BERT (Kang et al. 2021)"),
        "guard": _NO_GUARD,
    },
    (
        Difference(
            "replacements that the model generates",
            "3.3",
            "a whole word is drawn from the ten likeliest (`top_k`), never the original: with the likeliest alone, as "
            "in the code, all sentences with the same positions would be equal",
        ),
    ),
)

MELM_PAPER = Preset(
    "Zhou et al. 2022",
    {
        "copies": Setting(3, "Zhou et al. 2022", "R, the number of rounds; also 3 in Hu et al. 2023 (5.4)"),
        "max_attempts": Setting(1, "Zhou et al. 2022", _ONCE),
        "masked_lm": Setting(
            "FacebookAI/xlm-roberta-base", "code of the authors", "xlm-roberta-large in Hu et al. (5.4)"
        ),
        "epochs": Setting(20, "code of the authors"),
        "batch_size": Setting(30, "Zhou et al. 2022", "32 in the code of the authors"),
        "learning_rate": Setting(1e-5, "code of the authors"),
        "validation_fraction": Setting(0.0, "Zhou et al. 2022", _ALL_EPOCHS),
        "adapters": Setting(False, "Zhou et al. 2022", _WHOLE),
        "train_mask_ratio": Setting(0.7, "code of the authors"),
        "mask_ratio": Setting(0.5, "code of the authors"),
        "mask_std": Setting(1.0, "code of the authors"),
        "min_rank": Setting(2, "code of the authors", "the likeliest prediction is skipped"),
        "max_rank": Setting(5, "code of the authors"),
        "stop_words": Setting(None, "Zhou et al. 2022"),
        "filters": Setting(
            "consistency:tagger=linear:encoder=FacebookAI/xlm-roberta-base",
            "Zhou et al. 2022",
            "a tagger trained on gold must predict the labels of the sentence",
        ),
        "guard": _NO_GUARD,
    },
    (
        Difference(
            "sub-words are masked and replaced",
            "Zhou et al. 2022",
            "whole words: predicted sub-words rarely form a word",
        ),
        _NO_DEV,
        _OPTIMIZER,
    ),
)

MR_PAPER = Preset(
    "Dai and Adel 2020",
    {
        "p": Setting(0.3, "Sutiono and Hahn-Powell 2022, 4.3"),
        "copies": Setting(1, "Sutiono and Hahn-Powell 2022, 4.3"),
        "donors": Setting("any", "Dai and Adel 2020"),
        "adjust_case": Setting(False, "Dai and Adel 2020"),
        "replace_nested": Setting(False, "Dai and Adel 2020", "flat mentions only"),
        "guard": _NO_GUARD,
    },
    (Difference("a draw for each mention", "Dai and Adel 2020", "a mention is never replaced by itself"),),
)

MULDA_PAPER = Preset(
    "Liu et al. 2021",
    {
        "generator": Setting("facebook/mbart-large-50", "Ghosh et al. 2023, 4.3", "mBART in Liu et al."),
        "epochs": Setting(10, "not in the papers at hand", "as ACLM, with which it is compared"),
        "batch_size": Setting(16, "not in the papers at hand"),
        "learning_rate": Setting(1e-5, "not in the papers at hand", "as ACLM, with which it is compared"),
        "validation_fraction": Setting(0.0, "Liu et al. 2021", _ALL_EPOCHS),
        "adapters": Setting(False, "Liu et al. 2021", _WHOLE),
        "constrained": Setting(False, "Liu et al. 2021"),
        "temperature": Setting(1.0, "Liu et al. 2021", "random sampling"),
        "unlisted_mentions": Setting("keep", "Liu et al. 2021"),
        "guard": _NO_GUARD,
    },
    (
        Difference(
            "translated training sentences",
            "Liu et al. 2021",
            "not part of the method: give sentences in several languages, with a field `language`",
        ),
        _OPTIMIZER,
    ),
)

SR_PAPER = Preset(
    "Dai and Adel 2020",
    {
        "p": Setting(0.3, "Sutiono and Hahn-Powell 2022, 4.3"),
        "copies": Setting(1, "Sutiono and Hahn-Powell 2022, 4.3"),
        "senses": Setting("any", "Dai and Adel 2020", "any sense of any part of speech, not inflected"),
        "lexicon": Setting("wordnet-any", "Sutiono and Hahn-Powell 2022, 3.1", "WordNet with all senses"),
        "dependency_parser": Setting(None, "Dai and Adel 2020"),
        "stop_words": Setting("en", "Dai and Adel 2020"),
        "inside_mentions": Setting(True, "Sutiono and Hahn-Powell 2022, 3.1"),
        "skip_headlines": Setting(False, "Dai and Adel 2020"),
        "guard": _NO_GUARD,
    },
    (
        Difference(
            "a draw for each token",
            "Dai and Adel 2020",
            "for each token that has a synonym; if none is drawn, one is: the sentence would be a copy",
        ),
    ),
)
