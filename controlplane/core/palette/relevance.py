"""Relevance of a text for the words typed into the palette."""

import re
from collections.abc import Sequence

EXACT, BEGINS, WORD_BEGINS, CONTAINS = 100.0, 60.0, 30.0, 10.0
_BREAKS = re.compile(r"[\s:>/._-]+")


def score_text(words: Sequence[str], title: str, other: str = "") -> float:
    """Return the relevance of a text: 0 if a word is missing, highest if the words are the title.

    `words` are casefolded; `other` text counts less than the title.
    """
    title, other = title.casefold(), other.casefold()
    phrase = " ".join(words)
    if phrase == title:
        return EXACT
    scores = [_score_word(word, title) or _score_word(word, other) / 4 for word in words]
    if not all(scores):
        return 0.0
    # Of two texts with equal scores, the shorter one ranks higher.
    return sum(scores) / len(scores) + (5.0 if title.startswith(phrase) else 0.0) - len(title) / 500


def _score_word(word: str, text: str) -> float:
    if text.startswith(word):
        return BEGINS
    if any(part.startswith(word) for part in _BREAKS.split(text)):
        return WORD_BEGINS
    return CONTAINS if word in text else 0.0
