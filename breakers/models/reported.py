"""Tables of breaker states that the data plane writes from the reports of instances.

Rates and counters change with each report and are kept in the instance's row,
`core.Instance.resilience`; these rows are written only on a change of state.
"""

from django.db import models
from django.db.models import Q

from breakers.models.registry import Dependency

STATES = ("closed", "open", "half_open")


class BreakerState(models.Model):
    """The breaker of a dependency inside one instance, as its boot said last.

    Its rates are those of the report that changed it last; they are written anew whenever they
    differ. Whether the instance is still there stands in its own row.
    """

    dependency = models.ForeignKey(Dependency, on_delete=models.CASCADE, related_name="states")
    instance = models.CharField(max_length=242, db_collation="C")
    boot = models.UUIDField()
    state = models.CharField(max_length=9)
    mode = models.CharField(max_length=13, default="normal")
    since = models.DateTimeField(null=True, blank=True)
    failure_rate = models.FloatField(null=True, blank=True)
    slow_rate = models.FloatField(null=True, blank=True)
    calls = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dependency", "instance"], name="breaker_state_once"),
            models.CheckConstraint(condition=Q(state__in=STATES), name="breaker_state_known"),
        ]
        indexes = [
            models.Index(fields=["instance"], name="breaker_state_by_instance"),
            models.Index(
                fields=["dependency"],
                condition=~Q(state="closed") | ~Q(mode="normal"),
                name="breaker_state_hot",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.dependency_id} in {self.instance}: {self.state}"


class Transition(models.Model):
    """A breaker went from one state to another: once for each boot, dependency and `n`."""

    dependency = models.ForeignKey(Dependency, on_delete=models.CASCADE, related_name="transitions")
    boot = models.UUIDField()
    n = models.BigIntegerField()
    instance = models.CharField(max_length=242, db_collation="C")
    from_state = models.CharField(max_length=9)
    to_state = models.CharField(max_length=9)
    at = models.DateTimeField()
    cause = models.CharField(max_length=1000, blank=True)
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dependency", "boot", "n"], name="transition_once"),
        ]
        indexes = [
            models.Index(fields=["dependency", "-at"], name="transition_by_time"),
            models.Index(fields=["received_at"], name="transition_received"),
        ]

    def __str__(self) -> str:
        return f"{self.from_state} → {self.to_state} at {self.at:%H:%M:%S}"


class Minute(models.Model):
    """A dependency during one minute, over all instances.

    `worst` is 0 if nobody reported, 1 closed, 2 half-open, 3 open; `open`, `half_open` and
    `instances` are the most there were at once. Counters are what was counted in that minute.
    """

    dependency = models.ForeignKey(Dependency, on_delete=models.CASCADE, related_name="minutes")
    minute = models.DateTimeField()
    worst = models.PositiveSmallIntegerField(default=0, db_default=0)
    open = models.IntegerField(default=0, db_default=0)
    half_open = models.IntegerField(default=0, db_default=0)
    instances = models.IntegerField(default=0, db_default=0)
    success = models.BigIntegerField(default=0, db_default=0)
    failure = models.BigIntegerField(default=0, db_default=0)
    timeout = models.BigIntegerField(default=0, db_default=0)
    slow = models.BigIntegerField(default=0, db_default=0)
    rejected = models.BigIntegerField(default=0, db_default=0)
    fallback = models.BigIntegerField(default=0, db_default=0)
    retry = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["dependency", "minute"], name="minute_once"),
        ]
        indexes = [models.Index(fields=["minute"], name="minute_by_time")]

    def __str__(self) -> str:
        return f"{self.dependency_id} at {self.minute:%H:%M}"
