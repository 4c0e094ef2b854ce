"""What entaug itself puts into sentences: provenance, ids that it makes up, places in documents, notes of readers.

Losing it loses nothing of the user's, so it never keeps a sentence from being written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entaug.core.corpus import is_made_key
from entaug.core.data import Sentence
from entaug.formats.base import BEFORE, ENTITY_FIELDS, KEPT, LEVEL
from entaug.formats.text import CHAR_RANGES, DOCUMENT
from entaug.formats.token_records import without

BOOKKEEPING = "bookkeeping: "
"""Begins the descriptions of losses that are not the user's."""

_PARAGRAPH = "_paragraph"  # of training files of spaCy 2: which paragraph of a document
_FIELDS = {BEFORE, DOCUMENT, _PARAGRAPH}
_OF_MENTIONS = {LEVEL, CHAR_RANGES}
_OF_MENTIONS_IN_BRAT = {"id", "line", "also"}  # numbers and places of lines, which the writer makes anew
_NAMES = {"field 'entaug'": "provenance", "id": "ids given by entaug", "ids": "ids given by entaug"}
_KEPT_BY = {"field 'entaug'": ("provenance", "fields"), "provenance": ("fields",), "id": ("ids",)}


def without_bookkeeping(sentence: Sentence) -> Sentence:
    """Return the sentence with what its files said, without what entaug added; itself where that is nothing."""
    fields = {name: value for name, value in sentence.fields.items() if name not in _FIELDS}
    if sentence.provenance is not None:  # else a field of this name is somebody else's
        del fields["entaug"]
    of_mentions = _OF_MENTIONS
    if isinstance(kept := fields.get(KEPT), Mapping):
        of_mentions = of_mentions | _OF_MENTIONS_IN_BRAT
        if not kept.get("lines"):  # relations, notes and attributes are the user's
            del fields[KEPT]
    if isinstance(entity_fields := fields.get(ENTITY_FIELDS), list):
        own = [without(one, of_mentions) if isinstance(one, Mapping) else one for one in entity_fields]
        if any(own):
            fields[ENTITY_FIELDS] = own
        else:
            del fields[ENTITY_FIELDS]
    is_made = sentence.id is not None and sentence.provenance is not None
    if sentence.id is not None and not is_made and is_made_key(sentence.id):  # see `with_keys`
        is_made = sentence.id[:16] == sentence.fingerprint().hex()
    if is_made and fields.get("comments") == [f"# sent_id = {sentence.id}"]:
        del fields["comments"]
    if not is_made and fields == sentence.fields:
        return sentence
    return sentence.with_(id=None if is_made else sentence.id).with_fields(fields)


def note_on_bookkeeping(lost: Mapping[str, int], title: str, dialect: Any) -> str | None:
    """Return the note for the user on bookkeeping that is not written."""
    own = {name.removeprefix(BOOKKEEPING): n for name, n in lost.items() if name.startswith(BOOKKEEPING)}
    if not own:
        return None
    shown = ", ".join(f"{_NAMES.get(name, name)} ({n:,} sentence{'s' * (n != 1)})" for name, n in sorted(own.items()))
    options = dict.fromkeys(option for name in sorted(own) for option in _KEPT_BY.get(name, ()))
    unset = [option for option in options if getattr(dialect, option, None) is False]
    keeping = " ".join(f"`write_options={{'{option}': True}}`" for option in unset)
    remedy = f"; to keep them: {keeping}" if keeping else ""
    return f"entaug's own notes that {title} cannot store are left out: {shown}{remedy}"
