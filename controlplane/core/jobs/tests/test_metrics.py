"""Metrics of jobs, their retention, and their speed with many jobs."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core import metrics as core_metrics
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import with_token
from controlplane.core.jobs import figures, metrics
from controlplane.core.jobs.models import Job, JobEffect, JobStep
from controlplane.core.jobs.retention_rules import build_rules
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import DAY, KIND, MINUTE, NOW, SECOND, begin, ended, turn
from controlplane.core.retention import purge
from controlplane.core.tasks import purge_jobs

pytestmark = pytest.mark.django_db
MANY = 100_000
CROWD = """
    INSERT INTO core_job (kind, subject, state, step_index, fence, worker, attempts, done, total,
        checkpoint_bytes, hold_reason, error, outcome, reason, created_by, created_at, started_at,
        heartbeat_at, finished_at, duplicates_stopped)
    SELECT (ARRAY['test', 'ramp', 'report'])[n %% 3 + 1], 'segment:s' || n %% 300, 'completed', 0,
        3, 'web-1:77', 1, 3, 3, 0, '', '', 'every step passed', repeat('why ', 20), 'user:kim',
        at - interval '15 minutes', at - n %% 900 * interval '1 second', at, at, n %% 1000 / 999
    FROM (SELECT n, %(now)s - n * interval '25 seconds' AS at
          FROM generate_series(1, %(many)s) n) AS ends
"""
CROWD_OF_STEPS = """
    INSERT INTO core_jobstep (job_id, index, name, state, attempts, started_at, finished_at, error,
        data)
    SELECT id, step, (ARRAY['5 %%', '25 %%', '100 %%'])[step + 1], 'passed', 1, started_at,
        finished_at, '', '{}'
    FROM core_job, generate_series(0, 2) step
