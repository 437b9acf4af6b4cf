"""The look at all servers: what is found, how deep it is, what is told."""

from dataclasses import replace

import pytest

from breakers.dead_letters.models import DepthMinute, LetterServer, LetterStream
from breakers.dead_letters.monitoring import sampler, streams
from breakers.dead_letters.redis_servers import servers
from breakers.tests.fleet import MINUTE, NOW, SECOND
from controlplane.core.errors import NotFound
from controlplane.core.outbox.models import OutboxMessage

from .heaps import heap

pytestmark = pytest.mark.django_db
NOBODY = "redis://127.0.0.1:1/0"


def standing(letters, of="events"):
    return LetterStream.objects.get(name=letters.name(of))


def failed_messages(count):
    OutboxMessage.objects.bulk_create(
        OutboxMessage(
            event="switch.engaged",
            event_key=f"failed:{number}",
            destination="slack:ops",
            payload={},
            state="failed",
            next_attempt_at=NOW,
            created_at=NOW,
            finished_at=NOW - number * SECOND,
        )
        for number in range(count)
    )


def test_streams_that_a_pattern_matches_are_found_and_nothing_else(letters):
    letters.fill(2)
    letters.fill(1, to="a/b %2F{x} 🙂")
    letters.redis.xadd(f"{letters.prefix}:other", {"a": "b"})
    letters.redis.xadd(letters.name("\N{LATIN SMALL LETTER A}").encode() + b"\xff", {"a": "b"})
    letters.redis.set(letters.name("text"), "no stream")

    sampler.sample_servers(NOW)

    origins = {one.name: one.origin for one in streams.list_shown(NOW) if one.source == "stream"}
    assert origins == {
        letters.name(): f"{letters.prefix}:events",
        letters.name("a/b %2F{x} 🙂"): f"{letters.prefix}:a/b %2F{{x}} 🙂",
    }


def test_a_turn_says_how_a_stream_stands_and_reads_it(letters):
    moment = int((NOW - MINUTE).timestamp() * 1000)
    letters.add(id=f"{moment}-0")
    letters.add(id=f"{moment + 5000}-0")

    sampler.sample_servers(NOW)

    state = standing(letters)
    assert (state.depth, state.arrived_total, state.sampled_at) == (2, 2, NOW)
    assert (state.oldest_at, state.newest_at) == (NOW - MINUTE, NOW - MINUTE + 5 * SECOND)
    assert state.letters.count() == 2


def test_what_changes_is_told_and_what_does_not_is_not(letters, django_capture_on_commit_callbacks):
    letters.fill(1)
    with django_capture_on_commit_callbacks() as first:
        sampler.sample_servers(NOW)
    with django_capture_on_commit_callbacks() as unchanged:
        sampler.sample_servers(NOW + SECOND)
    letters.fill(1, start=2)

    with django_capture_on_commit_callbacks() as changed:
        sampler.sample_servers(NOW + 2 * SECOND)

    assert (bool(first), bool(unchanged), bool(changed)) == (True, False, True)


def test_depth_is_kept_by_the_minute_and_growth_is_of_the_last_five(letters):
    letters.fill(10)
    for minutes in range(7):
        sampler.sample_servers(NOW + minutes * MINUTE)
        letters.fill(6, start=100 + 10 * minutes)
    sampler.sample_servers(NOW + 6 * MINUTE + 5 * SECOND)
    stream = standing(letters)

    grew = streams.growth_per_minute([stream], NOW + 6 * MINUTE + 5 * SECOND)

    depths = DepthMinute.objects.filter(stream=stream).order_by("minute")
    assert list(depths.values_list("depth", flat=True)) == [10, 16, 22, 28, 34, 40, 52]
    assert grew[stream.pk] == pytest.approx((52 - 16) / 5.083, abs=0.01)


def test_a_stream_that_is_new_or_stands_still_does_not_grow(letters):
    letters.fill(3)
    sampler.sample_servers(NOW)
    new = streams.growth_per_minute([standing(letters)], NOW)
    for minutes in range(1, 4):
        sampler.sample_servers(NOW + minutes * MINUTE)

    still = streams.growth_per_minute([standing(letters)], NOW + 3 * MINUTE)

    assert [*new.values(), *still.values()] == [0.0, 0.0]


