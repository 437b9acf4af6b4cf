"""What is known to be away or failing, beside our own stores."""

from django.db import models
from django.db.models import Q


class Degradation(models.Model):
    """One row: the causes that stand, as `levels.plain` writes them. `revision` grows with every
    change, which tells the data plane to read them anew; `since` is when the level last changed.
    `falling` is since when (RFC 3339) a cause, by what it is of, is no longer reported, or as a
    lighter one: it stands for a while longer."""

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
