"""Models of drills."""

from typing import Any

from django.db import models
from django.db.models import Q

from controlplane.core.jobs.models import Job
from switches.models.switch import Switch

WHY = "why"
"""Key in `Drill.measured` of the reason that the drill can't pass."""
MARKED = "marked"
"""Key in `Drill.measured` of the mark patterns at the time of the engage step."""


class DrillMark(models.Model):
    """A pattern of instances that take part in drills: `core/canary-1`, or `core/*`."""

    pattern = models.CharField(primary_key=True, max_length=250, db_collation="C")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)

    instances: int
    """Number of matching instances, set by :func:`marked_instances.count_instances`."""

    def __str__(self) -> str:
        return self.pattern


class DrillSchedule(models.Model):
    """A drill of a switch that repeats every `every_days` days."""

    switch = models.OneToOneField(Switch, on_delete=models.PROTECT, related_name="drill_schedule")
    mode = models.CharField(max_length=10, default="live")
    every_days = models.PositiveSmallIntegerField()
    next_at = models.DateTimeField()
    reason = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=200)
    creator = models.ForeignKey(
        "core.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(mode__in=["dry", "live", "emergency"]), name="drill_schedule_mode_known"
            ),
            models.CheckConstraint(
                condition=Q(every_days__gte=1, every_days__lte=365),
                name="drill_schedule_every_days",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.switch_id} every {self.every_days} d"

    @property
    def interval(self) -> str:
        return f"{self.every_days}d"


class Drill(models.Model):
    """A drill of a switch; its state is the state of its job.

    An `emergency` drill waits for an emergency order, and the following concerns only live ones.
    From `engaged_at` to `released_at`, marked instances receive a snapshot in which the switch
    is engaged; clients end the drill by themselves at `ends_by`. `measured` holds the
    measurements by step.
    """

    job = models.OneToOneField(
        Job, on_delete=models.PROTECT, primary_key=True, related_name="drill"
    )
    switch = models.ForeignKey(Switch, on_delete=models.PROTECT, related_name="drills")
    mode = models.CharField(max_length=10)
    scheduled = models.BooleanField(default=False)
    salt = models.CharField(max_length=32)
    ends_by = models.DateTimeField(null=True, blank=True)
    engaged_at = models.DateTimeField(null=True, blank=True)
    engaged_version = models.BigIntegerField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    released_version = models.BigIntegerField(null=True, blank=True)
    measured = models.JSONField(default=dict)
    passed = models.BooleanField(null=True, blank=True)
    live = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["switch"], condition=Q(live=True), name="drill_one_live"
            ),
            models.CheckConstraint(
                condition=Q(mode__in=["dry", "live", "emergency"]), name="drill_mode_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["engaged_at"],
                condition=Q(engaged_at__isnull=False, released_at__isnull=True),
                name="drill_in_force",
            )
        ]

    def __str__(self) -> str:
        return f"drill {self.pk} of {self.switch_id}"

    @property
    def failure_reason(self) -> str:
        """Return why the drill can't pass any more; empty while it can."""
        return str(self.measured.get(WHY, ""))

    @property
    def measurements(self) -> dict[str, Any]:
        """Return the measurements by step, without the other values stored in `measured`."""
        return {part: found for part, found in self.measured.items() if part not in (WHY, MARKED)}
