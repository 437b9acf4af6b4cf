"""Models of the job engine: jobs, steps and side effects."""

from django.db import models
from django.db.models import Q

_LIVE = ["pending", "running", "paused", "holding"]
_FINISHED = ["completed", "failed", "cancelled"]


class Job(models.Model):
    """Multi-step work that survives the death of its worker.

    The job is due at `next_at`; null means not due. `fence` increments with each claim and each
    intervention, so that a worker that lost its lease can't write. `subject` is the object that the
    job works on (`segment:finance`); at most one job is created per `key`. `done` of `total` items
    are processed; `checkpoint` is the position in the current step.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        PAUSED = "paused"
        HOLDING = "holding"
        COMPLETED = "completed"
        FAILED = "failed"
        CANCELLED = "cancelled"

    LIVE = (State.PENDING, State.RUNNING, State.PAUSED, State.HOLDING)

    kind = models.CharField(max_length=24)
    key = models.CharField(max_length=200, null=True, blank=True, unique=True)
    subject = models.CharField(max_length=200)
    state = models.CharField(max_length=9, choices=State.choices, default=State.RUNNING)
    step_index = models.PositiveSmallIntegerField(default=0)
    fence = models.BigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    worker = models.CharField(max_length=120, blank=True)
    next_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    stuck_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    checkpoint = models.JSONField(null=True, blank=True)
    checkpoint_at = models.DateTimeField(null=True, blank=True)
    checkpoint_bytes = models.PositiveIntegerField(default=0)
    hold_reason = models.TextField(blank=True)
    error = models.TextField(blank=True)
    outcome = models.TextField(blank=True)
    reason = models.TextField(blank=True)
    created_by = models.CharField(max_length=200)
    creator = models.ForeignKey(
        "core.User", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    duplicates_stopped = models.PositiveIntegerField(default=0)
    """Number of rejected writes of stale workers and of repeated side effects."""
    compensation_failed_at = models.DateTimeField(null=True, blank=True)
    compensated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=[*_LIVE, *_FINISHED]), name="job_state_known"
            ),
            models.CheckConstraint(
                condition=Q(state__in=_LIVE, finished_at__isnull=True)
                | Q(state__in=_FINISHED, finished_at__isnull=False),
                name="job_finished_when_over",
            ),
        ]
        indexes = [
            models.Index(
                fields=["kind", "next_at"], condition=Q(next_at__isnull=False), name="job_due"
            ),
            models.Index(fields=["subject", "-id"], name="job_of_subject"),
            models.Index(fields=["finished_at"], name="job_by_end"),
            # No index contains a column that heartbeats change, so they write no index.
            models.Index(fields=["kind"], condition=Q(finished_at__isnull=True), name="job_live"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} {self.subject} ({self.state})"

    @property
    def is_live(self) -> bool:
        return self.state in self.LIVE


class JobStep(models.Model):
    """A step of a job; the meaning of `data` depends on the job's kind.

    `due_at` is the time of the next attempt or, while the step waits, the end of the wait.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        PASSED = "passed"
        FAILED = "failed"
        COMPENSATED = "compensated"

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="steps")
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=60)
    state = models.CharField(max_length=11, choices=State.choices, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True)
    data = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["job", "index"], name="job_step_once"),
            models.CheckConstraint(
                condition=Q(state__in=["pending", "running", "passed", "failed", "compensated"]),
                name="job_step_state_known",
            ),
        ]
        indexes = [models.Index(fields=["finished_at"], name="job_step_by_end")]

    def __str__(self) -> str:
        return f"{self.job_id} step {self.index} {self.name} ({self.state})"


class JobEffect(models.Model):
    """A side effect of a job, unique by `key`.

    An effect without `done_at` may or may not have happened: a resuming worker must check.
    """

    key = models.CharField(max_length=200, unique=True)
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="effects")
    step_index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    attempted_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.key
