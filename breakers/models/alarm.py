"""What rules and probes have found wrong."""

from django.db import models
from django.db.models import Q

from breakers.models.registry import Service


class Alarm(models.Model):
    """A rule that does not hold for something (`core->oracle`, `core/llm`), from `since` until
    `closed_at`. `value` and `limit` are in the rule's unit, as last seen at `seen_at`.

    `told_at` is when people were told that it began, `told_alone` whether in a message of its own,
    and `over_told_at` when they were told that it ended."""

    rule = models.CharField(max_length=40)
    subject = models.CharField(max_length=250)
    severity = models.CharField(max_length=8)
    value = models.FloatField()
    limit = models.FloatField()
    evidence = models.JSONField(default=dict)
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    told_at = models.DateTimeField(null=True, blank=True)
    told_alone = models.BooleanField(default=False)
    over_told_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "subject"], condition=Q(closed_at__isnull=True), name="alarm_once"
            ),
        ]
        indexes = [
            models.Index(fields=["since"], name="alarm_by_time"),
            models.Index(
                fields=["since"], condition=Q(over_told_at__isnull=True), name="alarm_to_tell"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} of {self.subject}"


class Probe(models.Model):
    """What asking a service's `probe_url` gave: away after a few failures in a row.

    `since` is when it was last seen to go away or to come back; `lease_until` is held by whoever
    asks just now.
    """

    service = models.OneToOneField(Service, on_delete=models.CASCADE, primary_key=True)
    is_away = models.BooleanField(default=False)
    failures = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(null=True, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    took_ms = models.FloatField(null=True, blank=True)
    error = models.CharField(max_length=500, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.service_id}: {'away' if self.is_away else 'there'}"
