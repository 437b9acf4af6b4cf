"""Query of a section's first rows together with counts of all rows."""

from typing import Any, TypeVar

from django.db.models import Count, Model, Q, QuerySet, Window

from switches.report.words import MAX_ROWS

M = TypeVar("M", bound=Model)


def first_rows(rows: QuerySet[M], **counts: Q) -> tuple[list[Any], dict[str, int]]:
    """Return the first `MAX_ROWS` rows, and counts of all rows by name.

    The count `total` is of all rows; the others are of the rows that match the condition. All
    counts are 0 without rows.
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
