"""Retention of trips."""

from datetime import UTC, datetime, timedelta

import pytest

from switches.models import Trip
from switches.tasks import purge_trips

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def trip(at, outcome="refused", **fields):
    return Trip.objects.create(
        switch="segment:a",
        source="s",
        fingerprint="f",
        reason="r",
        outcome=outcome,
        why="w",
        at=at,
        by="machine",
        last_at=fields.pop("last_at", at),
    )


def test_a_trip_that_stopped_a_switch_belongs_to_its_episode_and_stays():
    trip(NOW - 401 * DAY)
    stays = [
        trip(NOW - 401 * DAY, "tripped"),
        trip(NOW - 399 * DAY),
        trip(NOW - 401 * DAY, last_at=NOW - DAY),
    ]

    assert purge_trips(NOW) == 1

    assert list(Trip.objects.order_by("pk")) == stays
