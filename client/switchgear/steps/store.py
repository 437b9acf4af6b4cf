"""The interface of stores of jobs."""

from typing import Protocol

from switchgear.steps.records import (
    ApprovalState,
    EffectRecord,
    EffectState,
    JobRecord,
    Lease,
    Progress,
    Row,
    StepRecord,
)


class Store(Protocol):
    """A store of jobs, safe for many threads and processes at once.

    Each method is one transaction, on disk when it returns: an intent must be there before its
    effect.
    """

    def add(self, job: JobRecord) -> bool:
        """Add a new job; return False, without effect, if its id exists already."""
        ...

    def look(self, job_id: str) -> Progress | None:
        """Return a job with all its rows; None if it does not exist."""
        ...

    def due(self, names: tuple[str, ...], now: float, stuck_seconds: float, most: int) -> list[str]:
        """Return ids of jobs of these names that may be claimed, the oldest first.

        They are pending, paused until a time that has come, or running without a heartbeat for
        `stuck_seconds`.
        """
        ...

    def claim(
        self,
        job_id: str,
        worker: str,
        now: float,
        stuck_seconds: float,
        *,
        also_failed: bool = False,
        is_undoing: bool = False,
    ) -> Lease | None:
        """Set a job running, under the next epoch; None if it is over, or another worker runs it.

        A failed job only if `also_failed` and it was not compensated, or a compensation of it
        failed and `is_undoing`. A heartbeat from the future (a clock was set back) counts from now
        on.
        """
        ...

    def beat(self, lease: Lease, now: float) -> None:
        """Record a heartbeat. Raises :class:`LeaseLost`."""
        ...

    def save(self, lease: Lease, *rows: Row) -> None:
        """Write all rows, or raise :class:`LeaseLost` if the lease has ended or is not the last.

        For the job its status, progress and reason; a status other than running ends the lease.
        """
        ...

    def succeeded(self, job_name: str, step: str, key: str) -> StepRecord | None:
        """Return a step of this name that succeeded under this key, and was not undone.

        In any job of this name that is over.
        """
        ...

    def begin(self, lease: Lease, job_name: str, step: StepRecord) -> StepRecord | None:
        """Write `step`, unless another job has its key; then return that step, and write nothing.

        The other job has this name, has the key at its step of the same name, and is not over or
        succeeded with it. Raises :class:`LeaseLost`.
        """
        ...

    def effect(self, job_name: str, wanted: EffectRecord) -> EffectRecord | None:
        """Return the record of the effect of this kind, target and key, as a compensation or not.

        One that is done, else one that is unknown, else any; the job's own before those of others
        of this name. A compensation is its own job's alone.
        """
        ...

    def intend(
        self, lease: Lease, job_name: str, wanted: EffectRecord, is_keyed: bool
    ) -> EffectRecord | None:
        """Write the intent `wanted`, and return the earlier result of :meth:`effect`.

        Write nothing if that is done, or unknown while the target recognizes no keys. Raises
        :class:`LeaseLost`.
        """
        ...

    def decide(self, job_id: str, position: int, state: ApprovalState, by: str, now: float) -> int:
        """Answer the open questions about a step, and make its paused job pending.

        Return the number of questions.
        """
        ...

    def settle(self, effect: EffectRecord, state: EffectState) -> bool:
        """Set the state of an unknown effect, and make its paused job pending.

        False if it is no longer unknown.
        """
        ...
