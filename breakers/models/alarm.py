"""Tables of outages and probes."""

from django.db import models
from django.db.models import Q

from breakers.models.registry import Service


class Alarm(models.Model):
    """A dependency (`core->oracle`) that violates a rule, from `since` until `closed_at`.

    The only rule is `outage`. `value` and `limit` are shares (0 to 1) of its instances, as last
    seen at `seen_at`. Violations of threshold rules are alerts, which `slo` keeps.
    """

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
    """The result of probing a service's `probe_url`; away after a few failures in a row.

    `since` is the time of the last change between away and back; `lease_until` belongs to the
    process that is probing.
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
