"""Archiving of letters that are too old or too many."""

import json
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from breakers.dead_letters.models import Departure, LetterStream, Replay
from breakers.dead_letters.monitoring import indexer
from breakers.dead_letters.redis_servers import servers
from breakers.dead_letters.removals import actions, retention
from breakers.tests.fleet import NOW
from controlplane.core.jobs.models import Job

from .heaps import heap
from .redis_process import stopped_redis
from .removal_helpers import KIM, REASON, audited, dead, declare, departures

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
MS = int(NOW.timestamp() * 1000)


@pytest.fixture
def letters(settings):
    with heap(settings, kept_days=30, most_kept=5) as given:
        yield given


def days_ago(days, number=0):
    return f"{MS - int(days * 86_400_000)}-{number}"


def test_what_is_too_old_is_archived_and_the_rest_stays(letters):
    for at in (days_ago(31), days_ago(31, 1), days_ago(29.9), days_ago(1)):
        letters.add(id=at)
    stream = letters.stream()

    archived = retention.archive_overdue(NOW)

    assert archived == 2
    assert dead(letters) == [days_ago(29.9), days_ago(1)]
    assert departures() == [("age", "done")] * 2
    assert {one.by for one in Departure.objects.all()} == {"system:dlq-retention"}
    (row,) = audited()
    assert (row.action, row.target) == ("dead_letter.archived", f"dlq:{stream}")
    assert json.loads(row.after) == {"age": 2}
    stream.refresh_from_db()
    assert (stream.arrived_total, stream.vanished_total, stream.depth) == (4, 0, 2)


def test_the_oldest_of_too_many_are_archived(letters):
    for number in range(8):
        letters.add(id=days_ago(2, number))
    letters.stream()

    retention.archive_overdue(NOW)

    assert dead(letters) == [days_ago(2, number) for number in range(3, 8)]
    assert departures() == [("length", "done")] * 3
    assert json.loads(audited()[0].after) == {"length": 3}


def test_what_is_neither_is_left_alone_and_nothing_is_said(letters):
    letters.add(id=days_ago(2))
    letters.stream()

    archived = retention.archive_overdue(NOW)

    assert (archived, departures(), audited()) == (0, [], [])


def test_a_letter_whose_id_tells_no_time_is_as_old_as_it_says(letters):
    old = (NOW - 31 * DAY).isoformat()
    letters.add(id="1-1", dlq_failed_at=old)
    letters.add(id="1-2", dlq_failed_at=NOW.isoformat())
    letters.add(id="1-3")
    indexer.catch_up(letters.stream(), NOW)

    retention.archive_overdue(NOW)

    assert dead(letters) == ["1-2", "1-3"]
    assert departures() == [("age", "done")]


def test_a_stream_that_a_job_is_at_is_left_to_it(letters):
    letters.add(id=days_ago(31))
    stream = letters.stream()
    job = Job.objects.create(
        kind="dead_letters", subject="s", state="paused", created_by="user:kim", created_at=NOW
    )
    Replay.objects.create(
        job=job, stream=stream, action="retry", until="9", rate_per_second=1, most_retries=3
    )

    during = retention.archive_overdue(NOW)
    Job.objects.update(state="cancelled", finished_at=NOW)
    after = retention.archive_overdue(NOW)

    assert (during, after) == (0, 1)


def test_what_somebody_is_about_to_retry_stays(letters):
    letter = letters.add(id=days_ago(31))
    declare(letters, letter)

    archived = retention.archive_overdue(NOW)

    assert archived == 0
    assert dead(letters) == [letter]
    assert departures() == [("retry", "intended")]


def test_a_server_that_is_away_keeps_no_other_from_its_turn(letters, settings):
    away = {**settings.DEAD_LETTERS.servers, "away": "redis://127.0.0.1:1/0"}
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=away)
    LetterStream.objects.create(server="away", name=letters.name(), origin="o", found_at=NOW)
    letters.add(id=days_ago(31))
    letters.stream()

    archived = retention.archive_overdue(NOW)

    assert archived == 1


def test_a_server_that_hangs_is_asked_once_a_turn(letters, settings, tmp_path, monkeypatch):
    monkeypatch.setattr(servers, "TIMEOUT_SECONDS", 0.5)
    letters.add(id=days_ago(31))
    letters.stream()
    with stopped_redis(tmp_path) as url:
        hung = {**settings.DEAD_LETTERS.servers, "hung": url}
        settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=hung)
        for number in range(6):
            name = letters.name(str(number))
            LetterStream.objects.create(server="hung", name=name, origin="o", found_at=NOW)

        began = time.monotonic()
        archived = retention.archive_overdue(NOW)
        took = time.monotonic() - began

    assert archived == 1
    assert took < 2 * servers.TIMEOUT_SECONDS + 1


def test_many_too_many_leave_in_batches_within_the_time(letters):
    letters.fill(700)
    stream = letters.stream()
    indexer.catch_up(stream, NOW, seconds=10)

    some = retention.archive_stream(stream, NOW, seconds=0)
    rest = retention.archive_stream(stream, NOW, seconds=60)

    assert 0 < some < 695
    assert some + rest == 695
    assert len(dead(letters)) == 5
    assert dead(letters)[0] == "696-0"


def test_what_was_archived_too_long_ago_is_forgotten_in_the_same_turn(letters):
    letter = letters.add()
    arguments = {"stream": letters.stream(), "reason": REASON, "actor": KIM}
    actions.discard(entry_id=letter, now=NOW - 31 * DAY, **arguments)

    retention.archive_overdue(NOW)

    assert departures() == []
