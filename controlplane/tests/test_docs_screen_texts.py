"""The texts that docs/screen-facts.md lists still occur in a template, module or script."""

import html
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "screen-facts.md"
_TAGS = re.compile(r"{%.*?%}|{{.*?}}|<[^>]+>", re.DOTALL)
_PLURAL = re.compile(r"{{[^{}]*\|pluralize(?::\"(?:[^\"]*,)?([^\"]*)\")? *}}")
_LITERAL = re.compile(r'"([^"]*)"')
_CONTINUATION = re.compile(r'"\s*\n\s*f?"')
_GAPS = re.compile(r"…|\b[NMT]\b|\d+|[,.:;“”%/×]")
"""Places of values and of punctuation, at which a text may be composed of parts."""


def read_texts() -> list[str]:
    """Return the texts of the page's tables: not descriptions, which begin with a small letter."""
    cells = [
        line.split(" | ")[0][2:]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| Text")
    ]
    texts = [text.strip() for cell in cells for text in re.sub(r"\(.*?\)", "", cell).split(";")]
    return [text for text in texts if text and not text[0].islower()]


def split_text(text: str) -> list[str]:
    """Return the fixed parts of a text that have at least two words."""
    parts = [part.strip() for part in _GAPS.split(text)]
    return [part for part in parts if len(part.split()) > 1]


@cache
def read_sources() -> str:
    """Return the words of all templates, modules and scripts, in lower case, without markup."""
    found = []
    for folder in ("templates", "controlplane", "switches", "breakers", "slo", "static/js"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in {".html", ".py", ".js"} or "tests" in path.parts:
                continue
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".html":
                text = _PLURAL.sub(lambda match: "s" if match[1] is None else match[1], text)
                found += [_TAGS.sub(" ", text), _TAGS.sub("", text)]
                found.append(_TAGS.sub(lambda tag: " ".join(_LITERAL.findall(tag[0])), text))
            else:
                found.append(_CONTINUATION.sub("", text))
    return _normalize(" ".join(found))


@pytest.mark.parametrize("text", read_texts())
def test_a_listed_text_occurs_in_the_sources(text: str) -> None:
    missing = [part for part in split_text(text) if _normalize(part) not in read_sources()]

    assert not missing


def test_a_text_that_no_screen_has_is_noticed() -> None:
    assert split_text("N frogs of M sing, since T") == ["frogs of"]
    assert _normalize("frogs of") not in read_sources()


def _normalize(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(text)).lower().replace("’", "'")
