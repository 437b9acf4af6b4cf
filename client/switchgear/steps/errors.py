"""Errors of jobs. A step that raises a subclass of :class:`Refused` does not count as failed."""

from dataclasses import astuple, dataclass
from typing import ClassVar

from switchgear.refusals import Refused
from switchgear.steps.records import ApprovalRecord


class _JobError(Exception):
    """Base of the errors of jobs that are dataclasses.

    Their fields are also their `args`, so that they can be pickled.
    """

    _message: ClassVar[str]

    def __post_init__(self) -> None:
        self.args = astuple(self)  # type: ignore[call-overload]

    def __str__(self) -> str:
        return self._message.format(**vars(self))


@dataclass(eq=False, repr=False)
class LeaseLost(_JobError, Refused):
    """Raised if the job was cancelled or another worker has taken it over; nothing was written.

    The step must stop.
    """

    job_id: str
    _message = "another worker has taken over the job {job_id}"


class Paused(Refused):
    """Raised by a step to pause its job.

    The step starts again from its checkpoint after `seconds`; without `seconds`, a person has to
    resume the job. `question` is the open approval request, if any.
    """

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason, seconds)
        self.reason = reason
        self.seconds = seconds
        self.question: ApprovalRecord | None = None

    def __str__(self) -> str:
        return f"paused: {self.reason}"


@dataclass(eq=False, repr=False)
class NotKept(_JobError, Refused):
    """Raised if the store of jobs could not be read or written, for the reason `why`.

    Nothing was done.
    """

    why: str
    _message = "the job store failed: {why}"


@dataclass(eq=False, repr=False)
class KeyTaken(_JobError, Refused):
    """Raised if a step's idempotency key is in use by another unfinished job, `job_id`.

    The present job waits for the result of the other job's `step`.
    """

    step: str
    job_id: str
    _message = "the job {job_id} has the idempotency key of the step {step}"


RUN_ENDING_ERRORS = (LeaseLost, Paused, NotKept, KeyTaken)
"""Errors that end the run of a job without failing a step."""


@dataclass(eq=False, repr=False)
class JobTaken(_JobError):
    """Raised if another worker runs the job, and has sent a heartbeat recently."""

    job_id: str
    _message = "another worker is running the job {job_id}"


@dataclass(eq=False, repr=False)
class JobCompleted(_JobError):
    """Raised on an attempt to compensate a completed job, since others may rely on its effects."""

    job_id: str
    _message = "the job {job_id} is completed: only a failed or waiting job can be undone"


@dataclass(eq=False, repr=False)
class PlanChanged(_JobError):
    """Raised if the steps of a job in the code are no longer those that `job_id` began with.

    Finish `job_id` with the code that began it, or rename the changed job.
    """

    job_id: str
    name: str
    _message = (
        "the steps of {name} changed since the job {job_id} began: finish it with the code that"
        " started it, or rename the changed job"
    )


@dataclass(eq=False, repr=False)
class EffectRepeated(_JobError):
    """Raised on entering an effect that is recorded as done under its `key`.

    To avoid the error, check `was_recorded` first or use `once`.
    """

    key: str
    _message = "the effect {key} is already done: check was_recorded() first, or use once()"


@dataclass(eq=False, repr=False)
class NotApproved(_JobError):
    """Raised if a person declined to approve the step, or nobody approved it in time."""

    step: str
    _message = "the step {step} was not approved"
