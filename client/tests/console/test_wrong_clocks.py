"""A wrong clock, here or in a `Date`, ends no engagement early."""

import email.utils
import time
from datetime import UTC, datetime

import pytest

from switchgear import Switchgear
from tests.console.follower_parts import following
from tests.fake_console import TOKEN, console, honest
from tests.wait_helpers import wait_until

HOURS = 3600.0


def in_an_hour(ahead_seconds: float = 0.0) -> str:
    return datetime.fromtimestamp(time.time() + ahead_seconds + HOURS, UTC).isoformat()


def dated(ahead_seconds: float) -> str:
    return email.utils.formatdate(time.time() + ahead_seconds, usegmt=True)


class Proxy:
    """Dates the `numbers`-th answers to plain questions two hours ahead."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers
        self.count = 0

    def __call__(self, exchange) -> None:
        self.count += 1
        honest(exchange, date=dated(2 * HOURS if self.count in self.numbers else 0.0))


@pytest.mark.parametrize("number", [1, 2, 5])
def test_one_wrong_date_ends_no_engagement(number):
    proxy = Proxy(number)
    with console(lie=proxy) as there:
        there.engage("feature:chat", on_expiry="release", expires_at=in_an_hour())
        with following(there, stream=False) as here:
            wait_until(lambda: proxy.count >= number, 20)
            wait_until(lambda: here.follower.way == "poll", 20)

            assert here.blocks("chat")


def test_copy_on_disk_without_a_console_holds_whatever_the_local_clock_shows(tmp_path):
    with console() as there:
        there.engage("feature:chat", on_expiry="release", expires_at=in_an_hour(-2 * HOURS))
        with following(there, state_dir=tmp_path):
            wait_until(lambda: list(tmp_path.glob("*.snapshot")), 10)
    with Switchgear(there.url, TOKEN, service="core", state_dir=tmp_path) as gear:
        assert gear.status().source == "disk"
        assert not gear.allowed(feature="chat")


def test_engagement_ends_by_a_console_whose_answers_agree():
    with console(ahead_seconds=HOURS) as there:
        there.engage("feature:chat", on_expiry="release", expires_at=in_an_hour(-6))
        with following(there, stream=False) as here:
            wait_until(lambda: not here.blocks("chat"), 20)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "held"])
def test_engagement_behind_a_clock_half_a_minute_ahead_lasts_its_whole_time(stream):
    """The clock is as wrong as an old data plane's `Date` may be without being detected."""

    def ahead(exchange):
        honest(exchange, date=dated(30.0))

    with console(lie=ahead) as there, following(there, stream=stream) as here:
        wait_until(lambda: here.store.clock.release_now() is not None, 20)
        there.engage("feature:chat", on_expiry="release", expires_at=in_an_hour(15 - HOURS))
        wait_until(lambda: here.store.snapshot.version == there.version, 20)

        lapses_at = here.store.snapshot.entries["feature:chat"].lapses_at

        assert here.store.clock.release_now() < lapses_at - 15
        assert here.blocks("chat")


def test_engagement_made_behind_a_proxy_that_is_always_ahead_holds():
    """The new version says itself when it was published."""
    proxy = Proxy(*range(1000))
    with console(lie=proxy) as there, following(there, stream=False) as here:
        wait_until(lambda: here.store.clock.release_now() is not None, 20)
        there.engage("feature:chat", on_expiry="release", expires_at=in_an_hour())
        wait_until(lambda: here.store.snapshot.version == there.version, 20)

        assert here.blocks("chat")
