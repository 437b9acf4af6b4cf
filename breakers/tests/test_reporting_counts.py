"""Counts that need no whole board agree with the board's."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from breakers.dead_letters.runbook_status import count_open_breakers
from breakers.models import Dependency
from breakers.states.board import BreakerBoardFilter, load_page
from breakers.states.reporting_counts import load_reporting_counts, was_reported
from controlplane.core.configuration.models import SampleEntry

from .fleet import MINUTE, NOW, SECOND, dependency, reports

pytestmark = pytest.mark.django_db


@pytest.fixture
def fleet():
    """Dependencies that are reported, reported late, no longer, by an earlier boot, or never."""
    for callee in ("open", "half", "mixed", "stale", "absent", "restarted"):
        dependency(f"core->{callee}")
    dependency("core->never", criticality="low")
    sample = dependency("core->sample")
    SampleEntry.objects.create(kind="dependency", name=sample.name, loaded_at=sample.changed_at)
    reports("core/a1", "open", of="core->open")
    reports("core/a1", "half_open", of="core->half")
    reports("core/a1", of="core->mixed")
    reports("core/a2", "half_open", of="core->mixed", at=NOW - MINUTE)
    reports("core/a3", "half_open", of="core->stale", at=NOW - 31 * SECOND)
    reports("core/a4", of="core->absent", at=NOW - 6 * MINUTE)
    restarted = reports("core/a5", of="core->restarted")
    restarted.boot = uuid4()
    restarted.save()
    removed = dependency("core->gone", removed_at=NOW)
    reports("core/a1", of=removed.name)


def test_reporting_counts_are_those_of_the_board(fleet):
    board = load_page(BreakerBoardFilter(), (), NOW).counts

    with CaptureQueriesContext(connection) as queries:
        counts = load_reporting_counts(NOW)

    assert len(queries) == 3
    assert (counts.known, counts.reported) == (board.known, board.reported) == (8, 3)
    assert counts.unused_samples == board.unused_samples == 1
    assert counts.in_the_dark == board.in_the_dark == 3
    assert counts.silent == board.silent == 4


def test_runbook_counts_open_and_half_open_dependencies_like_the_board(fleet):
    board = load_page(BreakerBoardFilter(), (), NOW).counts

    (line,) = count_open_breakers(NOW)

    assert line.text == f"Breakers: {board.open} open, {board.half_open} half-open"
    assert (board.open, board.half_open) == (1, 2)


def test_runbook_says_nothing_about_breakers_while_all_are_closed():
    dependency()
    reports()

    assert not count_open_breakers(NOW)


def test_totals_prove_reports_whose_minutes_are_deleted():
    dependency("core->tripped", trips_total=1)
    dependency("core->fallback", fallback_total=1)
    dependency("core->never")

    found = Dependency.objects.filter(was_reported())

    assert {one.callee for one in found} == {"tripped", "fallback"}
