"""Approve and Deny in Slack: by known users, once, by the same rules as on the page."""

import json
from dataclasses import replace
from urllib.parse import parse_qs, urlencode

import pytest
import structlog
from django.db import transaction

from controlplane.accounts.models.people import User
from controlplane.core.approvals import reviews
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, at_once, person, signed_in, token_text
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.models.interactions import AnsweredRequest
from controlplane.notify.retention_rules import ANSWERED_REQUESTS
from controlplane.notify.tasks import purge_answered_requests
from controlplane.notify.transports import destinations

from .slack_requests import PATH, SlackUser, send, signed

pytestmark = pytest.mark.django_db(transaction=True)

GLOBAL = "/switches/global/all"
RELEASE = {"justification": "duplicate charges refunded, queue empty", "mode": "immediate"}


@pytest.fixture
def kim():
    return signed_in(person("operator", "kim"))


@pytest.fixture
def waiting(kim):
    kim.engage("global:all")
    return kim.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]


def state(api):
    return api.get(f"{GLOBAL}/").json()["state"]


def test_approver_approves_in_slack_and_it_is_done(in_slack, kim, waiting):
    lee = in_slack("approver", "lee")

    reply = lee.press("approve", {"approval": waiting, "subject": f"approval:{waiting}"})

    assert reply.startswith("You approved: Release global:all")
    assert state(kim) == "released"
    assert Approval.objects.get().decided_by == "slack:lee"
    rows = AuditEntry.objects.filter(action__in=["approval.approved", "switch.released"])
    assert {(row.actor_type, row.actor_name) for row in rows} == {("slack", "lee")}
    assert all(row.request_id for row in rows)


def test_approver_denies_in_slack(in_slack, kim, waiting):
    reply = in_slack("approver", "lee").press("deny", {"approval": waiting})

    assert reply.startswith("You denied: Release global:all")
    assert (state(kim), Approval.objects.get().state) == ("engaged", "denied")


def test_the_decision_takes_the_buttons_away(in_slack, waiting):
    in_slack("approver", "lee").press("approve", {"approval": waiting})

    message = OutboxMessage.objects.get(event="approval.decided")
    assert message.subject == f"approval:{waiting}"
    assert (message.payload["outcome"], message.payload["decided_by"]) == (
        "approved",
        "slack:lee",
    )


def test_who_is_not_connected_is_told_so_and_nothing_happens(slack, kim, waiting):
    stranger = SlackUser("U0STRANGER", slack.url)

    reply = stranger.press("approve", {"approval": waiting})

    assert "not connected to an active account" in reply
    assert "An admin can connect it" in reply
    assert Approval.objects.get().state == "pending"


@pytest.mark.parametrize("slack_user_id", ["", "U0LEE\x00", "é" * 100])
def test_strange_slack_users_are_nobody(slack, in_slack, waiting, slack_user_id):
    in_slack("approver", "lee")
    body = SlackUser(slack_user_id, slack.url).body("approve", {"approval": waiting})

    with structlog.testing.capture_logs() as logs:
        assert send(body, signed(body)).status_code == 200

    assert Approval.objects.get().state == "pending"
    assert not [line for line in logs if line["log_level"] == "error"]


def test_deactivated_person_is_nobody(in_slack, waiting):
    lee = in_slack("approver", "lee")
    User.objects.filter(username="lee").update(is_active=False)

    assert "not connected" in lee.press("approve", {"approval": waiting})
    assert Approval.objects.get().state == "pending"


def test_role_counts_at_the_click_not_when_the_message_was_sent(in_slack, waiting):
    lee = in_slack("approver", "lee")
    User.objects.filter(username="lee").update(role="operator")

    assert "requires someone who can approve" in lee.press("approve", {"approval": waiting})
    assert Approval.objects.get().state == "pending"


def test_second_press_is_the_same_decision(in_slack, kim, waiting):
    lee = in_slack("approver", "lee")

    first, again = (lee.press("approve", {"approval": waiting}) for _ in range(2))

    assert first == again
    assert AuditEntry.objects.filter(action="switch.released").count() == 1
    assert AuditEntry.objects.filter(action="approval.approved").count() == 1
    on_the_page = signed_in(User.objects.get(username="lee"))
    assert on_the_page.post(f"/approvals/{waiting}/approve", {}).status_code == 200


