"""Critical messages are sent first, but never before earlier ones of their subject."""

import pytest

from controlplane.core.clock import db_now
from controlplane.notify.delivery import claims

from .outbox_helpers import announce, storm

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _somewhere(by_bot):
    """Configure Slack."""


def test_critical_message_passes_by_many_lines_of_threads():
    announce(5, event="ramp.advanced")
    announce(first=6, event="switch.engaged")

    first, second = claims.claim_message("slack"), claims.claim_message("slack")

    assert first.message.event == "switch.engaged"
    assert (second.message.event, second.message.event_key) == ("ramp.advanced", "audit:1")


def test_critical_message_waits_for_an_earlier_one_about_the_same():
    announce(event="ramp.advanced", subject="episode:1")
    announce(first=2, event="ramp.compensated", subject="episode:1")

    assert claims.claim_message("slack").message.event == "ramp.advanced"
    assert claims.claim_message("slack") is None


@pytest.mark.parametrize(
    ("event", "switch"),
    [
        ("escalation.step", "segment:s9"),
        ("episode.overdue", "segment:s9"),
        ("ramp.failed", "segment:s9"),
        ("switch.engaged", "global:all"),
        ("switch.released", "global:all"),
    ],
)
def test_urgent_message_passes_by_a_storm_of_critical_ones(event, switch):
    announce(5, event="switch.engaged")
    announce(first=9, event=event, switch=switch, subject="episode:9")

    first, second = claims.claim_message("slack"), claims.claim_message("slack")

    assert (first.message.event, first.message.event_key) == (event, "audit:9")
    assert second.message.event_key == "audit:1"


@pytest.mark.parametrize("event", ["ramp.compensated", "episode.overdue"])
def test_what_an_urgent_message_has_to_wait_for_passes_by_as_well(event):
    announce(5, event="ramp.advanced")
    announce(first=6, event="ramp.started", subject="episode:9")
    announce(first=7, event=event, subject="episode:9")

    first = claims.claim_message("slack")
    claims.record_outcome(first, claims.AttemptOutcome())

    assert first.message.event_key == "audit:6"
    assert claims.claim_message("slack").message.event_key == "audit:7"


def test_urgent_message_is_first_of_7000_critical_ones():
    storm(7000, subjects=7000, at=db_now())
    announce(event="switch.engaged", switch="global:all", subject="episode:9000")

    assert claims.claim_message("slack").message.event_key == "audit:1"
