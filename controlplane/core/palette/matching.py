"""The score of a text for the words somebody typed. Pure."""

import re
from collections.abc import Sequence

EXACT, BEGINS, WORD_BEGINS, SOMEWHERE = 100.0, 60.0, 30.0, 10.0
_BREAKS = re.compile(r"[\s:>/._-]+")


def weight(words: Sequence[str], title: str, other: str = "") -> float:
    """Return how well all the words fit: 0 if one is nowhere, the most if they are the title.

    `words` are casefolded; `other` text counts less than the title.
    """
    title, other = title.casefold(), other.casefold()
    whole = " ".join(words)
    if whole == title:
        return EXACT
    fits = [_score(word, title) or _score(word, other) / 4 for word in words]
    if not all(fits):
        return 0.0
    # Of two that fit alike, the shorter is more likely meant.
    return sum(fits) / len(fits) + (5.0 if title.startswith(whole) else 0.0) - len(title) / 500


def _score(word: str, text: str) -> float:
    if text.startswith(word):
        return BEGINS
    if any(part.startswith(word) for part in _BREAKS.split(text)):
        return WORD_BEGINS
    return SOMEWHERE if word in text else 0.0
