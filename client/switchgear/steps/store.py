"""Where jobs are kept: what a :class:`Runner` asks of a store."""

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
    """Safe for many threads and processes at once. Each method is one transaction, on disk when it
    returns: an intent must be there before what is intended."""

    def add(self, job: JobRecord) -> bool:
        """Keep a new job; False, and nothing else, if its id is there already."""
        ...

    def look(self, job_id: str) -> Progress | None:
        """All that is known of it; None if it is not there."""
        ...

    def due(self, names: tuple[str, ...], now: float, stuck_seconds: float, most: int) -> list[str]:
        """Ids of jobs of these names that may be claimed: pending, paused until a moment that has
        come, or running without a sign of life for `stuck_seconds`. The oldest first."""
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
        """Make it running, under the next epoch. None if it is over, or another is at it; one that
        failed only if `also_failed` and it was not compensated, or a compensation of it failed and
        `is_undoing`. A sign of life from the future (a clock was set back) counts from now on."""
        ...

    def beat(self, lease: Lease, now: float) -> None:
        """A sign of life. Raises :class:`LeaseLost`."""
        ...

    def save(self, lease: Lease, *rows: Row) -> None:
        """All of these, or :class:`LeaseLost` if the lease is not the last one, or has ended. Of
        the job its status, progress and reason; a status other than running ends the lease."""
        ...

    def succeeded(self, job_name: str, step: str, key: str) -> StepRecord | None:
        """A step of this name that succeeded under this key in any job of this name that is over,
        and was not undone."""
        ...

    def begin(self, lease: Lease, job_name: str, step: StepRecord) -> StepRecord | None:
        """Write `step`, unless another job of this name has its key at its step of the same name,
        and is not over or succeeded with it: then give that one, and write nothing. Raises
        :class:`LeaseLost`."""
        ...

    def effect(self, job_name: str, wanted: EffectRecord) -> EffectRecord | None:
        """What is known of the effect of this kind, target and key, as a compensation or not: one
        that is done, else one that is unknown, else any; the job's own before those of others of
        this name. A compensation is its own job's alone."""
        ...

    def intend(
        self, lease: Lease, job_name: str, wanted: EffectRecord, is_keyed: bool
    ) -> EffectRecord | None:
        """Write the intent `wanted`, and give what :meth:`effect` knew before; written is nothing
        if that is done, or unknown while the target knows no keys. Raises :class:`LeaseLost`."""
        ...

    def decide(self, job_id: str, position: int, state: ApprovalState, by: str, now: float) -> int:
        """Answer what is asked about a step and not expired, and make its paused job pending. Gives
        how many questions that were."""
        ...

    def settle(self, effect: EffectRecord, state: EffectState) -> bool:
        """Say of an unknown effect what became of it, and make its paused job pending; False if
        it is not unknown any more."""
        ...
