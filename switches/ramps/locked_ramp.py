"""Locks on a ramp and the rows that its transitions change."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

from controlplane.core.errors import NotFound
from controlplane.core.jobs import control
from controlplane.core.jobs.claims import LeasedJob, LeaseLost
from controlplane.core.jobs.models import Job, JobStep
from switches import publication
from switches.episodes import changes
from switches.models import Episode, Publication, Ramp, Switch

Write = Callable[..., None]
"""Updates the job row; a worker's function needs the current fence, a person's sets a new one."""


@dataclass
class LockedRamp:
    """A ramp with the other rows that its transitions change, all locked.

    `before` is the audit state of its switch before the transition.
    """

    head: Publication
    switch: Switch
    episode: Episode
    ramp: Ramp
    job: Job
    write: Write
    before: dict[str, Any]

    @property
    def index(self) -> int:
        return self.job.step_index

    @property
    def is_last(self) -> bool:
        return self.index + 1 == len(self.ramp.plan)

    @property
    def all_flows_next(self) -> bool:
        """Return True if the next step is at 100 %, or there is none."""
        return self.is_last or self.percent_of(self.index + 1) >= 100

    def percent_of(self, index: int) -> Any:
        return self.ramp.plan[index]["percent"]

    def publish(self, percent: Any, now: datetime) -> None:
        changes.update_episode(self.episode, {"allow_percent": Decimal(str(percent))})
        publication.publish(self.head, self.switch, now)

    def step(self, index: int, **fields: Any) -> None:
        JobStep.objects.filter(job=self.job, index=index).update(**fields)

    def recall(self, name: str) -> Any:
        """Return a value stored with the current step, or None."""
        return JobStep.objects.get(job=self.job, index=self.index).data.get(name)

    def remember(self, name: str, value: Any) -> None:
        """Store a value in the current step's data."""
        data = JobStep.objects.get(job=self.job, index=self.index).data
        if data.get(name) != value:
            self.step(self.index, data={**data, name: value})


def lock_for_worker(turn: LeasedJob) -> LockedRamp:
    """Lock a ramp for the worker that leases it; raise :class:`LeaseLost` if its episode ended."""
    head = publication.lock()
    # One query locks switch and episode, in that order: hundreds of ramps may advance at once.
    ramps = Ramp.objects.select_related("switch", "episode")
    ramp = ramps.select_for_update(of=("switch", "episode")).get(pk=turn.job.pk)
    switch, episode = ramp.switch, ramp.episode
    if episode.ended_at is not None or not ramp.live:
        raise LeaseLost(str(ramp))
    before = changes.audit_state(switch, episode)
    return LockedRamp(head, switch, episode, ramp, turn.job, turn.change, before)


def lock_for_person(ramp_id: int, now: datetime) -> LockedRamp | None:
    """Lock a ramp for a person and revoke a worker's lease; return None if the ramp has ended.

    Raise :class:`NotFound` for an unknown id.
    """
    ramp = Ramp.objects.filter(pk=ramp_id).first()
    if ramp is None:
        raise NotFound(f"There is no ramp {ramp_id}.")
    head = publication.lock()
    switch = Switch.objects.select_for_update().get(pk=ramp.switch_id)
    episode = changes.lock_open_episode(switch)
    job = Job.objects.select_for_update().get(pk=ramp_id)
    ramp.refresh_from_db()
    if episode is None or episode.pk != ramp.episode_id or not ramp.live:
        return None
    write = partial(control.take_over, job, now)
    before = changes.audit_state(switch, episode)
    return LockedRamp(head, switch, episode, ramp, job, write, before)
