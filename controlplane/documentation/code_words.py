"""Words in code blocks, which browsers break after a hyphen or a slash. Pure."""

import re
from html import unescape

_BLOCK = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
_TAG_OR_WORD = re.compile(r"<[^>]*>|[^\s<]+")
_BREAKABLE = re.compile(r"[^\w&;].|&\w+;.")
MAX_LENGTH = 30
"""Length of the longest word that stays whole; a phone's line has about 33 characters."""
START, END = '<span class="word">', "</span>"


def mark_words(html: str) -> str:
    """Return a page's HTML with a span around the words of code that a browser might break.

    Longer words than a phone's line are left out: they have to be broken.
    """
    return _BLOCK.sub(lambda block: _TAG_OR_WORD.sub(_mark_word, block[0]), html)


def _mark_word(found: re.Match[str]) -> str:
    text = found[0]
    fits = len(unescape(text)) <= MAX_LENGTH
    is_word = fits and not text.startswith("<") and _BREAKABLE.search(text)
    return f"{START}{text}{END}" if is_word else text
