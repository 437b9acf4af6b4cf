"""Signs of life of periodic functions and supervised processes."""

from django.db import models


class Tick(models.Model):
    """Last run of a periodic function: when, and by which process. The watchdog reads it."""

    name = models.CharField(primary_key=True, max_length=64)
    ran_at = models.DateTimeField()
    ran_by = models.CharField(max_length=16)

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.name


class Heartbeat(models.Model):
    """Last sign of life of a supervised process."""

    name = models.CharField(primary_key=True, max_length=16)
    at = models.DateTimeField()

    class Meta:
        app_label = "core"

    def __str__(self) -> str:
        return self.name
