"""The table of overrides."""

from django.db import models
from django.db.models import Q

from breakers.models.registry import Dependency


class Override(models.Model):
    """A mode that an operator or an outage policy forces upon the breakers of all instances.

    `version` is the registry's version that published it. It ends at `expires_at`, or when somebody
    removes or replaces it; `ended_why` is `expired`, `removed` or `replaced`.
    """

    class Mode(models.TextChoices):
        FORCED_OPEN = "forced_open"
        FORCED_CLOSED = "forced_closed"
        DISABLED = "disabled"
        METRICS_ONLY = "metrics_only"
        RESET = "reset"

    dependency = models.ForeignKey(Dependency, on_delete=models.PROTECT, related_name="overrides")
    mode = models.CharField(max_length=13, choices=Mode.choices)
    reason = models.TextField()
    set_by_type = models.CharField(max_length=8)
    set_by_name = models.CharField(max_length=200)
    set_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    version = models.BigIntegerField()
    ended_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.CharField(max_length=210, blank=True)
    ended_why = models.CharField(max_length=8, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["dependency"], condition=Q(ended_at__isnull=True), name="override_one_live"
            ),
            models.CheckConstraint(
                condition=Q(
                    mode__in=["forced_open", "forced_closed", "disabled", "metrics_only", "reset"]
                ),
                name="override_mode_known",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=models.F("set_at")), name="override_ends_later"
            ),
        ]
        indexes = [
            models.Index(
                fields=["expires_at"], condition=Q(ended_at__isnull=True), name="override_due"
            ),
            models.Index(fields=["set_at"], name="override_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.mode} until {self.expires_at:%Y-%m-%d %H:%M}"
