"""Superseding: obsolete updates of a subject are skipped, and the thread stays consistent."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox import renderer
from controlplane.core.outbox.models import OutboxMessage
from controlplane.notify.delivery import claims, obsolete_updates, selection

from .outbox_helpers import announce, storm

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("by_bot", "no_pace"),
]
LONG = 2 * obsolete_updates.MIN_WAIT


def wait_long():
    at = db_now() - LONG
    OutboxMessage.objects.update(created_at=at, next_attempt_at=at)


def announce_events(*events, subject="episode:1", first=1, to=("slack",)):
    for number, event in enumerate(events, first):
        announce(first=number, event=event, subject=subject, to=to)


def sent(destination="slack"):
    """Send all messages and return them."""
    messages = []
    while isinstance(claimed := claims.claim_message(destination), claims.ClaimedMessage):
        claims.record_outcome(claimed, claims.AttemptOutcome())
        messages.append(claimed.message)
    return messages


def events(messages):
    return [message.event for message in messages]


def test_updates_that_waited_long_are_superseded_by_the_newest():
    announce_events("switch.engaged", *["switch.extended"] * 4, "episode.acknowledged")
    wait_long()

    messages = sent()

    assert events(messages) == ["switch.engaged", "switch.extended", "episode.acknowledged"]
    assert messages[1].event_key == "audit:5"
    assert messages[1].payload["left_out"] == 3
    left_out = OutboxMessage.objects.filter(state="superseded")
    assert [row.event_key for row in left_out.order_by("id")] == ["audit:2", "audit:3", "audit:4"]
    assert {row.last_error for row in left_out} == {
        f"not sent: message {messages[1].pk} has the newer state"
    }
    assert all(row.finished_at for row in left_out)
    assert selection.count_messages() == {"pending": 0, "failed": 0, "superseded": 3}


def test_message_says_how_many_updates_were_left_out():
    one = renderer.render("ramp.advanced", {"left_out": 1}).lines
    many = renderer.render("switch.released", {"left_out": 1200}).lines

    assert one == (("Note", "1 earlier update not sent"),)
    assert many == (("Note", "1,200 earlier updates not sent"),)


def test_thread_tells_the_beginning_and_the_end_and_what_asks():
    steps = ["ramp.advanced"] * 5
    announce_events(
        "switch.engaged",
        "switch.extended",
        "ramp.started",
        *steps,
        "ramp.held",
        "approval.requested",
        *steps,
        "switch.released",
    )
    wait_long()

    messages = sent()

    assert events(messages) == [
        "switch.engaged",
        "ramp.started",
        "ramp.held",
        "approval.requested",
        "switch.released",
    ]
    assert [message.payload.get("left_out") for message in messages] == [None, None, 5, None, 6]


def test_engagement_and_release_are_both_told():
    announce_events("switch.engaged", "switch.released")
    wait_long()

    assert events(sent()) == ["switch.engaged", "switch.released"]


def test_updates_on_time_are_all_told():
    announce_events("switch.engaged", "switch.extended", "switch.extended")

    assert len(sent()) == 3


def test_updates_of_other_subjects_and_destinations_are_all_told(settings):
    announce_events("switch.extended", subject="episode:1")
    announce_events("switch.extended", subject="episode:2", first=2)
    announce_events("switch.extended", subject="", first=3)
    announce_events("switch.extended", subject="", first=4)
    wait_long()

    assert len(sent()) == 4


def test_update_that_was_tried_is_not_left_out():
    announce_events("switch.extended", "switch.extended")
    claims.record_outcome(
        claims.claim_message("slack"), claims.AttemptOutcome("in doubt", 0.0, in_doubt=True)
    )
    wait_long()

    assert [message.event_key for message in sent()] == ["audit:1", "audit:2"]


def test_webhook_gets_every_event():
    waiting = [
        OutboxMessage(
            pk=number, event="ramp.advanced", destination="webhook:7", subject="episode:1"
        )
        for number in (1, 2)
    ]

    assert obsolete_updates.find_obsolete(waiting) == {}


def test_storm_of_thousands_of_changes_tells_each_subject_shortly():
    storm(3000, subjects=2, at=db_now() - LONG)

    messages = sent()

    assert events(messages) == ["switch.engaged"] * 2 + ["switch.extended"] * 2
    assert {message.payload.get("left_out") for message in messages[2:]} == {1498}
    assert not OutboxMessage.objects.filter(state="pending").exists()
