"""What was counted. Minutes are numbered since 1970; minute `m` ends at `m × 60` seconds, and its
row holds what was counted up to then, since ever: `C(m)`. So a window is the difference of two
rows. A row is there for each minute in which something was known; between two of them nothing was.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from .objective import MAX_NAME_LENGTH, Slo

MAX_SOURCE_LENGTH = 200
IMPORTED = "import"
"""The source of what was read from files: its samples are kept as long as its history."""


class Sli(models.Model):
    """One pair of counters: that of an SLO, or of one edge of a latency histogram (`metric` of a
    `service`, at most `edge_ms`; events without limit have no edge).

    `first` and `last` are the minutes of its first and last row. `source_error` is why its source
    could not be read last, with `asked_to` the last minute it was asked for; it is asked again
    after `ask_after`, which is also the lease of whoever asks it now.
    """

    slo = models.OneToOneField(Slo, on_delete=models.CASCADE, null=True, blank=True)
    metric = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, db_collation="C")
    service = models.CharField(max_length=60, blank=True, db_collation="C")
    edge_ms = models.FloatField(null=True, blank=True)
    first = models.IntegerField(null=True, blank=True)
    last = models.IntegerField(null=True, blank=True)
    asked_to = models.IntegerField(null=True, blank=True)
    ask_after = models.DateTimeField(null=True, blank=True)
    source_error = models.CharField(max_length=500, blank=True)
    source_error_since = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["metric", "service", "edge_ms"],
                condition=Q(slo__isnull=True),
                nulls_distinct=False,
                name="sli_edge_once",
            ),
        ]

    def __str__(self) -> str:
        return f"SLO {self.slo_id}" if self.slo_id else f"{self.service}/{self.metric}"


class Minute(models.Model):
    """Counters of an SLI up to the end of a minute, and how many minutes were covered by then."""

    pk = models.CompositePrimaryKey("sli_id", "minute")
    sli = models.ForeignKey(Sli, on_delete=models.CASCADE, db_index=False)
    minute = models.IntegerField()
    good = models.FloatField()
    total = models.FloatField()
    covered = models.IntegerField()

    def __str__(self) -> str:
        return f"{self.sli_id}@{self.minute}"


class Hour(models.Model):
    """The sixty rows of an hour that is past for long, packed: the element `i` (from 0) of each
    array is that of the minute `hour × 60 + i`."""

    pk = models.CompositePrimaryKey("sli_id", "hour")
    sli = models.ForeignKey(Sli, on_delete=models.CASCADE, db_index=False)
    hour = models.IntegerField()
    good = ArrayField(models.FloatField())
    total = ArrayField(models.FloatField())
    covered = ArrayField(models.IntegerField())

    def __str__(self) -> str:
        return f"{self.sli_id}@{self.hour}h"


class Series(models.Model):
    """One boot of one source of an SLI, whose cumulative counters only grow: what it said last.

    `started_at` is from when on its counters began at zero, if somebody said so. `first_at` is when
    its first sample was taken, and `counted_from` since when that counted from zero: null if it is
    what is counted from.
    """

    sli = models.ForeignKey(Sli, on_delete=models.CASCADE, db_index=False)
    source = models.CharField(max_length=MAX_SOURCE_LENGTH, db_collation="C")
    boot = models.CharField(max_length=MAX_SOURCE_LENGTH, blank=True, db_collation="C")
    started_at = models.DateTimeField(null=True, blank=True)
    first_at = models.DateTimeField()
    counted_from = models.DateTimeField(null=True, blank=True)
    at = models.DateTimeField()
    good = models.FloatField()
    total = models.FloatField()

    class Meta:
        verbose_name_plural = "series"
        constraints = [
            models.UniqueConstraint(fields=["sli", "source", "boot"], name="series_once"),
        ]

    def __str__(self) -> str:
        return f"{self.source} ({self.boot})"


class Sample(models.Model):
    """What a series said in a minute, in order; kept for as long as something may still come before
    or between. `at` is in microseconds since 1970.

    Without a constraint on `series`, which would lock its row for each of thousands a second.
    """

    pk = models.CompositePrimaryKey("series_id", "minute")
    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    minute = models.IntegerField()
    at = ArrayField(models.BigIntegerField())
    good = ArrayField(models.FloatField())
    total = ArrayField(models.FloatField())

    def __str__(self) -> str:
        return f"{self.series_id}@{self.minute}"


class Delayed(models.Model):
    """What is to be added to an SLI's minutes by a tick, because it would move too many rows at
    once: growth between two moments (microseconds since 1970), or a span that was covered."""

    sli = models.ForeignKey(Sli, on_delete=models.CASCADE)
    began = models.BigIntegerField()
    ended = models.BigIntegerField()
    good = models.FloatField()
    total = models.FloatField()
    covers = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "delayed"

    def __str__(self) -> str:
        return f"{self.sli_id}: {self.good} of {self.total}"


class Batch(models.Model):
    """A batch of deltas that was taken in, and what was answered: it is taken once."""

    sender = models.CharField(max_length=200)
    batch_id = models.CharField(max_length=200, db_collation="C")
    received_at = models.DateTimeField()
    answer = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(fields=["sender", "batch_id"], name="batch_once"),
        ]
        indexes = [models.Index(fields=["received_at"], name="batch_by_time")]

    def __str__(self) -> str:
        return self.batch_id


class Reported(models.Model):
    """Events that an instance counted between two reports, until they are added to the minutes.

    The data plane writes it in the transaction of the report; rows go as soon as they are added.
    """

    slo = models.CharField(max_length=1000)
    instance = models.CharField(max_length=250)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    good = models.BigIntegerField()
    total = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "reported"

    def __str__(self) -> str:
        return f"{self.slo}: {self.good} of {self.total}"
