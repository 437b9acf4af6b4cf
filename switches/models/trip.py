"""Models of trips, which are machine requests to engage a switch, and of their policies."""

from django.db import models
from django.db.models import Q

from switches.models.switch import Episode


class TripPolicy(models.Model):
    """A policy that lets trips of these sources and scopes engage a switch, or asks a person."""

    class Gate(models.TextChoices):
        AUTOMATIC = "automatic"
        PERSON = "person"

    trigger = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=200)
    position = models.PositiveSmallIntegerField()
    sources = models.JSONField()
    scopes = models.JSONField()
    gate = models.CharField(max_length=10, choices=Gate.choices)
    response = models.CharField(max_length=200)
    budget_per_hour = models.PositiveSmallIntegerField(default=10)
    longest_minutes = models.PositiveIntegerField(default=1440)
    changed_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "trip policies"
        constraints = [
            models.CheckConstraint(
                condition=Q(gate__in=["automatic", "person"]), name="trip_gate_known"
            )
        ]

    def __str__(self) -> str:
        return self.trigger


class Trip(models.Model):
    """A machine's request to engage a switch, with its evidence and outcome."""

    class Outcome(models.TextChoices):
        TRIPPED = "tripped"
        DUPLICATE = "duplicate"
        ENGAGED = "engaged"
        PERSON = "person"
        REFUSED = "refused"

    switch = models.CharField(max_length=131, db_collation="C")
    source = models.CharField(max_length=120)
    fingerprint = models.CharField(max_length=200)
    reason = models.TextField()
    evidence = models.JSONField(default=dict)
    policy = models.ForeignKey(
        TripPolicy, on_delete=models.SET_NULL, null=True, blank=True, related_name="trips"
    )
    outcome = models.CharField(max_length=10, choices=Outcome.choices)
    why = models.TextField()
    at = models.DateTimeField()
    by = models.CharField(max_length=200)
    episode = models.ForeignKey(
        Episode, on_delete=models.PROTECT, null=True, blank=True, related_name="trips"
    )
    repeats = models.PositiveIntegerField(default=0)
    last_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["fingerprint", "-id"], name="trip_by_fingerprint"),
            models.Index(fields=["switch", "-id"], name="trip_by_switch"),
            models.Index(fields=["at"], name="trip_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.source} → {self.switch} ({self.outcome})"


OUTCOME_WORDS = {
    "tripped": "Tripped",
    "duplicate": "Repeat",
    "engaged": "Already engaged",
    "person": "Escalated",
    "refused": "Refused",
}
"""Labels of trip outcomes, on screens and in reports."""
