"""Unlabelled text for self-training: read, tokenised as the corpus, compared with held-out sentences."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from entaug.core.alignment import CorpusTokenizer, detokenize
from entaug.core.corpus import UnlabelledText
from entaug.core.data import Sentence
from entaug.core.languages import LanguageProfile, language_name
from entaug.core.spacing import PRINTED_FORMS
from entaug.errors import InputError, MissingExtraError, ParameterError
from entaug.files.streams import STDIN, as_path, rereadable_path
from entaug.formats import read_each
from entaug.formats.base import ReadReport
from entaug.formats.documents import Document
from entaug.formats.segmentation import SegmentationOptions, split_document
from entaug.formats.unlabelled import Tokenizer, read_unlabelled_file, with_distinct_ids

__all__ = ["corpus_tokenizer", "note_layouts", "read_unlabelled", "running_text_language"]

_SAMPLE = 300  # sentences by which text and corpus are compared
_COMMON_WORDS = 50  # the most frequent words of the corpus, most of them function words
_MIN_COMMON = 0.5  # share of the common words, relative to that in the corpus, below which the language is in doubt
_MIN_SCRIPT = 0.8  # share of letters in the script of the corpus
_MAX_PUNCTUATION = 0.05  # difference in the share of words that end with punctuation
_MIN_WORDS = 100  # fewer words show neither language nor tokenisation
_MARKS = ".,;:!?)"


def read_unlabelled(
    paths: Iterable[str | Path],
    gold: Sequence[Sentence],
    *,
    held_out: Iterable[str | Path] = (),
    drop_held_out: bool = False,
    language: str | None = None,
) -> UnlabelledText:
    """Read unlabelled text for `entaug.SelfTraining`.

    Files are plain text (one sentence a line, or running text), folders of it, one token a line, JSON lines with
    ``text`` or ``tokens``, or files in any labelled format, whose labels are dropped. Running text is split into
    sentences, and tokenised as the corpus is. Duplicates, and sentences of the corpus, are left out.

    Args:
        paths: the files and folders.
        gold: the training sentences.
        held_out: dev and test files, in any labelled format. The text must share no sentence with them.
        drop_held_out: leave such sentences out instead of raising an error.
        language: the language of running text, by whose rules spaCy finds the ends of sentences; None for that of the
            corpus, see `running_text_language`.

    Returns:
        The sentences, with notes on what was left out and on how the text differs from the corpus.

    Raises:
        ParameterError: no file is given.
        InputError: a file cannot be read, is a held-out file, shares sentences with one, or has no sentence besides
            those of the corpus.

    Example:
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp(), "news.txt")
        >>> _ = file.write_text("Ada sang in Rome, but nobody came. Ada left.")
        >>> text = read_unlabelled([file], [Sentence("Ada left .".split())])
        >>> [" ".join(sentence.tokens) for sentence in text]
        ['Ada sang in Rome , but nobody came .']
        >>> text.notes
        ('plain text was read as running text', '1 sentence of the unlabelled text is a training sentence')
    """
    files = [as_path(path) for path in paths]
    if not files:
        raise ParameterError("no unlabelled file is given", remedy="name one with --unlabelled")
    others = [as_path(path) for path in held_out]
    _check_other_files(files, others)
    language = language or running_text_language(gold)
    tokenize = corpus_tokenizer(gold, language)
    sentences: list[Sentence] = []
    layouts: Counter[str] = Counter()
    for file in files:
        with rereadable_path(file) as path:
            sentences += read_unlabelled_file(path, tokenize, language, layouts)
    sentences = list(with_distinct_ids(sentences))
    source = ", ".join(map(str, files))
    notes = note_layouts(layouts)
    known = {_content(sentence) for sentence in gold}
    distinct = {_content(sentence): sentence for sentence in reversed(sentences)}
    new = {content: sentence for content, sentence in reversed(distinct.items()) if content not in known}
    _note(notes, len(sentences) - len(distinct), "is a duplicate", "are duplicates")
    _note(notes, len(distinct) - len(new), "is a training sentence", "are training sentences")
    new = _without_held_out(new, others, notes, drop=drop_held_out)
    if not new:
        remedy = "name another text"
        raise InputError("every sentence is a training sentence or a held-out one", path=source, remedy=remedy)
    kept = list(new.values())
    return UnlabelledText(kept, source, [*notes, *_differences(kept, gold)])


def note_layouts(layouts: Mapping[str, int]) -> list[str]:
    """Tell the user how plain text was read, because its layout is detected."""
    if not layouts:
        return []
    shown = list(layouts)
    if len(shown) > 1:
        shown = [f"{layout} ({n:,} {'file' if n == 1 else 'files'})" for layout, n in layouts.items()]
    return [f"plain text was read as {', '.join(shown)}"]


def _note(notes: list[str], count: int, one: str, several: str) -> None:
    if count:
        what = f"sentence of the unlabelled text {one}" if count == 1 else f"sentences of the unlabelled text {several}"
        notes.append(f"{count:,} {what}")


def _content(sentence: Sentence) -> str:
    """The characters of a sentence, by which it is found whatever its tokens and casing."""
    return "".join(PRINTED_FORMS.get(token, token) for token in sentence.tokens).casefold()


# ------------------------------------------------------------------------------------------------------------- held out


def _check_other_files(files: Sequence[Path], held_out: Sequence[Path]) -> None:
    """Check that no file is given as unlabelled and as held-out text."""
    for file in files:
        for other in held_out:
            if str(file) != STDIN and file.exists() and other.exists() and file.samefile(other):
                remedy = "dev and test sentences must not be used; name another text"
                raise InputError("is also a held-out file", path=str(file), remedy=remedy)


def _without_held_out(
    new: dict[str, Sentence], held_out: Sequence[Path], notes: list[str], *, drop: bool
) -> dict[str, Sentence]:
    for path, corpus in zip(held_out, read_each(held_out, beside=True, repair=True), strict=True):
        shared = [content for content in map(_content, corpus) if content in new]
        shared = list(dict.fromkeys(shared))
        if shared and not drop:
            example = " ".join(new[shared[0]].tokens)[:60]
            count = f"{len(shared):,} sentences" if len(shared) > 1 else "1 sentence"
            raise InputError(
                f"{count} of the unlabelled text {'stand' if len(shared) > 1 else 'stands'} in this held-out file too, "
                f"one is {example!r}",
                path=str(path),
                remedy="remove them from the text, or pass --drop-held-out to leave them out",
            )
        _note(notes, len(shared), f"is in {path.name} and left out", f"are in {path.name} and left out")
        new = {content: sentence for content, sentence in new.items() if content not in set(shared)}
    return new


# --------------------------------------------------------------------------------------------------------- tokenisation


def running_text_language(gold: Sequence[Sentence]) -> str:
    """Return the language of a corpus, which running text of the same kind is taken to be in."""
    language = LanguageProfile(gold).language
    if language is not None:
        # Rules may be missing, or the library that they need, as for Korean.
        with contextlib.suppress(ParameterError, MissingExtraError):
            split_document(Document("a"), SegmentationOptions(language=language), ReadReport())
            return language
    return "en"


def corpus_tokenizer(gold: Sequence[Sentence], language: str) -> Tokenizer:
    """Choose the tokeniser that gives most sentences of a corpus their own tokens again."""

    def by_spacy(text: str) -> Sequence[str]:
        [sentence] = split_document(Document(text), SegmentationOptions(language=language), ReadReport())
        return sentence.tokens

    if not gold:
        return by_spacy
    sample = gold[:: max(1, len(gold) // _SAMPLE)][:_SAMPLE]
    learned = CorpusTokenizer(sentence.tokens for sentence in gold)
    candidates: list[Tokenizer] = [learned, by_spacy]
    return max(candidates, key=lambda tokenize: sum(_is_reproduced(sentence, tokenize) for sentence in sample))


def _is_reproduced(sentence: Sentence, tokenize: Tokenizer) -> bool:
    wanted = tuple(PRINTED_FORMS.get(token, token) for token in sentence.tokens)
    text = detokenize(sentence.tokens, sentence.spaces)
    return bool(text) and tuple(tokenize(text)) == wanted


# ---------------------------------------------------------------------------------------------------------- differences


def _differences(text: Sequence[Sentence], gold: Sequence[Sentence]) -> list[str]:
    """Return warnings about differences between text and corpus, by measures that need no model."""
    sample = text[:: max(1, len(text) // _SAMPLE)][:_SAMPLE]
    ours, theirs = LanguageProfile(gold), LanguageProfile(sample)
    if min(ours.num_words, theirs.num_words) < _MIN_WORDS:
        return []
    script = ours.script
    usual, share = ours.script_share([script]), theirs.script_share([script])
    if script and share < _MIN_SCRIPT * usual:
        what = f"only {share:.0%} of the letters of the unlabelled text are {script.title()}"
        return [f"{what}, the script of {usual:.0%} of those of the corpus: is it in another language?"]
    notes = []
    common = {word for word, _ in ours.words.most_common(_COMMON_WORDS)}
    known, other_known = ours.share(common), theirs.share(common)
    if other_known < _MIN_COMMON * known:
        question = "is it in another language or of another kind?"
        if ours.language and theirs.language and theirs.mismatch([ours.language]):
            names = (language_name(theirs.language), language_name(ours.language))
            question = "it seems to be in another language: {}, and the corpus in {}".format(*names)
        notes.append(
            f"the {len(common)} most frequent words of the corpus are {known:.0%} of its words, but {other_known:.0%} "
            f"of the unlabelled text: {question}"
        )
    glued, other_glued = (
        sum(len(token) > 1 and token[-1] in _MARKS and token[0].isalpha() for token in tokens) / max(1, len(tokens))
        for tokens in ([token for sentence in part for token in sentence.tokens] for part in (gold, sample))
    )
    if abs(glued - other_glued) > _MAX_PUNCTUATION:
        notes.append(
            f"{other_glued:.0%} of the tokens of the unlabelled text are words with punctuation at their end, and "
            f"{glued:.0%} of the corpus: is it tokenised in another way?"
        )
    return notes
