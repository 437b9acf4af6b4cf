"""Numbers and words of one process's stream."""

import orjson

from controlplane.live import stream
from controlplane.live.stream import EventStream

AT = "2026-11-21T02:00:00.000000Z"


def make_stream() -> EventStream:
    ids = iter(("first", "second"))
    return EventStream(["switches", "breakers"], new_id=lambda: next(ids))


def parse_event(text: str) -> dict[str, object]:
    return orjson.loads(text)


def test_each_topic_counts_for_itself_from_one():
    one = make_stream()

    numbers = [
        parse_event(one.number_event(topic, "x.changed", AT, {}))["seq"]
        for topic in ("switches", "switches", "breakers", "switches")
    ]

    assert numbers == [1, 2, 1, 3]


def test_message_has_the_shape_of_the_contract():
    text = make_stream().number_event("breakers", "breaker.changed", AT, {"state": "open"})

    assert parse_event(text) == {
        "topic": "breakers",
        "seq": 1,
        "event": "breaker.changed",
        "at": AT,
        "data": {"state": "open"},
    }


def test_hello_says_where_the_topics_stand_that_are_listened_to():
    one = make_stream()
    one.number_event("switches", "switch.changed", AT, {})

    hello = parse_event(one.hello(["switches"], is_subscribed=True))

    assert hello == {"topic": "hello", "stream": "first", "seq": {"switches": 1}, "live": True}


def test_new_stream_has_another_id_and_counts_anew():
    one = make_stream()
    one.number_event("switches", "switch.changed", AT, {})

    one.restart()

    assert parse_event(one.hello(["switches"], is_subscribed=True))["stream"] == "second"
    assert parse_event(one.number_event("switches", "switch.changed", AT, {}))["seq"] == 1


def test_resync_has_no_number():
    assert parse_event(stream.build_resync("switches")) == {"topic": "switches", "event": "resync"}
