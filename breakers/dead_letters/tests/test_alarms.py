"""Messages about backlogs and their end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.monitoring import alarms, sampler
from breakers.tests.fleet import MINUTE, NOW, list_outbox_messages, reachable
from controlplane.core.outbox import renderer

from .heaps import heap

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(minutes=10)


@pytest.fixture
def letters(settings):
    reachable(settings)
    with heap(settings) as given:
        yield given


def stream(letters):
    return LetterStream.objects.get(name=letters.name())


def test_a_stream_too_deep_for_ten_minutes_is_told_of_once(letters):
    letters.fill(101)
    for minutes in range(13):
        sampler.sample_servers(NOW + minutes * MINUTE)

    (message,) = list_outbox_messages("dlq.backlog")

    assert message.created_at == LATER
    assert stream(letters).alarmed_at == LATER
    assert message.severity == "warning"
    assert message.subject.startswith(f"dlq:default/{letters.prefix}")


def test_a_stream_that_is_too_deep_for_a_while_only_is_not_told_of(letters):
    letters.fill(101)
    sampler.sample_servers(NOW)
    letters.redis.xdel(letters.name(), "1-0")
    sampler.sample_servers(NOW + MINUTE)
    letters.fill(5, start=200)
    sampler.sample_servers(NOW + 2 * MINUTE)

    sampler.sample_servers(LATER)

    assert list_outbox_messages("dlq.backlog") == []
    assert stream(letters).over_since == NOW + 2 * MINUTE


def test_a_hundred_are_not_too_many(letters):
    letters.fill(100)
    sampler.sample_servers(NOW)

    sampler.sample_servers(LATER)

    assert list_outbox_messages("dlq.backlog") == []


def test_once_few_are_left_that_is_told_and_it_may_begin_again(letters):
    letters.fill(101)
    sampler.sample_servers(NOW)
    sampler.sample_servers(LATER)
    letters.redis.xtrim(letters.name(), maxlen=100, approximate=False)
    sampler.sample_servers(LATER + MINUTE)
    letters.fill(1, start=200)
    sampler.sample_servers(LATER + 2 * MINUTE)

    sampler.sample_servers(LATER + 12 * MINUTE)

    assert [len(list_outbox_messages(event)) for event in ("dlq.backlog", "dlq.recovered")] == [
        2,
        1,
    ]


def test_the_message_says_how_many_since_when_and_what_they_failed_of(letters):
    letters.fill(101)
    sampler.sample_servers(NOW)
    sampler.sample_servers(LATER)
    (message,) = list_outbox_messages("dlq.backlog")

    notice = renderer.render(message.event, message.payload)

    lines = dict(notice.lines)
    assert notice.title.startswith(f"101 dead letters in default/{letters.prefix}")
    assert (lines["Limit"], lines["Since"]) == ("100", "2026-11-21 02:11:30 UTC")
    assert lines["Most frequent error"] == "101 × order <n> failed"
    assert notice.path == f"/dead-letters/default/{letters.prefix}%3Adlq%3Aevents/"


def test_nobody_is_told_of_a_stream_whose_server_has_been_away_since(letters):
    letters.fill(101)
    sampler.sample_servers(NOW)
    LetterStream.objects.update(server="away")

    sampler.sample_servers(NOW + 25 * MINUTE)

    assert list_outbox_messages("dlq.backlog") == []


def test_an_alarm_ends_when_the_stream_is_not_watched_any_more(letters, settings):
    letters.fill(101)
    sampler.sample_servers(NOW)
    sampler.sample_servers(LATER)
    settings.DEAD_LETTERS = replace(
        settings.DEAD_LETTERS, patterns=(("other:{stream}", "{stream}"),)
    )

    sampler.sample_servers(LATER + MINUTE)

    (message,) = list_outbox_messages("dlq.recovered")
    assert (
        dict(renderer.render(message.event, message.payload).lines)["Why"]
        == alarms.UNWATCHED_REASON
    )
    assert stream(letters).alarmed_at is None
