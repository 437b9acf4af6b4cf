"""The stored degradation causes, apart from PostgreSQL and Redis."""

from django.db import models
from django.db.models import Q


class Degradation(models.Model):
    """The active causes, in the form of `levels.plain`; a single row.

    `revision` increases with every change, which makes the data plane reload them; `since` is the
    last change of the level. `falling` maps the `what` of a cause to the time (RFC 3339) since when
    it is no longer reported, or only at a lower level; it stays active for a while.
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
