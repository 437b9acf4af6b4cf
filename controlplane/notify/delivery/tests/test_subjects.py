"""Threads: a message per subject and destination, updated in place, with replies in order."""

import json
from dataclasses import replace

import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox import services
from controlplane.core.outbox.models import OutboxMessage, Thread
from controlplane.notify.delivery import claims, sender
from controlplane.notify.delivery.sender_pool import SenderPool

from .outbox_helpers import announce, deliver, states, wait_until

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("no_pace", "impatient", "ended"),
]
SUBJECT = "episode:12"


def tell(number, event, severity="", to=("slack",), **facts):
    services.announce(
        event=event,
        event_key=f"audit:{number}",
        facts={"switch": "segment:finance", "episode": 12, "reason": "outage", **facts},
        subject=SUBJECT,
        severity=severity,
        now=db_now(),
        to=to,
    )


def buttons(post):
    actions = [block for block in post["blocks"] if block["type"] == "actions"]
    return [element for block in actions for element in block["elements"]]


@pytest.fixture
def signed(by_bot, settings):
    settings.SLACK = replace(settings.SLACK, signing_secret="a-signing-secret")
    return by_bot


def test_an_episode_is_one_message_with_a_thread(by_bot):
    tell(1, "switch.engaged")
    tell(2, "switch.extended", said="still broken")
    tell(3, "switch.released", said="fixed")

    deliver()

    head, *replies = by_bot.messages
    assert "released" in head["text"]
    assert [post["thread_ts"] for post in replies] == [head["ts"], head["ts"]]
    assert "stays ENGAGED" in replies[0]["text"]
    assert "released" in replies[1]["text"]
    assert Thread.objects.get().ts == head["ts"]


@pytest.mark.parametrize(
    ("event", "severity", "loud"),
    [
        ("episode.overdue", "", True),
        ("escalation.step", "warning", True),
        ("switch.tripped", "critical", True),
        ("switch.released", "", False),
        ("switch.engaged", "", False),
    ],
)
def test_what_is_loud_is_seen_by_the_whole_channel(by_bot, event, severity, loud):
    tell(1, "switch.engaged")
    tell(2, event, severity)

    deliver()

    assert by_bot.messages[1]["reply_broadcast"] is loud


def test_buttons_stand_on_the_head_and_vanish_when_nothing_is_left_to_do(signed):
    tell(1, "switch.engaged")
    deliver()
    (head,) = signed.messages
    acknowledge, extend = buttons(head)
    assert (acknowledge["action_id"], extend["action_id"]) == ("acknowledge", "extend")
    value = {"subject": SUBJECT, "switch": "segment:finance", "episode": 12}
    assert json.loads(extend["value"]) == value
    assert "confirm" in extend
    assert head["blocks"][-1]["block_id"] == f"actions-{OutboxMessage.objects.get().pk}"

    tell(2, "switch.released")
    deliver()

    assert [buttons(post) for post in signed.messages] == [[], []]


def test_an_escalation_leaves_the_state_and_its_buttons_on_the_head(signed):
    tell(1, "switch.engaged")
    tell(2, "escalation.step", title="on-call was told")

    deliver()

    head, reply = signed.messages
    assert "ENGAGED" in head["text"]
    assert [button["action_id"] for button in buttons(head)] == ["acknowledge", "extend"]
    assert "on-call was told" in json.dumps(head["blocks"])
    assert "on-call was told" in reply["text"]


@pytest.mark.parametrize("event", ["trip.tripped", "trip.engaged", "trip.resolved"])
def test_a_trip_leaves_the_state_and_its_buttons_on_the_head(signed, event):
    tell(1, "switch.engaged")
    tell(2, event, source="grafana", why="its policy")

    deliver()

    head, reply = signed.messages
    assert "ENGAGED: services are told" in head["text"]
    assert "outage" in head["text"]
    assert [button["action_id"] for button in buttons(head)] == ["acknowledge", "extend"]
    assert "grafana" in reply["text"] or "resolved" in reply["text"]


def test_a_trip_with_a_thread_of_its_own_is_its_head(signed):
    tell(1, "trip.waits", source="grafana")
    tell(2, "trip.refused", source="grafana")

    deliver()

    assert "refused" in signed.messages[0]["text"]


@pytest.mark.parametrize(
    ("event", "facts", "names"),
    [
        ("switch.broke_glass", {"did": "engage"}, ["acknowledge", "extend"]),
        ("switch.broke_glass", {"did": "release"}, []),
        ("switch.held", {}, ["acknowledge", "extend"]),
        ("switch.extended", {"expires_at": None}, ["acknowledge"]),
        ("episode.expires_soon", {}, ["acknowledge", "extend"]),
        ("episode.overdue", {}, ["acknowledge", "extend"]),
        ("episode.reconfirmed", {}, ["acknowledge"]),
        ("episode.reconfirm_soon", {}, ["acknowledge"]),
        ("switch.undone", {}, []),
    ],
)
def test_whatever_is_engaged_can_be_acknowledged_and_extended(signed, event, facts, names):
    tell(1, event, **facts)

    deliver()

    assert [button["action_id"] for button in buttons(signed.messages[0])] == names


