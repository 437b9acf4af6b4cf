"""Counters of events by minute, and the samples that they are computed from.

Minutes are numbered since 1970; minute `m` ends at `m × 60` seconds. The row of a minute is
cumulative: it holds the number of events up to the minute's end.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from .objective import MAX_NAME_LENGTH, Slo

MAX_SOURCE_LENGTH = 200
IMPORTED = "import"
"""Name of the source of imported samples."""


class Sli(models.Model):
    """A pair of counters, good and total, of an SLO or of one edge of a latency histogram.

    A histogram is a `metric` of a `service`. The good events of an edge took at most `edge_ms`;
    null is the infinite edge. `first` and `last` are the minutes of the first and last counter row.
    For counters polled from Prometheus, `polled_to` is the last minute queried, and `source_error`
    the error of the last query. `poll_after` is the time of the next query; while a process makes
    one, the end of its lease.
    """

    slo = models.OneToOneField(Slo, on_delete=models.CASCADE, null=True, blank=True)
    metric = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, db_collation="C")
    service = models.CharField(max_length=60, blank=True, db_collation="C")
    edge_ms = models.FloatField(null=True, blank=True)
    first = models.IntegerField(null=True, blank=True)
    last = models.IntegerField(null=True, blank=True)
    polled_to = models.IntegerField(null=True, blank=True, db_column="asked_to")
    poll_after = models.DateTimeField(null=True, blank=True, db_column="ask_after")
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


class CounterMinute(models.Model):
    """Cumulative counters of an SLI up to the end of a minute: events, and minutes with samples."""

    pk = models.CompositePrimaryKey("sli_id", "minute")
    sli = models.ForeignKey(Sli, on_delete=models.CASCADE, db_index=False)
    minute = models.IntegerField()
    good = models.FloatField()
    total = models.FloatField()
    covered = models.IntegerField()

    class Meta:
        db_table = "slo_minute"

    def __str__(self) -> str:
        return f"{self.sli_id}@{self.minute}"


class CounterHour(models.Model):
    """Sixty packed minute rows of an SLI: element `i` of each array is minute `hour × 60 + i`."""

    pk = models.CompositePrimaryKey("sli_id", "hour")
    sli = models.ForeignKey(Sli, on_delete=models.CASCADE, db_index=False)
    hour = models.IntegerField()
    good = ArrayField(models.FloatField())
    total = ArrayField(models.FloatField())
    covered = ArrayField(models.IntegerField())

    class Meta:
        db_table = "slo_hour"

    def __str__(self) -> str:
        return f"{self.sli_id}@{self.hour}h"


class Series(models.Model):
    """The sample series of one boot of a source of an SLI, with its last sample.

    `started_at` is the start time that the boot reported, `first_at` the time of its first sample.
    The counters were zero at `counted_from`; if that is null, events before the first sample do not
    count. `at`, `good` and `total` are the last sample.
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


class StoredSample(models.Model):
    """The samples of a series in one minute, as arrays ascending by time.

    `at` is in microseconds since 1970. `series` has no database constraint, which would lock its
    row thousands of times a second.
    """

    pk = models.CompositePrimaryKey("series_id", "minute")
    series = models.ForeignKey(
        Series, on_delete=models.CASCADE, db_index=False, db_constraint=False
    )
    minute = models.IntegerField()
    at = ArrayField(models.BigIntegerField())
    good = ArrayField(models.FloatField())
    total = ArrayField(models.FloatField())

    class Meta:
        db_table = "slo_sample"

    def __str__(self) -> str:
        return f"{self.series_id}@{self.minute}"


class DeferredUpdate(models.Model):
    """An update of an SLI's minute counters that changes many rows; a periodic task applies it.

    The update adds events from `began` to `ended` (microseconds since 1970), or removes them if the
    counts are negative. With `covers`, it marks the time as covered by samples instead.
    """

    sli = models.ForeignKey(Sli, on_delete=models.CASCADE)
    began = models.BigIntegerField()
    ended = models.BigIntegerField()
    good = models.FloatField()
    total = models.FloatField()
    covers = models.BooleanField(default=False)

    class Meta:
        db_table = "slo_delayed"

    def __str__(self) -> str:
        return f"{self.sli_id}: {self.good} of {self.total}"


class DeltaBatch(models.Model):
    """An accepted batch of deltas, and the response, which a repeated batch gets again."""

    sender = models.CharField(max_length=200)
    batch_id = models.CharField(max_length=200, db_collation="C")
    received_at = models.DateTimeField()
    answer = models.JSONField(default=dict)

    class Meta:
        db_table = "slo_batch"
        verbose_name_plural = "delta batches"
        constraints = [
            models.UniqueConstraint(fields=["sender", "batch_id"], name="batch_once"),
        ]
        indexes = [models.Index(fields=["received_at"], name="batch_by_time")]

    def __str__(self) -> str:
        return self.batch_id


class ReportedEvents(models.Model):
    """Events that an instance counted between two reports, to be added to the minute counters.

    The data plane creates the row in the transaction of the report. Within seconds, a periodic task
    adds the events and deletes the row.
    """

    slo = models.CharField(max_length=1000)
    instance = models.CharField(max_length=250)
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    good = models.BigIntegerField()
    total = models.BigIntegerField()

    class Meta:
        db_table = "slo_reported"
        verbose_name = verbose_name_plural = "reported events"

    def __str__(self) -> str:
        return f"{self.slo}: {self.good} of {self.total}"
