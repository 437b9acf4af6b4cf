"""API actions on dead letters: permissions and answers."""

import pytest

from breakers.dead_letters.models import Departure
from breakers.dead_letters.tests.heaps import list_origin, stream_path
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import Api, with_token
from controlplane.core.jobs.models import Job

pytestmark = pytest.mark.django_db
REASON = "broker is back, 0 errors since 02:10"


def test_retry_puts_the_message_back_and_a_repeat_answers_the_same(operator, letters):
    sent = letters.add(order="17")

    first = operator.post(stream_path(letters, f"messages/{sent}/retry"), {"reason": REASON})
    again = operator.post(stream_path(letters, f"messages/{sent}/retry"), {"reason": REASON})

    ((new_id, fields),) = list_origin(letters)
    assert first.status_code == again.status_code == 200
    assert first.json()["retried"] is True
    assert first.json()["new_id"] == again.json()["new_id"] == new_id
    assert fields == {"order": "17", "dlq_retry_of": sent, "dlq_retry_count": "1"}
    assert again.json()["repeated"] is True
    assert AuditEntry.objects.filter(action="dead_letter.retried").count() == 1


def test_retry_of_an_edited_message_tells_the_difference_when_it_fails_again(operator, letters):
    sent = letters.add(payload='{"n":1}', keep="as it is")
    body = {"reason": REASON, "edited_fields": {"payload": '{"n":2}'}}

    operator.post(stream_path(letters, f"messages/{sent}/retry"), body)
    failed = letters.add(error="still wrong", payload='{"n":2}', dlq_retry_of=sent)
    history = operator.get(stream_path(letters, f"messages/{failed}/")).json()["history"]

    ((_, fields),) = list_origin(letters)
    assert (fields["payload"], fields["keep"]) == ('{"n":2}', "as it is")
    assert [one["kind"] for one in history] == ["failed", "retried", "failed"]
    assert history[1]["changes"] == [{"path": "payload.n", "before": "1", "after": "2"}]
    assert (history[1]["edited"], history[1]["reason"]) == (True, REASON)


def test_retry_that_is_a_dry_run_does_nothing(operator, letters):
    sent = letters.add()

    response = operator.post(
        stream_path(letters, f"messages/{sent}/retry"), {"reason": REASON, "dry_run": True}
    )

    assert (response.status_code, response.json()["dry_run"]) == (200, True)
    assert letters.redis.xlen(letters.name()) == 1
    assert not Departure.objects.exists()


def test_retry_of_what_is_gone_is_a_conflict(operator, letters):
    sent = letters.add()
    letters.redis.xdel(letters.name(), sent)

    response = operator.post(stream_path(letters, f"messages/{sent}/retry"), {"reason": REASON})

    assert response.status_code == 409
    assert operator.get(stream_path(letters, f"messages/{sent}/")).status_code == 404


def test_discard_is_archived_and_restored(operator, letters):
    sent = letters.add(payload="kept")

    gone = operator.post(
        stream_path(letters, f"messages/{sent}/discard"), {"reason": REASON}
    ).json()
    body = operator.get(f"/dlq/archive/{gone['departure']}/").json()
    (row,) = operator.get("/dlq/archive/", {"stream": letters.name()}).json()["results"]
    back = operator.post(f"/dlq/archive/{gone['departure']}/restore", {"reason": REASON})

    assert gone["discarded"] is True
    assert (row["action"], row["by"], row["restorable"]) == ("discard", "user:a-operator", True)
    assert (body["fields"]["payload"], body["reason"]) == ("kept", REASON)
    assert back.status_code == 200, back.content
    ((new_id, fields),) = letters.redis.xrange(letters.name())
    assert (back.json()["new_id"], fields[b"payload"]) == (new_id.decode(), b"kept")


@pytest.mark.parametrize("body", [{}, {"reason": REASON}])
def test_admin_reveals_and_it_is_on_record(admin, letters, body):
    sent = letters.add(password="hunter2", payload='{"token":"abc"}')

    response = admin.post(stream_path(letters, f"messages/{sent}/reveal"), body)

    assert response.status_code == 200, response.content
    assert response.json()["fields"]["password"] == "hunter2"
    assert response.json()["fields"]["payload"] == '{"token":"abc"}'
    assert AuditEntry.objects.get(action="dead_letter.revealed").actor_name == "a-admin"


