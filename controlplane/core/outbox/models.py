"""The outbox table."""

from django.db import models
from django.db.models import Q


class OutboxMessage(models.Model):
    """One message to one destination, written in the transaction of the change it tells of.

    `event_key` names the event once (for example `audit:1842`), so a repeat adds nothing.
    `fence` grows with every claim: a sender that lost its lease can't record a result.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        FAILED = "failed"

    event = models.CharField(max_length=64)
    event_key = models.CharField(max_length=120)
    destination = models.CharField(max_length=120)
    payload = models.JSONField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event_key", "destination"], name="outbox_once_per_destination"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "sent", "failed"]), name="outbox_state_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["destination", "next_attempt_at"],
                condition=Q(state="pending"),
                name="outbox_due",
            ),
            models.Index(fields=["state"], condition=~Q(state="sent"), name="outbox_unsent"),
            models.Index(fields=["finished_at"], condition=Q(state="sent"), name="outbox_sent"),
        ]

    def __str__(self) -> str:
        return f"{self.event} → {self.destination} ({self.state})"
