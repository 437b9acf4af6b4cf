"""Patterns in the site's navigation, such as `adr/*.md`, which stand for all pages they match."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def expand_patterns(entries: Sequence[Any], docs: Path) -> list[Any]:
    """Return the navigation with each pattern replaced by its pages, a README first."""
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            expanded += _find_pages(entry, docs)
            continue
        for title, value in entry.items():
            if isinstance(value, list):
                pages = expand_patterns(value, docs)
                expanded += [{title: pages}] if pages else []
            elif "*" in value:
                expanded.append({title: _find_pages(value, docs)})
            else:
                expanded.append({title: value})
    return expanded


def _find_pages(pattern: str, docs: Path) -> list[str]:
    if "*" not in pattern:
        return [pattern]
    pages = sorted(docs.glob(pattern), key=lambda page: (page.stem != "README", page.name))
    return [page.relative_to(docs).as_posix() for page in pages]
