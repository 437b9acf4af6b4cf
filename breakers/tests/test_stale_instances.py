"""Tests that open pages are notified of instances that stop reporting."""

from datetime import timedelta

import pytest
from django.db import transaction

from breakers.states import stale_instances
from controlplane.core.models import Tick

from .fleet import NOW, SECOND, dependency, reports

pytestmark = pytest.mark.django_db


def turned(ago: timedelta) -> None:
    Tick.objects.create(name=stale_instances.TICK, ran_at=NOW - ago, ran_by="worker")


@pytest.mark.parametrize(
    ("silent_for", "told"),
    [(29, 0), (31, 1), (34, 1), (49, 1), (51, 0), (299, 0), (301, 1), (319, 1), (321, 0)],
)
def test_whoever_turned_stale_or_is_gone_since_the_last_turn_is_told(silent_for, told):
    turned(5 * SECOND)
    dependency()
    reports("core/a1", at=NOW - silent_for * SECOND)

    assert stale_instances.notify_stale(NOW) == told


def test_whoever_turned_stale_while_the_last_turn_was_under_way_is_told():
    """The last run began before, and was noted when it had ended."""
    turned(2 * SECOND)
    dependency()
    reports("core/a1", at=NOW - 33 * SECOND)

    assert stale_instances.notify_stale(NOW) == 1


def test_it_is_told_as_a_note_to_open_pages(django_capture_on_commit_callbacks):
    turned(5 * SECOND)
    dependency()
    reports("core/a1", at=NOW - 32 * SECOND)

    with django_capture_on_commit_callbacks() as notes, transaction.atomic():
        stale_instances.notify_stale(NOW)

    assert len(notes) == 1


@pytest.mark.parametrize(
    ("ago", "told"),
    [(timedelta(seconds=59), 0), (timedelta(seconds=61), 1), (timedelta(hours=1), 1), (None, 1)],
)
def test_after_a_long_pause_everything_is_to_be_read_anew_whoever_fell_silent(
    ago, told, django_capture_on_commit_callbacks
):
    if ago is not None:
        turned(ago)

    with django_capture_on_commit_callbacks() as notes, transaction.atomic():
        stale_instances.notify_stale(NOW)

    assert len(notes) == told
