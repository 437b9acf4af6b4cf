"""SLOs, their stored statuses, and exclusions."""

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

from controlplane.core.authority import TeamFilter

MAX_NAME_LENGTH = 120
PUSH, PROMETHEUS = "push", "prometheus"
"""Types of `Slo.source`."""
TRIP, HOLD_RAMPS = "trip", "hold_ramps"
"""Values of `do` of an action in `Slo.actions`."""


def slo_resource(name: str) -> str:
    """Return an SLO as a resource that a team can own, and the target of its audit rows."""
    return f"slo:{name}"


class SloQuerySet(models.QuerySet["Slo"]):
    def present(self) -> "SloQuerySet":
        return self.filter(removed_at__isnull=True)

    def of_team(self, team: TeamFilter) -> "SloQuerySet":
        """Select the SLOs that the filter selects."""
        if team.is_all:
            return self
        rows = self.order_by().values_list("pk", "name")
        return self.filter(pk__in=[pk for pk, name in rows if team.includes(slo_resource(name))])


class Slo(models.Model):
    """An objective: the share of a service's events that must be good, over a number of days.

    For kind `latency`, an event is good if it took at most `threshold_ms`. `source` is `{"type":
    "push"}` or `{"type": "prometheus", "url", "good", "total"}`; `rules` and `actions` are as in
    the API. The SLO's :class:`Sli` counts its events. With `slice_target`, the target is a share of
    minutes: those whose share of good events is at least `slice_target`. `metadata` are names and
    labels of the document that the SLO was imported from.
    """

    class Kind(models.TextChoices):
        AVAILABILITY = "availability"
        RATIO = "ratio"
        LATENCY = "latency"

    name = models.CharField(max_length=MAX_NAME_LENGTH, db_collation="C")
    service = models.CharField(max_length=60, blank=True, db_collation="C")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    target = models.DecimalField(max_digits=9, decimal_places=8)
    window_days = models.PositiveSmallIntegerField(default=30)
    threshold_ms = models.FloatField(null=True, blank=True)
    source = models.JSONField(default=dict)
    rules = models.JSONField(default=list)
    min_events = models.BigIntegerField(default=0)
    slice_target = models.DecimalField(max_digits=9, decimal_places=8, null=True, blank=True)
    metadata = models.JSONField(null=True, blank=True)
    actions = models.JSONField(default=list, blank=True)
    description = models.TextField(blank=True)
    owner = models.CharField(max_length=200, blank=True)
    runbook_url = models.CharField(max_length=500, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[SloQuerySet] = SloQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(removed_at__isnull=True), name="slo_name_once"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["availability", "ratio", "latency"]), name="slo_kind_known"
            ),
            models.CheckConstraint(
                condition=Q(target__gt=0, target__lt=1), name="slo_target_is_a_share"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def resource(self) -> str:
        return slo_resource(self.name)


class SloStatus(models.Model):
    """The status of an SLO at the end of `minute` (since 1970), replaced every minute.

    `burn_rates` (null where unknown) and `coverage` are by window (`5m`); `rules` are as in `GET
    …/status`. `since` is when the state last changed.
    """

    slo = models.OneToOneField(
        Slo, on_delete=models.CASCADE, primary_key=True, related_name="status"
    )
    minute = models.IntegerField()
    state = models.CharField(max_length=8)
    since = models.DateTimeField()
    burn_rates = models.JSONField(default=dict)
    coverage = models.JSONField(default=dict)
    rules = models.JSONField(default=list)
    remaining_ratio = models.FloatField(null=True, blank=True)
    exhausts_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "slo_standing"
        verbose_name = "SLO status"
        verbose_name_plural = "SLO statuses"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["ok", "firing", "unknown"]), name="slo_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.slo_id}: {self.state}"


class EvaluatedMinute(models.Model):
    """A minute for which all SLOs have been evaluated."""

    minute = models.IntegerField(primary_key=True)
    evaluated_at = models.DateTimeField(db_column="judged_at")
    slos = models.IntegerField(default=0)
    took_ms = models.FloatField(default=0)

    class Meta:
        db_table = "slo_turn"

    def __str__(self) -> str:
        return str(self.minute)


class Exclusion(models.Model):
    """A span of whole minutes whose events do not count for an SLO, until it is removed."""

    slo = models.ForeignKey(Slo, on_delete=models.CASCADE, related_name="exclusions")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.TextField()
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    removed_by = models.CharField(max_length=200, blank=True)
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")), name="exclusion_has_a_length"
            ),
        ]
        indexes = [models.Index(fields=["slo", "starts_at"], name="exclusion_by_slo")]

    def __str__(self) -> str:
        return f"{self.slo_id}: {self.starts_at} – {self.ends_at}"
