"""The database table of escalations."""

from django.db import models
from django.db.models import Q


class Escalation(models.Model):
    """An event that somebody has to acknowledge, and how far its escalation has proceeded.

    `subject` is what the event concerns (`episode:12`), with at most one open escalation.
    `resource` is what a team may own of it (`segment:finance`), "" if nothing.
    `severity` selects the escalation steps, and `step` is the index of the next one. `next_at` is
    the time of the next notification, null once closed.
    """

    subject = models.CharField(max_length=120)
    event = models.CharField(max_length=64)
    severity = models.CharField(max_length=8)
    scope = models.CharField(max_length=10, blank=True)
    resource = models.CharField(max_length=250, blank=True, default="", db_default="")
    facts = models.JSONField(default=dict)
    opened_at = models.DateTimeField()
    step = models.PositiveSmallIntegerField(default=0)
    notices = models.PositiveIntegerField(default=0)
    notified_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(null=True, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.CharField(max_length=200, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["subject"], condition=Q(closed_at__isnull=True), name="escalation_one_open"
            ),
            models.CheckConstraint(
                condition=Q(severity__in=["critical", "warning", "info"]),
                name="escalation_severity_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(closed_at__isnull=True), name="escalation_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} ({self.severity})"
