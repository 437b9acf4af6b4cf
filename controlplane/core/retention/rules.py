"""The registry of retention rules, which apps fill in modules named `retention_rules`.

Each table has a rule or is kept permanently for a stated reason; a test fails for any other.
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

    `where` is SQL about the row `it`. It has the parameters `%(before)s`, which is now less the
    period, and `%(before_text)s`, the same as canonical text. `since` is the column or expression
    that a row's age counts from; `order` has an index. KEPT_DAYS may set the period within `bounds`
    (days), or not at all without them. Rows of `parts` are deleted with their row. `why` is the
    purpose of keeping the rows, and `exempt` names those that are never deleted.
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
        """The period of this installation: KEPT_DAYS within the bounds, else the default."""
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
    """A table (`app.Model`) whose rows are never deleted because of their age, and why."""

    model: str
    why: str


RETENTION_RULES = KindRegistry[RetentionRule]("retention_rules")
PERMANENT_TABLES = KindRegistry[PermanentTable]("retention_rules", name=lambda table: table.model)


def keep_permanently(why: str, *models: str) -> None:
    """Register tables whose rows no rule deletes."""
    PERMANENT_TABLES.register(*(PermanentTable(model, why) for model in models))


def sql_parameters(before: datetime) -> dict[str, Any]:
    """Return the parameters of a rule's SQL."""
    return {"before": before, "before_text": canonical.timestamp(before)}


def ruled_models() -> set[str]:
    """Return the models whose rows a rule deletes."""
    return {model for rule in RETENTION_RULES.values() for model in (rule.model, *rule.parts)}


def period_errors(chosen: Mapping[str, int]) -> list[str]:
    """Return what is wrong with days by rule name (KEPT_DAYS), a sentence each."""
    return [error for name, days in sorted(chosen.items()) for error in _errors_of(name, days)]


def _errors_of(name: str, days: int) -> Iterator[str]:
    rule = RETENTION_RULES.get(name)
    if rule is None:
        yield f"{name} is no rule; manage.py retention has the names."
    elif rule.bounds is None:
        yield f"{name} can't be chosen: {rule.why}"
    elif not rule.bounds[0] <= days <= rule.bounds[1]:
        yield f"{name} is kept for {rule.bounds[0]} to {rule.bounds[1]} days, not for {days}."