def test_replayed_request_has_no_second_effect(in_slack, kim, waiting):
    lee = in_slack("approver", "lee")
    body = lee.body("deny", {"approval": waiting})
    headers = signed(body)

    answers = [send(body, headers) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert len(lee.list_replies()) == 1
    assert AnsweredRequest.objects.count() == 1


def test_twins_at_the_same_moment_have_one_effect(in_slack, kim, waiting):
    lee = in_slack("approver", "lee")
    body = lee.body("approve", {"approval": waiting})
    headers = signed(body)

    answers = at_once(*[lambda: send(body, headers)] * 4)

    assert {answer.status_code for answer in answers} == {200}
    assert len(lee.list_replies()) == 1
    assert AuditEntry.objects.filter(action="switch.released").count() == 1


def test_double_click_has_one_effect(in_slack, kim, waiting):
    lee = in_slack("approver", "lee")
    value = {"approval": waiting}
    bodies = [lee.body("approve", value, trigger_id=str(number)) for number in range(4)]

    at_once(*[lambda body=body: send(body, signed(body)) for body in bodies])

    assert len(lee.list_replies()) == 4
    assert len(set(lee.list_replies())) == 1
    assert AuditEntry.objects.filter(action="switch.released").count() == 1
    assert OutboxMessage.objects.filter(event="approval.decided").count() == 1


def test_two_people_at_once_one_decides_and_the_other_is_told_who(in_slack, kim, waiting):
    lee, ayse = in_slack("approver", "lee"), in_slack("admin", "ayse")
    yes, no = lee.body("approve", {"approval": waiting}), ayse.body("deny", {"approval": waiting})

    at_once(lambda: send(yes, signed(yes)), lambda: send(no, signed(no)))

    replies = sorted([*lee.list_replies(), *ayse.list_replies()], reverse=True)
    assert replies[0].startswith("You ")
    assert replies[1].startswith("This was already ")


def test_edited_request_is_not_approved_by_the_old_button(in_slack, kim, waiting):
    new = kim.patch(f"/approvals/{waiting}/", {"reason": "refunded, bank confirmed"}).json()["id"]
    lee = in_slack("approver", "lee")

    reply = lee.press("approve", {"approval": waiting})

    assert "The request was edited. Review it again" in reply
    assert f"approval {new}" in reply
    assert state(kim) == "engaged"


def test_review_is_signed_by_approve_but_not_by_who_broke_the_glass(in_slack):
    kim, lee = in_slack("admin", "kim"), in_slack("approver", "lee")
    with transaction.atomic():
        review = reviews.open_review(
            rule="payments",
            reason="both charge twice, INC-12",
            target="segment:finance",
            diff={},
            actor=User.objects.get(username="kim").as_actor(),
            now=db_now(),
        )

    assert "second person must sign" in kim.press("approve", {"approval": review.pk})
    assert "can't be denied" in lee.press("deny", {"approval": review.pk})
    assert lee.press("approve", {"approval": review.pk}).startswith("You signed: Break-glass")
    assert Approval.objects.get().state == "approved"


def test_owner_of_the_token_that_asked_can_not_approve_in_slack(in_slack, kim):
    lee = in_slack("approver", "lee")
    program = Api(
        x_api_key=token_text(User.objects.get(username="lee"), ["switches:read", "switches:write"])
    )
    program.engage("global:all")
    approval_id = program.post(f"{GLOBAL}/release", RELEASE).json()["approval"]["id"]

    assert "a second person" in lee.press("approve", {"approval": approval_id})
    assert state(kim) == "engaged"


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"approval": None},
        {"approval": "1"},
        {"approval": True},
        {"approval": 10**30},
        {"approval": -1},
        "[",
        "[]",
    ],
)
def test_button_without_a_readable_value_says_so(in_slack, value):
    assert "Open the console instead" in in_slack("approver", "lee").press("approve", value)


def test_unknown_approval_is_said(in_slack):
    reply = in_slack("approver", "lee").press("approve", {"approval": 99999})

    assert reply == "There is no approval 99999."


@pytest.mark.parametrize(
    "address",
    [
        "http://hooks.slack.com/actions/x",
        "https://hooks.slack.com.evil.example/x",
        "https://evil.example/hooks.slack.com",
        "https://kim@hooks.slack.com/x",
        "https://hooks.slack.com:8443/x",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "https://[::1",
        "",
    ],
)
def test_only_slack_is_answered(in_slack, waiting, address):
    lee = in_slack("approver", "lee")
    body = lee.body("deny", {"approval": waiting}, response_url=address)

    assert send(body, signed(body)).status_code == 200
    assert lee.list_replies() == []
    assert Approval.objects.get().state == "denied"


def test_path_with_a_slash_works_too(in_slack, waiting):
    body = in_slack("approver", "lee").body("deny", {"approval": waiting})

    assert send(body, signed(body), path=f"{PATH}/").status_code == 200
    assert Approval.objects.get().state == "denied"


def test_unicode_is_signed_as_bytes_and_read_as_text(in_slack, waiting):
    lee = in_slack("approver", "lee")
    payload = json.loads(_payload_of(lee.body("deny", {"approval": waiting})))
    body = urlencode(
        {"payload": json.dumps({**payload, "m": "결제 🛑"}, ensure_ascii=False)}
    ).encode()

    assert send(body, signed(body)).status_code == 200
    assert Approval.objects.get().state == "denied"


def test_no_address_and_no_secret_is_logged(in_slack, waiting):
    lee = in_slack("approver", "lee")

    with structlog.testing.capture_logs() as logs:
        lee.press("approve", {"approval": waiting})

    assert "/actions/T1/42" not in repr(logs)


def test_answered_requests_are_forgotten_once_they_are_too_old_to_be_believed(in_slack, waiting):
    in_slack("approver", "lee").press("deny", {"approval": waiting})

    assert purge_answered_requests(db_now()) == 0
    assert purge_answered_requests(db_now() + ANSWERED_REQUESTS.period * 1.1) == 1


def test_without_a_signing_secret_no_reply_goes_out(settings, in_slack, waiting):
    lee = in_slack("approver", "lee")
    lee.press("deny", {"approval": waiting})
    settings.SLACK = replace(settings.SLACK, signing_secret="")

    assert not destinations.transport_for(f"slack_reply:{lee.id}").reaches(f"slack_reply:{lee.id}")


def _payload_of(body):
    return parse_qs(body.decode())["payload"][0]


def test_role_that_needs_a_second_factor_is_refused_without_one(in_slack, kim, waiting, settings):
    settings.ENTRY = replace(settings.ENTRY, second_factor_roles=frozenset({"approver"}))

    reply = in_slack("approver", "lee").press("approve", {"approval": waiting})

    assert reply.startswith("Your role requires a second factor.")
    assert Approval.objects.get().state == "pending"
