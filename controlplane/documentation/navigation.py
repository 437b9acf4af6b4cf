"""Patterns in the site's navigation, such as `adr/*.md`, replaced by the pages they match."""

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any


def expand_patterns(entries: Sequence[Any], pages: Collection[str]) -> list[Any]:
    """Return the navigation with each pattern replaced by its pages, a README first.

    `pages` are the places of all pages, such as `adr/README.md`.
    """
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            expanded += _find_pages(entry, pages)
            continue
        for title, value in entry.items():
            if isinstance(value, list):
                found = expand_patterns(value, pages)
                expanded += [{title: found}] if found else []
            elif "*" in value:
                expanded.append({title: _find_pages(value, pages)})
            else:
                expanded.append({title: value})
    return expanded


def _find_pages(pattern: str, pages: Collection[str]) -> list[str]:
    if "*" not in pattern:
        return [pattern]
    folder = PurePosixPath(pattern).parent
    paths = [path for path in map(PurePosixPath, pages) if path.parent == folder]
    found = [path for path in paths if path.match(pattern)]
    found.sort(key=lambda path: (path.stem not in {"README", "index"}, path.name))
    return [str(path) for path in found]
