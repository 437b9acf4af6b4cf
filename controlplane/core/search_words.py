"""Words of a search text."""

MAX_WORDS = 6
"""Most words in a search; each adds a condition to the query."""


def split_words(text: str) -> list[str]:
    """Return the distinct words of a search text: a match has every one of them, in any order.

    The text after the first `MAX_WORDS` - 1 words counts as one phrase.
    """
    words = text.casefold().split()
    rest = " ".join(words[MAX_WORDS - 1 :])
    return [*dict.fromkeys([*words[: MAX_WORDS - 1], *([rest] if rest else [])])]
