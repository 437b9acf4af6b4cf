"""The time on every answer: PostgreSQL's, whatever the local clock shows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from controlplane.dataplane.memory.served_copy import Copy
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.served import BEARER, EPOCH, ask, plane
from switches.snapshot import SnapshotVersion
from switches.tests.snapshots import make_entry

NOON = datetime(2031, 3, 9, 12, 0, tzinfo=UTC)
"""PostgreSQL's time: years ahead of the local clock."""


def dated(served: Plane, now: datetime = NOON) -> Plane:
    served.state.set_clock(now, asked_at=served.state.now())
    return served


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/api/v1/snapshot", BEARER, 200),
        ("GET", "/api/v1/snapshot", BEARER | {"If-None-Match": "*"}, 304),
        ("GET", "/api/v1/snapshot", {}, 401),
        ("GET", "/health/ready/data", {}, 200),
    ],
)
def test_every_answer_has_the_time_of_the_database(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    response = ask(dated(plane("segment:finance")), method, path, headers)

    assert response.status_code == status
    assert 0 <= float(response.headers["Switchgear-Time"]) - NOON.timestamp() < 5
    assert abs(parsedate_to_datetime(response.headers["Date"]) - NOON) < timedelta(seconds=5)


def test_without_a_time_of_the_database_the_answer_says_so() -> None:
    response = ask(plane("segment:finance"), "GET", "/api/v1/snapshot", BEARER)

    assert response.headers["Switchgear-Time"] == "unknown"
    assert "Date" not in response.headers


def test_time_headers_follow_the_monotonic_clock() -> None:
    seconds = [100.0]
    state = State(lambda: seconds[0])
    state.set_clock(NOON, asked_at=100.0)

    before = dict(state.time_headers())
    seconds[0] += 61.25
    after = dict(state.time_headers())

    assert before[b"date"] == b"Sun, 09 Mar 2031 12:00:00 GMT"
    assert after[b"date"] == b"Sun, 09 Mar 2031 12:01:01 GMT"
    assert float(after[b"switchgear-time"]) == NOON.timestamp() + 61.25


@pytest.mark.parametrize(("knows_time", "is_allowed"), [(False, False), (True, True)])
def test_an_expired_engagement_ends_only_by_the_time_of_the_database(
    knows_time: bool, is_allowed: bool
) -> None:
    served = plane()
    ended = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
    entry = replace(make_entry("segment:finance"), expires_at=ended, on_expiry="release")
    served.state.install_copy(Copy.render(SnapshotVersion(EPOCH, 18, ended), [entry]), 0.0)
    if knows_time:
        dated(served)

    response = ask(served, "POST", "/api/v1/check", BEARER, content=b'{"segments":["finance"]}')

    assert response.json()["allowed"] is is_allowed
