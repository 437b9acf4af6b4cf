"""Ticks: recorded runs, and the effect of a failing one."""

import logging
import math
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import OperationalError, connection

from controlplane.core import ticks
from controlplane.core.clock import db_now
from controlplane.core.models import Tick


@pytest.fixture
def given(monkeypatch):
    """A tick of the test's own: `given(function)` registers it."""
    registry = dict(ticks.list_ticks())
    monkeypatch.setattr(ticks, "_registered", registry)

    def register(function, seconds=1):
        ticks.tick("test.tick", seconds=seconds, queue="test")(function)

    return register


def standing(name="test.tick"):
    (turn,) = [turn for turn in ticks.list_statuses() if turn.tick.name == name]
    return turn


def fail(error):
    def tick(now):
        raise error

    return tick


def test_every_app_has_its_ticks_registered():
    paces = {name: tick.seconds for name, tick in ticks.list_ticks().items()}

    assert paces["outbox.sweep"] == 1
    assert paces["switches.expire"] == 1
    assert paces["approvals.expire"] == 60
    assert paces["idempotency.purge"] == 600


@pytest.mark.django_db
def test_every_tick_runs_on_an_empty_installation(settings):
    # Tests that run at the same time have dead letters in the same Redis.
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, patterns=())
    for name in ticks.list_ticks():
        assert ticks.run(name, "worker") == 0

    assert Tick.objects.count() == len(ticks.list_ticks())


@pytest.mark.django_db
def test_a_tick_gets_the_databases_time_and_its_turn_is_noted(given):
    recorded = []
    given(lambda now: recorded.append(now) or 3)
    before = db_now()

    assert ticks.run("test.tick", "worker") == 3

    row = Tick.objects.get(name="test.tick")
    assert before <= recorded[0] <= row.ran_at <= db_now()
    assert row.ran_by == "worker"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("writes", [True, False])
def test_a_read_only_database_takes_no_turn_and_needs_nobody(given, caplog, writes):
    given(lambda now: Tick.objects.create(name="x", ran_at=now, ran_by="x") if writes else 0)
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")

    assert ticks.run("test.tick", "worker") == 0

    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
    assert "tick.postponed" in caplog.text
    assert math.isinf(standing().late_seconds)


@pytest.mark.django_db
def test_a_tick_that_raises_is_logged_and_waits_for_its_next_turn(given, caplog):
    given(fail(ValueError("a mistake")), seconds=600)

    assert ticks.run("test.tick", "worker") == 0

    (record,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert "tick.failed" in record.getMessage()
    assert "test.tick" in record.getMessage()
    assert standing().late_seconds == 0


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_takes_no_turn_and_needs_nobody(given, caplog):
    given(fail(OperationalError("server closed the connection")))

    assert ticks.run("test.tick", "worker") == 0

    assert not Tick.objects.filter(name="test.tick").exists()
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


@pytest.mark.django_db
@pytest.mark.parametrize(("ran_before", "late"), [(5, 0), (10, 0), (17, 7), (3600, 3590)])
def test_lateness_counts_from_when_the_tick_was_due(given, ran_before, late):
    given(lambda now: 0, seconds=10)
    ran_at = db_now() - timedelta(seconds=ran_before)
    Tick.objects.create(name="test.tick", ran_at=ran_at, ran_by="worker")

    assert late <= standing().late_seconds < late + 1


@pytest.mark.django_db
def test_a_tick_that_never_ran_is_late(given):
    given(lambda now: 0, seconds=24 * 3600)

    assert standing().late_seconds == float("inf")


@pytest.mark.django_db
def test_a_tick_that_ran_before_the_clock_was_set_back_is_late(given):
    given(lambda now: 0, seconds=10)
    ran_at = db_now() + timedelta(minutes=20)
    Tick.objects.create(name="test.tick", ran_at=ran_at, ran_by="worker")

    assert standing().late_seconds == float("inf")
