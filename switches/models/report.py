"""Model of weekly reports."""

from django.db import models


class WeeklyReport(models.Model):
    """The report of an ISO week (`2026-W47`).

    A report generated before the end of its week is not `final` and is replaced by a later one.
    """

    week = models.CharField(primary_key=True, max_length=8)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    generated_at = models.DateTimeField()
    final = models.BooleanField(default=False)
    content = models.JSONField()
    anchor_id = models.BigIntegerField(null=True, blank=True)
    anchor_hash = models.CharField(max_length=64, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    signed_at = models.DateTimeField(null=True, blank=True)
    signed_by = models.CharField(max_length=200, blank=True)
    comment = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.week
