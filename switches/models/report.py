"""Models of weekly reports: one about everything, and one for each team."""

from typing import Any, ClassVar

from django.db import models


class WeekReport(models.Model):
    """The report of an ISO week (`2026-W47`), and of a team, if `team` is its slug.

    A report generated before the end of its week is not `final` and is replaced by a later one.
    """

    week: Any
    team: Any
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

    class Meta:
        abstract = True

    @property
    def team_name(self) -> str:
        """The name that the team had when the report was generated."""
        name: str = self.content.get("team", {}).get("name", self.team)
        return name


class WeeklyReport(WeekReport):
    """The report about everything."""

    week = models.CharField(primary_key=True, max_length=8)
    team = ""

    def __str__(self) -> str:
        return self.week


class TeamReport(WeekReport):
    """The report about what a team, and the teams below it, own; it outlasts the team."""

    week = models.CharField(max_length=8)
    team = models.CharField(max_length=40)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["week", "team"], name="team_report_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["team", "week"],
                condition=models.Q(final=True, signed_at__isnull=True),
                name="team_report_unsigned",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.week} {self.team}"
