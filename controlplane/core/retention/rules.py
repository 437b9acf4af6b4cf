"""The register of what is kept for how long, which each app fills in its module `kept`.

Each table has a rule, or is said to last, with the reason: a test refuses one that has neither.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.utils.module_loading import autodiscover_modules

from controlplane.core import canonical

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Rule:
    """Rows of `model` (`app.Model`) that fulfil `where` are deleted by the tick `tick`.

    `where` is SQL about the row `it`, with `%(before)s`: now less what is `kept`, and the same as
    canonical text, `%(before_text)s`. `since` is the column, or the expression, that a row's age
    counts from; `order` is what an index has. `bounds` are the days that KEPT_DAYS may set; None if
    it may not. Rows of `parts` go with their row. `but` says what stays anyway, and `why` it is
    kept at all.
    """

    name: str
    model: str
    kept: timedelta
    where: str
    since: str
    tick: str
    why: str
    but: str = ""
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
    def lasts(self) -> timedelta:
        """How long it is kept here: what KEPT_DAYS says, but never outside of the bounds."""
        days = settings.KEPT_DAYS.get(self.name)
        if days is None or self.bounds is None:
            return self.kept
        least, most = self.bounds
        return min(max(days, least), most) * DAY

    @property
    def _model(self) -> type[Model]:
        return apps.get_model(self.model)


@dataclass(frozen=True)
class Lasting:
    """A table that nothing is deleted from because of its age, and why."""

    model: str
    why: str


_rules: dict[str, Rule] = {}
_lasting: dict[str, Lasting] = {}


def moments(before: datetime) -> dict[str, Any]:
    """What the SQL of rules may name."""
    return {"before": before, "before_text": canonical.timestamp(before)}


def rule(given: Rule) -> Rule:
    """Register a rule. Its name is what KEPT_DAYS calls it."""
    _rules[given.name] = given
    return given


def lasting(why: str, *models: str) -> None:
    """Say of tables (`app.Model`) that age deletes nothing of theirs."""
    for model in models:
        _lasting[model] = Lasting(model, why)


def known() -> Mapping[str, Rule]:
    """Every rule by name, of every installed app."""
    _discover()
    return _rules


def all_lasting() -> Mapping[str, Lasting]:
    _discover()
    return _lasting


def ruled() -> set[str]:
    """The models that a rule is about."""
    return {model for one in known().values() for model in (one.model, *one.parts)}


def wrong(chosen: Mapping[str, int]) -> list[str]:
    """What is wrong with days chosen by name, a sentence each."""
    return [said for name, days in sorted(chosen.items()) for said in _wrong(name, days)]


def _wrong(name: str, days: int) -> Iterable[str]:
    found = known().get(name)
    if found is None:
        yield f"{name} is no rule; manage.py retention has the names."
    elif found.bounds is None:
        yield f"{name} can't be chosen: {found.why}"
    elif not found.bounds[0] <= days <= found.bounds[1]:
        yield f"{name} is kept for {found.bounds[0]} to {found.bounds[1]} days, not for {days}."


@functools.cache
def _discover() -> None:
    autodiscover_modules("retention_rules")
