"""Models of dead letters: servers, streams, the index, gaps, bulk jobs and the archive.

The letters themselves are in Redis. Each letter in a stream has a :class:`Letter` index row; each
removed letter has a :class:`Departure` with its whole content.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.urls import reverse

from breakers.dead_letters.letters import ids
from breakers.dead_letters.letters.entries import LetterEntry, unpack_pairs
from breakers.message_facts import MAX_THREAD_LENGTH, shorten_with_digest
from controlplane.core.jobs.models import Job

MAX_NAME_LENGTH = 300
MAX_ERROR_LENGTH = 500
MAX_TARGET_LENGTH = 200
POSITION = 41  # characters: two numbers of 20 digits, with a dash between


class LetterStream(models.Model):
    """A stream of dead letters on a Redis server, or the failed messages of the outbox.

    `origin` is the stream whose messages failed. `depth`, `first` and `last` (positions of the
    first and last entry, empty if there is none) are from the latest sample. `indexed_to` is the
    position up to which the index is complete. `vanished_total` counts letters removed by other
    Redis clients. `over_since` is set while `depth` exceeds the alarm limit, `alarmed_at` while an
    alarm is open, `gone_at` while the server has no stream of this name.
    """

    class Source(models.TextChoices):
        STREAM = "stream"
        OUTBOX = "outbox"

    source = models.CharField(max_length=6, choices=Source.choices, default=Source.STREAM)
    server = models.CharField(max_length=60, db_collation="C")
    name = models.CharField(max_length=MAX_NAME_LENGTH, db_collation="C")
    origin = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    depth = models.BigIntegerField(default=0)
    first = models.CharField(max_length=POSITION, blank=True, db_collation="C")
    last = models.CharField(max_length=POSITION, blank=True, db_collation="C")
    indexed_to = models.CharField(max_length=POSITION, blank=True, db_collation="C")
    oldest_at = models.DateTimeField(null=True, blank=True)
    newest_at = models.DateTimeField(null=True, blank=True)
    arrived_total = models.BigIntegerField(default=0)
    retried_total = models.BigIntegerField(default=0)
    vanished_total = models.BigIntegerField(default=0)
    found_at = models.DateTimeField()
    sampled_at = models.DateTimeField(null=True, blank=True)
    over_since = models.DateTimeField(null=True, blank=True)
    alarmed_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        app_label = "breakers"
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="letter_stream_once"),
            models.CheckConstraint(
                condition=Q(source__in=["stream", "outbox"]), name="letter_stream_source_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"

    @property
    def page_url(self) -> str:
        if self.source == self.Source.OUTBOX:
            return f"{reverse('deliveries_page')}?state=failed"
        return reverse("letter_stream_page", args=[self.server, self.name])

    def letter_url(self, entry_id: str, view: str = "letter_page") -> str:
        return reverse(view, args=[self.server, entry_id, self.name])

    @property
    def resource(self) -> str:
        """The stream as a resource that a team can own, on any server; "" for the outbox."""
        return "" if self.source == self.Source.OUTBOX else f"stream:{self.name}"

    @property
    def audit_target(self) -> str:
        """Target of the stream's audit rows and jobs; a long name is cut and ends with a digest."""
        return shorten_with_digest(f"dlq:{self}", MAX_TARGET_LENGTH)

    @property
    def message_thread(self) -> str:
        """Subject that joins all messages about the stream in one thread."""
        return shorten_with_digest(f"dlq:{self}", MAX_THREAD_LENGTH)


class LetterServer(models.Model):
    """A Redis server: its availability, and the state of the stream discovery.

    `cursor` is the SCAN cursor of the discovery. `since` is the time of the last change of
    `is_away`, `asked_at` the time of the last successful query.
    """

    name = models.CharField(primary_key=True, max_length=60, db_collation="C")
    cursor = models.CharField(max_length=500, blank=True)
    is_away = models.BooleanField(default=False)
    since = models.DateTimeField(null=True, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)

    class Meta:
        app_label = "breakers"

    def __str__(self) -> str:
        return self.name


