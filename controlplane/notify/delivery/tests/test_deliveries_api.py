"""HTTP API of deliveries: messages, attempts, hidden addresses, and retries."""

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import Api, as_role, with_token
from controlplane.core.outbox.models import OutboxMessage

from .message_samples import create_message, hook, somebody

pytestmark = pytest.mark.django_db
KIM = "kim@example.org"


def listed(api, **params):
    response = api.get("/deliveries/", params)
    assert response.status_code == 200, response.content
    return response.json()["results"]


def ids(api, **params):
    return {row["id"] for row in listed(api, **params)}


def test_a_message_is_told_with_every_attempt_newest_first():
    older = create_message("sent")
    newer = create_message("failed", error="HTTP 500 from Slack", subject="episode:12")

    rows = listed(as_role("viewer"))

    assert [row["id"] for row in rows] == [newer.pk, older.pk]
    assert rows[0]["state"] == "failed"
    assert rows[0]["last_error"] == "HTTP 500 from Slack"
    assert rows[0]["subject"] == "episode:12"
    assert [(one["number"], one["outcome"]) for one in rows[0]["attempts"]] == [
        (1, "unknown"),
        (2, "refused"),
    ]
    assert rows[0]["attempts"][0]["error"] == "HTTP 500 from Slack"
    assert rows[0]["next_attempt_at"] is None
    assert "segment:finance ENGAGED" in rows[0]["title"]


def test_one_message_has_a_resource_of_its_own():
    message = create_message("pending")

    row = as_role("viewer").get(f"/deliveries/{message.pk}/").json()

    assert row["id"] == message.pk
    assert row["next_attempt_at"]
    assert as_role("operator").get("/deliveries/999999/").status_code == 404


def test_filters_narrow_and_go_together():
    pager = hook()
    one = create_message("failed", f"webhook:{pager.pk}", severity="critical")
    two = create_message("sent", f"webhook:{pager.pk}", event="switch.released")
    three = create_message(
        "pending", "slack:C024BE91L", event="approval.requested", severity="warning"
    )
    api = as_role("viewer")

    assert ids(api, state="failed") == {one.pk}
    assert ids(api, destination="webhook") == {one.pk, two.pk}
    assert ids(api, destination=f"webhook:{pager.pk}") == {one.pk, two.pk}
    assert ids(api, destination="Pager") == {one.pk, two.pk}
    assert ids(api, destination="slack") == {three.pk}
    assert ids(api, destination="nobody") == set()
    assert ids(api, event="switch") == {one.pk, two.pk}
    assert ids(api, event="switch.released") == {two.pk}
    assert ids(api, severity="warning") == {three.pk}
    assert ids(api, state="sent", destination="pager", event="switch") == {two.pk}


@pytest.mark.parametrize("query", [{"state": "lost"}, {"severity": "loud"}, {"event": "x" * 65}])
def test_a_filter_that_makes_no_sense_is_refused(query):
    assert as_role("viewer").get("/deliveries/", query).status_code == 400


def test_pages_follow_each_other_without_a_gap():
    expected = [create_message().pk for _ in range(5)][::-1]
    api, seen, url = as_role("viewer"), [], "/deliveries/?limit=2"

    while url:
        page = api.get(url.replace("http://testserver", "")).json()
        seen += [row["id"] for row in page["results"]]
        url = page["next"]

    assert seen == expected


def test_reading_takes_reports_read_and_nothing_less():
    create_message()

    assert Api().get("/deliveries/").status_code == 401
    assert with_token("switches:read").get("/deliveries/").status_code == 403


def test_a_program_learns_nobodys_address():
    somebody("kim", email=KIM, slack_user_id="U024BE7LH")
    create_message("failed", f"email:{KIM}", error=f"550 no such user {KIM}")
    create_message("failed", "slack:U024BE7LH", error="Slack says no to U024BE7LH")
    create_message("failed", "email:unknown@example.org")
    api = with_token("reports:read")

    response = api.get("/deliveries/")

    text = response.content.decode()
    assert KIM not in text
    assert "U024BE7LH" not in text
    assert "unknown@example.org" not in text
    names = [row["destination_name"] for row in response.json()["results"]]
    assert names == ["someone (e-mail)", "kim (Slack)", "kim (e-mail)"]
    assert response.json()["results"][2]["destination"] == "email:[hidden]"
    one = OutboxMessage.objects.get(destination=f"email:{KIM}")
    assert KIM not in api.get(f"/deliveries/{one.pk}/").content.decode()


def test_a_program_can_not_try_out_addresses_but_ask_for_names():
    somebody("kim", email=KIM)
    message = create_message("failed", f"email:{KIM}")
    api = with_token("reports:read")

    assert api.get("/deliveries/", {"destination": f"email:{KIM}"}).status_code == 400
    assert ids(api, destination="kim") == {message.pk}
    assert ids(api, destination="email") == {message.pk}


