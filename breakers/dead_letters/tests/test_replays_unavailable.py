"""Bulk jobs whose server does not respond, or not to everything."""

import time
from dataclasses import replace

import pytest
import redis

from breakers.dead_letters import intent_sweeper, tasks
from breakers.dead_letters.bulk import replays
from breakers.dead_letters.letters.filters import LetterFilter
from breakers.dead_letters.models import Departure, LetterStream, Replay
from breakers.dead_letters.redis_servers import servers
from breakers.tests.fleet import MINUTE, NOW, SECOND
from breakers.tests.registered import OPERATOR
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job

from .redis_process import own_redis, stopped_redis, way_to

pytestmark = pytest.mark.django_db
HEAVY = b"7f1d" * 500_000


def servers_with(settings, **more):
    known = {**settings.DEAD_LETTERS.servers, **more}
    settings.DEAD_LETTERS = replace(settings.DEAD_LETTERS, servers=known)


def ask(stream, **more):
    arguments = {"action": "retry", "chosen": LetterFilter(), "rate_per_second": 1000.0, **more}
    return replays.request_replay(
        stream=stream, reason="broker is back", actor=OPERATOR, now=NOW, **arguments
    )


def create_started_job(stream):
    """A job as it stands when its server went away after it was asked for."""
    settled = stream.indexed_to
    job = Job.objects.create(
        kind="dead_letters", subject="s", created_by="user:kim", created_at=NOW, next_at=NOW
    )
    job.steps.create(index=0, name="replay")
    job.steps.create(index=1, name="record")
    Replay.objects.create(
        job=job,
        stream=stream,
        action="retry",
        until=settled or "9",
        rate_per_second=1000,
        most_retries=3,
        counts=replays.NO_COUNTS,
    )
    return job


def test_jobs_of_a_server_that_hangs_are_held_and_only_one_asks_it(
    letters, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(servers, "TIMEOUT_SECONDS", 0.5)
    with stopped_redis(tmp_path) as url:
        servers_with(settings, hung=url)
        jobs = []
        for number in range(4):
            name = letters.name(str(number))
            row = LetterStream.objects.create(server="hung", name=name, origin="o", found_at=NOW)
            jobs.append(create_started_job(row))
        letters.fill(20)
        healthy = ask(letters.stream())

        began = time.monotonic()
        for _ in range(6):
            engine.run_tick("dlq.jobs", NOW)
        took = time.monotonic() - began

    healthy.refresh_from_db()
    held = Job.objects.filter(pk__in=[job.pk for job in jobs])
    assert set(held.values_list("state", flat=True)) == {"holding"}
    assert healthy.done == 20
    assert took < 4 * servers.TIMEOUT_SECONDS  # All four of them would take longer.


def test_a_server_that_answers_again_is_asked_again(letters, settings, tmp_path):
    with own_redis(tmp_path) as given, way_to(given.port) as way:
        url = given.url.replace(f":{given.port}/", f":{way.port}/")
        servers_with(settings, far=url)
        store, name = redis.Redis.from_url(given.url), letters.name()
        store.xadd(name, {"order": "17"})
        row = LetterStream.objects.create(
            server="far", name=name, origin=f"{letters.prefix}:events", found_at=NOW
        )
        job = ask(row)
        way.breaks_at = b"EVAL"
        engine.run_tick("dlq.jobs", NOW)
        way.breaks_at = b""

        engine.run_tick("dlq.jobs", NOW + 5 * SECOND)
        early = Job.objects.get(pk=job.pk).state
        engine.run_tick("dlq.jobs", NOW + 30 * SECOND)

        job.refresh_from_db()
        assert (early, job.state) == ("holding", "completed")
        assert store.xlen(row.origin) == 1


@pytest.mark.parametrize("chosen", [LetterFilter(), LetterFilter(error_type="TimeoutError")])
def test_a_heavy_letter_that_never_gets_through_is_passed_over(letters, settings, tmp_path, chosen):
    with own_redis(tmp_path) as given, way_to(given.port) as way:
        url = given.url.replace(f":{given.port}/", f":{way.port}/")
        servers_with(settings, far=url)
        store, name = redis.Redis.from_url(given.url), letters.name()
        for payload in (b"a", b"b", HEAVY, b"c"):
            store.xadd(name, {"payload": payload, "dlq_error_type": "TimeoutError"})
        row = LetterStream.objects.create(
            server="far", name=name, origin=f"{letters.prefix}:events", found_at=NOW
        )
        job = ask(row, chosen=chosen)
        way.breaks_at = HEAVY[:100]
        at = NOW
        for _ in range(20):
            engine.run_tick("dlq.jobs", at)
            at += 11 * SECOND
        job.refresh_from_db()
        sent = store.xlen(row.origin)
        way.breaks_at = b""
        intent_sweeper.sweep_intents(at + MINUTE)

        assert (job.state, sent) == ("completed", 3)
        counts = Replay.objects.get(pk=job.pk).counts
        assert counts["why"] == {"too_slow": 1}
        assert store.xlen(row.origin) == 4
        assert set(Departure.objects.values_list("state", flat=True)) == {"done"}


def test_one_turn_goes_on_with_every_job_that_is_due(letters):
    jobs = []
    for of in ("events", "orders", "mails"):
        letters.fill(20, to=of)
        jobs.append(ask(letters.stream(of)))

    tasks.run_replays(NOW)

    done = Job.objects.filter(pk__in=[job.pk for job in jobs])
    assert set(done.values_list("state", flat=True)) == {"completed"}
