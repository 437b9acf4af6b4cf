"""The search lists how-to guides before decisions and references."""

from fnmatch import fnmatch

import pytest

from controlplane.documentation.hooks import INCLUDED, SEARCH_BOOSTS, find_search_boost

from .pages import ROOT

DOCS = ROOT / "docs"
URIS = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")] + list(INCLUDED)


def test_a_how_to_guide_comes_before_a_tutorial_and_a_tutorial_before_a_decision() -> None:
    pages = ("operate.md", "tutorials/first-kill.md", "adr/0017-ramps.md")

    boosts = [find_search_boost(page) for page in pages]

    assert boosts == sorted(set(boosts), reverse=True)


@pytest.mark.parametrize("pattern", SEARCH_BOOSTS)
def test_a_pattern_stands_for_pages(pattern: str) -> None:
    assert any(fnmatch(uri, pattern) for uri in URIS)
