"""Words of a search text."""


def split_words(text: str) -> list[str]:
    """Return the distinct words of a search text: a match has every one of them, in any order."""
    return [*dict.fromkeys(text.casefold().split())]
