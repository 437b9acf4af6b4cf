"""Notifications about ramps in Slack, at the head of the episode's thread, and their buttons."""

import json
from datetime import timedelta

import pytest

from controlplane.accounts.models.people import User
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.gates import external
from controlplane.core.http.tests.callers import person, signed_in
from controlplane.core.jobs import engine
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.tests.outbox_helpers import deliver
from controlplane.notify.interactions.tests import conftest as clicks
from switches import services
from switches.models import Episode, Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import SHELL, SMOKE

pytestmark = pytest.mark.django_db(transaction=True)

slack, in_slack = clicks.slack, clicks.in_slack
_clicks_are_verified = clicks._clicks_are_verified

WHY = "provider confirmed the fix 2.14.1"


@pytest.fixture
def kim():
    return signed_in(person("operator", "kim"))


def begin(api, *gates_of_first, switch="feature:chat", dwell=300):
    """Engage a switch and start a ramp of three steps, the first of which has these gates."""
    api.engage(switch)
    first = {"percent": 5, "dwell_seconds": dwell, "gates": list(gates_of_first)}
    others = [{"percent": percent, "dwell_seconds": dwell} for percent in (25, 100)]
    path = f"/switches/{switch.replace(':', '/')}/release"
    response = api.post(path, {"justification": WHY, "mode": "ramp", "plan": [first, *others]})
    assert response.status_code == 202, response.content
    return Ramp.objects.select_related("job", "episode").get(switch=switch, live=True)


def later(seconds):
    """Run a tick of the ramps `seconds` from now, and return its time."""
    now = db_now() + timedelta(seconds=seconds)
    engine.run_tick("ramps.turn", now)
    return now


def head(slack):
    return slack.messages[0]


def buttons(message):
    found = [block for block in message["blocks"] if block["type"] == "actions"]
    return {element["action_id"]: element for block in found for element in block["elements"]}


def button_of(slack, name):
    return json.loads(buttons(head(slack))[name]["value"])


def test_head_of_the_thread_shows_the_share_and_is_updated_in_place(slack, kim):
    begin(kim)
    deliver()

    assert "feature:chat RAMPING 5 %, step 1 of 3: ramp started" in head(slack)["text"]
    assert "*Plan:* 5 %, 25 %, 100 %" in head(slack)["text"]
    ts = head(slack)["ts"]

    later(301)
    deliver()

    assert (head(slack)["ts"], "thread_ts" in head(slack)) == (ts, False)
    assert "feature:chat RAMPING 25 %, step 2 of 3" in head(slack)["text"]
    assert {message["thread_ts"] for message in slack.messages[1:]} == {ts}


def test_nothing_says_that_it_expires_while_it_ramps(slack, kim):
    ramp = begin(kim, SMOKE)
    later(301)
    actions.pause(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=db_now())
    actions.resume(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=db_now())
    deliver()

    texts = [message["text"] for message in slack.messages if "RAMPING" in message["text"]]
    assert len(texts) == 5  # The first, and in its thread: started, held, paused, resumed.
    assert not [text for text in texts if "xpire" in text or "until" in text]


def test_completed_ramp_ends_the_thread_as_a_release(slack, kim):
    begin(kim)
    for seconds in (301, 602, 903):
        later(seconds)
    deliver()

    assert "feature:chat released" in head(slack)["text"]
    assert buttons(head(slack)) == {}
    assert OutboxMessage.objects.filter(event="switch.released").count() == 1


def test_hold_says_what_is_missing_and_until_when_it_waits(slack, kim):
    begin(kim, SMOKE)

    held_at = later(301)
    deliver()

    text = head(slack)["text"]
    assert "RAMPING 5 %, step 1 of 3: on HOLD" in text
    assert "No data: external gate smoke: no observation of smoke has been reported yet" in text
    ends = (held_at + timedelta(hours=1)).strftime("%Y-%m-%d %H:%M")
    assert f"*Engaged again unless it continues by:* {ends}" in text
    (message,) = OutboxMessage.objects.filter(event="ramp.held")
    assert message.severity == "warning"


def test_compensation_is_told_with_the_evidence_in_words(slack, kim):
    begin(kim, SMOKE)
    external.record_verdict(
        name="smoke",
        verdict="fail",
        evidence={"errors": 12, "page": "/checkout"},
        actor=SHELL,
        now=db_now() + timedelta(seconds=1),
    )

    later(2)
    deliver()

    text = head(slack)["text"]
    assert "feature:chat ENGAGED again: its ramp failed at step 1 of 3" in text
    assert (
        "*Gates:* external gate smoke: system:shell reported fail (12 errors, page /checkout)"
        in text
    )
    assert "Fix the cause, then release it again." in text
    assert "then starts a ramp" in text  # It will expire again.
    assert [*buttons(head(slack))] == ["acknowledge", "extend"]
    (message,) = OutboxMessage.objects.filter(event="ramp.compensated")
    assert message.severity == "critical"
    assert message.payload["evidence"][0]["evidence"]["evidence"] == {
        "errors": 12,
        "page": "/checkout",
    }
    assert slack.messages[-1]["reply_broadcast"] is True


