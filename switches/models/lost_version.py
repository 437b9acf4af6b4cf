"""Models of published versions, and of versions that the database has lost, as in a failover."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from switches.models.switch import Episode


class PublishedVersion(models.Model):
    """A version that this database has published; a trigger adds a row for each.

    A data plane finds out by it whether the database still has the version that it serves.
    `timeline` is that of PostgreSQL, which a promotion increments; None if the server hides it.
    """

    id = models.BigAutoField(primary_key=True)
    epoch = models.UUIDField()
    version = models.BigIntegerField()
    published_at = models.DateTimeField()
    timeline = models.IntegerField(null=True)

    class Meta:
        indexes = [models.Index(fields=["epoch", "version"], name="published_version")]

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}"


class LostVersion(models.Model):
    """A version that a data plane serves and the database has lost, with its switches.

    Data planes insert it; `entries` are the elements of the snapshot's `switches`. They adopt the
    database's state only when the row is closed: from `closed_version` on, everything that was
    engaged in the lost version is engaged again.
    """

    id = models.BigAutoField(primary_key=True)
    epoch = models.UUIDField()
    version = models.BigIntegerField()
    published_at = models.DateTimeField()
    entries = models.JSONField()
    plane = models.TextField()
    received_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(null=True, blank=True)
    closed_version = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["epoch", "version", "published_at"], name="lost_version_reported_once"
            ),
            models.CheckConstraint(
                condition=Q(closed_at__isnull=True, closed_version__isnull=True)
                | Q(closed_at__isnull=False, closed_version__isnull=False),
                name="lost_version_closed_in_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.epoch}.{self.version}"


class LostChange(models.Model):
    """A switch whose state in a lost version differs from that in the database.

    Its episode stays engaged, and a person decides if that is right. `was_engaged` is False if the
    lost version had released the switch, or had begun to.
    """

    id = models.BigAutoField(primary_key=True)
    lost_version = models.ForeignKey(LostVersion, on_delete=models.PROTECT, related_name="changes")
    episode = models.ForeignKey(Episode, on_delete=models.PROTECT, related_name="+")
    was_engaged = models.BooleanField()
    description = models.TextField()
    kept_at = models.DateTimeField(null=True, blank=True)
    kept_by = models.CharField(max_length=200, blank=True, db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["episode"], condition=Q(kept_at__isnull=True), name="lost_change_one_open"
            )
        ]

    def __str__(self) -> str:
        return f"{self.episode}: {self.description}"
