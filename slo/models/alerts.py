"""Alerts and threshold rules."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Case, Count, IntegerField, Q, Value, When
from django.db.models.functions import Coalesce, Concat

from controlplane.core.authority import TeamFilter
from controlplane.core.ownership import kind_of
from controlplane.core.scopes import SCOPES
from slo.arithmetic.subjects import format_subject, is_dependency

from .objective import MAX_NAME_LENGTH, Slo, slo_resource

SEVERITIES = ("critical", "warning", "info")
WORST_FIRST = Case(
    *(When(severity=name, then=Value(place)) for place, name in enumerate(SEVERITIES)),
    output_field=IntegerField(),
)
"""Query expression that orders alerts by severity, critical ones first."""


class ThresholdRule(models.Model):
    """A rule that compares `statistic` of `metric` over `window` with `value`.

    It fires only if the window has `min_events` events. `built_in` rules came with the
    installation.
    """

    name = models.CharField(max_length=MAX_NAME_LENGTH, unique=True, db_collation="C")
    title = models.CharField(max_length=200, blank=True)
    metric = models.CharField(max_length=MAX_NAME_LENGTH)
    statistic = models.CharField(max_length=12)
    window = models.CharField(max_length=12)
    comparison = models.CharField(max_length=2)
    value = models.FloatField()
    min_events = models.BigIntegerField(default=1)
    severity = models.CharField(max_length=8)
    is_enabled = models.BooleanField(default=True)
    built_in = models.BooleanField(default=False)
    runbook_url = models.CharField(max_length=500, blank=True)
    version = models.PositiveIntegerField(default=1)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(severity__in=SEVERITIES), name="threshold_severity_known"
            ),
            models.CheckConstraint(
                condition=Q(comparison__in=[">", ">=", "<", "<="]),
                name="threshold_comparison_known",
            ),
        ]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class OpenAlertCounts:
    """Numbers of open alerts: all, by severity, and those that nobody has acknowledged."""

    total: int
    critical: int
    warning: int
    info: int
    unacknowledged: int

    @property
    def worst(self) -> str:
        """Return the severity of the worst open alert, "" if none is open."""
        return next((name for name in SEVERITIES if getattr(self, name)), "")


class AlertQuerySet(models.QuerySet["Alert"]):
    def with_group(self) -> "models.QuerySet[Any, Any]":
        """Annotate each alert with `group_id`: its group, or its own id if it has none."""
        return self.annotate(
            group_id=Coalesce("group", "id", output_field=models.BigIntegerField())
        )

    def of_team(self, team: TeamFilter) -> "AlertQuerySet":
        """Select the alerts that the filter selects, by what they are about."""
        if team.is_all:
            return self
        about = Concat("kind", Value(" "), "subject", Value(" "), "service")
        found = self.order_by().annotate(about=about)
        owned = [
            text
            for text, kind, subject, service in found.values_list(
                "about", "kind", "subject", "service"
            ).distinct()
            if team.includes(Alert(kind=kind, subject=subject, service=service).resource)
        ]
        return self.filter(pk__in=found.filter(about__in=owned).values("pk"))

    def count_open(self) -> OpenAlertCounts:
        """Count the open alerts, acknowledged ones included, as the list of alerts shows them."""
        counts = self.filter(resolved_at__isnull=True).aggregate(
            total=Count("pk"),
            unacknowledged=Count("pk", filter=Q(acknowledged_at__isnull=True)),
            **{name: Count("pk", filter=Q(severity=name)) for name in SEVERITIES},
        )
        return OpenAlertCounts(**counts)


class Alert(models.Model):
    """An alert: a rule that fires for a subject, from `opened_at` until `resolved_at`.

    At most one alert is open for each rule and subject. `rule` is the key of a burn-rate rule,
    `1h/5m>14 page`, or the name of a threshold rule. `label` is `page` or `ticket` for a burn-rate
    rule, else empty. `subject` is an SLO's name or, for a threshold rule, the measured thing
    (`core->oracle`), and `summary` the message without a full stop. `firing_at` is when the rule
    last fired, plus unknown time since then. `evidence` holds the figures at the opening, `latest`
    those when the rule last fired, at `latest_at` (null in rows of earlier releases).

    `group` is the id of the first alert with the same cause, None for alerts of earlier versions.

    Notifications include `facts`, and belong to the message thread `thread`, if set. The opening
    was announced at `notified_at`, the end at `resolution_notified_at`.
    """

    class Kind(models.TextChoices):
        BURN = "burn"
        THRESHOLD = "threshold"

    kind = models.CharField(max_length=9, choices=Kind.choices)
    slo = models.ForeignKey(Slo, on_delete=models.CASCADE, null=True, blank=True)
    threshold = models.ForeignKey(ThresholdRule, on_delete=models.SET_NULL, null=True, blank=True)
    rule = models.CharField(max_length=200)
    subject = models.CharField(max_length=250)
    service = models.CharField(max_length=60, blank=True, db_collation="C")
    severity = models.CharField(max_length=8)
    label = models.CharField(max_length=8)
    summary = models.CharField(max_length=500, db_column="said")
    path = models.CharField(max_length=500, blank=True)
    thread = models.CharField(max_length=120, blank=True)
    facts = models.JSONField(default=dict, blank=True)
    group = models.BigIntegerField(null=True, blank=True)
    opened_at = models.DateTimeField()
    firing_at = models.DateTimeField()
    evidence = models.JSONField(default=dict)
    latest = models.JSONField(default=dict)
    latest_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200, blank=True)
    acknowledged_because = models.TextField(blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolved_because = models.CharField(max_length=200, blank=True)
    notified_at = models.DateTimeField(null=True, blank=True, db_column="told_at")
    notified_alone = models.BooleanField(default=False, db_column="told_alone")
    resolution_notified_at = models.DateTimeField(null=True, blank=True, db_column="over_told_at")

    objects: ClassVar[AlertQuerySet] = AlertQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "rule", "subject"],
                condition=Q(resolved_at__isnull=True),
                name="alert_once",
            ),
            models.CheckConstraint(
                condition=Q(severity__in=SEVERITIES), name="alert_severity_known"
            ),
        ]
        indexes = [
            models.Index(fields=["opened_at"], name="alert_by_time"),
            models.Index(fields=["group"], name="alert_by_group"),
            models.Index(fields=["subject", "opened_at"], name="alert_by_subject"),
            models.Index(
                fields=["opened_at"],
                condition=Q(resolution_notified_at__isnull=True),
                name="alert_to_tell",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} of {self.subject}"

    @property
    def subject_label(self) -> str:
        return format_subject(self.subject)

    @property
    def resource(self) -> str:
        """The SLO, dependency, switch or service that the alert is about; "" if none of these."""
        if self.kind == self.Kind.BURN:
            return slo_resource(self.subject)
        if is_dependency(self.subject):
            return f"dependency:{self.subject}"
        if kind_of(self.subject) in SCOPES:
            return self.subject
        return f"service:{self.service}" if self.service else ""

    @property
    def last_fired_at(self) -> datetime:
        """Return when the rule last fired, as far as known: unknown time is left out."""
        return self.latest_at or self.opened_at

    @property
    def state(self) -> str:
        if self.resolved_at is not None:
            return "resolved"
        return "acknowledged" if self.acknowledged_at is not None else "open"
