"""Retried letters that fail again are counted on their job, in the groups, dialog and report."""

from datetime import timedelta

import pytest

from breakers.dead_letters.bulk import eligibility, results
from breakers.dead_letters.models import Departure, Replay
from breakers.dead_letters.monitoring import groups, indexer, sampler
from breakers.dead_letters.report_sections import dead_letters_section
from breakers.dead_letters.resources import replay_resource
from breakers.tests.fleet import NOW
from controlplane.core.clock import db_now
from controlplane.core.jobs.models import Job
from switches.tests.browsers import text

from .heaps import stream_path
from .test_replays import EVERYTHING, ask, until_over

pytestmark = pytest.mark.django_db


def fail_again(letters, count, *, start=0):
    """Add `count` sent messages to the dead letters again, as their consumer does."""
    sent = letters.redis.xrange(f"{letters.prefix}:events")[start : start + count]
    for _, fields in sent:
        letters.redis.xadd(letters.name(), {**fields, "dlq_error": "order failed"})


def retry_all(letters, count):
    letters.fill(count)
    stream = letters.stream()
    job = ask(stream)
    until_over(job)
    return stream, job


def test_replay_of_which_all_failed_again_says_so(letters, operator):
    _, job = retry_all(letters, 20)
    before = operator.client.get(f"/dead-letters/jobs/{job.pk}/").content.decode()
    fail_again(letters, 20)

    page = operator.client.get(f"/dead-letters/jobs/{job.pk}/").content.decode()

    assert "20 sent, none failed again so far" in before
    assert "20 sent, 20 failed again" in page
    assert "All failed again" in page
    assert "Completed" not in page
    replay = Replay.objects.get(pk=job.pk)
    assert replay_resource(Job.objects.get(pk=job.pk), NOW)["failed_again"] == 20
    assert results.describe_result(replay).tone == "overdue"


def test_jobs_list_and_attention_say_that_all_failed_again(letters, operator):
    stream, job = retry_all(letters, 20)
    Job.objects.filter(pk=job.pk).update(finished_at=db_now())
    before = text(operator.client.get("/jobs/").content.decode())
    fail_again(letters, 20)
    indexer.catch_up(stream, NOW, seconds=5)
    sampler.sample_servers(db_now())

    page = text(operator.client.get("/jobs/").content.decode())
    attention = operator.get("/attention/").json()
    resources = [
        operator.get(path).json()
        for path in (f"/jobs/{job.pk}/", f"/dlq/jobs/{job.pk}/", "/jobs/", "/dlq/jobs/")
    ]

    result = {"text": "20 sent, 20 failed again", "word": "All failed again"}
    for one in resources:
        shown = one["results"][0] if "results" in one else one
        assert shown["result"] == {**result, "severity": "critical"}
    assert "20 sent, none failed again so far" in before
    assert "20 sent, 20 failed again" in page
    assert "All failed again" in page
    assert "Completed Replay" not in page
    (item,) = [one for one in attention["results"] if one["kind"] == "dlq_failed_again"]
    assert item["detail"].startswith("20 sent, 20 failed again")


def test_replay_of_which_some_failed_again_counts_each_once(letters):
    stream, job = retry_all(letters, 5)
    fail_again(letters, 2)
    indexer.catch_up(stream, NOW, seconds=5)
    fail_again(letters, 1)  # Delivered twice, failed twice.

    indexer.catch_up(stream, NOW, seconds=5)

    replay = Replay.objects.select_related("job").get(pk=job.pk)
    assert results.describe_result(replay).text == "5 sent, 2 failed again"
    back = Departure.objects.filter(job=job, failed_again_at__isnull=False)
    assert back.count() == 2
    assert all(one.failed_again_as for one in back)


def test_group_dialog_and_inbox_count_what_failed_again(letters, operator):
    stream, job = retry_all(letters, 3)
    Job.objects.filter(pk=job.pk).update(finished_at=db_now())
    fail_again(letters, 2)
    letters.add(error="order failed")
    indexer.catch_up(stream, NOW, seconds=5)

    counts = eligibility.count_eligible(stream, EVERYTHING, "retry", 3, NOW)
    dialog = operator.client.get(f"/dead-letters/default/-/bulk/{stream.name}/?action=retry")
    inbox = operator.client.get("/dead-letters/").content.decode()
    group = max(groups.list_groups(stream), key=lambda one: one.failed_again)

    assert (counts.eligible, counts.failed_again) == (3, 2)
    assert "were retried before and failed again" in dialog.content.decode()
    assert "3 sent, 2 failed again" in dialog.content.decode()
    assert "3 sent, 2 failed again" in inbox
    assert group.failed_again == 2
    listed = operator.get(stream_path(letters, "groups/")).json()["results"]
    assert sum(one["failed_again"] for one in listed) == 2


def test_weekly_report_counts_what_failed_again(letters):
    stream, _ = retry_all(letters, 3)
    fail_again(letters, 2)
    indexer.catch_up(stream, NOW, seconds=5)

    section = dead_letters_section(NOW - timedelta(days=1), NOW + timedelta(days=1), db_now())

    (row,) = section.rows
    assert (row.cells["retried"], row.cells["failed_again"]) == (3, 2)
    assert "3 retried (2 failed again)" in section.summary


def test_archived_letter_says_that_it_failed_again(letters, operator):
    stream, _ = retry_all(letters, 1)
    fail_again(letters, 1)
    indexer.catch_up(stream, NOW, seconds=5)
    departure = Departure.objects.get()

    page = operator.client.get(f"/dead-letters/archive/{departure.pk}/").content.decode()

    assert "Failed again" in page
    assert "has not failed again so far" not in page
