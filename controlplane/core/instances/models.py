"""Instances, their acknowledgements of versions and check counts, written by the data plane."""

from datetime import UTC, datetime
from typing import ClassVar

from django.db import models


class Instance(models.Model):
    """A process of a service, or a client that only uses `/check`.

    Its id is `service/instance`, or `token:<name>` for a client that sends no instance name.
    `heard_at` and `first_heard_at` are the last and first time when the instance reported its
    applied version, by a poll or a report. `stopped_at` is the `heard_at` of its final report, sent
    when its process stopped cleanly; a later `heard_at` means that it runs again. `contested_at` is
    the last time when two processes or tokens reported under this id. `applied_epoch` and
    `applied_version` were reported at `applied_at`. Values that were never reported are None.
    `relay` is the name of the relay through which it was last heard, "" for a data plane.
    """

    id = models.CharField(primary_key=True, max_length=242, db_collation="C")
    service = models.CharField(max_length=120)
    boot = models.UUIDField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    seq = models.BigIntegerField(null=True, blank=True)
    reported_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(null=True, blank=True)
    first_heard_at = models.DateTimeField(null=True, blank=True)
    applied_epoch = models.UUIDField(null=True, blank=True)
    applied_version = models.BigIntegerField(null=True, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True)
    contested_at = models.DateTimeField(null=True, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    config_version = models.BigIntegerField(null=True, blank=True)
    relay = models.CharField(max_length=120, blank=True, default="", db_default="")
    reported = models.JSONField(default=dict, blank=True)
    """Last report of this boot (process run); see `controlplane.dataplane.ingest.instance_rows`."""
    checks = models.JSONField(default=dict, blank=True)
    """Checks of each switch, by minute; see `controlplane.core.instances.rates`."""
    resilience = models.JSONField(default=dict, db_default={}, blank=True)
    """Breakers by dependency and bulkheads by name, as last reported by this boot (process run)."""

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["heard_at"], name="instance_heard"),
            models.Index(
                fields=["contested_at"],
                name="instance_contested",
                condition=models.Q(contested_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.id


class Acknowledgement(models.Model):
    """The time when an instance first reported that it applies a version.

    An instance that skips versions has no row for them; the row of the next higher version covers
    them.
    """

    epoch = models.UUIDField()
    version = models.BigIntegerField()
    instance = models.CharField(max_length=242, db_collation="C")
    acknowledged_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["epoch", "version", "instance"], name="acknowledgement_once"
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["acknowledged_at"], name="acknowledgement_at"),
        ]

    def __str__(self) -> str:
        return f"{self.instance} applies {self.epoch}.{self.version}"


class CheckCount(models.Model):
    """The allowed and blocked checks of a switch in one minute or hour, over all instances.

    A row covers `seconds` (60 or 3600) from `start`, in Unix seconds. A span without reported
    checks has no row.
    """

    switch = models.CharField(max_length=250, db_collation="C")
    seconds = models.PositiveSmallIntegerField()
    start = models.BigIntegerField()
    allowed = models.BigIntegerField(default=0, db_default=0)
    blocked = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["switch", "seconds", "start"], name="check_count_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["seconds", "start"], name="check_count_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.switch}: {self.allowed} allowed, {self.blocked} blocked"

    @property
    def starts_at(self) -> datetime:
        return datetime.fromtimestamp(self.start, UTC)
