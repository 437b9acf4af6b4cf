"""Models of API tokens; only the SHA-256 of a token's secret is stored."""

from datetime import datetime
from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from controlplane.core.roles import Role

from .teams import MAX_PATTERN_LENGTH, Team


class TokenQuerySet(models.QuerySet["Token"]):
    def usable(self, now: datetime | Now) -> "TokenQuerySet":
        """Return tokens that authenticate at `now`: not revoked, not expired, with an owner.

        The owner of a token is an active person, or a team.
        """
        return self.filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=now),
            Q(team__isnull=False) | Q(owner__is_active=True),
            revoked_at__isnull=True,
        )


class Token(models.Model):
    """An API token; `digest` is the SHA-256, in hex, of its secret part.

    The token may report and poll as one of `services`, or as any service if that is empty. A token
    of a `team` acts for it as an operator, and outlives the account of its `owner`. `patterns`, if
    not empty, limit it to these resources, and `only_owned` to those of its teams. The successor of
    a rotated token names it as the one it `replaces`.
    """

    name = models.CharField(max_length=120)
    owner = models.ForeignKey("core.User", on_delete=models.PROTECT, related_name="tokens")
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=40))
    services = ArrayField(models.CharField(max_length=120), default=list, db_default=[], blank=True)
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="tokens"
    )
    patterns = ArrayField(
        models.CharField(max_length=MAX_PATTERN_LENGTH), default=list, db_default=[], blank=True
    )
    only_owned = models.BooleanField(default=False, db_default=False)
    replaces = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="replaced_by"
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return f"{self.name} (sg_{self.prefix}_…)"

    def has_ended(self, now: datetime) -> bool:
        """Return True if the token is revoked or expired."""
        return self.revoked_at is not None or (
            self.expires_at is not None and self.expires_at <= now
        )

    @property
    def role(self) -> Role:
        """The role that limits the token: its owner's, or operator for a token of a team."""
        return Role.OPERATOR if self.team_id else Role(self.owner.role)


class TokenCaller(models.Model):
    """A service in whose name a token was lately used, or refused because a team owns it.

    The times are those of the last use and of the last refusal; data planes write them.
    """

    token = models.ForeignKey(Token, on_delete=models.CASCADE, related_name="callers")
    service = models.CharField(max_length=120)
    used_at = models.DateTimeField(null=True, blank=True)
    refused_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        app_label = "core"
        ordering = ("service",)
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["token", "service"], name="tokencaller_once"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["refused_at"],
                condition=Q(refused_at__isnull=False),
                name="tokencaller_refused",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.token_id} as {self.service}"

    @property
    def is_refused(self) -> bool:
        """Return True if the token was refused and not accepted since."""
        refused, used = self.refused_at, self.used_at
        return refused is not None and (used is None or used < refused)


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