class LetterGroup(models.Model):
    """Letters of a stream with the same `fingerprint` of error type and error.

    `pattern` is the error with its varying parts masked; `sample` is the error of one letter.
    """

    stream = models.ForeignKey(LetterStream, on_delete=models.CASCADE, related_name="groups")
    fingerprint = models.CharField(max_length=16, db_collation="C")
    error_type = models.CharField(max_length=200, blank=True)
    pattern = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)
    sample = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        app_label = "breakers"
        constraints = [
            models.UniqueConstraint(fields=["stream", "fingerprint"], name="letter_group_once"),
        ]

    def __str__(self) -> str:
        return f"{self.fingerprint} of {self.stream_id}"


class GroupDay(models.Model):
    """Number of letters of a group that arrived on a day (UTC), including letters removed since."""

    group = models.ForeignKey(LetterGroup, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    arrived = models.BigIntegerField(default=0)

    class Meta:
        app_label = "breakers"
        constraints = [
            models.UniqueConstraint(fields=["group", "day"], name="letter_group_day_once"),
        ]
        indexes = [models.Index(fields=["day"], name="letter_group_by_day")]

    def __str__(self) -> str:
        return f"{self.group_id} on {self.day}"


class Letter(models.Model):
    """Index row of a dead letter; `position` is its entry id, padded to sort in stream order.

    `failed_at` is the time of failure given by the consumer, else the time the entry was added.
    `size_bytes` is the total length of all field names and values. `retries` counts the earlier
    retries of the message.
    """

    stream = models.ForeignKey(LetterStream, on_delete=models.CASCADE, related_name="letters")
    position = models.CharField(max_length=POSITION, db_collation="C")
    group = models.ForeignKey(LetterGroup, on_delete=models.CASCADE, related_name="letters")
    error = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)
    consumer_group = models.CharField(max_length=200, blank=True)
    attempts = models.IntegerField(null=True, blank=True)
    retries = models.IntegerField(default=0)
    failed_at = models.DateTimeField()
    size_bytes = models.BigIntegerField(default=0)

    class Meta:
        app_label = "breakers"
        constraints = [
            models.UniqueConstraint(fields=["stream", "position"], name="letter_once"),
        ]
        indexes = [models.Index(fields=["group", "position"], name="letter_by_group")]

    def __str__(self) -> str:
        return f"{self.position} of {self.stream_id}"


class Gap(models.Model):
    """Consecutive entries that another Redis client trimmed or deleted from a stream."""

    stream = models.ForeignKey(LetterStream, on_delete=models.CASCADE, related_name="gaps")
    first = models.CharField(max_length=POSITION, db_collation="C")
    last = models.CharField(max_length=POSITION, db_collation="C")
    count = models.BigIntegerField()
    noticed_at = models.DateTimeField()

    class Meta:
        app_label = "breakers"
        indexes = [models.Index(fields=["stream", "-noticed_at"], name="letter_gap_by_stream")]

    def __str__(self) -> str:
        return f"{self.count} of {self.stream_id}"


class DepthMinute(models.Model):
    """The sampled depth of a stream in one minute: `depth` is the last, `most` the maximum."""

    stream = models.ForeignKey(LetterStream, on_delete=models.CASCADE, related_name="minutes")
    minute = models.DateTimeField()
    sampled_at = models.DateTimeField()
    depth = models.BigIntegerField()
    most = models.BigIntegerField()
    arrived = models.BigIntegerField(default=0)

    class Meta:
        app_label = "breakers"
        constraints = [
            models.UniqueConstraint(fields=["stream", "minute"], name="letter_depth_minute_once"),
        ]
        indexes = [models.Index(fields=["minute"], name="letter_depth_by_minute")]

    def __str__(self) -> str:
        return f"{self.stream_id} at {self.minute:%H:%M}"


