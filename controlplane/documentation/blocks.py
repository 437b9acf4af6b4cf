"""Parser of a page's fenced blocks, and of the comments that tell the docs runner how to run them.

Markers are HTML comments above a block of type `sh`:

- `<!-- not run: REASON -->`: the block can't be run by a test.
- `<!-- background -->` or `<!-- background: URL -->`: run in the background until the page's end;
  the test continues when the URL answers.
- `<!-- fails -->`: the last command of the block fails.
- `<!-- expect: TEXT -->`: the output contains the text. May be repeated.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

MARKERS = ("not run", "background", "fails", "expect")
TABLE_MARKERS = ("generated", "end")
"""Comments around generated tables."""
LIST_INDENT = 4
"""Indentation of blocks in lists, with which GitHub and the site both show them in the list."""
NEED_TEXT = {"not run", "expect"}
_FENCE = re.compile(r"(?P<indent>\s*+)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)$")
_COMMENT = re.compile(r"\s*<!-- *(?P<name>[a-z ]+?) *(?:: *(?P<text>.*?))? *-->\s*")
_TITLE = re.compile(r'title="([^"]+)"')


class InvalidPage(ValueError):
    """Raised for a block or marker that the docs runner can't use; the text has the line."""


@dataclass(frozen=True)
class Block:
    """A fenced block; `line` is the number of its first line of content, from 1."""

    line: int
    language: str
    title: str
    text: str
    markers: tuple[tuple[str, str], ...] = ()

    @property
    def not_run(self) -> str:
        """The reason why a test can't run the block, or ""."""
        return dict(self.markers).get("not run", "")

    @property
    def background(self) -> str | None:
        """The URL to wait for ("" for none) if the block runs in the background, else None."""
        return dict(self.markers).get("background")

    @property
    def fails(self) -> bool:
        return "fails" in dict(self.markers)

    @property
    def expected(self) -> list[str]:
        return [text for name, text in self.markers if name == "expect"]


def parse_page(text: str) -> list[Block]:
    """Return the blocks of a page; raise :class:`InvalidPage` for the first mistake."""
    blocks: list[Block] = []
    markers: list[tuple[str, str]] = []
    lines = enumerate(text.split("\n"), 1)
    for number, line in lines:
        if opening := _FENCE.fullmatch(line):
            if len(opening["indent"]) % LIST_INDENT:
                raise InvalidPage(f"line {number}: indent blocks in lists by {LIST_INDENT} spaces")
            block = _read_block(number, opening, lines, tuple(markers))
            _check(block)
            blocks.append(block)
            markers = []
        elif (comment := _COMMENT.fullmatch(line)) and comment["name"] not in TABLE_MARKERS:
            markers.append((comment["name"], comment["text"] or ""))
        elif line.strip():
            _check_unused(number, markers)
            markers = []
    _check_unused(text.count("\n") + 1, markers)
    return blocks


def _read_block(
    number: int,
    opening: re.Match[str],
    lines: Iterator[tuple[int, str]],
    markers: tuple[tuple[str, str], ...],
) -> Block:
    language, _, rest = opening["info"].strip().partition(" ")
    title = _TITLE.search(rest)
    content: list[str] = []
    for _, line in lines:
        end = line.strip()
        if end.startswith(opening["fence"]) and not end.strip(opening["fence"][0]):
            text = textwrap.dedent("\n".join(content)) + "\n"
            return Block(number + 1, language, title[1] if title else "", text, markers)
        content.append(line)
    raise InvalidPage(f"line {number}: this block has no end")


def _check_unused(number: int, comments: list[tuple[str, str]]) -> None:
    """Raise if a marker is among comments that no block follows; others belong to the text."""
    if any(name in MARKERS for name, _ in comments):
        raise InvalidPage(f"line {number}: the marker above belongs to no block")


def _check(block: Block) -> None:
    where = f"line {block.line - 1}"
    names = [name for name, _ in block.markers]
    if not block.language:
        raise InvalidPage(f"{where}: name the block's language; `text` for output")
    if block.language in {"bash", "shell", "console", "shell-session"}:
        raise InvalidPage(f"{where}: put commands into a block of type `sh`")
    if block.language != "sh":
        if set(names) & set(MARKERS):
            raise InvalidPage(f"{where}: only blocks of type `sh` take markers")
        return
    for name, text in block.markers:
        if name not in MARKERS:
            raise InvalidPage(f"{where}: unknown marker {name!r}; use one of {MARKERS}")
        if name in NEED_TEXT and not text:
            raise InvalidPage(f"{where}: the marker {name!r} needs a text")
    if "not run" in names and len(names) > 1:
        raise InvalidPage(f"{where}: a block that is not run has no other marker")
