"""Text formatting shared by report sections: counts, names and paths."""

from typing import Any, TypeVar
from urllib.parse import quote

from django.db.models import Count, Model, Q, QuerySet, Window

from controlplane.core.actors import label_of

MAX_ROWS = 50
"""Maximum rows of a section; its total counts all rows."""
MAX_REASON_LENGTH = 300


def pluralize(count: int, thing: str) -> str:
    """Return a count with its noun: `1 switch`, `1,240 switches`."""
    if count == 1:
        return f"1 {thing}"
    return f"{count:,} {thing}{'es' if thing.endswith('ch') else 's'}"


def shorten_reason(reason: str) -> str:
    text = reason.strip()
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 1].rstrip()}…"


def engaged_by(episode: Any) -> str:
    return label_of(episode.engaged_by_type, episode.engaged_by_name)


def switch_path(switch_id: str) -> str:
    scope, _, key = switch_id.partition(":")
    return f"/switches/{quote(scope)}/{quote(key)}/" if key else "/"


M = TypeVar("M", bound=Model)


def read_first_rows(rows: QuerySet[M], **counts: Q) -> tuple[list[Any], dict[str, int]]:
    """Return the first `MAX_ROWS` rows, and counts by name.

    `total` counts all rows. Each keyword argument names a count of the rows that match its
    condition. All counts are 0 if there are no rows.
    """
    conditions = {"total": Q(), **counts}
    annotated = rows.annotate(
        **{
            f"count_of_{name}": Window(Count("pk", filter=condition or None))
            for name, condition in conditions.items()
        }
    )
    found = list(annotated[:MAX_ROWS])
    return found, {
        name: getattr(found[0], f"count_of_{name}") if found else 0 for name in conditions
    }