def test_a_stream_that_went_and_came_back_is_there_again(letters):
    letters.fill(2)
    sampler.sample_servers(NOW)
    letters.redis.delete(letters.name())
    sampler.sample_servers(NOW + 5 * SECOND)
    gone_at = standing(letters).gone_at
    letters.fill(1, start=3)

    sampler.sample_servers(NOW + 10 * SECOND)

    state = standing(letters)
    assert (gone_at, state.gone_at) == (NOW + 5 * SECOND, None)
    assert (state.depth, state.vanished_total, state.letters.count()) == (1, 2, 1)


def test_a_server_that_is_away_is_said_to_be_and_the_others_are_looked_at(letters, settings):
    sources = settings.DEAD_LETTERS
    letters.fill(1)
    with heap(settings, servers={**sources.servers, "billing": NOBODY}) as more:
        more.fill(2)

        sampler.sample_servers(NOW)

        away = LetterServer.objects.get(name="billing")
        assert (away.is_away, away.since, bool(away.error)) == (True, NOW, True)
        assert not LetterServer.objects.get(name="default").is_away
        assert standing(more).depth == 2
        with pytest.raises(servers.ServerUnavailable):
            streams.find_stream("billing", more.name("unknown"), NOW)


def test_a_server_that_answers_again_is_there_since_then(letters, settings):
    sources = settings.DEAD_LETTERS
    settings.DEAD_LETTERS = replace(sources, servers={"default": NOBODY})
    sampler.sample_servers(NOW)
    was_away = LetterServer.objects.get(name="default").is_away
    settings.DEAD_LETTERS = sources

    sampler.sample_servers(NOW + MINUTE)

    row = LetterServer.objects.get(name="default")
    assert was_away
    assert (row.is_away, row.since, row.error) == (False, NOW + MINUTE, "")


def test_failed_messages_of_the_outbox_are_a_stream_too(letters):
    failed_messages(3)

    sampler.sample_servers(NOW)

    outbox = streams.find_stream("default", "outbox", NOW)
    assert (outbox.source, outbox.depth) == ("outbox", 3)
    assert (outbox.oldest_at, outbox.newest_at) == (NOW - 2 * SECOND, NOW)
    assert outbox in streams.list_shown(NOW)


@pytest.mark.parametrize(
    ("server", "of"),
    [("default", "unknown"), ("elsewhere", "events"), ("default", "x" * 400), ("default", "\0")],
)
def test_what_is_no_stream_of_dead_letters_is_not_found(letters, server, of):
    letters.fill(1)

    with pytest.raises(NotFound):
        streams.find_stream(server, letters.name(of), NOW)


def test_a_name_that_no_pattern_matches_is_not_found_though_it_is_a_stream(letters):
    letters.redis.xadd(f"{letters.prefix}:events", {"a": "b"})

    with pytest.raises(NotFound):
        streams.find_stream("default", f"{letters.prefix}:events", NOW)


def test_the_deepest_is_listed_first_after_those_with_an_alarm(letters):
    for of, count in (("few", 1), ("many", 3), ("alarmed", 2)):
        letters.fill(count, to=of)
    sampler.sample_servers(NOW)
    LetterStream.objects.filter(name=letters.name("alarmed")).update(alarmed_at=NOW)

    listed = [one.name for one in streams.list_shown(NOW) if one.source == "stream"]

    assert listed == [letters.name(of) for of in ("alarmed", "many", "few")]


def test_many_streams_are_recorded_in_few_queries(
    letters, django_assert_max_num_queries, monkeypatch
):
    monkeypatch.setattr(sampler, "INDEXING_SECONDS", 60)  # All are indexed on a busy machine too.
    for number in range(30):
        letters.fill(1, to=f"events-{number}")
    sampler.sample_servers(NOW)
    sampler.sample_servers(NOW + SECOND)

    with django_assert_max_num_queries(40):
        sampler.sample_servers(NOW + MINUTE)

    assert DepthMinute.objects.filter(minute__gt=NOW).count() == 31


def test_what_was_deleted_from_many_streams_is_found(letters):
    for number in range(3):
        letters.fill(3, to=f"events-{number}")
    sampler.sample_servers(NOW)
    letters.redis.xdel(letters.name("events-1"), "2-0")

    sampler.sample_servers(NOW + SECOND)

    vanished = {one.name: one.vanished_total for one in streams.list_shown(NOW) if one.depth}
    assert vanished == {
        letters.name("events-0"): 0,
        letters.name("events-1"): 1,
        letters.name("events-2"): 0,
    }
