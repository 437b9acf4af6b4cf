"""What stands in each table now: how many rows, how old, and how many are due to go."""

from dataclasses import dataclass
from datetime import datetime

from django.apps import apps
from django.db import connection

from controlplane.core.retention import rules
from controlplane.core.retention.rules import Lasting, Rule

SECONDS = 60
"""A count of a large table takes its time, but not for ever."""
_FIGURES = """
    SELECT count(*), min({since})::timestamptz, count(*) FILTER (WHERE {where}) FROM {table} it
"""


@dataclass(frozen=True)
class Figures:
    """`rows` in the whole table, `oldest` of what the rule is about, and how many are `due`."""

    rows: int
    oldest: datetime | None
    due: int


def of_rule(rule: Rule, now: datetime) -> Figures:
    with connection.cursor() as cursor:
        cursor.execute(
            _FIGURES.format(since=rule.since, where=rule.where, table=rule.table),
            rules.moments(now - rule.lasts),
        )
        rows, oldest, due = cursor.fetchone()
    return Figures(rows, oldest, due)


def rows_of(one: Lasting) -> int:
    return int(apps.get_model(one.model)._base_manager.count())


def patiently() -> None:
    """In the transaction: wait for counts, not for locks."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL statement_timeout = '{SECONDS}s'")


def unruled() -> list[str]:
    """Models that neither have a rule nor are said to last."""
    found = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    return sorted(found - rules.ruled() - set(rules.all_lasting()))
