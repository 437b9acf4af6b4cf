"""Messages to and from live sockets of a real web process."""

import time

import httpx
import pytest

from controlplane.tests.console_sockets import (
    ends_with,
    hears,
    hears_each,
    publish,
    receive_message,
)
from switches.tests.browsers import engaged

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(60)]


def test_program_is_greeted_and_told_of_a_change_within_a_moment(console, reader):
    with console.listen(reader) as listening:
        hello = receive_message(listening)
        engaged("segment:told")
        committed = time.monotonic()

        note = hears(listening, "switches", id="segment:told")

    assert time.monotonic() - committed < 1
    assert hello["topic"] == "hello"
    assert set(hello["seq"]) == {"switches", "ramps", "degradation"}
    assert note["event"] == "switch.changed"
    assert note["seq"] > hello["seq"]["switches"]
    assert note["data"]["state"] == "engaged"


def test_two_sockets_are_told_the_same_in_the_same_order(console, reader):
    with console.listen(reader) as one, console.listen(reader) as other:
        assert receive_message(one)["stream"] == receive_message(other)["stream"]

        for number in range(5):
            engaged(f"segment:s{number}")
        last = [hears(each, "switches", id="segment:s4") for each in (one, other)]

    assert last[0] == last[1]


def test_burst_of_notes_is_one_message_and_numbers_have_no_gap(console, reader):
    engaged("segment:burst")
    with console.listen(reader) as listening:
        before = receive_message(listening)["seq"]["switches"]
        publish(*[{"topic": "switches", "ids": ["segment:burst"]}] * 200)
        publish({"topic": "switches", "ids": ["segment:unheard-of"]})

        recorded = []
        while not recorded or recorded[-1]["data"]["id"] != "segment:unheard-of":
            recorded.append(hears(listening, "switches"))

    assert [each["seq"] for each in recorded] == list(range(before + 1, before + 1 + len(recorded)))
    # A few on an idle machine; a busy one spreads the 200 notes over more intervals.
    assert sum(each["data"]["id"] == "segment:burst" for each in recorded) < 50
    assert recorded[-1]["event"] == "switch.removed"


def test_socket_narrows_and_hears_of_what_it_may_not(console, reader):
    with console.listen(reader) as listening:
        receive_message(listening)
        listening.send('{"subscribe": ["dlq"]}')
        refused = hears(listening, "error")
        listening.send('{"subscribe": ["ramps"]}')
        listening.send('{"subscribe": "ramps"}')
        assert hears(listening, "error")["event"] == "error"

        engaged("segment:not-told")

        with pytest.raises(TimeoutError):
            hears(listening, "switches", 0.7, id="segment:not-told")
    assert "dlq" in refused["detail"]


def test_topic_that_is_listened_to_again_is_to_be_read_anew(console, reader):
    with console.listen(reader) as listening:
        receive_message(listening)
        listening.send('{"subscribe": ["ramps"]}')
        time.sleep(0.2)
        engaged("segment:missed")
        time.sleep(0.5)

        listening.send('{"subscribe": ["ramps", "switches"]}')

        assert hears(listening, "switches") == {"topic": "switches", "event": "resync"}
        engaged("segment:told-again")
        assert hears(listening, "switches", id="segment:told-again")


def test_socket_that_says_too_much_is_closed(console, reader):
    with console.listen(reader) as listening:
        began = time.monotonic()
        for _ in range(20):
            listening.send('{"subscribe": ["ramps"]}')
        with pytest.raises(TimeoutError):
            hears(listening, "switches", seconds=0.2)
        for _ in range(int(time.monotonic() - began) + 1):
            listening.send('{"subscribe": ["ramps"]}')

        assert ends_with(listening) == 1008


@pytest.mark.parametrize(
    ("sent", "code"), [("{", 1003), (b"{}", 1003), ('"' + "x" * 4096 + '"', 1009)]
)
def test_what_is_no_message_closes_the_socket(console, reader, sent, code):
    with console.listen(reader) as listening:
        listening.send(sent)

        assert ends_with(listening) == code


def test_lost_redis_is_told_and_its_return_begins_a_new_stream(console, reader):
    with console.listen(reader) as listening:
        stream = receive_message(listening)["stream"]
        console.redis.cut()
        try:
            lost = hears(listening, "degradation", level=2)
        finally:
            console.redis.mend()
        again = hears(listening, "hello")
        engaged("segment:back")
        note = hears(listening, "switches", id="segment:back")

    assert lost["data"]["effects"][0]["what"] == "redis"
    assert again["stream"] != stream
    assert again["seq"]["switches"] == 0
    assert note["seq"] >= 1


def test_notes_that_are_none_are_passed_over(console, reader):
    with console.listen(reader) as listening:
        publish([], 7, {"topic": "nothing", "ids": ["x"]}, {"topic": "ramps", "ids": ["no-number"]})
        engaged("segment:after-noise")

        assert hears(listening, "switches", id="segment:after-noise")


def test_socket_that_is_not_read_is_told_to_read_anew_and_delays_nobody(console, reader):
    long = "x" * 8000
    lazy = {"max_queue": 1, "ping_interval": None, "close_timeout": 1}
    with console.listen(reader, **lazy) as slow, console.listen(reader) as quick:
        for batch in range(3):
            ids = [f"{batch}-{n}-{long}" for n in range(350)]
            publish({"topic": "switches", "ids": ids})
            time.sleep(0.1)
        engaged("segment:quick")
        assert hears(quick, "switches", seconds=20, id="segment:quick")

        recorded = []
        while not recorded or recorded[-1].get("event") != "resync":
            recorded.append(hears(slow, "switches", seconds=20))
        engaged("segment:slow")
        assert hears(slow, "switches", id="segment:slow")

    numbers = [each["seq"] for each in recorded[:-1]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_burst_of_a_thousand_is_told_to_whoever_reads_without_a_gap(console, reader):
    with console.listen(reader) as one, console.listen(reader) as other:
        before = receive_message(one)["seq"]["switches"]
        receive_message(other)
        for start in range(0, 1_000, 200):
            ids = [f"segment:burst-{n}" for n in range(start, start + 200)]
            publish({"topic": "switches", "ids": ids})

        received = [[hears(each, "switches") for _ in range(1_000)] for each in (one, other)]

    for notes in received:
        assert [each["seq"] for each in notes] == list(range(before + 1, before + 1_001))


def test_page_over_http_is_served_while_sockets_are_open(console, reader):
    with console.listen(reader):
        response = httpx.get(f"{console.server.url}/health/live", timeout=5)

    assert response.status_code == 200


@pytest.mark.slow
def test_lost_database_leaves_sockets_open_and_what_changed_is_told_when_it_is_back(
    console, reader
):
    engaged("segment:meanwhile")
    with console.listen(reader) as listening:
        receive_message(listening)
        console.database.cut()
        try:
            lost = hears(listening, "degradation", seconds=10, level=3)
            publish({"topic": "switches", "ids": ["segment:meanwhile"]})
            with console.listen(reader) as another:
                assert receive_message(another)["topic"] == "hello"
        finally:
            console.database.mend()
        # Lanes read again as soon as PostgreSQL answers, whichever of the two is told first.
        after = {"degradation": {"level": 0}, "switches": {"id": "segment:meanwhile"}}
        notes = hears_each(listening, after)["switches"]

    assert lost["data"]["effects"][0]["what"] == "postgresql"
    assert notes["data"]["state"] == "engaged"
