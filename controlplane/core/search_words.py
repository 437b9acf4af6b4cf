"""Words of a search text."""

MAX_WORDS = 6
"""Number of words of a search, each of which is a condition of its query."""


def split_words(text: str) -> list[str]:
    """Return the distinct words of a search text: a match has every one of them, in any order.

    What follows the first `MAX_WORDS` - 1 words counts as one: a match has it as it is written.
    """
    words = text.casefold().split()
    rest = " ".join(words[MAX_WORDS - 1 :])
    return [*dict.fromkeys([*words[: MAX_WORDS - 1], *([rest] if rest else [])])]
