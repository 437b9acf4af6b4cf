"""Delays between requests: spread out, bounded, and with a way back to the best mode."""

import heapq
import random
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.console import mode_selector, timings
from switchgear.console.mode_selector import ModeSelector

NOW = 1_795_312_800.0
CLIENTS = 1000


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True))
def test_every_pause_is_within_its_range(failures, drawn):
    assert 0 <= timings.backoff_delay(failures, lambda: drawn) <= timings.MAX_SECONDS
    assert 0 <= timings.failure_delay(failures, lambda: drawn, 401) <= timings.REFUSED_MAX_SECONDS
    delay = timings.failure_delay(failures, lambda: drawn, 503, 7.0)
    assert 7 <= delay <= 7 + timings.MAX_SECONDS


def test_pauses_grow_up_to_the_most():
    ceilings = [timings.backoff_delay(failures, lambda: 1.0) for failures in range(1, 8)]
    assert ceilings == [2, 4, 8, 16, 20, 20, 20]
    assert timings.failure_delay(1, lambda: 1.0, hint_seconds=5.0) == 5
    assert timings.failure_delay(1, lambda: 1.0, hint_seconds=1e9) == timings.MAX_SECONDS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("0", 0),
        ("99999999999999999999", 60),
        ("Sun, 22 Nov 2026 02:00:30 GMT", 30),
        ("Sun, 22 Nov 2026 01:00:00 GMT", 0),
        ("Sun, 22 Nov 2099 01:00:00 GMT", 60),
        (None, None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("Sun, 99 Nov 2026 99:99:99 GMT", None),
        ("7" * 5000, None),
    ],
)
def test_what_retry_after_says_is_understood_or_left_aside(text, seconds):
    assert timings.parse_retry_after(text, NOW) == seconds


@given(st.text(max_size=60))
def test_whatever_retry_after_says_nothing_is_raised(text):
    seconds = timings.parse_retry_after(text, NOW)
    assert seconds is None or 0 <= seconds <= 60


def test_polls_differ_by_a_fifth():
    assert timings.poll_delay(5, lambda: 0.0) == 4
    assert timings.poll_delay(5, lambda: 0.5) == 5
    assert timings.poll_delay(5, lambda: 1.0) == 6


def test_what_does_not_carry_is_left_for_some_minutes():
    ladder = ModeSelector(lambda: 0.5)
    for _ in range(mode_selector.STREAM_FAILURES):
        assert ladder.select(0) == "stream"
        ladder.record_failure(0)
    for _ in range(mode_selector.HELD_FAILURES):
        assert ladder.select(1) == "held"
        ladder.record_failure(1)
    assert ladder.select(200) == "poll"
    assert ladder.select(211) == "stream"


def test_each_time_in_vain_the_top_is_tried_later_until_it_carries():
    ladder, now, waited = ModeSelector(lambda: 0.0), 0.0, []
    for _ in range(6):
        ladder.record_failure(now, is_permanent=True)
        began = now
        while ladder.select(now) != "stream":
            now += 1
        waited.append(now - began)
    assert waited == [120, 240, 480, 960, 960, 960]

    ladder.record_success()
    ladder.record_failure(now, is_permanent=True)
    assert ladder.select(now + 119) == "held"
    assert ladder.select(now + 120) == "stream"


def test_a_way_that_has_carried_may_fail_again():
    ladder = ModeSelector(random.random)
    for _ in range(20):
        ladder.record_failure(0)
        ladder.record_failure(0)
        ladder.record_success()
        assert ladder.select(0) == "stream"


def test_who_only_polls_has_nothing_else():
    ladder = ModeSelector(random.random, "poll")
    for _ in range(10):
        ladder.record_failure(0, is_permanent=True)
        assert ladder.select(1e9) == "poll"


@pytest.mark.parametrize("told", [None, 5.0])
def test_a_thousand_clients_whose_console_went_away_do_not_come_back_together(told):
    """All of them fail at one moment and go on to fail for two minutes; 100 ms are looked at."""
    rng = random.Random(9)
    queue = [(0.0, client, 1) for client in range(CLIENTS)]
    bins: Counter[int] = Counter()
    while queue:
        at, client, failures = heapq.heappop(queue)
        if at > 120:
            break
        at += timings.failure_delay(failures, rng.random, 503, told)
        bins[int(at * 10)] += 1
        heapq.heappush(queue, (at, client, failures + 1))
    assert max(bins.values()) <= CLIENTS * 0.1
    late = [bins[tenth] for tenth in range(600, 1200)]
    assert max(late) <= CLIENTS * 0.04


def test_a_date_without_a_zone_is_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Seoul")
    time.tzset()
    try:
        assert timings.parse_retry_after("Sun Nov 22 02:00:30 2026", NOW) == 30
    finally:
        monkeypatch.undo()
        time.tzset()
