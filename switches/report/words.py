"""What the sections of switches say alike: counts, names, and the pages they lead to."""

from typing import Any
from urllib.parse import quote

from controlplane.core.actors import label_of

MAX_ROWS = 50
"""Rows of a section; its total tells of the rest."""
MAX_REASON_LENGTH = 300


def counted(count: int, thing: str) -> str:
    """`1 switch`, `1,240 switches`."""
    if count == 1:
        return f"1 {thing}"
    return f"{count:,} {thing}{'es' if thing.endswith('ch') else 's'}"


def first(reason: str) -> str:
    """The reason, cut short if it is long: its page has all of it."""
    text = reason.strip()
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 1].rstrip()}…"


def told_by(episode: Any) -> str:
    return label_of(episode.engaged_by_type, episode.engaged_by_name)


def page_of(switch_id: str) -> str:
    """The page of a switch, by its id; the switchboard for what is none."""
    scope, _, key = switch_id.partition(":")
    return f"/switches/{quote(scope)}/{quote(key)}/" if key else "/"
