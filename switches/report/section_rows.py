"""Functions shared by the report sections: they build tables, counts, names and paths."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import quote

from django.db.models import Count, Model, Q, QuerySet, Window

from controlplane.core.actors import label_of
from controlplane.core.page_registry import ReportRow, ReportSection

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


def episode_path(episode: Any) -> str:
    return switch_path(episode.switch_id)


def reason_of(row: Any) -> str:
    return shorten_reason(row.reason)


def build_section(
    slug: str,
    title: str,
    rows: Iterable[Any],
    path: str | Callable[[Any], str],
    *,
    total: int,
    tone: str,
    summary: str,
    empty: str = "",
    headline: str = "",
    **cells: str | Callable[[Any], Any],
) -> ReportSection:
    """Return a section of a report as a table with a summary.

    Each further keyword names a column. Its value is the name of a row's attribute (or key, if rows
    are dicts), or a function of the row. Rows link to `path`, or to its result if it is a function
    of the row. If `total` is 0, `empty` replaces the summary unless it is empty itself.
    """

    def read(row: Any, source: str | Callable[[Any], Any]) -> Any:
        if callable(source):
            return source(row)
        return row[source] if isinstance(row, dict) else getattr(row, source)

    return ReportSection(
        slug,
        title,
        summary if total or not empty else empty,
        tone,
        columns=tuple(cells),
        rows=tuple(
            ReportRow(
                {column: read(row, source) for column, source in cells.items()},
                path if isinstance(path, str) else path(row),
            )
            for row in rows
        ),
        total=total,
        headline=headline,
    )


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
