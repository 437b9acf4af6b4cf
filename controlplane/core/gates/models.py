"""Models of gates: gates that apps evaluate, external verdicts, holds, and event counts."""

from django.db import models
from django.db.models import Q


class Gate(models.Model):
    """A gate that an app evaluates while a ramp step needs it, such as an SLO or a breaker gate.

    `key` identifies the gate (`ramp:12:1:0`), `spec` is the gate as in the plan, and only
    observations since `since` count. `verdict` and `evidence` are the latest ones, observed at
    `observed_at`.
    """

    key = models.CharField(max_length=120, unique=True)
    type = models.CharField(max_length=16)
    spec = models.JSONField()
    since = models.DateTimeField()
    verdict = models.CharField(max_length=8, blank=True)
    evidence = models.JSONField(default=dict)
    observed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=["", "pass", "fail", "no_data"]), name="gate_verdict_known"
            )
        ]
        indexes = [models.Index(fields=["type"], name="gate_by_type")]

    def __str__(self) -> str:
        return f"{self.key} {self.type} ({self.verdict or 'unanswered'})"


class ExternalVerdict(models.Model):
    """The latest verdict that a program, such as a smoke test, reported for an external gate.

    `failed_at` is the time of its latest failure; later verdicts don't clear it.
    """

    name = models.CharField(primary_key=True, max_length=120, db_collation="C")
    verdict = models.CharField(max_length=4)
    evidence = models.JSONField(default=dict)
    observed_at = models.DateTimeField()
    failed_at = models.DateTimeField(null=True, blank=True)
    received_at = models.DateTimeField()
    by = models.CharField(max_length=200)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=["ok", "fail"]), name="external_verdict_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.verdict})"


class Hold(models.Model):
    """A hold on the ramps of `service` while the service has a problem.

    `key` identifies the problem (`alert:12`), `why` states it without a full stop, and `path` is
    its page. `slos` are the names of the service's SLOs.
    """

    key = models.CharField(max_length=200, unique=True)
    service = models.CharField(max_length=60, db_collation="C")
    slos = models.JSONField(default=list)
    why = models.CharField(max_length=500)
    path = models.CharField(max_length=500, blank=True)
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.service}: {self.why}"


class EventCount(models.Model):
    """Good and total events of an SLO that one instance counted between two reports."""

    slo = models.CharField(max_length=1000)
    instance = models.CharField(max_length=250)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    good = models.BigIntegerField()
    total = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["slo", "began_at"], name="events_by_slo"),
            models.Index(fields=["ended_at"], name="events_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.slo}: {self.good} of {self.total}"