def test_compensation_past_the_expiry_says_that_it_is_overdue(slack, kim):
    kim.engage("feature:chat", expires_in="1h", on_expiry="ramp")
    at = db_now() + timedelta(hours=1, seconds=1)
    services.expire_due(at)
    ramp = Ramp.objects.get()
    actions.abort(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=at + timedelta(seconds=9))
    deliver()

    text = head(slack)["text"]
    assert "feature:chat ENGAGED: its ramp was aborted" in text
    assert "It is past its expiry and OVERDUE" in text


@pytest.mark.parametrize("state", ["started", "advanced", "held", "paused", "resumed"])
def test_button_aborts_the_ramp_whatever_it_is_at(slack, in_slack, kim, state):
    ramp = begin(kim, *([SMOKE] if state == "held" else []))
    if state in ("advanced", "held"):
        later(301)
    if state in ("paused", "resumed"):
        actions.pause(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=db_now())
    if state == "resumed":
        actions.resume(ramp_id=ramp.pk, reason=WHY, actor=SHELL, now=db_now())
    deliver()
    at = "25 %" if state == "advanced" else "5 %"
    assert AuditEntry.objects.latest("id").action == f"ramp.{state}"

    reply = in_slack("operator", "lee").press("abort_ramp", button_of(slack, "abort_ramp"))

    assert (
        reply
        == f"You aborted the ramp of feature:chat at {at}. It is engaged and blocks all traffic."
    )
    assert Episode.objects.get().allow_percent == 0
    row = AuditEntry.objects.get(action="ramp.aborted")
    assert (row.actor_type, row.actor_name) == ("slack", "lee")
    deliver()
    assert "ENGAGED: its ramp was aborted" in head(slack)["text"]
    assert "abort_ramp" not in buttons(head(slack))


def test_button_is_red_and_asks_nothing_first(slack, kim):
    begin(kim)
    deliver()

    button = buttons(head(slack))["abort_ramp"]

    assert (button["text"]["text"], button["style"]) == ("Abort ramp", "danger")
    assert "confirm" not in button


def test_button_on_a_ramp_that_is_over_says_how_it_ended(slack, in_slack, kim):
    begin(kim)
    deliver()
    value = button_of(slack, "abort_ramp")
    for seconds in (301, 602, 903):
        later(seconds)

    reply = in_slack("operator", "lee").press("abort_ramp", value)

    assert reply.startswith("This ramp is completed; it can't be aborted now.")
    assert Episode.objects.get().ended_how == "released"
    assert not AuditEntry.objects.filter(actor_type="slack").exists()


def test_button_pressed_twice_aborts_once(slack, in_slack, kim):
    begin(kim)
    deliver()
    lee, value = in_slack("operator", "lee"), button_of(slack, "abort_ramp")

    lee.press("abort_ramp", value)
    again = lee.press("abort_ramp", value)

    assert again.startswith("This ramp is aborted; it can't be aborted now. Aborted by slack:lee")
    assert AuditEntry.objects.filter(action="ramp.aborted").count() == 1


def test_viewer_may_not_abort(slack, in_slack, kim):
    begin(kim)
    deliver()

    reply = in_slack("viewer", "vic").press("abort_ramp", button_of(slack, "abort_ramp"))

    assert "Your role, viewer, can't" in reply
    assert Episode.objects.get().allow_percent == 5


@pytest.mark.parametrize("value", [{}, {"ramp": "1"}, {"ramp": True}, {"ramp": 10**12}])
def test_value_that_names_no_ramp_does_nothing(in_slack, kim, value):
    begin(kim)

    assert in_slack("operator", "lee").press("abort_ramp", value)
    assert Episode.objects.get().allow_percent == 5


def asked_in_slack(slack):
    """Return the Slack message that requests the approval of a manual gate."""
    (message,) = [sent for sent in slack.messages if "Approval requested" in sent["text"]]
    return message


def test_manual_gate_approved_in_slack_lets_the_ramp_go_on_at_its_next_look(slack, in_slack, kim):
    begin(kim, {"type": "manual"})
    later(301)
    deliver()
    asked = asked_in_slack(slack)
    assert "Ramp of feature:chat: advance to 25 %, after 5 %" in asked["text"]
    value = json.loads(buttons(asked)["approve"]["value"])

    reply = in_slack("approver", "ada").press("approve", value)
    assert reply.startswith("You approved: Ramp of feature:chat")
    assert Episode.objects.get().allow_percent == 5
    later(302)

    assert Episode.objects.get().allow_percent == 25
    deliver()
    assert "feature:chat RAMPING 25 %, step 2 of 3" in head(slack)["text"]


def test_manual_gate_is_never_approved_by_whoever_asked_for_the_ramp(slack, in_slack):
    ada = in_slack("approver", "ada")
    begin(signed_in(User.objects.get(username="ada")), {"type": "manual"})
    later(301)
    deliver()
    value = json.loads(buttons(asked_in_slack(slack))["approve"]["value"])

    reply = ada.press("approve", value)
    later(302)

    assert not reply.startswith("You approved")
    assert Approval.objects.get(kind="ramp_gate").state == "pending"
    assert Episode.objects.get().allow_percent == 5


def test_manual_gate_denied_in_slack_takes_the_ramp_back(slack, in_slack, kim):
    begin(kim, {"type": "manual"})
    later(301)
    deliver()
    value = json.loads(buttons(asked_in_slack(slack))["deny"]["value"])

    in_slack("approver", "ada").press("deny", value)
    later(302)
    deliver()

    assert Episode.objects.get().allow_percent == 0
    assert "denied it" in head(slack)["text"]
