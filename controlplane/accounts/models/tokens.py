"""Models of API tokens; only the SHA-256 of a token's secret is stored."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class TokenQuerySet(models.QuerySet["Token"]):
    def usable(self, now: datetime | Now) -> "TokenQuerySet":
        """Return tokens that authenticate at `now`: not revoked, not expired, owner active."""
        return self.filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=now),
            revoked_at__isnull=True,
            owner__is_active=True,
        )


class Token(models.Model):
    """An API token; `digest` is the SHA-256, in hex, of its secret part.

    The token may report and poll as one of `services`, or as any service if that is empty.
    """

    name = models.CharField(max_length=120)
    owner = models.ForeignKey("core.User", on_delete=models.PROTECT, related_name="tokens")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=40))
    services = ArrayField(models.CharField(max_length=120), default=list, db_default=[], blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return f"{self.name} (sg_{self.prefix}_…)"


class Credentials(models.Model):
    """The revision of all tokens and accounts, in a single row; triggers increment it on changes.

    Processes with tokens in memory read it every second, and reload the tokens after a change.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    revision = models.BigIntegerField(default=1)

    class Meta:
        app_label = "core"
        verbose_name_plural = "credentials"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="credentials_one_row")]

    def __str__(self) -> str:
        return f"revision {self.revision}"
