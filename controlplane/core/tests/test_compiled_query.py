"""Querysets that are compiled once and executed at other times."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Count, Q, QuerySet, Value

from controlplane.core import compiled_query
from controlplane.core.clock import db_now
from controlplane.core.models import Tick

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
built: list[str] = []


def late(now: Any) -> QuerySet[Tick, Any]:
    built.append("late")
    rows = Tick.objects.filter(ran_at__lte=now - HOUR).order_by().annotate(all=Value(1))
    return rows.values("all").annotate(late=Count("pk")).values_list("late")


def watchdog(_now: Any) -> QuerySet[Tick, Any]:
    found = Tick.objects.filter(Q(ran_by="watchdog")).order_by("name")
    return found.values_list("name", "ran_at")


def test_time_of_execution_takes_part_though_it_is_compiled_once() -> None:
    built.clear()
    compiled_query._compile.cache_clear()
    now = db_now()
    Tick.objects.create(name="jobs.turn", ran_at=now, ran_by="worker")

    found = [compiled_query.fetch_first(at, late)["late"] for at in (now, now + HOUR)]

    assert found == [0, 1]
    assert built == ["late"]


def test_first_rows_of_several_querysets_come_by_their_columns() -> None:
    now = db_now()
    for name in ("b", "a"):
        Tick.objects.create(name=name, ran_at=now, ran_by="watchdog")

    found = compiled_query.fetch_first(now, late, watchdog)

    assert found == {"late": 0, "name": "a", "ran_at": now}


def test_columns_of_a_queryset_without_rows_are_none() -> None:
    assert compiled_query.fetch_first(db_now(), watchdog) == {"name": None, "ran_at": None}
