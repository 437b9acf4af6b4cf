"""Jobs over HTTP: found by what they are, one by one, and stopped by who may."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, as_role, with_token
from controlplane.core.jobs.models import Job
from controlplane.core.jobs.stepwise import StepKind, StepPassed
from controlplane.core.jobs.tests.house import audited, begin, ended, turn

pytestmark = pytest.mark.django_db
BECAUSE = {"reason": "the target is overloaded"}


@pytest.fixture(autouse=True)
def _kinds(given):
    given(StepKind("one", lambda *_: StepPassed()), StepKind("two", lambda *_: StepPassed()))
    given(StepKind("one", lambda *_: StepPassed()), name="ramp-like", scope="ramps:write")


def results(api, **filters):
    return [row["id"] for row in api.get("/jobs/", filters).json()["results"]]


def test_one_job_is_told_as_the_contract_says():
    now = db_now()
    job = begin("one", "two", now=now - timedelta(seconds=10), total=500)
    Job.objects.filter(pk=job.pk).update(
        done=50, checkpoint={"next": 50}, checkpoint_at=now, state="holding", hold_reason="waits"
    )

    body = as_role("viewer").get(f"/jobs/{job.pk}/").json()

    assert body["progress"] == {"done": 50, "total": 500, "rate_per_second": 5.0}
    named = {name: body[name] for name in ("id", "kind", "state", "checkpoint", "attempts")}
    assert named == {
        "id": job.pk,
        "kind": "test",
        "state": "holding",
        "checkpoint": {"next": 50},
        "attempts": 0,
    }
    assert (body["stuck"], body["error"], body["reason"]) == (False, "", "because")
    assert (body["created_by"], body["subject"]) == ("system:test", "segment:finance")
    assert (body["hold_reason"], body["path"]) == ("waits", f"/jobs/{job.pk}/")
    assert body["heartbeat_at"].endswith("Z")
    assert [(step["name"], step["state"]) for step in body["steps"]] == [
        ("one", "pending"),
        ("two", "pending"),
    ]


def test_a_job_that_is_over_tells_how_fast_it_was_and_when_it_ended():
    job = begin("one", "two")
    turn()
    (slow,) = ended(1, at=db_now(), seconds=4, done=10, total=10)

    api = as_role("viewer")
    body, fast = api.get(f"/jobs/{job.pk}/").json(), api.get(f"/jobs/{slow.pk}/").json()

    assert (body["state"], body["finished_at"]) == ("completed", "2026-11-21T02:11:00.000000Z")
    assert body["progress"] == {"done": 2, "total": 2, "rate_per_second": None}
    assert fast["progress"]["rate_per_second"] == 2.5
    assert body["steps"][0]["attempts"] == 1
    assert body["steps"][0]["finished_at"] == "2026-11-21T02:11:00.000000Z"


def test_the_list_comes_newest_first_and_is_narrowed():
    running, other = begin(), begin(subject="feature:search")
    (done,) = ended(1, at=db_now())
    (failed,) = ended(1, at=db_now(), state="failed", kind="ramp-like")
    api = as_role("viewer")

    assert results(api) == [failed.pk, done.pk, other.pk, running.pk]
    assert results(api, state="live") == [other.pk, running.pk]
    assert results(api, state="completed") == [done.pk]
    assert results(api, kind="ramp-like") == [failed.pk]
    assert results(api, subject="feature:search") == [other.pk]
    assert results(api, kind="test", state="live", subject="segment:finance") == [running.pk]
    wrong = api.get("/jobs/", {"state": "asleep"})
    assert (wrong.status_code, list(wrong.json()["errors"])) == (400, ["state"])


def test_the_list_comes_in_pages_with_few_queries(django_assert_max_num_queries):
    for _ in range(12):
        begin("one", "two")
    api = as_role("viewer")
    api.get("/jobs/")

    with django_assert_max_num_queries(8):
        first = api.get("/jobs/", {"limit": 10}).json()
    second = api.client.get(first["next"]).json()

    assert (len(first["results"]), len(second["results"]), second["next"]) == (10, 2, None)


def test_pausing_resuming_and_cancelling():
    api, job = as_role("operator"), begin("one", "two")

    states = [
        api.post(f"/jobs/{job.pk}/{verb}", BECAUSE).json()["state"]
        for verb in ("pause", "resume", "cancel")
    ]

    assert states == ["paused", "running", "cancelled"]
    assert audited() == ["job.paused", "job.resumed", "job.cancelled"]


def test_what_the_state_does_not_allow_is_a_problem():
    api, job = as_role("operator"), begin()

    refused = api.post(f"/jobs/{job.pk}/resume", BECAUSE)

    assert (refused.status_code, refused["Content-Type"]) == (409, "application/problem+json")
    assert refused.json()["state"] == "running"
    assert "can't resume" in refused.json()["detail"]


def test_a_reason_is_needed_and_a_job():
    api, job = as_role("operator"), begin()

    for body in ({}, {"reason": ""}, {"reason": "  "}, {"reason": 7}):
        refused = api.post(f"/jobs/{job.pk}/pause", body)
        assert (refused.status_code, list(refused.json()["errors"])) == (400, ["reason"]), body
    for answer in (
        api.get("/jobs/999999/"),
        api.post("/jobs/999999/pause", BECAUSE),
    ):
        assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")


def test_a_dry_run_does_nothing():
    api, job = as_role("operator"), begin()

    body = api.post(f"/jobs/{job.pk}/cancel", {**BECAUSE, "dry_run": True}).json()

    assert (body["state"], body["dry_run"]) == ("cancelled", True)
    assert Job.objects.get(pk=job.pk).state == "running"
    assert audited() == []


def test_a_repeat_with_the_same_key_gets_the_first_answer():
    api, job = as_role("operator"), begin()

    first = api.post(f"/jobs/{job.pk}/pause", BECAUSE, idempotency_key="k1")
    again = api.post(f"/jobs/{job.pk}/pause", BECAUSE, idempotency_key="k1")
    other = api.post(f"/jobs/{job.pk}/pause", {"reason": "x"}, idempotency_key="k1")

    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 422)
    assert again.json() == first.json()
    assert audited() == ["job.paused"]


def test_who_may_look_and_who_may_intervene():
    job, ramp = begin(), begin(kind="ramp-like")
    reader = with_token("switches:read")
    writer = with_token("switches:write", owner=reader_owner())
    ramps = with_token("ramps:write", owner=reader_owner())

    assert Api().get("/jobs/").status_code == 401
    assert with_token("slo:read", owner=reader_owner()).get("/jobs/").status_code == 403
    assert reader.get(f"/jobs/{job.pk}/").status_code == 200
    assert Api().post(f"/jobs/{job.pk}/pause", BECAUSE).status_code == 401
    assert reader.post(f"/jobs/{job.pk}/pause", BECAUSE).status_code == 403
    assert as_role("viewer").post(f"/jobs/{job.pk}/pause", BECAUSE).status_code == 403
    assert writer.post(f"/jobs/{ramp.pk}/pause", BECAUSE).status_code == 403
    assert ramps.post(f"/jobs/{job.pk}/pause", BECAUSE).status_code == 403
    assert set(Job.objects.values_list("state", flat=True)) == {"running"}
    assert ramps.post(f"/jobs/{ramp.pk}/pause", BECAUSE).status_code == 200
    assert writer.post(f"/jobs/{job.pk}/pause", BECAUSE).status_code == 200


def reader_owner():
    from controlplane.accounts.models.people import User

    return User.objects.get(username="token-owner")


def test_the_other_form_of_a_path_works_too():
    api, job = as_role("operator"), begin()

    assert api.get(f"/jobs/{job.pk}").status_code == 308
    assert api.post(f"/jobs/{job.pk}/pause/", BECAUSE).status_code == 200
    assert api.get(f"/jobs/{job.pk}/pause").status_code == 405


def test_a_kind_that_nobody_knows_any_more_is_still_told():
    job = begin(kind="of-old")

    body = as_role("viewer").get(f"/jobs/{job.pk}/").json()

    assert (body["kind"], body["title"], body["path"]) == ("of-old", "of-old", "/jobs/")
