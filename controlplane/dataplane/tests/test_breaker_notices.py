"""Subscribers are notified of breaker changes, or that they missed some."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
import redis
from django.conf import settings

from controlplane.core.live import change_notices
from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.dataplane.ingest.breaker_notices import BreakerNotices
from controlplane.dataplane.tests.breaker_reports import (
    NEXT_BOOT,
    Reporting,
    at_work,
    breaker,
    make_report,
)
from controlplane.dataplane.tests.conftest import Following
from controlplane.dataplane.tests.lines import wait_until

__all__ = ["at_work"]
pytestmark = pytest.mark.usefixtures("published")

Hear = Callable[[float], list[list[str] | None]]


@pytest.fixture
def caller() -> str:
    return f"c{uuid4().hex}"  # Others use the same channel.


@pytest.fixture
def hear(caller: str) -> Iterator[Hear]:
    """Listen for so many seconds; return the names in our first message, None for missed ones."""
    client = redis.Redis.from_url(settings.REDIS_URL)
    channel = client.pubsub()
    channel.subscribe(LIVE_CHANNEL)
    channel.get_message(timeout=1)

    def hear_all(within: float) -> list[list[str] | None]:
        ends = time.monotonic() + within
        while time.monotonic() < ends:
            message = channel.get_message(timeout=0.05)
            if message is None or message["type"] != "message":
                continue
            if message["data"] == MISSED_NOTE:
                return [None]
            names = [
                name for name in change_notices.decode_notice(message["data"])[1] if caller in name
            ]
            if names:
                return [names]
        return []

    yield hear_all
    channel.close()
    client.close()


@pytest.mark.slow
def test_what_changed_is_told_by_name(at_work: Reporting, caller: str, hear: Hear) -> None:
    one, two = f"{caller}->one", f"{caller}->two"

    def heard_after(seq: int, after: float = 0, within: float = 3, **more: object) -> list[object]:
        at_work.report(make_report(breaker(one, **more), breaker(two), seq=seq), after=after)
        return hear(within)

    assert heard_after(1) == [[one, two]]
    assert heard_after(2, state="open") == [[one]]
    assert heard_after(3, state="open", within=1.1) == []
    assert heard_after(4, state="open", failure_rate=0.9) == [[one]]
    assert heard_after(5, state="open", failure_rate=0.9, after=31) == [[one, two]]  # Stale before.


def test_a_breaker_that_a_new_boot_has_no_more_is_told(
    at_work: Reporting, caller: str, hear: Hear
) -> None:
    one, two = f"{caller}->one", f"{caller}->two"
    at_work.report(make_report(breaker(one, state="open"), breaker(two)))
    assert hear(3) == [[one, two]]

    new = {"boot": str(NEXT_BOOT), "started_at": "2026-11-21T11:59:59Z"}
    at_work.report(make_report(breaker(two), **new), after=2)

    assert hear(3) == [[one, two]]


def test_a_breaker_that_is_left_out_is_told_once(
    at_work: Reporting, caller: str, hear: Hear
) -> None:
    one, two = f"{caller}->one", f"{caller}->two"
    at_work.report(make_report(breaker(one, state="open"), breaker(two)))
    assert hear(3) == [[one, two]]

    at_work.report(make_report(breaker(two), seq=2))
    assert hear(3) == [[one]]

    at_work.report(make_report(breaker(two), seq=3))
    assert hear(1.1) == []


@pytest.mark.slow
def test_whoever_listens_learns_that_notes_were_missed_once_redis_is_back(
    at_work: Reporting, caller: str, hear: Hear, idle: Following
) -> None:
    name = f"{caller}->one"
    at_work.report(make_report(breaker(name)))
    assert hear(3) == [[name]]

    idle.redis.cut()
    at_work.report(make_report(breaker(name, state="open"), seq=2))
    wait_until(lambda: at_work.ledger._breaker_writer.notices.has_lost_notices, 3)
    idle.redis.mend()

    assert hear(6) == [None]  # Sent without further changes.
    assert hear(1.1) in ([], [[name]])  # Changes in between may be included.
    assert hear(1.1) == []


def test_names_for_which_there_is_no_room_are_owed() -> None:
    notices = BreakerNotices(most=2)

    notices.announce(["a->b", "a->c"], [])
    assert not notices.has_lost_notices
    notices.announce(["a->d"], [])

    assert notices.has_lost_notices
