"""Text formatting shared by report sections: counts, names and paths."""

from typing import Any
from urllib.parse import quote

from controlplane.core.actors import label_of

MAX_ROWS = 50
"""Maximum rows of a section; its total counts all rows."""
MAX_REASON_LENGTH = 300


def pluralize(count: int, thing: str) -> str:
    """Return a count with its noun: `1 switch`, `1,240 switches`."""
    if count == 1:
        return f"1 {thing}"
    return f"{count:,} {thing}{'es' if thing.endswith('ch') else 's'}"


def first(reason: str) -> str:
    """Return a reason, truncated if long."""
    text = reason.strip()
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 1].rstrip()}…"


def engaged_by(episode: Any) -> str:
    return label_of(episode.engaged_by_type, episode.engaged_by_name)


def switch_path(switch_id: str) -> str:
    """Return the path of a switch's page, or of the switchboard for an invalid id."""
    scope, _, key = switch_id.partition(":")
    return f"/switches/{quote(scope)}/{quote(key)}/" if key else "/"
