"""What policies for outages and probes have found wrong."""

from django.db import models
from django.db.models import Q

from breakers.models.registry import Service


class Alarm(models.Model):
    """A rule that does not hold for a dependency (`core->oracle`), from `since` until `closed_at`:
    there is one, `outage`. `value` and `limit` are shares (0 to 1) of its instances, as last seen
    at `seen_at`. What threshold rules find is an alert, of no business of ours."""

    rule = models.CharField(max_length=40)
    subject = models.CharField(max_length=250)
    severity = models.CharField(max_length=8)
    value = models.FloatField()
    limit = models.FloatField()
    evidence = models.JSONField(default=dict)
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rule", "subject"], condition=Q(closed_at__isnull=True), name="alarm_once"
            ),
        ]
        indexes = [
            models.Index(fields=["since"], name="alarm_by_time"),
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
