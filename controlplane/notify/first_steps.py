"""The first step: somebody is notified."""

from datetime import datetime

from django.urls import reverse

from controlplane.core.outbox.models import OutboxMessage
from controlplane.core.page_registry import FIRST_STEPS, FirstStep, FirstStepEvidence
from controlplane.notify.targets import destination_names

TEST_EVENT = "target.test"


def find_delivered_message(_now: datetime) -> FirstStepEvidence | None:
    """Return the message delivered last."""
    sent = OutboxMessage.objects.filter(
        state=OutboxMessage.State.SENT, finished_at__isnull=False
    ).order_by("-finished_at")
    message = sent.only("event", "destination", "finished_at").first()
    if message is None or message.finished_at is None:
        return None
    names = destination_names.name_destinations([message.destination])
    called = "A test message" if message.event == TEST_EVENT else "A message"
    text = f"{called} to {names[message.destination].label} was delivered"
    path = reverse("delivery_page", args=[message.pk])
    return FirstStepEvidence(text, message.finished_at, path)


FIRST_STEPS.register(
    FirstStep(
        name="notifications",
        title="Choose who is notified",
        summary="Engaged switches, alerts and overdue work go to people and channels.",
        missing="No delivered message is on record.",
        template="core/first_steps/_notifications.html",
        position=30,
        find_evidence=find_delivered_message,
    )
)
