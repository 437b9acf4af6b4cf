"""Models of the last runs of ticks and the last heartbeats of processes."""

from django.db import models


class Tick(models.Model):
    """The last run of a tick: its time, and the process that ran it."""

    name = models.CharField(primary_key=True, max_length=64)
    ran_at = models.DateTimeField()
    ran_by = models.CharField(max_length=16)

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """The last heartbeat of a supervised process."""

    name = models.CharField(primary_key=True, max_length=16)
    at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.name