def test_a_signed_in_person_sees_addresses():
    somebody("kim", email=KIM)
    create_message("failed", f"email:{KIM}", error=f"550 no such user {KIM}")

    (row,) = listed(as_role("viewer"), destination=f"email:{KIM}")

    assert row["destination"] == f"email:{KIM}"
    assert KIM in row["last_error"]


def test_a_webhook_has_its_targets_name_and_neither_url_nor_secret():
    pager = hook()
    create_message("failed", f"webhook:{pager.pk}")
    create_message("failed", "webhook:999999")

    response = as_role("admin").get("/deliveries/")

    gone, found = response.json()["results"]
    assert (found["destination"], found["destination_name"]) == (
        f"webhook:{pager.pk}",
        "pager (webhook)",
    )
    assert gone["destination_name"] == "a removed webhook"
    assert "S3CRET" not in response.content.decode()
    assert "whsec" not in response.content.decode()


def test_what_a_message_is_made_of_is_not_shown():
    facts = {"response_url": "https://hooks.slack.com/actions/T0/secret"}
    message = create_message("failed", "slack_reply:x", event="interaction.answered", facts=facts)

    api = as_role("admin")

    for path in ("/deliveries/", f"/deliveries/{message.pk}/"):
        assert "hooks.slack.com" not in api.get(path).content.decode()


def test_a_failed_message_is_sent_again_once_and_audited():
    message = create_message("failed")
    api = as_role("operator")

    first = api.post(f"/deliveries/{message.pk}/retry")
    second = api.post(f"/deliveries/{message.pk}/retry")

    assert (first.status_code, first.json()["state"]) == (200, "pending")
    assert second.status_code == 409
    (entry,) = AuditEntry.objects.filter(action="outbox.retried")
    assert entry.actor_name == "a-operator"


def test_a_rehearsed_retry_changes_nothing():
    message = create_message("failed")

    response = as_role("operator").post(f"/deliveries/{message.pk}/retry", {"dry_run": True})

    assert response.json()["state"] == "pending"
    assert OutboxMessage.objects.get().state == "failed"
    assert not AuditEntry.objects.filter(action="outbox.retried").exists()


@pytest.mark.parametrize("path", ["/deliveries/{}/retry", "/deliveries/retry"])
def test_retrying_takes_the_right_to_change_switches(path):
    message = create_message("failed")
    path, body = path.format(message.pk), {"destination": "slack"}

    assert as_role("viewer").post(path, body).status_code == 403
    assert with_token("reports:read").post(path, body).status_code == 403
    assert OutboxMessage.objects.get().state == "failed"


def test_all_that_failed_at_one_destination_is_sent_again_within_bounds():
    for _ in range(103):
        create_message("failed", "slack", outcomes=[])
    elsewhere = create_message("failed", "slack:C024BE91L")
    sent = create_message("sent", "slack")
    api = as_role("operator")

    first = api.post("/deliveries/retry", {"destination": "slack"})
    second = api.post("/deliveries/retry", {"destination": "slack"})
    third = api.post("/deliveries/retry", {"destination": "slack"})

    assert first.json() == {"destination": "slack", "retried": 100, "left": 3}
    assert second.json()["retried"] == 3
    assert third.status_code == 409
    assert OutboxMessage.objects.filter(state="pending").count() == 103
    elsewhere.refresh_from_db()
    sent.refresh_from_db()
    assert (elsewhere.state, sent.state) == ("failed", "sent")
    assert AuditEntry.objects.filter(action="outbox.retried").count() == 2


def test_what_a_digest_tells_goes_with_the_digest():
    members = [create_message("failed", event="escalation.step", outcomes=[]) for _ in range(12)]
    facts = {"count": 12, "messages": [member.pk for member in members]}
    digest = create_message("failed", event="outbox.digest", facts=facts)

    response = as_role("operator").post("/deliveries/retry", {"destination": "slack"})

    assert response.json()["retried"] == 1
    assert OutboxMessage.objects.get(state="pending").pk == digest.pk


@pytest.mark.parametrize("state", ["failed", "pending"])
def test_a_digest_beyond_the_first_hundred_still_takes_its_members_along(state):
    members = [create_message("failed", event="escalation.step", outcomes=[]) for _ in range(120)]
    facts = {"count": 120, "messages": [member.pk for member in members]}
    digest = create_message(state, event="outbox.digest", facts=facts)
    alone = create_message("failed", outcomes=[])

    response = as_role("operator").post("/deliveries/retry", {"destination": "slack"})

    assert response.json() == {
        "destination": "slack",
        "retried": 2 if state == "failed" else 1,
        "left": 0,
    }
    waiting = set(OutboxMessage.objects.filter(state="pending").values_list("pk", flat=True))
    assert waiting == {digest.pk, alone.pk}


def test_a_retried_message_gets_its_attempts_back():
    message = create_message("failed")

    as_role("operator").post(f"/deliveries/{message.pk}/retry")

    message.refresh_from_db()
    assert (message.attempts, message.finished_at, message.lease_until) == (0, None, None)
    assert message.tries.count() == 2
