"""Model of people's emergency codes; only a salted scrypt hash of a code is stored."""

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

CLOCK_TOLERANCE = timedelta(minutes=1)
"""A code may be used on a data plane whose clock is slow before its creation, by that clock."""


class EmergencyCodeQuerySet(models.QuerySet["EmergencyCode"]):
    def current(self) -> "EmergencyCodeQuerySet":
        """Return the codes that are not revoked: at most one per person."""
        return self.filter(revoked_at=None)

    def valid_at(self, at: datetime) -> "EmergencyCodeQuerySet":
        """Return the codes that existed and were not revoked at `at`, a data plane's time."""
        return self.filter(
            Q(revoked_at=None) | Q(revoked_at__gt=at), created_at__lte=at + CLOCK_TOLERANCE
        )


class EmergencyCode(models.Model):
    """A person's code for the emergency page of a data plane.

    `salt` and `digest` are hex. Replaced and revoked codes stay for a while, because orders that
    arrive late are checked against the codes of their time.
    """

    user = models.ForeignKey("core.User", on_delete=models.PROTECT, related_name="emergency_codes")
    salt = models.CharField(max_length=32)
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = EmergencyCodeQuerySet.as_manager()

    class Meta:
        app_label = "core"
        verbose_name = "emergency code"
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=Q(revoked_at=None), name="emergencycode_one_per_user"
            )
        ]

    def __str__(self) -> str:
        return f"emergency code of {self.user_id}"
