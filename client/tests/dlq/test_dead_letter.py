"""Any message becomes one dead letter, whichever consumers compete for it."""

import asyncio
from datetime import UTC, datetime

import pytest
import redis
import redis.asyncio

from switchgear.dlq import Outcome, dead_letter, dead_letter_async
from tests.dlq.streams import GROUP, URL

FAILED = {"error": ValueError("no such order"), "attempts": 3}


def test_message_of_a_group_is_acknowledged_and_keeps_its_fields(stream):
    stream.add(order="17", total="9.50")
    [entry_id] = stream.given_to("w1")
    at = datetime(2026, 7, 1, 12, 30, tzinfo=UTC)

    done = dead_letter(
        stream.redis, stream=stream.name, group=GROUP, entry_id=entry_id, failed_at=at, **FAILED
    )

    assert done.outcome is Outcome.DEAD
    assert stream.redis.xrange(stream.dead)[0][0].decode() == done.new_id
    assert stream.pending == []
    assert stream.letters == [
        [
            (b"order", b"17"),
            (b"total", b"9.50"),
            (b"dlq_error", b"no such order"),
            (b"dlq_error_type", b"ValueError"),
            (b"dlq_attempts", b"3"),
            (b"dlq_original_id", entry_id.encode()),
            (b"dlq_group", GROUP.encode()),
            (b"dlq_failed_at", b"2026-07-01T12:30:00.000Z"),
        ]
    ]


@pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 3}])
def test_any_client_does(stream, options):
    stream.add(blob=b"\xff\x00\xfe")
    [entry_id] = stream.given_to("w1")

    with redis.Redis.from_url(URL, **options) as client:
        done = dead_letter(client, stream=stream.name, group=GROUP, entry_id=entry_id, **FAILED)

    assert done.outcome is Outcome.DEAD
    assert stream.letter[b"blob"] == b"\xff\x00\xfe"


@pytest.mark.parametrize("options", [{}, {"decode_responses": True}, {"protocol": 3}])
def test_any_client_of_asyncio_does(stream, options):
    stream.add(blob=b"\xff\x00\xfe")
    [entry_id] = stream.given_to("w1")

    async def bury():
        async with redis.asyncio.Redis.from_url(URL, **options) as client:
            return await dead_letter_async(
                client, stream=stream.name, group=GROUP, entry_id=entry_id, **FAILED
            )

    done = asyncio.run(bury())

    assert done.outcome is Outcome.DEAD
    assert stream.letter[b"blob"] == b"\xff\x00\xfe"


def test_a_name_that_comes_twice_stays_twice(stream):
    stream.redis.execute_command("XADD", stream.name, "*", "tag", "a", "tag", "b")
    [entry_id] = stream.given_to("w1")

    dead_letter(stream.redis, stream=stream.name, group=GROUP, entry_id=entry_id, **FAILED)

    assert stream.letters[0][:2] == [(b"tag", b"a"), (b"tag", b"b")]


def test_repeated_it_changes_nothing(stream):
    stream.add()
    [entry_id] = stream.given_to("w1")
    arguments = {"stream": stream.name, "group": GROUP, "entry_id": entry_id, **FAILED}
    dead_letter(stream.redis, **arguments)

    again = dead_letter(stream.redis, **arguments)

    assert again.outcome is Outcome.SETTLED
    assert len(stream.letters) == 1


def test_what_another_consumer_took_over_is_left_to_it(stream):
    stream.add()
    [entry_id] = stream.given_to("w2")

    done = dead_letter(
        *[stream.redis],
        stream=stream.name,
        group=GROUP,
        consumer="w1",
        entry_id=entry_id,
        **FAILED,
    )

    assert done.outcome is Outcome.TAKEN
    assert stream.letters == []
    assert [one[1] for one in stream.pending] == ["w2"]


def test_what_the_stream_has_no_more_comes_from_the_caller(stream):
    stream.add(a="1")
    [entry_id] = stream.given_to("w1")
    stream.redis.xdel(stream.name, entry_id)
    arguments = {"stream": stream.name, "group": GROUP, "entry_id": entry_id, **FAILED}

    with pytest.raises(ValueError, match="fields="):
        dead_letter(stream.redis, **arguments)
    assert len(stream.pending) == 1
    done = dead_letter(stream.redis, fields={"a": 1}, **arguments)

    assert done.outcome is Outcome.DEAD
    assert stream.letter[b"a"] == b"1"
    assert stream.pending == []


def test_more_fields_than_a_script_can_add(stream):
    fields = {f"f{number}": str(number) for number in range(5000)}
    stream.add(**fields)
    [entry_id] = stream.given_to("w1")
    arguments = {"stream": stream.name, "group": GROUP, "entry_id": entry_id, **FAILED}

    done = dead_letter(stream.redis, **arguments)
    again = dead_letter(stream.redis, **arguments)

    assert (done.outcome, again.outcome) == (Outcome.DEAD, Outcome.SETTLED)
    assert len(stream.letter) == 5006
    assert stream.pending == []


def test_without_a_group_it_is_only_added(stream):
    done = dead_letter(
        stream.redis, stream=stream.name, fields={"a": "1"}, error="refused", attempts=1
    )

    assert done.outcome is Outcome.DEAD
    assert stream.letter[b"dlq_error"] == b"refused"
    assert b"dlq_group" not in stream.letter


def test_what_an_earlier_retry_added_stays_and_what_an_earlier_failure_added_goes(stream):
    stream.add(a="1", dlq_retry_of="5-0", dlq_retry_count="2", dlq_error="an old one")
    [entry_id] = stream.given_to("w1")

    dead_letter(stream.redis, stream=stream.name, group=GROUP, entry_id=entry_id, **FAILED)

    names = [name for name, _ in stream.letters[0]]
    assert names.count(b"dlq_error") == 1
    assert stream.letter[b"dlq_error"] == b"no such order"
    assert stream.letter[b"dlq_retry_of"] == b"5-0"
    assert stream.letter[b"dlq_retry_count"] == b"2"


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


def test_an_error_that_says_nothing_has_its_kind_at_least(stream):
    dead_letter(stream.redis, stream=stream.name, fields={"a": 1}, error=Unspeakable(), attempts=1)

    assert stream.letter[b"dlq_error"].endswith(b"Unspeakable")


def test_a_long_error_with_half_a_character_is_cut(stream):
    error = ValueError("\ud800" + "x" * 100_000)

    dead_letter(stream.redis, stream=stream.name, fields={"a": 1}, error=error, attempts=1)

    assert stream.letter[b"dlq_error"].startswith(b"\\ud800xxx")
    assert len(stream.letter[b"dlq_error"]) < 3000


def test_an_id_is_needed_for_a_group(stream):
    with pytest.raises(ValueError, match="entry_id"):
        dead_letter(stream.redis, stream=stream.name, group=GROUP, **FAILED)


@pytest.mark.parametrize("value", [None, True, {"a": 1}, ["a"]])
def test_a_value_that_redis_has_no_form_for_is_refused(stream, value):
    with pytest.raises(TypeError, match="not"):
        dead_letter(stream.redis, stream=stream.name, fields={"a": value}, error="x", attempts=1)

    assert stream.letters == []
