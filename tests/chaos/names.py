"""Hostile names: of files, of labels, ids and tokens through every format, and on the report page in a browser."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from chaos.tools import Counts, Tools, check, error_line
from entaug.core.data import Sentence
from entaug.core.mentions import Mention
from entaug.errors import EntaugError, InputError, LossError
from entaug.formats.base import ReadReport
from entaug.formats.buffered import BufferedFormat
from entaug.formats.files import FORMATS, find_format, target

__all__ = ["HOSTILE", "trial"]

HOSTILE = (
    "a\nb",
    "a\r\nb",
    "\x1b[31mred\x1b[0m",
    "\x85\u2028\u2029",
    "<script>window.hacked=1</script>",
    "</script><img src=x onerror=window.hacked=1>",
    "\"'`><svg/onload=window.hacked=1>",
    "{{7*7}}${7*7}",
    "&lt;b&gt;&amp;",
    "\u202egnp.exe",
    "\u200f\u061cא\u2066x",
    "-rf",
    "--force",
    "#",
    "# text = x",
    "-DOCSTART-",
    "O",
    "B-PER",
    "NULL",
    "../../etc/passwd",
    "C:\\x",
    "a\tb",
    " ",
    "\u00a0",
    "\ufeff",
    "\ufffd",
    "x" * 3000,
    "e\u0301" * 40,
    "👩‍🔬" * 9,
    "\x00",
    "\x7f\x01",
    "%s%n",
    "__proto__",
    "constructor",
    "=cmd|' /C calc'!A0",
    "|",
    "T1",
    ";",
)
# Of these, bytes that are no UTF-8 can only stand in the name of a file.
_IN_FILE_NAMES = (*HOSTILE, "\udcff\udcfe", "caf\udce9", "a\udc80\nb")


def trial(rng: Random, folder: Path, tools: Tools) -> Counts:
    """One of the kinds of trials."""
    kind = rng.choice([in_formats, in_formats, in_formats, of_files, of_files, on_the_page])
    done = kind(rng, folder, tools)
    return Counter({kind.__name__.replace("_", " "): 1}) + Counter(done)


def _hostile_corpus(rng: Random) -> list[Sentence]:
    def word() -> str:
        return rng.choice(HOSTILE) if rng.random() < 0.3 else rng.choice(["Ada", "left", "Rome", "."])

    corpus = []
    for i in range(rng.randint(1, 4)):
        tokens = [word() for _ in range(rng.randint(2, 6))]
        label = rng.choice(HOSTILE) if rng.random() < 0.4 else "PER"
        start = rng.randrange(len(tokens))
        id_ = f"{rng.choice(HOSTILE)}{i}" if rng.random() < 0.4 else None
        corpus.append(Sentence(tokens, [Mention(label, [(start, rng.randint(start + 1, len(tokens)))])], id=id_))
    return corpus


def in_formats(rng: Random, folder: Path, tools: Tools) -> Counts:
    """What a format takes comes back from it; what it cannot take is refused in one line."""
    del tools
    name = rng.choice(sorted(FORMATS))
    format_: Any = find_format(name)
    is_folder = isinstance(format_, BufferedFormat) and format_.folder
    out = folder / f"out{'' if is_folder or not format_.extensions else format_.extensions[0]}"
    to = target(out, name)
    corpus = []
    for sentence in _hostile_corpus(rng):
        try:
            to.encode(sentence)
            corpus.append(sentence)
        except (LossError, InputError) as error:
            check(len(str(error).splitlines()) == 1, f"{name} refuses in several lines: {error!r}")
    if not corpus:
        return Counter({f"refused by {name}": 1})
    try:
        to.write(corpus)
    except EntaugError as error:
        check(len(str(error).splitlines()) == 1, f"{name} refuses in several lines: {error!r}")
        check(not out.exists(), f"{name} refused ({error}), and {out.name} is there")
        return Counter({f"refused by {name}": 1})
    dialect = format_.detect_dialect(out) if isinstance(format_, BufferedFormat) else to.dialect
    try:
        back = list(format_.read(out, dialect, ReadReport()))
    except InputError as error:  # spaCy divides the text into other tokens; documented, with a remedy
        check("--misaligned" in str(error), f"{name} does not read what it wrote: {error}")
        return Counter({f"{name} has other tokens": 1})
    if name in ("bioc", "brat", "chat", "pubtator", "i2b2"):
        got, wanted = (
            sorted((m.label, "".join("".join(s.mention_tokens(m)).split())) for s in c for m in s.mentions)
            for c in (back, corpus)
        )
        check(got == wanted, f"{name}: {got} not {wanted}")
    else:
        got_pairs, wanted_pairs = ([(s.tokens, s.mentions) for s in c] for c in (back, corpus))
        check(got_pairs == wanted_pairs, f"{name}: {back} not {corpus}")
        if format_.carries.fields:
            check([s.id for s in back] == [s.id for s in corpus], f"{name}: other ids: {back} not {corpus}")
    return Counter({f"through {name}": 1})


def of_files(rng: Random, folder: Path, tools: Tools) -> Counts:
    """Names of inputs and outputs: results appear under them, and errors that name them have one line."""
    name = rng.choice([n for n in _IN_FILE_NAMES if "/" not in n and "\0" not in n and len(os.fsencode(n)) < 200])
    gold = "".join(tools.gold[:6])
    ending = rng.choice([".conll", ".jsonl", ""])
    (folder / f"{name}.conll").write_text(gold, encoding="utf-8")
    kind = rng.choice(["augment", "convert", "missing", "faulty", "exists", "report"])
    dash = f"./{name}" if name.startswith("-") else name
    counts: Counts = Counter({kind: 1})
    if kind in ("augment", "convert"):
        argv = {
            "augment": ["augment", f"{dash}.conll", "-m", "sis", "-o", f"{dash}.out{ending}", "--json"],
            "convert": ["convert", f"{dash}.conll", f"{dash}.out{ending}", *([] if ending else ["--to", "conll"])],
        }[kind]
        ended = tools.light.run(argv, folder, env=tools.no_models)
        check(ended.code == 0, f"{argv}: {ended.err}")
        check(
            {p.name for p in folder.iterdir()} == {f"{name}.conll", f"{name}.out{ending}"}, f"{list(folder.iterdir())}"
        )
        if kind == "augment":
            check(json.loads(ended.out)["statistics"]["sources"] == 6, "other counts")
        return counts
    if kind == "report":
        made = folder / f"{name}.jsonl"
        check(
            tools.light.run(["augment", f"{dash}.conll", "-m", "sis", "-o", f"{dash}.jsonl"], folder).code == 0,
            "augment",
        )
        ended = tools.light.run(
            ["report", f"{dash}.jsonl", "--no-models", "-o", "page.html", f"--title={name}"], folder
        )
        check(ended.code == 0, f"{made}: {ended.err}")
        check((folder / "page.html").read_bytes().decode("utf-8"), "an empty page")
        return counts
    if kind == "missing":
        argv, codes = [rng.choice(["check", "quality"]), f"{dash}.none"], (2,)
    elif kind == "faulty":
        (folder / f"{name}.bad.conll").write_text(f"{gold}x\tI-PER\n", encoding="utf-8")
        argv, codes = ["convert", f"{dash}.bad.conll", "out.jsonl"], (2,)
    else:
        (folder / f"{name}.out").write_text("mine")
        argv, codes = ["convert", f"{dash}.conll", f"{dash}.out"], (3,)
    ended = tools.light.run(argv, folder, env=tools.no_models)
    error_line(ended, codes)
    check(len(ended.err.splitlines()) == 1, f"several lines: {ended.err!r}")
    check(not {c for c in ended.err if ord(c) < 32} - {"\n"}, f"control characters for the terminal: {ended.err!r}")
    return counts


def on_the_page(rng: Random, folder: Path, tools: Tools) -> Counts:
    """The report page shows hostile texts as what they are, and runs none of them."""
    if tools.browser is None:
        return Counter({"no browser": 1})
    gold, lines = [], []
    for i in range(6):
        label, word = rng.choice(HOSTILE), rng.choice(HOSTILE)
        tokens = ["Ada", word, "left", rng.choice(HOSTILE), "."]
        entities = [{"start": 0, "end": rng.choice([1, 2]), "type": label}]
        gold.append({"id": f"{rng.choice(HOSTILE)} {i}", "tokens": tokens, "entities": entities})
        method = rng.choice(["sis", "mr", *HOSTILE])
        proof = {"method": method, "signature": f"{method}|p=0.3", "sources": [gold[-1]["id"]], "copy": 1}
        lines.append({**gold[-1], "id": f"new {i}", "tokens": [*tokens[::-1]], "entities": [], "entaug": proof})
    (folder / "new.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*gold, *lines)), encoding="utf-8")
    argv = ["report", "new.jsonl", "--no-models", "-o", "page.html", f"--title={rng.choice(HOSTILE)}".replace("\0", "")]
    ended = tools.light.run(argv, folder, env=tools.no_models)
    if ended.code == 2:
        error_line(ended)
        return Counter({"corpora refused": 1})
    check(ended.code == 0, ended.err)
    context = tools.browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    try:
        page.goto((folder / "page.html").as_uri())
        page.wait_for_selector("#feed article, #feed .nothing")
        check(not page.evaluate("window.hacked"), "a text was run")
        check(not complaints, f"the page complains: {complaints}")
        check(page.inner_text("#count").endswith(f" {len(lines)} shown"), "not every sentence is shown")
        check(page.locator("#feed article").count() > 0, "no sentence is shown")
    finally:
        context.close()
    return Counter({"pages opened": 1})
