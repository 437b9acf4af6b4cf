"""Everything that one move of a ramp may change, locked in the order of locks."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from controlplane.core.errors import NotFound
from controlplane.core.jobs import control
from controlplane.core.jobs.claims import LeaseLost, Turn
from controlplane.core.jobs.models import Job, JobStep
from switches import publication
from switches.episodes import changes, facts
from switches.models import Episode, Publication, Ramp, Switch

Write = Callable[..., None]
"""Writes the job's row: compared and set for a worker, with a new fence for a person."""


@dataclass
class Scene:
    """A ramp at its present step; `before` is its switch as the audit trail saw it last."""

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
        """Whether its next step lets everything flow, or its end."""
        return self.is_last or self.percent_of(self.index + 1) >= 100

    def percent_of(self, index: int) -> Any:
        return self.ramp.plan[index]["percent"]

    def publish(self, percent: Any, now: datetime) -> None:
        """Put this share in force, for services too."""
        self.episode.allow_percent = Decimal(str(percent))
        self.episode.save(update_fields=["allow_percent"])
        publication.publish(self.head, self.switch, now)

    def step(self, index: int, **fields: Any) -> None:
        JobStep.objects.filter(job=self.job, index=index).update(**fields)

    def recall(self, name: str) -> Any:
        """What was kept of the present step by this name; None if nothing was."""
        return JobStep.objects.get(job=self.job, index=self.index).data.get(name)

    def remember(self, name: str, value: Any) -> None:
        """Keep something of the present step, beside its gates."""
        data = JobStep.objects.get(job=self.job, index=self.index).data
        if data.get(name) != value:
            self.step(self.index, data={**data, name: value})


def of_turn(turn: Turn) -> Scene:
    """For a worker that holds the lease. Raises :class:`LeaseLost` if the episode is over.

    Switch and episode are locked in that order, by one query: hundreds may have to move at once.
    """
    head = publication.lock()
    ramps = Ramp.objects.select_related("switch", "episode")
    ramp = ramps.select_for_update(of=("switch", "episode")).get(pk=turn.job.pk)
    switch, episode = ramp.switch, ramp.episode
    if episode.ended_at is not None or not ramp.live:
        raise LeaseLost(str(ramp))
    before = facts.audit_state(switch, episode)
    return Scene(head, switch, episode, ramp, turn.job, turn.change, before)


def of_person(ramp_id: int, now: datetime) -> Scene | None:
    """For a person, who takes it out of a worker's hands; None if it is over.

    Raises :class:`NotFound`.
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

    def write(**fields: Any) -> None:
        control.seize(job, now, **fields)

    return Scene(head, switch, episode, ramp, job, write, facts.audit_state(switch, episode))
