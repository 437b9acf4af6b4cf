"""Stored degradation causes, except for PostgreSQL and Redis, which are checked at each read."""

from django.db import models
from django.db.models import Q


class Degradation(models.Model):
    """The active degradation causes, as JSON of `degradation_levels.Cause`; a single row.

    `revision` increases with every change, which makes the data plane reload the causes. `since` is
    the time of the last change of the level. A cause that is unreported, or reported at a lower
    level, stays active for a minute; `falling` maps its `what` to the start of that minute (RFC
    3339).
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    revision = models.BigIntegerField(default=0)
    level = models.PositiveSmallIntegerField(default=0)
    causes = models.JSONField(default=list)
    falling = models.JSONField(default=dict, db_default={})
    since = models.DateTimeField()

    class Meta:
        verbose_name_plural = "degradation"
        constraints = [models.CheckConstraint(condition=Q(id=1), name="degradation_one_row")]

    def __str__(self) -> str:
        return f"level {self.level}"
