"""Patterns in which `*` stands for any characters, also none."""


def matches(pattern: str, text: str) -> bool:
    """Return True if the pattern matches the whole text, in a time that grows linearly."""
    # Not a regular expression, whose time would not be linear.
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    place, end = len(first), len(text) - len(last)
    if end < place or not text.startswith(first) or not text.endswith(last):
        return False
    for part in middle:
        found = text.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return True