def test_reveal_as_a_dry_run_or_repeated_shows_nothing_hidden(admin, letters):
    sent = letters.add(password="hunter2")
    path = stream_path(letters, f"messages/{sent}/reveal")

    dry = admin.post(path, {"dry_run": True})
    admin.post(path, {}, idempotency_key="k1")
    repeat = admin.post(path, {}, idempotency_key="k1")

    assert dry.json()["fields"]["password"] == "[redacted]"
    assert repeat["Idempotent-Replayed"] == "true"
    assert repeat.json()["fields"]["password"] == "[redacted]"
    assert AuditEntry.objects.filter(action="dead_letter.revealed").count() == 1


@pytest.mark.parametrize("what", ["retry", "discard", "reveal"])
def test_viewer_may_look_and_no_more(viewer, letters, what):
    sent = letters.add()

    response = viewer.post(stream_path(letters, f"messages/{sent}/{what}"), {"reason": REASON})

    assert response.status_code == 403
    assert letters.redis.xlen(letters.name()) == 1


def test_operator_may_not_reveal(operator, letters):
    sent = letters.add()

    response = operator.post(stream_path(letters, f"messages/{sent}/reveal"), {"reason": REASON})

    assert response.status_code == 403


def test_token_needs_the_scope_of_dead_letters(letters):
    sent = letters.add()
    reader = with_token("dlq:read")

    assert reader.get(stream_path(letters)).status_code == 200
    assert (
        reader.post(stream_path(letters, f"messages/{sent}/retry"), {"reason": REASON}).status_code
        == 403
    )
    assert Api().get(stream_path(letters)).status_code == 401


def test_retry_without_a_good_reason_is_refused(operator, letters):
    sent = letters.add()

    response = operator.post(stream_path(letters, f"messages/{sent}/retry"), {"reason": "  "})

    assert (response.status_code, list(response.json()["errors"])) == (400, ["reason"])


def test_dry_run_of_a_job_counts_and_begins_nothing(operator, letters):
    letters.add()
    letters.add(dlq_retry_count=3)
    body = {"action": "retry", "stream": letters.name(), "filter": {}, "dry_run": True}

    response = operator.post("/dlq/jobs/", {**body, "reason": REASON})

    assert response.status_code == 200, response.content
    assert (response.json()["eligible"], response.json()["ineligible"]) == (1, 1)
    assert response.json()["why"] == {"retried_too_often": 1}
    assert operator.get("/dlq/jobs/").json()["results"] == []


def test_job_is_asked_for_paused_resumed_and_cancelled(operator, letters):
    letters.add()
    body = {
        "action": "retry", "stream": letters.name(), "filter": {"error_type": "TimeoutError"},
        "rate_per_second": 50, "reason": REASON, "dry_run": False,
    }  # fmt: skip

    response = operator.post("/dlq/jobs/", body)
    job = f"/dlq/jobs/{response.json()['id']}/"
    states = [
        operator.post(f"{job}{verb}").json()["state"] for verb in ("pause", "resume", "cancel")
    ]

    assert response.status_code == 202, response.content
    assert (response.json()["stream"], response.json()["rate_per_second"]) == (letters.name(), 50)
    assert states == ["paused", "running", "cancelled"]
    assert operator.get(job).json()["state"] == "cancelled"
    assert operator.post(f"{job}pause").status_code == 409


def test_purge_is_asked_of_a_second_person(operator, letters):
    letters.add()
    body = {"action": "purge", "stream": letters.name(), "filter": {}, "reason": REASON}

    response = operator.post("/dlq/jobs/", body)

    assert response.status_code == 202, response.content
    assert response.json()["approval"]["state"] == "pending"
    assert letters.redis.xlen(letters.name()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"filter": {"error_tpye": "x"}},
        {"filter": []},
        {"filter": None},
        {"filter": {"fingerprint": ""}},
        {"filter": {"error": None, "q": "x"}},
        {"filter": {"value": ""}},
        {"filter": {"field": "="}},
        {"rate_per_second": True},
        {"rate_per_second": "50"},
        {"most_retries": True},
        {"action": "explode"},
        {"rate_per_second": 0},
        {"reason": ""},
        {"waits_for": "core->oracle"},
    ],
)
def test_job_that_makes_no_sense_is_refused(operator, letters, change):
    letters.add()
    body = {"action": "retry", "stream": letters.name(), "reason": REASON, **change}

    assert operator.post("/dlq/jobs/", body).status_code == 400
    assert not Job.objects.exists()


def test_field_that_has_to_be_empty_is_a_choice_of_letters(operator, letters):
    letters.add(note="")
    letters.add(note="said")
    body = {"action": "retry", "stream": letters.name(), "dry_run": True}

    response = operator.post("/dlq/jobs/", {**body, "filter": {"field": "note", "value": ""}})

    assert response.status_code == 200, response.content
    assert response.json()["eligible"] == 1