"""


@pytest.fixture(autouse=True)
def _kind(given):
    given(StepKind("one", lambda *_: StepPassed()), kept_days=90)


def read_metrics(now=NOW):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in metrics.collect_job_metrics(now)
        for sample in family.samples
    }


def get_values(name, now=NOW, **labels):
    return read_metrics(now)[name, *sorted({"kind": KIND, **labels}.items())]


def test_where_nothing_happened_every_kind_has_its_series():
    samples = read_metrics()

    for name in (
        "switchgear_job_stuck",
        "switchgear_job_compensation_failures_total",
        "switchgear_job_duplicates_stopped_total",
        "switchgear_job_checkpoint_bytes",
    ):
        assert samples[name, ("kind", KIND)] == 0
        assert samples[name, ("kind", "report")] == 0
    assert samples["switchgear_jobs", ("kind", KIND), ("state", "holding")] == 0


def test_how_long_jobs_took_is_a_histogram():
    for seconds in (0.5, 1, 20, 4000):
        ended(1, at=NOW - DAY, seconds=seconds)
    ended(1, at=NOW - DAY, seconds=100_000, state="cancelled")
    ended(1, at=NOW - 31 * DAY, seconds=5)
    begin()

    def up_to(le):
        return get_values("switchgear_job_duration_seconds_bucket", le=le)

    assert [up_to(le) for le in ("1.0", "5.0", "30.0", "3600.0", "7200.0", "+Inf")] == [
        *(2, 2, 3, 3, 4),
        5,
    ]
    assert get_values("switchgear_job_duration_seconds_gcount") == 5
    assert get_values("switchgear_job_duration_seconds_gsum") == 104_021.5


def test_how_steps_fare():
    (job,) = ended(1, at=NOW)
    JobStep.objects.bulk_create(
        JobStep(job=job, index=n, name="one", state=state, attempts=n, finished_at=NOW)
        for n, state in enumerate(["passed", "passed", "passed", "failed"])
    )

    assert get_values("switchgear_job_step_failure_ratio", step="one") == 0.25
    assert get_values("switchgear_job_step_attempts_avg", step="one") == 1.5


def test_what_is_under_way_what_is_stuck_and_what_was_stopped():
    begin()
    silent = begin()
    Job.objects.filter(pk=silent.pk).update(state="holding", duplicates_stopped=3)
    carrying = begin(now=NOW + 10 * MINUTE)
    Job.objects.filter(pk=carrying.pk).update(checkpoint={"a": 1}, checkpoint_bytes=4711)
    ended(2, at=NOW, state="failed", compensation_failed_at=NOW, duplicates_stopped=2)
    later = NOW + 10 * MINUTE

    assert get_values("switchgear_jobs", state="running", now=later) == 2
    assert get_values("switchgear_jobs", state="holding", now=later) == 1
    assert get_values("switchgear_job_stuck", now=later) == 2
    assert get_values("switchgear_job_checkpoint_bytes", now=later) == 4711
    assert get_values("switchgear_job_compensation_failures_total", now=later) == 2
    assert get_values("switchgear_job_duplicates_stopped_total", now=later) == 7


@pytest.mark.django_db(transaction=True)
def test_they_are_in_the_scrape():
    ended(1, at=db_now())
    core_metrics.scrapes.clear()
    api = with_token("metrics:read")

    text = api.client.get("/metrics", headers=api.headers).content.decode()

    assert 'switchgear_job_duration_seconds_bucket{kind="test",le="30.0"} 1.0' in text
    assert 'switchgear_job_compensation_failures_total{kind="test"} 0.0' in text


def test_labels_stay_few_however_many_steps_there_were():
    (job,) = ended(1, at=NOW)
    JobStep.objects.bulk_create(
        JobStep(job=job, index=n, name=f"{n} %", state="passed", finished_at=NOW)
        for n in range(figures.MAX_STEPS + 50)
    )

    names = [name for name, *_ in read_metrics() if name == "switchgear_job_step_attempts_avg"]
    assert len(names) == figures.MAX_STEPS


@pytest.mark.slow
def test_with_a_hundred_thousand_jobs_it_takes_few_queries_and_little_time():
    now = db_now()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")  # Filling is slow.
        cursor.execute(CROWD, {"now": now, "many": MANY})
        cursor.execute(CROWD_OF_STEPS)
        cursor.execute("ANALYZE core_job")
        cursor.execute("ANALYZE core_jobstep")
    read_metrics(now)

    seconds = []
    for _ in range(5):  # The fastest of them: what else the machine does makes some slower.
        began = time.monotonic()
        with CaptureQueriesContext(connection) as queries:
            samples = read_metrics(now)
        seconds.append(time.monotonic() - began)

    assert len(queries) <= 6
    print(f"metrics of {MANY:,} jobs: fastest {min(seconds):.2f} s")
    assert min(seconds) < 1.0, [(query["time"], query["sql"]) for query in queries]
    assert samples["switchgear_job_duration_seconds_gcount", ("kind", KIND)] > 30_000


def test_jobs_are_kept_for_as_long_as_their_kind_says(given):
    given(StepKind("one", lambda *_: StepPassed()), name="for-ever")
    old, late = NOW - 91 * DAY, NOW - 89 * DAY
    (gone,) = ended(1, at=old)
    JobStep.objects.create(job=gone, index=0, name="one")
    JobEffect.objects.create(job=gone, key="k", step_index=0, name="x", attempted_at=old)
    stay = [
        *ended(1, at=late),
        *ended(1, at=old, kind="for-ever"),
        *ended(1, at=old, kind="nobody-knows"),
        *ended(1, at=old, duplicates_stopped=1),
        *ended(1, at=old, state="failed", compensation_failed_at=old),
        begin(now=old),
    ]

    assert purge_jobs(NOW) == 1

    assert set(Job.objects.values_list("pk", flat=True)) == {job.pk for job in stay}
    assert not JobEffect.objects.exists()
    assert purge_jobs(NOW) == 0


def test_a_few_are_deleted_at_a_time():
    ended(5, at=NOW - 91 * DAY)

    assert [purge(build_rules(), NOW, most=2) for _ in range(4)] == [2, 2, 1, 0]


def test_what_is_counted_for_ever_only_grows():
    ended(1, at=NOW - 91 * DAY, duplicates_stopped=2)
    begin()
    turn(NOW + SECOND)
    before = get_values("switchgear_job_duplicates_stopped_total")

    purge_jobs(NOW)

    assert get_values("switchgear_job_duplicates_stopped_total") == before == 2
