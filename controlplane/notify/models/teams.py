"""Targets of messages about what a team owns."""

from typing import ClassVar

from django.db import models
from django.db.models import Q


class TeamContact(models.Model):
    """A target of a team: its on-call rotation, one of its channels, or its escalation steps."""

    class Kind(models.TextChoices):
        ON_CALL = "on_call"
        CHANNEL = "channel"
        ESCALATION = "escalation"

    team = models.ForeignKey("core.Team", on_delete=models.CASCADE, related_name="contacts")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    target = models.ForeignKey(
        "core.Target", on_delete=models.PROTECT, related_name="team_contacts"
    )

    class Meta:
        app_label = "core"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["team", "kind", "target"], name="team_contact_once"),
            models.UniqueConstraint(
                fields=["team", "kind"],
                condition=~Q(kind="channel"),
                name="team_contact_one_on_call_and_escalation",
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["on_call", "channel", "escalation"]),
                name="team_contact_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.team_id}"
