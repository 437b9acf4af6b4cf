"""Sizes of tables: row counts, oldest rows and rows due for deletion."""

from datetime import datetime
from typing import NamedTuple

from django.apps import apps

from controlplane.core.retention.rules import (
    PERMANENT_TABLES,
    RetentionRule,
    ruled_models,
    sql_parameters,
)
from controlplane.core.sql import fetch_all

_SIZE = """
    SELECT count(*), min({since})::timestamptz, count(*) FILTER (WHERE {where}) FROM {table} it
"""


class TableSize(NamedTuple):
    """Number of rows in a rule's table, time of the oldest row, and number due for deletion."""

    rows: int
    oldest: datetime | None
    due: int


def measure_table(rule: RetentionRule, now: datetime) -> TableSize:
    statement = _SIZE.format(since=rule.since, where=rule.condition, table=rule.table)
    return TableSize(*fetch_all(statement, sql_parameters(now - rule.effective_period))[0])


def models_without_rule() -> list[str]:
    """Return models that neither have a rule nor are kept permanently."""
    models = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    return sorted(models - ruled_models() - set(PERMANENT_TABLES))
