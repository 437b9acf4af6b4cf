"""Dead letters over HTTP: the outbox, servers that are away, and what the document says."""

from dataclasses import replace

import pytest

from breakers.dead_letters.models import LetterStream
from breakers.dead_letters.tests.heaps import stream_path
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, with_token
from controlplane.core.outbox.models import OutboxMessage
from controlplane.openapi.tests.documents import api_document
from controlplane.openapi.tests.test_responses import complaints
from controlplane.supervisor import ports

pytestmark = pytest.mark.django_db
REASON = "broker is back, 0 errors since 02:10"
MESSAGE = "/api/v1/dlq/streams/{name}/messages/{entry_id}/"


@pytest.fixture(scope="module")
def document():
    return api_document()


@pytest.fixture
def failed():
    now = db_now()
    return OutboxMessage.objects.create(
        event="jobs.alarm", event_key="k1", destination="webhook:7", payload={"said": "x"},
        state="failed", attempts=8, next_attempt_at=now, created_at=now, finished_at=now,
        last_error="500 from the receiver",
    )  # fmt: skip


def test_outbox_lists_what_failed_and_retry_puts_it_back(failed):
    api = with_token("dlq:read", "dlq:write")

    (row,) = api.get("/dlq/outbox/").json()["results"]
    response = api.post(f"/dlq/outbox/{failed.pk}/retry", {"reason": REASON})

    failed.refresh_from_db()
    assert (row["id"], row["state"], row["last_error"]) == (
        failed.pk, "failed", "500 from the receiver",
    )  # fmt: skip
    assert (response.status_code, response.json()["retried"]) == (200, True)
    assert (failed.state, failed.attempts) == ("pending", 0)
    assert api.get("/dlq/outbox/").json()["results"] == []
    assert api.post(f"/dlq/outbox/{failed.pk}/retry").status_code == 409


def test_outbox_message_that_is_discarded_is_listed_no_more(failed):
    api = as_role("operator")

    response = api.post(f"/dlq/outbox/{failed.pk}/discard", {"reason": REASON})

    assert (response.status_code, response.json()["discarded"]) == (200, True)
    assert api.get("/dlq/outbox/").json()["results"] == []
    assert AuditEntry.objects.filter(action="outbox.discarded").count() == 1


def test_same_key_with_another_query_is_422(failed):
    api, key = as_role("operator"), {"Idempotency-Key": "k-1"}
    path = f"/dlq/outbox/{failed.pk}/discard"
    first = api.post(f"{path}?server=default", {"reason": REASON}, **key)

    again = api.post(f"{path}?server=default", {"reason": REASON}, **key)
    other = api.post(f"{path}?server=orders", {"reason": REASON}, **key)

    assert (first.status_code, again.content) == (200, first.content)
    assert other.status_code == 422


def test_server_is_documented_on_every_path(document):
    operations = [
        operation
        for path, each in document["paths"].items()
        if path.startswith("/api/v1/dlq/")
        for operation in each.values()
    ]

    assert len(operations) > 15
    for operation in operations:
        assert "server" in [one["name"] for one in operation["parameters"]], operation


def test_server_that_is_away_is_said_and_the_inbox_is_there(settings, letters):
    api = as_role("operator")
    away = f"redis://127.0.0.1:{ports.pick_free()}/0"
    sources = settings.DEAD_LETTERS
    settings.DEAD_LETTERS = replace(sources, servers={**sources.servers, "away": away})
    LetterStream.objects.create(
        server="away", name=letters.name(), origin="x", depth=7, found_at=db_now()
    )

    inbox = api.get("/dlq/?server=away")
    answers = [
        api.get(f"{stream_path(letters)}?server=away"),
        api.get(f"{stream_path(letters, 'groups/')}?server=away"),
        api.get(f"{stream_path(letters, 'messages/1-1/')}?server=away"),
        api.get(f"{stream_path(letters, 'export')}?server=away"),
        api.post(f"{stream_path(letters, 'messages/1-1/retry')}?server=away", {"reason": REASON}),
    ]

    assert [one["depth"] for one in inbox.json()] == [7]
    assert {one.status_code for one in answers} == {503}
    assert all(int(one["Retry-After"]) > 0 for one in answers)


def test_real_answers_are_what_the_document_says(document, letters, failed):
    operator, admin = as_role("operator"), as_role("admin")
    letters.redis.xadd(letters.name(), {b"blob": b"\xff", b"twice": b"x" * 5000})
    sent = [letters.add(payload='{"n":1}', dlq_attempts=3, dlq_group="g") for _ in range(3)]
    job = {"action": "discard", "stream": letters.name(), "reason": REASON}
    stream = "/api/v1/dlq/streams/{name}/"
    archive = "/api/v1/dlq/archive/"

    retried = operator.post(
        stream_path(letters, f"messages/{sent[0]}/retry"),
        {"reason": REASON, "edited_fields": {"payload": {"n": 2}}},
    )
    discarded = operator.post(
        stream_path(letters, f"messages/{sent[1]}/discard"), {"reason": REASON}
    )
    number = discarded.json()["departure"]
    answers = [
        (f"{MESSAGE}retry", "post", retried),
        (f"{MESSAGE}discard", "post", discarded),
        ("/api/v1/dlq/", "get", operator.get("/dlq/")),
        (f"{stream}messages/", "get", operator.get(stream_path(letters))),
        (f"{stream}groups/", "get", operator.get(stream_path(letters, "groups/"))),
        (MESSAGE, "get", operator.get(stream_path(letters, f"messages/{sent[2]}/"))),
        (
            f"{MESSAGE}reveal",
            "post",
            admin.post(stream_path(letters, f"messages/{sent[2]}/reveal")),
        ),
        (archive, "get", operator.get("/dlq/archive/")),
        (f"{archive}{{departure_id}}/", "get", operator.get(f"/dlq/archive/{number}/")),
        (
            f"{archive}{{departure_id}}/restore",
            "post",
            operator.post(f"/dlq/archive/{number}/restore", {"reason": REASON}),
        ),
        ("/api/v1/dlq/outbox/", "get", operator.get("/dlq/outbox/")),
        ("/api/v1/dlq/jobs/", "post", operator.post("/dlq/jobs/", {**job, "dry_run": True})),
        ("/api/v1/dlq/jobs/", "post", operator.post("/dlq/jobs/", job)),
        ("/api/v1/dlq/jobs/", "post", operator.post("/dlq/jobs/", {**job, "action": "purge"})),
        ("/api/v1/dlq/jobs/", "get", operator.get("/dlq/jobs/")),
    ]

    for path, method, response in answers:
        assert response.status_code < 300, (path, response.content)
        assert complaints(document, path, method, response) == [], (method, path, response.json())


def test_name_of_a_redis_server_in_the_body_of_a_job_counts(letters):
    letters.add()
    body = {"action": "retry", "stream": letters.name(), "server": "nowhere", "reason": REASON}

    assert as_role("operator").post("/dlq/jobs/", body).status_code == 404


def test_servers_in_the_address_and_the_body_of_a_job_that_differ_are_refused(letters):
    letters.add()
    body = {"action": "retry", "stream": letters.name(), "server": "default", "dry_run": True}

    api = as_role("operator")

    assert api.post("/dlq/jobs/?server=nope", body).status_code == 400
    assert api.post("/dlq/jobs/?server=default", body).status_code == 200
