"""Processes of data planes and relays, written by data planes."""

from typing import ClassVar

from django.db import models


class DataPlane(models.Model):
    """A process of a data plane or relay, as it last reported itself at `heard_at`.

    `upstream` is the name of the data plane or relay that a relay follows, "" for a data plane.
    `age_seconds` is the age of the served snapshot then, None before the first one. `held` is the
    number of held requests, and `instances` that of the instances heard in the last minute.
    `counted_seq` is the highest number of the relay's batches whose `/check` counts are stored. Bit
    n of `counted_bits` is set if those of the batch `counted_seq - n` are.
    `is_stopped` is True if the process then stopped cleanly.
    """

    process = models.UUIDField(primary_key=True)
    name = models.CharField(max_length=120)
    upstream = models.CharField(max_length=120, blank=True, default="")
    is_relay = models.BooleanField(default=False)
    release = models.CharField(max_length=40, blank=True, default="")
    epoch = models.UUIDField(null=True, blank=True)
    version = models.BigIntegerField(null=True, blank=True)
    age_seconds = models.FloatField(null=True, blank=True)
    held = models.PositiveIntegerField(default=0)
    instances = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField()
    heard_at = models.DateTimeField()
    counted_seq = models.BigIntegerField(default=0, db_default=0)
    counted_bits = models.BigIntegerField(default=0, db_default=0)
    is_stopped = models.BooleanField(default=False, db_default=False)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["heard_at"], name="data_plane_heard")]

    def __str__(self) -> str:
        return self.name
