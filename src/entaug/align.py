"""Characters and tokens."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["spaces_in"]


def spaces_in(tokens: Sequence[str], text: str) -> tuple[str, ...] | None:
    """The white space that follows each token in a text.

    Args:
        tokens: the tokens, in order.
        text: the text they were taken from.

    Returns:
        One string a token, such that joining tokens and spaces gives exactly the text; None when the tokens are not
        the text's (a token is missing or changed, or there is anything but white space between them).

    Example:
        >>> spaces_in(["Hi", ",", "you"], "Hi,  you")
        ('', '  ', '')
    """
    spaces = []
    place = 0
    for i, token in enumerate(tokens):
        if not text.startswith(token, place):
            return None
        place += len(token)
        following = text.find(tokens[i + 1], place) if i + 1 < len(tokens) else len(text)
        gap = text[place:following] if following >= 0 else "?"
        if gap and not gap.isspace():
            return None
        spaces.append(gap)
        place = following
    return tuple(spaces)
