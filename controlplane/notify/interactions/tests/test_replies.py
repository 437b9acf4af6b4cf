"""Replies reach the presser at the press's response URL, for 25 minutes."""

from datetime import timedelta

import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery.tests.outbox_helpers import deliver
from controlplane.notify.transports import destinations
from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.slack_reply import transport as slack_reply

pytestmark = pytest.mark.django_db(transaction=True)


def reply(slack, text="You approved: all", age=timedelta(), address=None):
    now = db_now()
    return OutboxMessage.objects.create(
        event=slack_reply.EVENT,
        event_key="slack:1",
        destination="slack_reply:U1",
        payload={"said": text, "response_url": address or f"{slack.url}/actions/T1/42/secretpath"},
        next_attempt_at=now,
        created_at=now - age,
    )


def test_pressed_and_answered_through_the_outbox(in_slack, slack):
    lee = in_slack("approver", "lee")
    lee.press("approve", {"approval": 99999})

    deliver()

    (request,) = slack.requests
    assert request["path"] == f"/actions/T1/42/{lee.id}"
    assert request["authorization"] is None
    assert request["json"] == {
        "response_type": "ephemeral",
        "replace_original": False,
        "text": "There is no approval 99999.",
    }
    assert OutboxMessage.objects.get(event=slack_reply.EVENT).state == "sent"


def test_text_of_people_is_escaped(slack):
    destinations.send_message(reply(slack, text="<!channel> @here & <https://evil>"))

    (text,) = slack.texts
    assert "<" not in text
    assert "@here" not in text


def test_after_25_minutes_it_is_too_late(slack):
    destinations.send_message(reply(slack, age=timedelta(minutes=24)))
    OutboxMessage.objects.all().delete()

    with pytest.raises(PermanentFailure, match="too late"):
        destinations.send_message(reply(slack, age=timedelta(minutes=26)))


@pytest.mark.parametrize("step", ["404", "410", "403"])
def test_used_or_expired_address_is_permanent_and_never_named(slack, step):
    slack.script = [step]

    with pytest.raises(PermanentFailure) as caught:
        destinations.send_message(reply(slack))

    assert "secretpath" not in str(caught.value)


@pytest.mark.parametrize("step", ["500", "429 3", "reset"])
def test_trouble_is_tried_again(slack, step):
    slack.script = [step]

    with pytest.raises(TransientFailure) as caught:
        destinations.send_message(reply(slack))

    assert "secretpath" not in str(caught.value)


def test_elsewhere_is_never_called(slack):
    with pytest.raises(PermanentFailure, match="not Slack's"):
        destinations.send_message(reply(slack, address="http://127.0.0.1:1/x"))
