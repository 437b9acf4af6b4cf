"""How well words fit a text. Pure."""

import re
from collections.abc import Sequence

EXACT, BEGINS, WORD_BEGINS, SOMEWHERE = 100.0, 60.0, 30.0, 10.0
_BREAKS = re.compile(r"[\s:>/._-]+")


def weight(words: Sequence[str], title: str, also: str = "") -> float:
    """How well all the words fit: 0 if one is nowhere, more if they are the title or begin it.

    `words` are casefolded; `also` counts less than the title.
    """
    title, also = title.casefold(), also.casefold()
    whole = " ".join(words)
    if whole == title:
        return EXACT
    fits = [_one(word, title) or _one(word, also) / 4 for word in words]
    if not all(fits):
        return 0.0
    # Of two that fit alike, the shorter is the likelier.
    return sum(fits) / len(fits) + (5.0 if title.startswith(whole) else 0.0) - len(title) / 500


def _one(word: str, text: str) -> float:
    if text.startswith(word):
        return BEGINS
    if any(part.startswith(word) for part in _BREAKS.split(text)):
        return WORD_BEGINS
    return SOMEWHERE if word in text else 0.0
