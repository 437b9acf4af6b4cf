"""Model of approval requests and their decisions."""

from django.db import models
from django.db.models import Q
from django.urls import reverse


class Approval(models.Model):
    """A request for a second person's approval, or a break-glass review.

    `target` is the switch or rule that it concerns (`global:all`). Reviews never expire. An edited
    request becomes void, and the new request refers to it by `replaces`.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        APPROVED = "approved"
        DENIED = "denied"
        EXPIRED = "expired"
        VOID = "void"

    class Kind(models.TextChoices):
        RELEASE = "release"
        PERMANENT = "permanent"
        PURGE = "purge"
        RAMP_GATE = "ramp_gate"
        RULE_CHANGE = "rule_change"
        BREAK_GLASS_REVIEW = "break_glass_review"
        GRANT = "grant"
        AUTHORITY_CHANGE = "authority_change"

    kind = models.CharField(max_length=24, choices=Kind.choices)
    target = models.CharField(max_length=200)
    summary = models.CharField(max_length=300)
    diff = models.JSONField(default=dict)
    reason = models.TextField()
    risk = models.CharField(max_length=8, default="high")
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    requested_by = models.CharField(max_length=200)
    requester = models.ForeignKey(
        "core.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    requested_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    replaces = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    comment = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "target"], condition=Q(state="pending"), name="approval_one_pending"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "approved", "denied", "expired", "void"]),
                name="approval_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.target} ({self.state})"

    @property
    def page_url(self) -> str:
        """The page of approvals that shows this one."""
        return reverse("approvals_page", query={"id": self.pk}, fragment=f"approval-{self.pk}")
