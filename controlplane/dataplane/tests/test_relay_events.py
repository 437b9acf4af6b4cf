"""Events of an upstream: their bytes, and the times that its confirmations mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.dataplane.relay.confirmations import StreamClock
from controlplane.dataplane.relay.event_stream import Event, EventParser, EventTooLarge

STREAM = (
    b"retry: 1500\n\n: nothing new\n\nevent: bundle\ndata: {}\n\n"
    b"event: confirm\nid: 7\ndata: 1\ndata: 2\n\nevent: orders\ndata:[]\n\n"
)
EVENTS = [Event("bundle", b"{}"), Event("confirm", b"1\n2"), Event("orders", b"[]")]
seconds = st.floats(0, 1e6)


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_don_t_depend_on_the_chunks_they_come_in(ends: list[int]) -> None:
    parser, begin, found = EventParser(), 0, []
    for end in [*sorted(ends), len(STREAM)]:
        found += parser.feed(STREAM[begin:end])
        begin = end

    assert found == EVENTS


def test_an_event_without_an_end_is_not_kept_for_ever() -> None:
    parser = EventParser(max_bytes=100)
    parser.feed(b"event: bundle\ndata: " + b"x" * 50)

    with pytest.raises(EventTooLarge):
        parser.feed(b"x" * 60)


@given(
    requested_at=seconds,
    ahead=st.floats(-1e6, 1e6),
    answer_seconds=st.floats(0, 10),
    ways=st.lists(st.tuples(st.floats(0, 10), st.floats(0, 600)), min_size=1, max_size=8),
)
def test_a_confirmation_never_looks_younger_than_it_is(
    requested_at: float, ahead: float, answer_seconds: float, ways: list[tuple[float, float]]
) -> None:
    """Each confirmation is made some time after the last one, and takes some time to arrive."""
    clock, made_at, arrived_at = StreamClock(requested_at), requested_at + answer_seconds, 0.0
    for pause, way_seconds in ways:
        made_at += pause
        arrived_at = max(arrived_at, made_at + way_seconds)

        believed = clock.convert(made_at + ahead, arrived_at)

        assert believed <= made_at + 1e-6
        assert believed >= made_at - answer_seconds - ways[0][0] - 1e-6


@given(seconds, st.floats(1, 2))
def test_a_faster_clock_of_the_upstream_confirms_nothing_in_the_future(
    requested_at: float, rate: float
) -> None:
    clock = StreamClock(requested_at)
    for step in range(5):
        now = requested_at + step

        assert clock.convert(step * rate, now) <= now
