"""Buttons of messages: acknowledge and extend."""

import json
from datetime import timedelta

import pytest
from django.db import transaction

from controlplane.core.approvals import reviews
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import at_once, person, signed_in
from controlplane.core.outbox.escalation import Escalation
from controlplane.notify.delivery.tests.outbox_helpers import deliver
from controlplane.notify.interactions.tests import conftest as clicks
from controlplane.notify.interactions.tests.slack_requests import send, signed
from switches.models import Episode

pytestmark = pytest.mark.django_db(transaction=True)

slack, in_slack = clicks.slack, clicks.in_slack
_clicks_are_verified = clicks._clicks_are_verified
REASON = "card payments charged twice"


@pytest.fixture
def kim():
    return signed_in(person("operator", "kim"))


def engaged(api, switch="segment:finance", **fields):
    """Engage and return the value that the message's buttons carry."""
    api.engage(switch, **fields)
    episode = Episode.objects.get(switch=switch, ended_at__isnull=True)
    return {"switch": switch, "episode": episode.pk, "subject": f"episode:{episode.pk}"}


def the_episode():
    return Episode.objects.latest("id")


def test_extended_by_a_day_with_who_and_where_in_the_reason(in_slack, kim):
    value = engaged(kim, expires_in="2h")
    before = db_now()

    reply = in_slack("operator", "lee").press("extend", value)

    assert reply.startswith("segment:finance stays engaged until ")
    left = the_episode().expires_at - before
    assert timedelta(hours=24) <= left < timedelta(hours=24, minutes=1)
    row = AuditEntry.objects.get(action="switch.extended")
    assert (row.actor_type, row.actor_name) == ("slack", "lee")
    assert row.reason == "Extended by 24 hours in Slack by lee."


def test_no_later_than_now_says_so_and_changes_nothing(in_slack, kim):
    value = engaged(kim, expires_in="7d")

    reply = in_slack("operator", "lee").press("extend", value)

    assert "already" in reply
    assert "Nothing changed" in reply
    assert not AuditEntry.objects.filter(action="switch.extended").exists()


def test_double_click_extends_once(in_slack, kim):
    value, lee = engaged(kim, expires_in="1h"), in_slack("operator", "lee")
    bodies = [lee.body("extend", value, trigger_id=str(number)) for number in range(3)]

    at_once(*[lambda body=body: send(body, signed(body)) for body in bodies])

    assert len(lee.list_replies()) == 3
    assert AuditEntry.objects.filter(action="switch.extended").count() == 1


def test_replayed_request_extends_nothing_that_was_shortened_since(in_slack, kim):
    value, lee = engaged(kim, expires_in="1h"), in_slack("operator", "lee")
    body = lee.body("extend", value)
    headers = signed(body)
    send(body, headers)
    Episode.objects.update(expires_at=db_now() + timedelta(hours=1))

    assert send(body, headers).status_code == 200

    assert AuditEntry.objects.filter(action="switch.extended").count() == 1


def test_permanent_has_nothing_to_extend(in_slack, kim):
    value = engaged(kim)
    Episode.objects.update(permanent=True, expires_at=None)

    assert "permanent" in in_slack("operator", "lee").press("extend", value)


@pytest.mark.parametrize("button", ["extend", "acknowledge"])
def test_viewer_may_neither(in_slack, kim, button):
    value = engaged(kim, expires_in="1h")

    assert "Your role, viewer, can't" in in_slack("viewer", "vic").press(button, value)
    assert the_episode().acknowledged_at is None


@pytest.mark.parametrize("button", ["extend", "acknowledge"])
def test_message_about_an_episode_that_ended_says_how(in_slack, kim, button):
    value = engaged(kim)
    kim.post("/switches/segment/finance/release", {"justification": "refunded", "mode": "ramp"})
    Episode.objects.filter(ended_at__isnull=True).update(
        ended_at=db_now(), ended_how="released", ended_by="user:kim"
    )

    reply = in_slack("operator", "lee").press(button, value)

    assert reply.startswith("segment:finance was released at ")
    assert "by user:kim" in reply
    assert "There is nothing left to do" in reply


@pytest.mark.parametrize("button", ["extend", "acknowledge"])
def test_message_about_an_earlier_episode_leaves_the_present_one_alone(in_slack, kim, button):
    value = engaged(kim)
    Episode.objects.update(ended_at=db_now(), ended_how="released", ended_by="user:kim")
    engaged(kim, expires_in="1h")

    reply = in_slack("operator", "lee").press(button, value)

    assert "user:kim engaged it again at" in reply
    assert not AuditEntry.objects.filter(actor_type="slack").exists()


@pytest.mark.parametrize(
    "value",
    [
        {"switch": "segment:unknown", "episode": 1},
        {"switch": "nonsense", "episode": 1},
        {"switch": "segment:\x00", "episode": 1},
        {"switch": ["segment:finance"], "episode": 1},
        {"switch": "segment:finance"},
        {"switch": "segment:finance", "episode": "1"},
    ],
)
@pytest.mark.parametrize("button", ["extend", "acknowledge"])
def test_value_that_names_nothing_does_nothing(in_slack, kim, button, value):
    engaged(kim, expires_in="1h")

    assert in_slack("operator", "lee").press(button, value)
    assert not AuditEntry.objects.filter(actor_type="slack").exists()


def test_acknowledged_in_slack_once(in_slack, kim):
    value, lee = engaged(kim), in_slack("operator", "lee")

    first, again = lee.press("acknowledge", value), lee.press("acknowledge", value)

    assert first.startswith("You acknowledged segment:finance")
    assert again == "slack:lee already acknowledged segment:finance."
    assert the_episode().acknowledged_by == "slack:lee"
    assert AuditEntry.objects.filter(action="episode.acknowledged").count() == 1


def test_what_turned_overdue_since_is_news(in_slack, kim):
    value, lee = engaged(kim), in_slack("operator", "lee")
    lee.press("acknowledge", value)
    Episode.objects.update(overdue_at=db_now())

    assert lee.press("acknowledge", value).startswith("You acknowledged")


def test_review_is_acknowledged_by_its_subject(in_slack):
    kim, lee = person("admin", "kim"), in_slack("operator", "lee")
    with transaction.atomic():
        review = reviews.open_review(
            rule="payments",
            reason=REASON,
            target="segment:finance",
            diff={},
            actor=kim.as_actor(),
            now=db_now(),
        )
    value = {"subject": f"review:{review.pk}", "approval": review.pk}

    assert lee.press("acknowledge", value).startswith("You acknowledged it")
    assert "has already acknowledged it" in lee.press("acknowledge", value)
    assert Escalation.objects.get().acknowledged_by == "slack:lee"
    assert "This is over" in lee.press("acknowledge", {"subject": "review:999"})


def test_buttons_of_a_real_message_work(in_slack, slack, kim):
    engaged(kim, expires_in="1h")
    deliver()

    posted = [row["json"] for row in slack.requests if row["path"].endswith("chat.postMessage")]
    (actions,) = [one for one in posted[0]["blocks"] if one["type"] == "actions"]

    lee = in_slack("operator", "lee")
    for element in actions["elements"]:
        body = lee.press(element["action_id"], json.loads(element["value"]))
        assert body.startswith(("You acknowledged", "segment:finance stays engaged"))
    assert {row.action for row in AuditEntry.objects.filter(actor_type="slack")} == {
        "episode.acknowledged",
        "switch.extended",
    }
