"""Sizes of tables: row counts, oldest rows and rows due for deletion."""

from dataclasses import dataclass
from datetime import datetime

from django.apps import apps
from django.db import connection

from controlplane.core.retention.rules import (
    PERMANENT_TABLES,
    PermanentTable,
    RetentionRule,
    ruled_models,
    sql_parameters,
)

TIMEOUT_SECONDS = 60
"""Statement timeout of a count."""
_SIZE = """
    SELECT count(*), min({since})::timestamptz, count(*) FILTER (WHERE {where}) FROM {table} it
"""


@dataclass(frozen=True)
class TableSize:
    """Number of rows in a rule's table, time of the oldest row, and number due for deletion."""

    rows: int
    oldest: datetime | None
    due: int


def measure_table(rule: RetentionRule, now: datetime) -> TableSize:
    with connection.cursor() as cursor:
        cursor.execute(
            _SIZE.format(since=rule.since, where=rule.where, table=rule.table),
            sql_parameters(now - rule.effective_period),
        )
        rows, oldest, due = cursor.fetchone()
    return TableSize(rows, oldest, due)


def count_rows(table: PermanentTable) -> int:
    return int(apps.get_model(table.model)._base_manager.count())


def allow_slow_counts() -> None:
    """Raise the statement timeout of the current transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{TIMEOUT_SECONDS}s'")


def models_without_rule() -> list[str]:
    """Return models that neither have a rule nor are kept permanently."""
    models = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    return sorted(models - ruled_models() - set(PERMANENT_TABLES))
