"""Definitions of durable jobs and their steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from switchgear.guards import Guard
from switchgear.steps.context import Context
from switchgear.steps.json_values import require_text
from switchgear.steps.risks import Estimate

OnFailure = Literal["compensate", "hold"]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a job.

    `run` gets the :class:`Context` and returns a JSON output; it is a function or a coroutine
    function. `compensate` undoes the step; it gets a context that also has the step's `output`.

    `idempotency_key` is a function that returns a key. If a step of this name, in another job of
    the same name, succeeded under this key, its output is reused and this step does not run; while
    the other job is unfinished, this job waits.

    `retry` is a decorator around each attempt: a :class:`~switchgear.patterns.retry.Retry`, a
    policy, or a decorator of another library. The step fails after `max_attempts`, and so does its
    compensation. Attempts are counted over all workers, since an attempt may kill its worker.

    If `needs_approval` is True, the step needs an approval within `approval_seconds`. If
    `needs_approval` is None, it needs one only if its risk, computed from `tags` and `estimate`,
    reaches the runner's limit.
    """

    name: str
    run: Callable[[Context], Any]
    compensate: Callable[[Context], Any] | None = None
    idempotency_key: Callable[[Context], str] | None = None
    retry: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    max_attempts: int = 10
    description: str = ""
    tags: tuple[str, ...] = ()
    estimate: Estimate | Callable[[Context], Estimate] = Estimate()  # noqa: RUF009 - frozen.
    needs_approval: bool | None = None
    approval_seconds: float = 7200.0


@dataclass(frozen=True)
class Job:
    """The definition of a durable job: a name and a sequence of steps.

    When a step has failed for good, `on_failure` decides: `compensate` undoes completed steps in
    reverse order, `hold` leaves them as they are, so that a person can resume or compensate the
    job. `guard` is checked before each step and each attempt: while its switch is engaged, the job
    is paused. Completed steps can still be compensated.
    """

    name: str
    steps: tuple[Step, ...]
    on_failure: OnFailure = "compensate"
    guard: Guard | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        require_text(self.name, "the name of a job")
        for step in self.steps:
            require_text(step.name, "the name of a step")
        if not self.steps:
            raise ValueError(f"the job {self.name} has no steps")
        if len(set(self.plan)) < len(self.steps):
            raise ValueError(f"two steps of the job {self.name} have the same name")
        if self.on_failure not in ("compensate", "hold"):
            raise ValueError(f'on_failure must be "compensate" or "hold", not {self.on_failure!r}')

    @property
    def plan(self) -> tuple[str, ...]:
        """The names of the job's steps, in order."""
        return tuple(step.name for step in self.steps)
