"""Events are read whole, however the network cuts them, and never without bound."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.console.event_stream import EventStreamParser, EventTooLarge, ServerSentEvent

STREAM = (
    b"\xef\xbb\xbfretry: 1500\n\n: a comment\r\n\r\n"
    b'id: e.1\revent: snapshot\rdata: {"a":1}\r\r'
    b"data:one\r\ndata: two\r\ndata\r\n\r\n"
    b"event: lost\n\nnobody: knows\ndata:  x\n\n"
    b"data: not ended"
)
EVENTS = [
    ServerSentEvent("snapshot", b'{"a":1}'),
    ServerSentEvent("message", b"one\ntwo\n"),
    ServerSentEvent("message", b" x"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_however_it_is_cut_the_same_events_come(cuts):
    parser, events = EventStreamParser(), []
    edges = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(edges):
        events += parser.feed(STREAM[start:end])
    assert events == EVENTS
    assert parser.retry_seconds == 1.5
    assert parser.is_within


@given(st.lists(st.binary(max_size=40)))
def test_whatever_comes_nothing_is_raised_and_little_is_held(pieces):
    parser = EventStreamParser(max_bytes=10_000)
    for piece in pieces:
        parser.feed(piece)
    assert parser._size_bytes <= 10_000


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: " + b"x" * 94, b"data: x\n", b"data:\n"])
def test_an_event_without_an_end_is_refused(piece):
    parser = EventStreamParser(max_bytes=1000)
    for _ in range(5):
        parser.feed(piece)
    with pytest.raises(EventTooLarge):
        parser.feed(piece * 1000)


def test_events_that_end_may_be_any_number():
    parser = EventStreamParser(max_bytes=100)
    assert sum(len(parser.feed(b"data: 12345678\n\n: no\n")) for _ in range(1000)) == 1000
    assert not parser.is_within
    assert parser.idle_bytes >= 4000


@pytest.mark.parametrize("hint", [b"soon", b"-1", b"1.5", b"", b"9" * 5000, "٣".encode()])
def test_a_hint_that_makes_no_sense_is_left_aside(hint):
    parser = EventStreamParser()
    parser.feed(b"retry: 700\n\nretry: " + hint + b"\n\n")
    assert parser.retry_seconds == 0.7


def test_an_event_of_many_lines_takes_no_longer_for_each_of_them():
    parser = EventStreamParser()
    began = time.thread_time()
    for _ in range(10):
        parser.feed(b"data:\n" * 10_000)
    assert time.thread_time() - began < 10  # It was minutes.
    assert parser.feed(b"\n") == [ServerSentEvent("message", b"\n" * 99_999)]


def test_lines_are_counted_with_what_it_takes_to_hold_them():
    parser = EventStreamParser(max_bytes=10_000)
    with pytest.raises(EventTooLarge):
        parser.feed(b"data:\n" * 1000)
