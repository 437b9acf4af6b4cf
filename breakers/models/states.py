"""Tables of breaker states, of outages and of probe results.

Breaker states and transitions are written only when an instance reports a change; counters that
change with each report are kept in `core.Instance.resilience`.
"""

from django.db import models
from django.db.models import Q

from breakers.models.registry import Dependency, Service

STATES = ("closed", "open", "half_open")


class BreakerState(models.Model):
    """The last reported state of a dependency's breaker in one instance.

    `failure_rate` and `slow_rate` are from the last report that changed the row. `boot` identifies
    a run of the process; a row counts only while the instance's own row has the same boot and a
    recent report.
    """

    dependency = models.ForeignKey(Dependency, on_delete=models.CASCADE, related_name="states")
    instance = models.CharField(max_length=242, db_collation="C")
    boot = models.UUIDField()
    state = models.CharField(max_length=9)
    mode = models.CharField(max_length=13, default="normal")
    since = models.DateTimeField(null=True, blank=True)
    failure_rate = models.FloatField(null=True, blank=True)
    slow_rate = models.FloatField(null=True, blank=True)
    calls = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dependency", "instance"], name="breaker_state_once"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="breaker_state_known"),
        ]
        indexes = [
            models.Index(fields=["instance"], name="breaker_state_by_instance"),
            models.Index(
                fields=["dependency"],
                condition=~Q(state="closed") | ~Q(mode="normal"),
                name="breaker_state_hot",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.dependency_id} in {self.instance}: {self.state}"


class Transition(models.Model):
    """A change of a breaker's state in one instance, numbered by `n` within a run (boot)."""

    dependency = models.ForeignKey(Dependency, on_delete=models.CASCADE, related_name="transitions")
    boot = models.UUIDField()
    n = models.BigIntegerField()
    instance = models.CharField(max_length=242, db_collation="C")
    from_state = models.CharField(max_length=9)
    to_state = models.CharField(max_length=9)
    at = models.DateTimeField()
    cause = models.CharField(max_length=1000, blank=True)
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dependency", "boot", "n"], name="transition_once")
        ]
        indexes = [
            models.Index(fields=["dependency", "-at"], name="transition_by_time"),
            models.Index(fields=["received_at"], name="transition_received"),
        ]

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state} at {self.at:%H:%M:%S}"


class Minute(models.Model):
    """Breaker states and call counters of a dependency in one minute, over all instances.

    `worst` is the worst state: 0 without reports, 1 closed, 2 half-open, 3 open. `open`,
    `half_open` and `instances` are maxima within the minute; the counters are sums.
    """

    dependency = models.ForeignKey(Dependency, on_delete=models.CASCADE, related_name="minutes")
    minute = models.DateTimeField()
    worst = models.PositiveSmallIntegerField(default=0, db_default=0)
    open = models.IntegerField(default=0, db_default=0)
    half_open = models.IntegerField(default=0, db_default=0)
    instances = models.IntegerField(default=0, db_default=0)
    success = models.BigIntegerField(default=0, db_default=0)
    failure = models.BigIntegerField(default=0, db_default=0)
    timeout = models.BigIntegerField(default=0, db_default=0)
    slow = models.BigIntegerField(default=0, db_default=0)
    rejected = models.BigIntegerField(default=0, db_default=0)
    fallback = models.BigIntegerField(default=0, db_default=0)
    retry = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["dependency", "minute"], name="minute_once")]
        indexes = [models.Index(fields=["minute"], name="minute_by_time")]

    def __str__(self) -> str:
        return f"{self.dependency_id} at {self.minute:%H:%M}"


class Alarm(models.Model):
    """An outage of a dependency (`core->oracle`), from `since` until `closed_at`.

    `rule` is always `outage`. `value` is the share (0 to 1) of instances with an open breaker,
    `limit` the share from which the outage policy applies. Alerts of threshold rules are
    stored by the app `slo`.
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
            )
        ]
        indexes = [models.Index(fields=["since"], name="alarm_by_time")]

    def __str__(self) -> str:
        return f"{self.rule} of {self.subject}"


class Probe(models.Model):
    """The last probe of a service's `probe_url`, and the service's state derived from probes.

    `since` is the time of the last change of `is_away`; a probe in progress holds a lease until
    `lease_until`.
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
