"""Reading of unlabelled text: forms of files, sentences and tokens, duplicates, held-out sentences, warnings."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("spacy")  # tokenises plain text

import entaug
from entaug import Mention, Sentence, read_unlabelled
from entaug.core.corpus import UnlabelledText
from entaug.errors import EntaugError, InputError, ParameterError

GOLD = [
    Sentence("He said , `` It 's a well-known song . ''".split(), [Mention("X", [(0, 1)])]),
    Sentence("Ada did n't leave the U.S. ( she stayed ) .".split()),
]


def words(text: UnlabelledText) -> list[str]:
    return [" ".join(sentence.tokens) for sentence in text]


def read_text(folder: Path, content: str, name: str = "a.txt") -> UnlabelledText:
    (folder / name).write_text(content, "utf-8")
    return read_unlabelled([folder / name], GOLD)


def test_running_text_is_cut_and_tokenised_as_the_corpus(tmp_path: Path) -> None:
    content = "Bo (a boy) didn't go to the U.S. Navy. It's late, Smith et al. say so!\n\nA new paragraph.\n"
    text = read_text(tmp_path, content)
    assert words(text) == [
        "Bo ( a boy ) did n't go to the U.S. Navy .",
        "It 's late , Smith et al . say so !",
        "A new paragraph .",
    ]
    assert [sentence.id for sentence in text] == ["a.txt:1", "a.txt:1.2", "a.txt:3"]
    assert text[0].text == "Bo (a boy) didn't go to the U.S. Navy."


def test_the_rules_are_those_of_the_language_of_the_corpus(tmp_path: Path) -> None:
    gold = [Sentence("Der Hund und die Katze sind nicht in dem Haus .".split())] * 3
    (tmp_path / "a.txt").write_text("Hr. Maier bzw. Frau Kunz ist z.B. Arzt. Sie ging nach Hause.")
    expected = ["Hr . Maier bzw . Frau Kunz ist z.B. Arzt .", "Sie ging nach Hause ."]
    assert words(read_unlabelled([tmp_path / "a.txt"], gold)) == expected
    assert words(read_unlabelled([tmp_path / "a.txt"], gold, language="en")) != expected


def test_text_of_any_extension(tmp_path: Path) -> None:
    content = "Bo left. Ada stayed.\nNobody knew why they had done so.\n"
    for name in ("a.log", "a.rst", "report.2024", "a"):
        assert words(read_text(tmp_path, content, name)) == [
            "Bo left .",
            "Ada stayed .",
            "Nobody knew why they had done so .",
        ]
    for name in ("a.html", "a.csv"):
        with pytest.raises(InputError, match=r"files are not read; save its text as \.txt"):
            read_text(tmp_path, content, name)


def test_numbered_tokens(tmp_path: Path) -> None:
    rows = ["# text = It didn't", "1\tIt", "2-3\tdidn't", "2\tdid", "3\tn't", "3.1\tknow", "", "1\tBo"]
    assert words(read_text(tmp_path, "\n".join(rows) + "\n", "a.conllu")) == ["It did n't", "Bo"]
    assert words(read_text(tmp_path, "-DOCSTART-\n\nBo\nleft\n", "a.conll")) == ["Bo left"]


def test_tasks_of_label_studio_and_json_without_an_extension(tmp_path: Path) -> None:
    text = read_text(tmp_path, '[{"id": 7, "data": {"text": "Bo left. Ada stayed."}}]', "a.json")
    assert [(" ".join(s.tokens), s.id) for s in text] == [("Bo left .", "7"), ("Ada stayed .", "7.2")]
    assert words(read_text(tmp_path, '{"text": "Bo left."}\n', "stdin")) == ["Bo left ."]


def test_wrapped_lines_are_joined(tmp_path: Path) -> None:
    content = "This text was\nwrapped at a\nmargin by some\nprogram. It goes\non.\n\nAnother one.\n"
    assert words(read_text(tmp_path, content)) == [
        "This text was wrapped at a margin by some program .",
        "It goes on .",
        "Another one .",
    ]


def test_one_sentence_a_line_stays_so(tmp_path: Path) -> None:
    lines = ["First line without an end", "Second line, with one.", "And a third"]
    assert words(read_text(tmp_path, "\n".join(lines))) == [
        "First line without an end",
        "Second line , with one .",
        "And a third",
    ]


def test_tokenised_text_stays_so(tmp_path: Path) -> None:
    content = "He said , `` No . ''\nAnd the U.S. left , she said .\nWho 's there ? Me .\n"
    assert words(read_text(tmp_path, content)) == content.splitlines()


def test_tokens_one_a_line(tmp_path: Path) -> None:
    wanted = ["He said no .", "She left ."]
    assert words(read_text(tmp_path, "He\nsaid\nno\n.\n\nShe\nleft\n.\n")) == wanted
    assert words(read_text(tmp_path, "He\nsaid\nno\n.\n\nShe\nleft\n.\n", "a.conll")) == wanted
    rows = "# sent_id = 1\n1\tHe\the\n2\tsaid\tsay\n3\tno\tno\n4\t.\t.\n\n1\tShe\tshe\n2\tleft\tleave\n3\t.\t.\n"
    text = read_text(tmp_path, rows, "a.conllu")
    assert words(text) == wanted
    assert text[1].id == "a.conllu:7"


def test_labels_are_dropped(tmp_path: Path) -> None:
    assert words(read_text(tmp_path, "Bo B-PER\nleft O\n\nSo O\nwhat O\n")) == ["Bo left", "So what"]
    text = read_text(
        tmp_path, '{"tokens": ["Bo", "left"], "entities": [{"start": 0, "end": 1, "type": "PER"}]}\n', "a.jsonl"
    )
    assert words(text) == ["Bo left"]
    assert not text[0].mentions
    entaug.write([Sentence(["Bo", "left"], [Mention("PER", [(0, 1)])])], tmp_path / "b.json", format="label-studio")
    assert words(read_unlabelled([tmp_path / "b.json"], GOLD)) == ["Bo left"]
    with warnings.catch_warnings(action="error"):  # nothing is said of labels in a second column, or how to read them
        rows = "Oslos\tB-ORG\tB-LOC\nRåd\tI-ORG\tO\nkom\tO\tO\n\n"
        assert words(read_text(tmp_path, rows, "c.conll")) == ["Oslos Råd kom"]


def test_json_lines_with_text_or_tokens(tmp_path: Path) -> None:
    content = (
        '{"text": "He isn\'t here. She is.", "label": [[0, 2, "PER"]]}\n\n'
        '{"id": 7, "tokens": [{"text": "A"}, {"text": "b"}]}\n'
    )
    text = read_text(tmp_path, content, "a.jsonl")
    assert words(text) == ["He is n't here .", "She is .", "A b"]
    assert text[2].id == "7"
    for line, message in (
        ('{"text": 3}', "a.jsonl:1: no string 'text'"),
        ("[1]", "a.jsonl"),
        ('{"tokens": ["a", 3]}', "a.jsonl:1: .*string"),
        ('{"text": "a"', "a.jsonl:1"),
    ):
        with pytest.raises(InputError, match=message):
            read_text(tmp_path, line + "\n", "a.jsonl")


def test_folders_and_gzip(tmp_path: Path) -> None:
    (tmp_path / "texts" / "inner").mkdir(parents=True)
    (tmp_path / "texts" / "b10.txt").write_text("Ten.")
    (tmp_path / "texts" / "b9.txt").write_text("Nine.")
    (tmp_path / "texts" / "inner" / "c.txt").write_text("Inner.")
    (tmp_path / "texts" / "other.csv").write_text("not read")
    text = read_unlabelled([tmp_path / "texts"], GOLD)
    assert words(text) == ["Nine .", "Ten .", "Inner ."]
    assert text[2].id == "inner/c.txt:1"
    with gzip.open(tmp_path / "z.txt.gz", "wt") as stream:
        stream.write("Packed text.\n")
    assert words(read_unlabelled([tmp_path / "z.txt.gz"], GOLD)) == ["Packed text ."]
    entaug.write([Sentence(["Bo", "left"], [Mention("PER", [(0, 1)])])], tmp_path / "brat", format="brat")
    assert words(read_unlabelled([tmp_path / "brat"], GOLD)) == ["Bo left"]


def test_characters_of_scripts_without_spaces(tmp_path: Path) -> None:
    gold = [Sentence([*"他住在北京。"]), Sentence([*"我也是。"])]
    (tmp_path / "a.txt").write_text("他走了。她来了。\n", "utf-8")
    assert words(read_unlabelled([tmp_path / "a.txt"], gold)) == ["他 走 了 。", "她 来 了 。"]
    (tmp_path / "b.txt").write_text("他说：“好！”她走了？“不。”\n「はい。」と言った。\n", "utf-8")  # noqa: RUF001
    wanted = ["他 说 ： “ 好 ！ ”", "她 走 了 ？", "“ 不 。 ”", "「 は い 。 」 と 言 っ た 。"]  # noqa: RUF001
    assert words(read_unlabelled([tmp_path / "b.txt"], gold)) == wanted


def test_text_that_is_not_divided_into_words_as_the_corpus_is_noted(tmp_path: Path) -> None:
    gold = [Sentence("他 昨天 访问 了 北京 大学 。".split()), Sentence("สมชาย อยู่ ที่ ภูเก็ต".split())]
    content = "他走了，她昨天来了。她访问了北京大学的老师。\n我不住在那里。\n他说他明天也不来。我走。\n"  # noqa: RUF001
    (tmp_path / "a.txt").write_text(content, "utf-8")
    notes = read_unlabelled([tmp_path / "a.txt"], gold).notes
    assert any("divide the text into words as the corpus is" in note for note in notes)
    (tmp_path / "b.txt").write_text("他 走 了 ， 她 昨天 来 了 。\n她 访问 了 北京 大学 的 老师 。\n", "utf-8")  # noqa: RUF001
    assert not any("divide" in note for note in read_unlabelled([tmp_path / "b.txt"], gold).notes)


def test_duplicates_and_training_sentences_are_counted(tmp_path: Path) -> None:
    text = read_text(tmp_path, "ADA DIDN'T leave the U.S. (she stayed).\nBo left.\nBo  left .\nSo what.\n")
    assert words(text) == ["Bo left .", "So what ."]
    assert text.notes == (
        "plain text was read as one sentence a line",
        "1 sentence of the unlabelled text is a duplicate",
        "1 sentence of the unlabelled text is a training sentence",
    )


def test_the_layouts_of_plain_text_are_told(tmp_path: Path) -> None:
    contents = {
        "running.txt": "He came. She went.\nNobody stayed here. They slept.\n",
        "running.md": "He sang. She wept.\nNobody laughed here. They ate.\n",
        "lines.txt": "One came.\nTwo went.\n",
        "tokens.txt": "Bo\nslept\nwell\n\nJo\nsat\nup\n",
        "tokenised.txt": "It was late , but warm .\nWho knows ?\n",
        "rows.conll": "Ada\tB-PER\nleft\tO\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    text = read_unlabelled([tmp_path / name for name in contents], GOLD)
    [note] = text.notes
    assert note == (
        "plain text was read as running text (2 files), one sentence a line (1 file), one token a line (1 file), "
        "one tokenised sentence a line (1 file)"
    )
    assert read_unlabelled([tmp_path / "rows.conll"], GOLD).notes == ()


def test_held_out_sentences_are_refused_with_their_number(tmp_path: Path) -> None:
    test = tmp_path / "test.conll"
    entaug.write([Sentence("Bo left .".split()), Sentence("So what ?".split())], test)
    (tmp_path / "a.txt").write_text("Bo left.\nAnd more.\nSo what?\n")
    with pytest.raises(InputError, match=r"test.conll: 2 sentences of the unlabelled text .* one is 'Bo left .'"):
        read_unlabelled([tmp_path / "a.txt"], GOLD, held_out=[test])
    text = read_unlabelled([tmp_path / "a.txt"], GOLD, held_out=[test], drop_held_out=True)
    assert words(text) == ["And more ."]
    assert text.notes[1:] == ("2 sentences of the unlabelled text are in test.conll and left out",)
    with pytest.raises(InputError, match="is also a held-out file"):
        read_unlabelled([tmp_path / ".." / tmp_path.name / "test.conll"], GOLD, held_out=[test], drop_held_out=True)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="no unlabelled file"):
        read_unlabelled([], GOLD)
    for content in ("", "\n \n"):
        with pytest.raises(InputError, match="holds no sentence"):
            read_text(tmp_path, content)
    with pytest.raises(InputError, match="every sentence is"):
        read_text(tmp_path, "Ada didn't leave the U.S. (she stayed).")
    with pytest.raises(InputError, match="nowhere"):
        read_unlabelled([tmp_path / "nowhere.txt"], GOLD)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        read_unlabelled([tmp_path / "empty"], GOLD)
    with pytest.raises(InputError, match="NUL"):
        read_text(tmp_path, "a\0b c\n")
    (tmp_path / "latin.txt").write_bytes("Größe und Maß.\n".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8"):
        read_unlabelled([tmp_path / "latin.txt"], GOLD)


def test_a_row_without_a_token_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.conll:2: no token in column 1"):
        read_text(tmp_path, "Ada\tx\n\tAda\n", "a.conll")


def test_other_languages_and_scripts_are_told(tmp_path: Path) -> None:
    english = "the man who came to the house said that it was not the one that he had seen in the town".split()
    gold = [Sentence([*english, ",", "or", "so", "."]) for _ in range(20)]
    others = {
        "russian.txt": "мужчина который пришел домой сказал что это был не тот которого он видел в городе " * 10,
        "dutch.txt": "de man die naar het huis kwam zei dat het niet dat was dat hij in de stad had gezien " * 10,
    }
    for name, content in others.items():
        (tmp_path / name).write_text(content)
        notes = read_unlabelled([tmp_path / name], gold).notes
        assert any("another language" in note for note in notes), name
    (tmp_path / "same.txt").write_text(" ".join([*reversed(english), "."] * 10))
    layout = "plain text was read as one tokenised sentence a line"
    assert read_unlabelled([tmp_path / "same.txt"], gold).notes == (layout,)


@given(st.binary(max_size=300), st.sampled_from(["a.txt", "a.jsonl", "a.conll", "a.json", "a"]))
def test_any_bytes_give_sentences_or_one_clear_error(data: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        with contextlib.suppress(EntaugError):  # one line about what is wrong, and never another exception
            text = read_unlabelled([path], GOLD)
            assert len({sentence.tokens for sentence in text}) == len(text) > 0
