"""Gaps: letters that somebody else removed from a stream."""

import pytest

from breakers.dead_letters.letters import ids
from breakers.dead_letters.models import Departure, Gap, Letter, LetterStream
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import samples
from breakers.tests.fleet import HOUR, MINUTE, NOW, SECOND

pytestmark = pytest.mark.django_db


@pytest.fixture
def stream(letters):
    """Ten letters, 1-0 to 10-0, all of them known."""
    letters.fill(10)
    stream = letters.stream()
    indexer.catch_up(stream, NOW)
    return stream


def gaps():
    rows = Gap.objects.order_by("pk")
    return [(ids.to_entry_id(one.first), ids.to_entry_id(one.last), one.count) for one in rows]


def list_positions():
    rows = Letter.objects.order_by("position").values_list("position", flat=True)
    return [int(position.partition("-")[0]) for position in rows]


def departs(stream, entry_id, state):
    done_at = None if state == "intended" else NOW
    Departure.objects.create(
        stream=stream,
        position=ids.to_position(entry_id),
        action="retry",
        state=state,
        fields=b"[]",
        by="user:kim",
        intended_at=NOW,
        done_at=done_at,
    )


def test_what_a_producer_trimmed_is_a_gap(letters, stream):
    letters.redis.xtrim(letters.name(), maxlen=6, approximate=False)

    complete = indexer.catch_up(stream, NOW + SECOND)

    assert complete
    assert gaps() == [("1-0", "4-0", 4)]
    assert list_positions() == [5, 6, 7, 8, 9, 10]
    assert (stream.depth, stream.vanished_total, stream.arrived_total) == (6, 4, 10)


def test_trimming_again_soon_is_the_same_gap(letters, stream):
    letters.redis.xtrim(letters.name(), maxlen=8, approximate=False)
    indexer.catch_up(stream, NOW + SECOND)
    letters.redis.xtrim(letters.name(), maxlen=7, approximate=False)

    indexer.catch_up(stream, NOW + MINUTE)

    assert gaps() == [("1-0", "3-0", 3)]


def test_trimming_again_later_is_another_gap(letters, stream):
    letters.redis.xtrim(letters.name(), maxlen=8, approximate=False)
    indexer.catch_up(stream, NOW + SECOND)
    letters.redis.xtrim(letters.name(), maxlen=7, approximate=False)

    indexer.catch_up(stream, NOW + HOUR)

    assert gaps() == [("1-0", "2-0", 2), ("3-0", "3-0", 1)]


def test_what_was_deleted_from_the_middle_or_the_end_is_a_gap(letters, stream):
    letters.redis.xdel(letters.name(), "4-0", "5-0", "10-0")

    indexer.catch_up(stream, NOW + SECOND)

    assert list_positions() == [1, 2, 3, 6, 7, 8, 9]
    assert stream.vanished_total == 3


def test_a_stream_that_is_gone_is_said_to_be_and_all_of_it_is_a_gap(letters, stream):
    letters.redis.delete(letters.name())

    indexer.catch_up(stream, NOW + SECOND)

    assert (stream.depth, stream.gone_at) == (0, NOW + SECOND)
    assert gaps() == [("1-0", "10-0", 10)]
    assert list_positions() == []


def test_a_stream_made_anew_under_the_same_ids_is_read_anew(letters, stream):
    letters.redis.delete(letters.name())
    letters.fill(3)

    indexer.catch_up(stream, NOW + SECOND)
    indexer.catch_up(stream, NOW + 2 * SECOND)

    assert list_positions() == [1, 2, 3]
    assert (stream.depth, stream.gone_at) == (3, None)


def test_letters_that_left_through_us_and_are_back_under_their_ids_are_known_again(letters, stream):
    """Letters return after a failover to a lagging replica, or from an older backup."""
    for number in range(1, 11):
        departs(stream, f"{number}-0", "done")
    Letter.objects.all().delete()
    LetterStream.objects.update(depth=0)
    stream.refresh_from_db()
    letters.redis.delete(letters.name())
    letters.fill(10)

    indexer.catch_up(stream, NOW + MINUTE)
    complete = indexer.catch_up(stream, NOW + MINUTE + SECOND)

    assert complete
    assert list_positions() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_the_last_one_that_left_through_us_and_is_back_is_known_again(letters, stream):
    departs(stream, "10-0", "done")
    Letter.objects.filter(position=ids.to_position("10-0")).delete()

    indexer.catch_up(stream, NOW + MINUTE)
    indexer.index_and_check(
        stream, samples.sample_stream("default", stream.name), NOW + MINUTE, seconds=1
    )
    indexer.catch_up(stream, NOW + MINUTE + SECOND)

    assert list_positions() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_what_left_through_us_is_no_gap(letters, stream):
    departs(stream, "1-0", "done")
    departs(stream, "5-0", "done")
    letters.redis.xdel(letters.name(), "1-0", "5-0")

    indexer.catch_up(stream, NOW + HOUR)

    assert (gaps(), stream.vanished_total) == ([], 0)
    assert list_positions() == [2, 3, 4, 6, 7, 8, 9, 10]


def test_what_is_leaving_through_us_stays_known_until_that_is_settled(letters, stream):
    departs(stream, "1-0", "intended")
    letters.redis.xdel(letters.name(), "1-0", "2-0", "7-0")

    indexer.catch_up(stream, NOW + HOUR)

    assert list_positions()[:2] == [1, 3]
    assert 7 not in list_positions()
    assert stream.vanished_total == 2


def test_a_trimmed_entry_that_was_never_read_is_no_gap(letters, stream):
    letters.fill(5, start=11)
    letters.redis.xtrim(letters.name(), maxlen=2, approximate=False)

    indexer.catch_up(stream, NOW + SECOND)

    assert gaps() == [("1-0", "10-0", 10)]
    assert list_positions() == [14, 15]


def test_more_than_one_look_takes_are_all_found(letters, stream):
    letters.fill(12_000, start=11)
    while not indexer.catch_up(stream, NOW, seconds=5):
        pass
    letters.redis.xdel(letters.name(), *[f"{number}-0" for number in range(100, 12_000, 1000)])

    complete = indexer.catch_up(stream, NOW + SECOND, seconds=20)

    assert complete
    assert (stream.depth, Letter.objects.count()) == (11_998, 11_998)
    assert stream.vanished_total == 12
