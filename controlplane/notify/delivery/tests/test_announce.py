"""Announcing: one message per destination, in the transaction of the change."""

import pytest

from controlplane.core.clock import db_now
from controlplane.core.outbox import services
from controlplane.core.outbox.models import OutboxMessage

pytestmark = pytest.mark.django_db


def announce(key):
    services.announce(event="switch.engaged", event_key=key, facts={"switch": "a"}, now=db_now())


def test_without_a_destination_nothing_is_written():
    announce("audit:1")

    assert not OutboxMessage.objects.exists()


def test_a_repeated_event_adds_nothing(by_bot):
    announce("audit:1")
    announce("audit:1")
    announce("audit:2")

    keys = OutboxMessage.objects.order_by("id").values_list("event_key", "destination", "state")
    assert list(keys) == [("audit:1", "slack", "pending"), ("audit:2", "slack", "pending")]


def test_a_key_of_any_length_names_its_event_once(by_bot):
    longest = "trip.waits:segment:" + "금" * 300

    for key in (longest, longest, f"{longest}!", "k" * 120):
        announce(key)

    keys = set(OutboxMessage.objects.values_list("event_key", flat=True))
    assert len(keys) == 3
    assert "k" * 120 in keys
    assert all(len(key) <= 120 for key in keys)