def test_without_an_episode_there_is_nothing_to_extend(signed):
    announce(subject="episode:1")

    deliver()

    assert [one["action_id"] for one in buttons(signed.messages[0])] == ["acknowledge"]


@pytest.mark.parametrize("event", ["review.opened", "review.waiting", "review.reopened"])
def test_a_review_is_signed_and_not_approved(signed, event):
    tell(1, event, summary="segment:finance", approval=5)

    deliver()

    sign = buttons(signed.messages[0])[0]
    assert (sign["text"]["text"], sign["action_id"]) == ("Sign", "approve")
    assert "carried out" not in json.dumps(sign["confirm"])


def test_approve_asks_first_and_deny_is_red(signed):
    tell(1, "approval.requested", summary="Release global", approval=5)

    deliver()

    approve, deny = buttons(signed.messages[0])
    assert (approve["style"], deny["style"]) == ("primary", "danger")
    assert approve["confirm"]["confirm"]["text"] == "Approve"
    assert json.loads(approve["value"])["approval"] == 5


def test_without_a_signing_secret_or_a_subject_there_are_no_buttons(by_bot, settings):
    tell(1, "switch.engaged")
    deliver()
    settings.SLACK = replace(settings.SLACK, signing_secret="a-signing-secret")
    announce(first=2)
    deliver()

    assert [buttons(post) for post in by_bot.messages] == [[], []]


def test_a_head_that_somebody_deleted_is_replaced(by_bot):
    tell(1, "switch.engaged")
    deliver()
    by_bot.delete(by_bot.messages[0]["ts"])

    tell(2, "switch.extended")
    tell(3, "switch.released")
    deliver()

    head, reply = by_bot.messages
    assert "thread_ts" not in head
    assert reply["thread_ts"] == head["ts"]


@pytest.mark.parametrize("code", ["cant_update_message", "edit_window_closed", "channel_not_found"])
def test_a_head_that_can_not_be_updated_is_replaced(by_bot, code):
    tell(1, "switch.engaged")
    deliver()
    by_bot.on = {"chat.update": [f"ok:false {code}"]}

    tell(2, "switch.released")
    deliver()

    old, new = by_bot.messages
    assert "thread_ts" not in new
    assert Thread.objects.get().ts == new["ts"] != old["ts"]


def test_a_new_head_that_was_accepted_without_an_answer_is_found(by_bot):
    tell(1, "switch.engaged")
    deliver()
    by_bot.delete(by_bot.messages[0]["ts"])
    by_bot.script = ["accepted reset"]

    tell(2, "switch.extended")
    deliver()
    tell(3, "switch.released")
    deliver()

    head, reply = by_bot.messages
    assert reply["thread_ts"] == head["ts"]


def test_each_destination_has_a_thread_of_its_own(by_bot):
    tell(1, "switch.engaged", to=("slack", "slack:C0000LEAD"))
    tell(2, "switch.released", to=("slack", "slack:C0000LEAD"))

    deliver()

    assert {channel: len(posts) for channel, posts in by_bot.channels.items()} == {
        "C0000OPS": 2,
        "C0000LEAD": 2,
    }
    assert Thread.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_order_within_a_subject_holds_through_failures_and_across_senders(by_bot):
    by_bot.script = ["500", "slow 0.1", "429", "accepted reset", "slow 0.1", "500", "ok"]
    for number in range(1, 8):
        tell(number, "switch.extended", said=f"step {number}")

    for _ in range(12):
        OutboxMessage.objects.filter(state="pending", lease_until=None).update(
            next_attempt_at=db_now()
        )
        processes = [SenderPool(sender.send_one) for _ in range(3)]
        for senders in processes:
            senders.serve("slack")
        wait_until(lambda running=processes: not any(one.is_busy() for one in running), 15)

    assert states() == ["sent"] * 7
    replies = [post["text"] for post in by_bot.messages if "thread_ts" in post]
    assert [text.split("step ")[1][0] for text in replies] == list("234567")


def test_a_later_message_waits_for_an_earlier_one_but_not_for_a_failed_one(by_bot):
    tell(1, "switch.engaged")
    tell(2, "switch.released")
    first = claims.claim_message("slack")

    assert first.message.event == "switch.engaged"
    assert claims.claim_message("slack") is None
    claims.record_outcome(first, claims.AttemptOutcome("no"))
    assert claims.claim_message("slack").message.event == "switch.released"
    OutboxMessage.objects.update(state="failed")


def test_a_message_without_subject_waits_for_nothing(by_bot):
    tell(1, "switch.engaged")
    tell(2, "switch.released")
    announce(first=3)

    assert claims.claim_message("slack").message.event_key == "audit:1"
    assert claims.claim_message("slack").message.event_key == "audit:3"
    OutboxMessage.objects.update(state="failed")


def test_by_webhook_every_message_is_its_own(by_webhook):
    tell(1, "switch.engaged")
    tell(2, "switch.released")

    deliver()

    assert len(by_webhook.messages) == 2
    assert not Thread.objects.exists()
