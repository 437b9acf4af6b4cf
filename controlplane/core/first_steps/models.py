"""The table of when the first steps were completed or hidden."""

from django.db import models


class FirstStepsState(models.Model):
    """The one row that says since when the switchboard no longer shows the first steps.

    There is none until the steps were completed or hidden.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    completed_at = models.DateTimeField(null=True, blank=True)
    hidden_at = models.DateTimeField(null=True, blank=True)
    hidden_by = models.CharField(max_length=210, blank=True)

    class Meta:
        verbose_name_plural = "first steps state"
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="first_steps_one_row")]

    def __str__(self) -> str:
        return f"completed {self.completed_at}, hidden {self.hidden_at}"

    @property
    def is_over(self) -> bool:
        return bool(self.completed_at or self.hidden_at)
