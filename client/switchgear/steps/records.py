"""The records of a job in a store.

Times are UNIX seconds. Inputs, outputs, checkpoints and details are JSON, and excluded from reprs.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class JobStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"


class StepStatus(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"


class EffectState(StrEnum):
    """The state of an external effect of a step.

    `unknown`: an effect with an intent but no outcome, which may have happened; `undone`: an effect
    that was done, then compensated.
    """

    UNKNOWN = "unknown"
    DONE = "done"
    NOT_DONE = "not_done"
    UNDONE = "undone"


class ApprovalState(StrEnum):
    """The state of a request for a person's approval.

    `former`: a declined request that was replaced by a new one when the job was resumed.
    """

    OPEN = "open"
    GIVEN = "given"
    DECLINED = "declined"
    FORMER = "former"


@dataclass(frozen=True, kw_only=True)
class JobRecord:
    """The stored state of a job.

    `current` is the position of the next step. `reason` is the reason for a pause or failure,
    `failure` the reason for a compensation. A paused job is due again at `resume_at`; None means
    that a person has to resume it. `epoch` grows by one with each worker that takes the job; a
    store rejects writes of an older epoch.
    """

    id: str
    name: str
    plan: tuple[str, ...]
    input: Any = field(default=None, repr=False)
    tenant: str = ""
    user: str = ""
    status: JobStatus = JobStatus.PENDING
    is_compensating: bool = False
    current: int = 0
    reason: str | None = field(default=None, repr=False)
    failure: str | None = field(default=None, repr=False)
    resume_at: float | None = None
    epoch: int = 0
    worker: str | None = None
    heartbeat: float | None = None
    created_at: float
    started_at: float | None = None
    completed_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """The stored state of a step of a job.

    `attempts` and `compensations` count over all workers. `has_returned` is True once an attempt
    returned. `is_reused` is True if the output was taken from another job's step with the same name
    and key.
    """

    job_id: str
    position: int
    name: str
    key: str
    status: StepStatus = StepStatus.PENDING
    attempts: int = 0
    compensations: int = 0
    has_returned: bool = False
    output: Any = field(default=None, repr=False)
    checkpoint: Any = field(default=None, repr=False)
    error: str | None = field(default=None, repr=False)
    is_reused: bool = False
    started_at: float | None = None
    completed_at: float | None = None


@dataclass(frozen=True, kw_only=True)
class EffectRecord:
    """The stored state of an external effect.

    The effect is identified by `kind`, a word such as "email", `target`, the external system,
    `key`, the idempotency key that the target receives, and `is_compensation`. A payment and its
    refund may have the same key.
    """

    job_id: str
    position: int
    kind: str
    target: str
    key: str
    state: EffectState = EffectState.UNKNOWN
    details: Any = field(default=None, repr=False)
    outcome: Any = field(default=None, repr=False)
    error: str | None = field(default=None, repr=False)
    is_compensation: bool = False
    at: float


@dataclass(frozen=True, kw_only=True)
class ApprovalRecord:
    """A request for a person's approval of a step; declined if still open at `expires_at`."""

    job_id: str
    position: int
    description: str
    risk: str
    state: ApprovalState = ApprovalState.OPEN
    expires_at: float
    by: str | None = None
    decided_at: float | None = None


Row = JobRecord | StepRecord | EffectRecord | ApprovalRecord


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The records of a job: of its state, and of all its steps, effects and approval requests.

    Steps, effects and requests are each ordered by position.
    """

    job: JobRecord
    steps: tuple[StepRecord, ...] = ()
    effects: tuple[EffectRecord, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()

    @property
    def unknown_effects(self) -> tuple[EffectRecord, ...]:
        """The effects of which it is unknown if they happened."""
        return tuple(each for each in self.effects if each.state is EffectState.UNKNOWN)

    def effects_of(self, position: int) -> tuple[EffectRecord, ...]:
        return tuple(each for each in self.effects if each.position == position)


@dataclass(eq=False, slots=True)
class Lease:
    """The right of one worker to write to a job; `is_lost` once another took the job over."""

    job_id: str
    epoch: int
    is_lost: bool = False
