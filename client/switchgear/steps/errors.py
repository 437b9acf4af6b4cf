"""Errors of jobs. A step that raises a subclass of :class:`Refused` does not count as failed."""

from switchgear.refusals import Refused
from switchgear.steps.records import ApprovalRecord


class LeaseLost(Refused):
    """Raised if the job `job_id` was cancelled or taken over; nothing was written.

    The step must stop.
    """

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"the job {self.job_id} is no longer this worker's"


class Paused(Refused):
    """Raised to pause the job; the step starts again from its checkpoint after `seconds`.

    Without `seconds`, a person has to resume the job. `question` is the open approval, if any.
    """

    def __init__(self, reason: str, seconds: float | None = None) -> None:
        super().__init__(reason, seconds)
        self.reason = reason
        self.seconds = seconds
        self.question: ApprovalRecord | None = None

    def __str__(self) -> str:
        return f"paused: {self.reason}"


class NotKept(Refused):
    """Raised if the store could not be read or written, with the reason `why`; nothing was done."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return f"the store of jobs has failed: {self.why}"


class KeyTaken(Refused):
    """Raised if another unfinished job, `job_id`, has the same idempotency key at the step `step`.

    The present job waits for the result of the other job.
    """

    def __init__(self, step: str, job_id: str) -> None:
        super().__init__(step, job_id)
        self.step = step
        self.job_id = job_id

    def __str__(self) -> str:
        return f"the job {self.job_id} has the idempotency key of the step {self.step}"


RUN_ENDING_ERRORS = (LeaseLost, Paused, NotKept, KeyTaken)
"""Errors that end the run of a job without failing a step."""


class JobTaken(Exception):
    """Raised if another worker runs the job, and has sent a heartbeat recently."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"another worker is at the job {self.job_id}"


class JobCompleted(Exception):
    """Raised on compensating the completed job `job_id`, since others may rely on its effects."""

    def __init__(self, job_id: str) -> None:
        super().__init__(job_id)
        self.job_id = job_id

    def __str__(self) -> str:
        return f"the job {self.job_id} is completed: only one that failed or waits can be undone"


class PlanChanged(Exception):
    """Raised if the steps of the job `name` changed since `job_id` began.

    Finish `job_id` with the code that began it, or rename the changed job.
    """

    def __init__(self, job_id: str, name: str) -> None:
        super().__init__(job_id, name)
        self.job_id = job_id
        self.name = name

    def __str__(self) -> str:
        return (
            f"the steps of {self.name} changed since the job {self.job_id} began: finish it with "
            "the code that began it, or give the changed job another name"
        )


class EffectRepeated(Exception):
    """Raised if the effect `key` is done already.

    To avoid the error, check `was_recorded` first or use `once`.
    """

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"the effect {self.key} is done already: ask was_recorded() before, or use once()"


class NotApproved(Exception):
    """Raised if a person declined the step `step`, or nobody approved it in time."""

    def __init__(self, step: str) -> None:
        super().__init__(step)
        self.step = step

    def __str__(self) -> str:
        return f"the step {self.step} was not approved"