class Replay(models.Model):
    """Settings and progress of a bulk job.

    The job applies `action` to every letter of `stream` up to the position `until` that matches the
    filter `chosen`. A retry may change each message by `edit`, a :class:`FieldEdit` as a mapping.
    `position` is the last processed position. `counts` are exact only while no
    worker runs. `waits_for` are the dependencies whose open breaker holds the job. `failed_again`
    counts the job's retried letters whose message has become a dead letter again.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True)
    stream = models.ForeignKey(LetterStream, on_delete=models.PROTECT, related_name="replays")
    action = models.CharField(max_length=8)
    chosen = models.JSONField(default=dict)
    until = models.CharField(max_length=POSITION, db_collation="C")
    position = models.CharField(max_length=POSITION, blank=True, db_collation="C")
    rate_per_second = models.FloatField()
    most_retries = models.IntegerField()
    edit = models.JSONField(null=True, blank=True)
    waits_for = models.JSONField(default=list)
    counts = models.JSONField(default=dict)
    failed_again = models.BigIntegerField(default=0, db_default=0)
    approval_id = models.BigIntegerField(null=True, blank=True)

    class Meta:
        app_label = "breakers"
        constraints = [
            models.CheckConstraint(
                condition=Q(action__in=["retry", "discard", "purge"]), name="replay_action_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} of {self.stream_id} by job {self.job_id}"


class DepartureQuerySet(models.QuerySet["Departure"]):
    def without_payload(self) -> "DepartureQuerySet":
        """Defer the payload columns, which may have megabytes."""
        return self.defer("fields", "edited")


class Departure(models.Model):
    """A removal of a letter, with the whole letter: declared as an intent, later with its outcome.

    The row is committed before Redis is called. While it is `intended`, any process may execute it
    again, which is idempotent. `fields` are the packed names and values of the entry, `edited` the
    packed message sent to the origin instead. `new_id` is the entry id in the origin after a retry,
    or in the stream after a restore. State `gone` means that another Redis client had removed the
    letter before. If a retried message fails again, `failed_again_as` is the position of its new
    letter.
    """

    class Action(models.TextChoices):
        RETRY = "retry"
        DISCARD = "discard"
        PURGE = "purge"
        AGE = "age"
        LENGTH = "length"

    class State(models.TextChoices):
        INTENDED = "intended"
        DONE = "done"
        GONE = "gone"
        RESTORING = "restoring"
        RESTORED = "restored"

    stream = models.ForeignKey(LetterStream, on_delete=models.PROTECT, related_name="departures")
    position = models.CharField(max_length=POSITION, db_collation="C")
    action = models.CharField(max_length=7, choices=Action.choices)
    state = models.CharField(max_length=9, choices=State.choices, default=State.INTENDED)
    job = models.ForeignKey(Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    fields = models.BinaryField()
    edited = models.BinaryField(null=True, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    error_type = models.CharField(max_length=200, blank=True)
    error = models.CharField(max_length=MAX_ERROR_LENGTH, blank=True)
    fingerprint = models.CharField(max_length=16, blank=True, db_collation="C")
    retry_of = models.CharField(max_length=POSITION, blank=True, db_collation="C")
    new_id = models.CharField(max_length=POSITION, blank=True)
    reason = models.TextField(blank=True)
    by = models.CharField(max_length=200)
    intended_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)
    restored_by = models.CharField(max_length=200, blank=True)
    restore_reason = models.TextField(blank=True)
    restored_at = models.DateTimeField(null=True, blank=True)
    failed_again_at = models.DateTimeField(null=True, blank=True)
    failed_again_as = models.CharField(
        max_length=POSITION, blank=True, default="", db_default="", db_collation="C"
    )

    objects: ClassVar[DepartureQuerySet] = DepartureQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        app_label = "breakers"
        constraints = [
            models.UniqueConstraint(
                fields=["stream", "position"],
                condition=Q(state="intended"),
                name="departure_one_intent",
            ),
            models.CheckConstraint(
                condition=Q(action__in=["retry", "discard", "purge", "age", "length"]),
                name="departure_action_known",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["intended", "done", "gone", "restoring", "restored"]),
                name="departure_state_known",
            ),
        ]
        indexes = [
            models.Index(fields=["stream", "position"], name="departure_by_position"),
            models.Index(fields=["stream", "-id"], name="departure_of_stream"),
            models.Index(fields=["job", "state"], name="departure_of_job"),
            models.Index(fields=["intended_at"], name="departure_by_time"),
            models.Index(
                fields=["intended_at"],
                condition=Q(state__in=["intended", "restoring"]),
                name="departure_open",
            ),
            models.Index(
                fields=["stream", "new_id"],
                condition=Q(state__in=["restoring", "restored"]),
                name="departure_restored",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} of {self.position} ({self.state})"

    @property
    def entry_id(self) -> str:
        return ids.to_entry_id(self.position)

    @property
    def entry(self) -> LetterEntry:
        return LetterEntry(self.entry_id, unpack_pairs(self.fields))

    @property
    def edited_pairs(self) -> tuple[tuple[bytes, bytes], ...] | None:
        return None if self.edited is None else unpack_pairs(self.edited)
