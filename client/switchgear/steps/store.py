"""The interface of a store of jobs."""

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
    """The interface of a store of jobs, safe for many threads and processes at once.

    Each method is one transaction, on disk when it returns, since an intent has to be stored before
    its effect. Methods with a lease raise :class:`LeaseLost` if it has ended or is not the latest.
    """

    def add(self, job: JobRecord) -> bool:
        """Add a new job; return False, without effect, if its id exists already."""

    def look(self, job_id: str) -> Progress | None:
        """Return a job with its steps, effects and approvals; None if it does not exist."""

    def due(self, names: tuple[str, ...], now: float, stuck_seconds: float, most: int) -> list[str]:
        """Return at most `most` ids of claimable jobs with these names, the oldest first.

        Claimable jobs are pending, paused until a past time, or running without a heartbeat for
        `stuck_seconds`.
        """

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
        """Give `worker` the lease on a job, under its next epoch, and return the lease.

        Return None if the job has ended or another worker runs it. A failed job is claimed only if
        `also_failed` and it was not compensated, or if `is_undoing` and one of its compensations
        failed. A heartbeat in the future, left by a clock that was set back, is replaced by `now`.
        """

    def beat(self, lease: Lease, now: float) -> None:
        """Record a heartbeat of the worker that holds this lease."""

    def save(self, lease: Lease, *rows: Row) -> None:
        """Write these records of the job of this lease.

        Of a :class:`JobRecord`, only status, progress and reason are written. A status other than
        running ends the lease.
        """

    def succeeded(self, job_name: str, step: str, key: str) -> StepRecord | None:
        """Return a record of `step` that succeeded under the idempotency key `key`, or None.

        It may belong to any ended job of the name `job_name`. Compensated steps don't count.
        """

    def begin(self, lease: Lease, job_name: str, step: StepRecord) -> StepRecord | None:
        """Write the record `step`, unless another job holds its key: then return that job's record.

        A job of the name `job_name` holds the key if its step of the same name has this key, and
        either it succeeded or the job has not ended.
        """

    def effect(self, job_name: str, wanted: EffectRecord) -> EffectRecord | None:
        """Return the record of an effect with the kind, target and key of `wanted`, or None.

        It is of a compensation only if `wanted` is. A done effect is preferred to an unknown one.
        Of two effects in the same state, the effect of the same job is preferred to the effect of
        another job named `job_name`. Effects of compensations are looked up in their own job only.
        """

    def intend(
        self, lease: Lease, job_name: str, wanted: EffectRecord, is_keyed: bool
    ) -> EffectRecord | None:
        """Write the intent of the effect `wanted`; return its earlier record like :meth:`effect`.

        Write nothing if the effect is done, or if it is unknown and the target supports no keys.
        """

    def decide(self, job_id: str, position: int, state: ApprovalState, by: str, now: float) -> int:
        """Record a decision on the open approval requests for a step; make its paused job pending.

        Return the number of decided requests.
        """

    def settle(self, effect: EffectRecord, state: EffectState) -> bool:
        """Record if an unknown effect happened, and make its paused job pending.

        Return False if the effect is no longer unknown.
        """
