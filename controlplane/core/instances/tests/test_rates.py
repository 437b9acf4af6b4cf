"""Per-minute call counters: no loss, and the same rate as a plain list of calls."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.instances import rates

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

moments = st.integers(0, 600_000).map(lambda ms: NOON + timedelta(milliseconds=ms))
calls = st.tuples(moments, st.integers(0, 50), st.integers(0, 50))


def entry_of(events: list[tuple[datetime, int, int]]) -> dict[str, object]:
    entry = None
    for at, allowed, blocked in events:
        entry = rates.add_calls(entry, allowed, blocked, at)
    assert entry is not None
    return json.loads(json.dumps(entry))


def rate_of(events: list[tuple[datetime, int]], at: datetime) -> float:
    """The same from a plain list: this minute's calls, and the last one's by their part."""
    minute = at.replace(second=0, microsecond=0)
    now = sum(n for when, n in events if minute <= when)
    before = sum(n for when, n in events if minute - timedelta(minutes=1) <= when < minute)
    return (now + before * (1 - (at - minute).total_seconds() / 60)) / 60


@given(st.lists(calls, min_size=1))
def test_calls_in_order_give_the_rate_of_a_plain_list(
    events: list[tuple[datetime, int, int]],
) -> None:
    events.sort(key=lambda event: event[0])
    last = events[-1][0]

    entry = entry_of(events)

    for later in (0, 20, 59, 61, 119, 121):
        at = last + timedelta(seconds=later)
        expected = rate_of([(when, a + b) for when, a, b in events], at)
        assert rates.per_second(entry, at) == pytest.approx(expected, abs=1e-6)
        expected = rate_of([(when, b) for when, a, b in events], at)
        assert rates.blocked_per_second(entry, at) == pytest.approx(expected, abs=1e-6)


@given(st.lists(calls, min_size=1).flatmap(lambda c: st.tuples(st.just(c), st.permutations(c))))
def test_calls_in_any_order_add_up(
    both: tuple[list[tuple[datetime, int, int]], list[tuple[datetime, int, int]]],
) -> None:
    events, shuffled = both

    entry = entry_of(shuffled)

    assert entry["allowed"] == sum(a for _, a, _ in events)
    assert entry["blocked"] == sum(b for _, _, b in events)
    assert rates.last_seen(entry) == max(at for at, _, _ in events)
    assert entry["minute"] == max(int(at.timestamp() // 60) for at, _, _ in events)


@given(moments, st.integers(1, 100_000), st.integers(0, 100_000), st.floats(0.001, 20_000))
def test_calls_over_a_time_never_seem_faster_than_they_were(
    at: datetime, allowed: int, blocked: int, seconds: float
) -> None:
    since = at - timedelta(seconds=seconds)

    entry = rates.add_calls(None, allowed, blocked, at, since)

    true = (allowed + blocked) / max(seconds, 60)
    assert rates.per_second(entry, at) <= true + 2 / 60
    assert entry["allowed"] == allowed


def test_an_hour_of_calls_told_at_once_is_their_even_rate() -> None:
    entry = rates.add_calls(None, 36_000, 3_600, NOON, NOON - timedelta(hours=1))

    assert rates.per_second(entry, NOON) == pytest.approx(11, abs=0.1)
    assert rates.blocked_per_second(entry, NOON) == pytest.approx(1, abs=0.1)


def test_two_silent_minutes_are_a_rate_of_zero() -> None:
    entry = rates.add_calls(None, 600, 0, NOON)

    assert rates.per_second(entry, NOON + timedelta(seconds=119.9)) > 0
    assert rates.per_second(entry, NOON + timedelta(seconds=120)) == 0


def test_counts_stop_where_json_readers_do() -> None:
    entry = rates.add_calls(None, rates.MAX_CALLS, rates.MAX_CALLS, NOON)
    entry = rates.add_calls(entry, rates.MAX_CALLS, 1, NOON)

    assert {entry["allowed"], entry["blocked"], entry["now"]} == {rates.MAX_CALLS}


def test_counting_leaves_the_entry_it_was_given_alone() -> None:
    first = rates.add_calls(None, 1, 1, NOON)
    kept = dict(first)

    rates.add_calls(first, 5, 5, NOON + timedelta(minutes=1))

    assert first == kept
