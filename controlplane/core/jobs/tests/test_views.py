"""The page of jobs: what it tells of each, how it is narrowed, and what may be done there."""

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import MODEL_BACKEND, person
from controlplane.core.jobs import control, kinds
from controlplane.core.jobs.models import Job

pytestmark = pytest.mark.django_db
WHY = "vendor asks us to wait, INC-4411"
NASTY = "<script>alert(1)</script> 한국어 & مرحبا"


@pytest.fixture(autouse=True)
def copying():
    """A kind of job that nobody works on here."""
    kinds.register(
        kinds.JobKind(
            name="copying",
            title="Copying",
            tick="never",
            work=lambda turns, now, probe: 0,
            path=lambda job: f"/copies/{job.pk}/",
        )
    )
    yield
    kinds._registered.pop("copying")


def browser_as(role, **options):
    client = Client(raise_request_exception=False, **options)
    client.force_login(person(role), backend=MODEL_BACKEND)
    return client


def create_job(subject="segment:finance", **changes):
    now = db_now()
    job = control.create_job(
        kind="copying",
        subject=subject,
        steps=[control.PlannedStep("copy")],
        reason=WHY,
        actor=system_actor("tests"),
        now=now,
        total=200,
    )
    Job.objects.filter(pk=job.pk).update(**changes)
    return Job.objects.get(pk=job.pk)


def show_page(client, path="/jobs/", **query):
    return client.get(path, query).content.decode()


def test_row_tells_how_far_it_has_come_and_how_fast():
    now = db_now()
    create_job(done=50, started_at=now - timedelta(seconds=10), checkpoint_at=now)

    html = show_page(browser_as("viewer"))

    for part in (
        "Copying",
        "50 of 200",
        "5.0/s",
        "Running",
        "/copies/",
        "finance",
        "last heartbeat",
    ):
        assert part in html


def test_stuck_one_is_marked():
    long_ago = db_now() - timedelta(minutes=6)
    create_job(heartbeat_at=long_ago, next_at=long_ago)

    html = show_page(browser_as("viewer"))

    assert "1 stuck" in html
    assert "job--stuck" in html


def test_what_others_wrote_is_escaped():
    create_job(NASTY, state="holding", hold_reason=NASTY, error=f"again {NASTY}")

    html = show_page(browser_as("operator"))

    assert "<script>alert" not in html
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt; 한국어 &amp; مرحبا") == 3


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"state": "live"}, True),
        ({"state": "failed"}, False),
        ({"kind": "copying"}, True),
        ({"kind": "ramp"}, False),
        ({"q": "FINANCE"}, True),
        ({"q": "mail"}, False),
        ({"state": "nonsense", "kind": "x", "before": "y"}, True),
    ],
)
def test_list_is_narrowed(query, found):
    job = create_job()

    client = browser_as("viewer")

    for path in ("/jobs/", "/jobs/rows/"):
        assert (f'id="job-{job.pk}"' in show_page(client, path, **query)) is found


def test_live_part_keeps_the_filters_and_the_place():
    jobs = [create_job(f"segment:s{number}") for number in range(51)]
    client = browser_as("viewer")

    first = show_page(client, state="live")
    older = show_page(client, state="live", before=jobs[1].pk)

    assert 'hx-get="/jobs/rows/?state=live"' in first
    assert first.count('class="job"') == 50
    assert f"before={jobs[1].pk}" in first
    assert older.count('class="job"') == 1
    assert f'hx-get="/jobs/rows/?state=live&amp;before={jobs[1].pk}"' in older


def test_job_is_paused_resumed_and_cancelled_for_a_reason():
    job = create_job()
    client = browser_as("operator")

    for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        assert f'href="/jobs/{job.pk}/{verb}/"' in show_page(client)
        assert client.post(f"/jobs/{job.pk}/{verb}/", {"reason": " "}).status_code == 422
        assert client.post(f"/jobs/{job.pk}/{verb}/", {"reason": WHY}).status_code == 302
        assert Job.objects.get().state == state


def test_one_that_is_over_is_told():
    job = create_job(state="completed", finished_at=db_now())
    client = browser_as("operator")

    response = client.post(f"/jobs/{job.pk}/cancel/", {"reason": WHY})

    assert response.status_code == 409
    assert "This is completed" in response.content.decode()
    assert "/cancel/" not in show_page(client)


def test_viewer_sees_it_and_may_do_nothing():
    job = create_job()
    client = browser_as("viewer")

    assert "/pause/" not in show_page(client)
    for verb in ("pause", "resume", "cancel"):
        assert client.get(f"/jobs/{job.pk}/{verb}/").status_code == 403
        assert client.post(f"/jobs/{job.pk}/{verb}/", {"reason": WHY}).status_code == 403
    assert Job.objects.get().state == "running"


def test_form_of_another_site_does_nothing():
    job = create_job()

    response = browser_as("operator", enforce_csrf_checks=True).post(
        f"/jobs/{job.pk}/cancel/", {"reason": WHY}
    )

    assert response.status_code == 403
    assert Job.objects.get().state == "running"


@pytest.mark.parametrize("path", ["/jobs/7/pause/", f"/jobs/{10**30}/pause/"])
def test_job_that_is_not_there_is_not_found(path):
    assert browser_as("operator").get(path).status_code == 404


def test_none_yet_says_what_makes_one():
    assert "No jobs" in show_page(browser_as("viewer"))
