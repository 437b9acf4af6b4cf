"""Registry of retention rules, and the deletion of older rows in small transactions.

Apps register their rules in modules named `retention_rules`. Each table must have a rule or a
reason for permanent retention; a test checks this.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Model

from controlplane.core import canonical
from controlplane.core.registry import KindRegistry
from controlplane.core.sql import execute, fetch_all

DAY = timedelta(days=1)
BATCH_SIZE = 5000
MAX_ROWS = 1_000_000

# Locked rows are left for the next run.
_OLD = "SELECT {key} FROM {table} it WHERE {where} {order} LIMIT %(most)s FOR UPDATE SKIP LOCKED"
_SIZE = """
    SELECT count(*), min({since})::timestamptz, count(*) FILTER (WHERE {where}) FROM {table} it
"""


@dataclass(frozen=True)
class RetentionRule:
    """A rule that rows of `model` (`app.Model`) are deleted once they are older than `period`.

    The tick named `tick` deletes them, in order of the indexed column `order`. A row's age counts
    from `since`, a column or SQL expression. `where` replaces the age condition by SQL on the row
    `it`, with the parameters `%(before)s` (now minus the period) and `%(before_text)s` (the same
    time as canonical text). KEPT_DAYS may set another period within `bounds` (days); without bounds
    the period is fixed. Rows of the models `parts` are deleted along with their row. `why` is the
    purpose of keeping the rows, and `exempt` describes rows that are never deleted.
    """

    name: str
    model: str
    period: timedelta
    since: str
    tick: str
    why: str
    where: str = ""
    exempt: str = ""
    order: str = ""
    bounds: tuple[int, int] | None = None
    parts: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The SQL condition of the rows that the rule deletes."""
        return self.where or f"{self.since} < %(before)s"

    @property
    def model_class(self) -> type[Model]:
        return apps.get_model(self.model)

    @property
    def table(self) -> str:
        return str(self.model_class._meta.db_table)

    @property
    def effective_period(self) -> timedelta:
        """The period in this installation: KEPT_DAYS within the bounds, else the default."""
        days = settings.KEPT_DAYS.get(self.name)
        if days is None or self.bounds is None:
            return self.period
        least, most = self.bounds
        return min(max(days, least), most) * DAY


class PermanentTable(NamedTuple):
    """A table (`app.Model`) whose rows are kept forever, and the reason."""

    model: str
    why: str


RETENTION_RULES = KindRegistry[RetentionRule]("retention_rules")
PERMANENT_TABLES = KindRegistry[PermanentTable]("retention_rules", name=lambda table: table.model)


def keep_permanently(why: str, *models: str) -> None:
    """Register tables whose rows are kept forever."""
    PERMANENT_TABLES.register(*(PermanentTable(model, why) for model in models))


def sql_parameters(before: datetime) -> dict[str, Any]:
    return {"before": before, "before_text": canonical.timestamp(before)}


class TableSize(NamedTuple):
    """The size of a rule's table: number of rows, oldest row's time, number of rows to delete."""

    rows: int
    oldest: datetime | None
    due: int


def measure_table(rule: RetentionRule, now: datetime) -> TableSize:
    statement = _SIZE.format(since=rule.since, where=rule.condition, table=rule.table)
    return TableSize(*fetch_all(statement, sql_parameters(now - rule.effective_period))[0])


def models_without_rule() -> list[str]:
    """Return the models that have no retention rule and are not kept permanently either."""
    models = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    return sorted(models - ruled_models() - set(PERMANENT_TABLES))


def ruled_models() -> set[str]:
    """Return the models whose rows are deleted by a rule."""
    return {model for rule in RETENTION_RULES.values() for model in (rule.model, *rule.parts)}


def find_period_errors(days_by_rule: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each invalid entry of KEPT_DAYS, given as days by rule name."""
    for name, days in sorted(days_by_rule.items()):
        rule = RETENTION_RULES.get(name)
        if rule is None:
            yield f"{name} is not a retention rule; `manage.py retention` lists them."
        elif rule.bounds is None:
            yield f"{name} can't be changed: {rule.why}"
        elif not rule.bounds[0] <= days <= rule.bounds[1]:
            yield f"{name} must be from {rule.bounds[0]} to {rule.bounds[1]} days, not {days}."


def purge(
    rules: Iterable[RetentionRule],
    now: datetime,
    *,
    at_once: int = BATCH_SIZE,
    most: int = MAX_ROWS,
) -> int:
    """Delete the rows that are due by the rules, up to `most` for each rule; return their number.

    Each transaction deletes up to `at_once` rows.
    """
    return sum(
        _delete_in_batches(partial(_delete_batch, rule, now - rule.effective_period), at_once, most)
        for rule in rules
    )


def purge_by_statements(
    statements: Iterable[tuple[str, timedelta]], now: datetime, *, at_once: int, most: int
) -> int:
    """Delete old rows by SQL statements; return their number.

    It is for deletions that a rule's condition can't express. Each statement is given with its
    retention period, and has the parameters `before` and `most`.
    """

    def run(statement: str, before: datetime, size: int) -> int:
        return execute(statement, {"before": before, "most": size})

    return sum(
        _delete_in_batches(partial(run, statement, now - period), at_once, most)
        for statement, period in statements
    )


def _delete_in_batches(delete: Callable[[int], int], at_once: int, most: int) -> int:
    """Delete up to `most` rows in batches of `at_once`; return the number of deleted rows.

    `delete` deletes up to the given number of rows and returns how many it deleted.
    """
    done = 0
    while done < most:
        deleted = delete(min(at_once, most - done))
        done += deleted
        if deleted < at_once:
            break
    return done


@transaction.atomic
def _delete_batch(rule: RetentionRule, before: datetime, most: int) -> int:
    order = f"ORDER BY {rule.order}" if rule.order else ""
    column = rule.model_class._meta.pk.column
    statement = _OLD.format(key=column, table=rule.table, where=rule.condition, order=order)
    keys = [key for (key,) in fetch_all(statement, {**sql_parameters(before), "most": most})]
    # Through the model, so that dependent rows go as well.
    rule.model_class._base_manager.filter(pk__in=keys).delete()
    return len(keys)
