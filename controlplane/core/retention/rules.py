"""Registry of retention rules, which apps register in modules named `retention_rules`.

Each table must have a rule or a reason for permanent retention; a test checks this.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Model

from controlplane.core import canonical
from controlplane.core.registry import KindRegistry

DAY = timedelta(days=1)


@dataclass(frozen=True)
class RetentionRule:
    """A rule by which the tick `tick` deletes rows of `model` (`app.Model`) that match `where`.

    `where` is SQL on the row `it`, with the parameters `%(before)s`, now minus the period, and
    `%(before_text)s`, the same time as canonical text. `since` is the column or expression from
    which a row's age counts; `order` is an indexed column. KEPT_DAYS may set the period within
    `bounds` (days); without bounds it is fixed. Rows of `parts` are deleted with their row. `why`
    is the purpose of keeping the rows, and `exempt` describes rows that are never deleted.
    """

    name: str
    model: str
    period: timedelta
    where: str
    since: str
    tick: str
    why: str
    exempt: str = ""
    order: str = ""
    bounds: tuple[int, int] | None = None
    parts: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        return str(self._model._meta.db_table)

    @property
    def key(self) -> str:
        return str(self._model._meta.pk.column)

    @property
    def effective_period(self) -> timedelta:
        """The period in this installation: KEPT_DAYS within the bounds, else the default."""
        days = settings.KEPT_DAYS.get(self.name)
        if days is None or self.bounds is None:
            return self.period
        least, most = self.bounds
        return min(max(days, least), most) * DAY

    @property
    def _model(self) -> type[Model]:
        return apps.get_model(self.model)


@dataclass(frozen=True)
class PermanentTable:
    """A table (`app.Model`) without retention limit, and the reason."""

    model: str
    why: str


RETENTION_RULES = KindRegistry[RetentionRule]("retention_rules")
PERMANENT_TABLES = KindRegistry[PermanentTable]("retention_rules", name=lambda table: table.model)


def keep_permanently(why: str, *models: str) -> None:
    """Register tables without retention limit."""
    PERMANENT_TABLES.register(*(PermanentTable(model, why) for model in models))


def sql_parameters(before: datetime) -> dict[str, Any]:
    return {"before": before, "before_text": canonical.timestamp(before)}


def ruled_models() -> set[str]:
    """Return the models whose rows are deleted by a rule."""
    return {model for rule in RETENTION_RULES.values() for model in (rule.model, *rule.parts)}


def find_period_errors(days_by_rule: Mapping[str, int]) -> list[str]:
    """Return a sentence for each invalid entry of KEPT_DAYS, given as days by rule name."""
    return [
        error for name, days in sorted(days_by_rule.items()) for error in _check_period(name, days)
    ]


def _check_period(name: str, days: int) -> Iterator[str]:
    rule = RETENTION_RULES.get(name)
    if rule is None:
        yield f"{name} is no rule; manage.py retention has the names."
    elif rule.bounds is None:
        yield f"{name} can't be chosen: {rule.why}"
    elif not rule.bounds[0] <= days <= rule.bounds[1]:
        yield f"{name} is kept for {rule.bounds[0]} to {rule.bounds[1]} days, not for {days}."
