"""Tables of the outbox: messages, delivery attempts, threads, and each destination's send rate."""

from django.db import models
from django.db.models import Q


class OutboxMessage(models.Model):
    """A message to one destination, written in the transaction of the change it reports.

    `event_key` identifies the event (`audit:1842`): announcing it again adds no message. `fence`
    grows whenever a sender claims the message, so that one that lost its lease can't record a
    result. Messages with the same `subject` (`episode:12`) share a thread and are delivered in
    order. FAILED messages can be retried until they are discarded. SUPERSEDED messages were skipped
    because a later one reports the newer state.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        SENT = "sent"
        FAILED = "failed"
        SUPERSEDED = "superseded"

    event = models.CharField(max_length=64)
    event_key = models.CharField(max_length=120)
    destination = models.CharField(max_length=120)
    subject = models.CharField(max_length=120, blank=True, db_default="")
    severity = models.CharField(max_length=8, default="info", db_default="info")
    payload = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, blank=True)
    fence = models.BigIntegerField(default=0)
    last_error = models.TextField(blank=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    discarded_at = models.DateTimeField(null=True, blank=True)
    discarded_by = models.CharField(max_length=200, blank=True, db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event_key", "destination"], name="outbox_once_per_destination"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "sent", "failed", "superseded"]),
                name="outbox_state_known",
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
            models.Index(
                fields=["destination", "subject", "id"],
                condition=Q(state="pending") & ~Q(subject=""),
                name="outbox_in_order",
            ),
            models.Index(
                fields=["destination", "subject", "id"],
                condition=~Q(subject=""),
                name="outbox_of_subject",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} → {self.destination} ({self.state})"


class Attempt(models.Model):
    """An attempt to deliver a message.

    If `finished_at` stays null, its sender died, and the message may or may not have been
    delivered.
    """

    class Outcome(models.TextChoices):
        STARTED = "started"
        SENT = "sent"
        REFUSED = "refused"
        UNKNOWN = "unknown"

    message = models.ForeignKey(OutboxMessage, on_delete=models.CASCADE, related_name="tries")
    number = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=8, choices=Outcome.choices, default=Outcome.STARTED)
    error = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["message", "number"], name="attempt_once"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id} #{self.number} ({self.outcome})"


class Thread(models.Model):
    """The first message about a subject at a destination; later ones update or answer it."""

    destination = models.CharField(max_length=120)
    subject = models.CharField(max_length=120)
    channel = models.CharField(max_length=80)
    ts = models.CharField(max_length=40)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["destination", "subject"], name="thread_once"),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.destination}"


class Pace(models.Model):
    """State of a destination's rate limiter, which limits the messages sent there.

    `paced_until` is the theoretical arrival time of the next message (GCRA). Until
    `keep_away_until`, which the destination requested by `Retry-After`, nothing is sent.
    """

    destination = models.CharField(max_length=120, primary_key=True)
    paced_until = models.DateTimeField()
    keep_away_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.destination
