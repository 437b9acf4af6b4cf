"""The index of what lies in a stream."""

from datetime import UTC, datetime

import pytest

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, GroupDay, Letter
from breakers.dead_letters.monitoring import groups, indexer
from breakers.dead_letters.tests.heaps import compute_fingerprint
from breakers.tests.fleet import HOUR, MINUTE, NOW, SECOND

from .removal_helpers import entry

pytestmark = pytest.mark.django_db
MS = int(NOW.timestamp() * 1000)


def departed(stream, entry_id, *, state="done", done_at=NOW - MINUTE, **more):
    Departure.objects.create(
        stream=stream,
        position=ids.to_position(entry_id),
        action="discard" if state.startswith("rest") else "retry",
        state=state,
        fields=b"[]",
        by="user:kim",
        intended_at=NOW - MINUTE,
        done_at=done_at,
        **more,
    )


def alike(letters, stream, entry_id):
    """Return the archived fields of a letter like this one."""
    found = entry(stream, entry_id)
    digest = compute_fingerprint(found.error_type, found.error).digest
    return {"fingerprint": digest, "size_bytes": found.size_bytes}


def test_each_entry_is_read_once(letters):
    letters.fill(2500)
    stream = letters.stream()

    complete = indexer.catch_up(stream, NOW, seconds=20)
    again = indexer.catch_up(stream, NOW + SECOND)

    assert (complete, again) == (True, True)
    assert Letter.objects.filter(stream=stream).count() == 2500
    assert (stream.depth, stream.arrived_total) == (2500, 2500)


def test_what_comes_later_is_read_on_from_there(letters):
    letters.fill(3)
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    letters.fill(2, start=4)

    indexer.catch_up(stream, NOW + SECOND)

    assert Letter.objects.filter(stream=stream).count() == 5
    assert stream.arrived_total == 5


def test_it_ends_when_its_time_is_over_and_goes_on_from_there(letters):
    letters.fill(2500)
    stream = letters.stream()

    first = indexer.catch_up(stream, NOW, seconds=0)
    read = Letter.objects.filter(stream=stream).count()
    while not indexer.catch_up(stream, NOW, seconds=0):
        pass

    assert (first, read) == (False, indexer.AT_ONCE)
    assert Letter.objects.filter(stream=stream).count() == 2500


def test_what_an_entry_says_is_in_the_index(letters):
    letters.add(
        id=f"{MS}-3",
        error="order 17 failed",
        dlq_attempts="3",
        dlq_group="billing",
        dlq_failed_at="2026-11-20T10:00:00Z",
        dlq_retry_count="2",
    )

    indexer.catch_up(letters.stream(), NOW)

    letter = Letter.objects.select_related("group").get()
    assert letter.position == f"{MS:020d}-{3:020d}"
    assert (letter.error, letter.group.error_type) == ("order 17 failed", "TimeoutError")
    assert (letter.attempts, letter.consumer_group, letter.retries) == (3, "billing", 2)
    assert letter.failed_at == datetime(2026, 11, 20, 10, tzinfo=UTC)
    assert letter.group.pattern == "order <n> failed"


@pytest.mark.parametrize(
    "fields",
    [
        {b"\xff\x00": b"\xfe\x00"},
        {"dlq_error": b"\xff\x00 " * 400, "dlq_error_type": b"\x00" * 300},
        {"dlq_attempts": "many", "dlq_failed_at": "0001-01-01", "dlq_retry_count": "-1"},
        {"dlq_failed_at": "9999-12-31T23:59:59-14:00", "dlq_attempts": "9" * 30},
        {f"field-{number}": "x" for number in range(500)} | {"dlq_error": "the last of them"},
        {f"dlq_{number}": "x" for number in range(100)} | {"dlq_error": "far behind"},
        {"payload": "x" * 5_000_000, "dlq_error": "large"},
    ],
    ids=["binary", "error", "numbers", "far", "many", "many-of-ours", "large"],
)
def test_garbage_is_indexed_like_anything_else(letters, fields):
    letters.redis.xadd(letters.name(), fields, id="18446744073709551615-18446744073709551615")

    complete = indexer.catch_up(letters.stream(), NOW)

    letter = Letter.objects.get()
    size = sum(len(name) + len(value) for name, value in fields.items())
    assert (complete, letter.size_bytes) == (True, size)
    assert bool(letter.error) == ("dlq_error" in fields)


def test_ids_are_in_the_order_of_the_stream(letters):
    given = ["1-1", "2-0", "9-0", "10-0", "10-10", f"{MS}-0", "18446744073709551615-0"]
    for entry_id in given:
        letters.add(id=entry_id)

    indexer.catch_up(letters.stream(), NOW)

    positions = Letter.objects.order_by("position").values_list("position", flat=True)
    assert [ids.to_entry_id(one) for one in positions] == given


def test_what_left_through_us_while_it_was_read_is_not_in_the_index(letters):
    letters.fill(2)
    stream = letters.stream()
    departed(stream, "1-0", done_at=NOW)

    indexer.catch_up(stream, NOW)

    assert Letter.objects.get().position == ids.to_position("2-0")


def test_what_left_through_us_before_it_was_read_is_in_the_index_if_it_is_there(letters):
    letters.fill(2)
    stream = letters.stream()
    departed(stream, "1-0", done_at=NOW - MINUTE)

    indexer.catch_up(stream, NOW)

    assert Letter.objects.count() == 2


def test_what_was_restored_did_not_arrive(letters):
    letters.fill(3)
    stream = letters.stream()
    departed(stream, "7-0", state="restored", new_id="2-0")
    departed(stream, "8-0", state="restoring", **alike(letters, stream, "3-0"))

    indexer.catch_up(stream, NOW)

    assert Letter.objects.count() == 3
    assert stream.arrived_total == 1
    assert GroupDay.objects.get().arrived == 1


def test_what_is_hidden_is_not_kept_of_a_type_or_a_consumer_group(letters):
    letters.add(dlq_error_type="Denied token=hunter2", dlq_group="billing password=hunter2")

    indexer.catch_up(letters.stream(), NOW)

    letter = Letter.objects.select_related("group").get()
    assert letter.group.error_type == "Denied token=[redacted]"
    assert letter.consumer_group == "billing password=[redacted]"


def test_groups_are_told_by_what_failed_alike_the_largest_first(letters):
    letters.add(id="1-0", error="refused", dlq_failed_at="2026-11-20T10:00:00Z")
    for number in (2, 3):
        letters.add(
            id=f"{number}-0", error=f"after {number} s", dlq_failed_at="2026-11-21T02:00:00Z"
        )
    stream = letters.stream()
    indexer.catch_up(stream, NOW)

    assert [(one.pattern, one.count, one.sample) for one in groups.list_groups(stream)] == [
        ("after <n> s", 2, "after 2 s"),
        ("refused", 1, "refused"),
    ]
    assert [
        len(groups.list_groups(stream, most=1)),
        len(groups.list_groups(letters.stream("events"))),
    ] == [1, 2]


def test_what_failed_most_is_counted_by_the_day_it_came_also_when_it_left(letters):
    for number in range(3):
        letters.add(id=f"{MS - 86_400_000 * number}-0" if number == 0 else "*", error="refused")
    letters.add(error="gone")
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    Letter.objects.all().delete()

    rows = groups.list_most_failed(NOW - 24 * HOUR, NOW, 1)

    assert [(one.group.stream, one.group.pattern, one.arrived) for one in rows] == [
        (stream, "refused", 3)
    ]
    assert sum(rows[0].days.values()) == 3
    assert GroupDay.objects.count() == 2
