"""A kind of job for tests, jobs of it, and an outside world that remembers what it was asked."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.jobs import control, engine, kinds
from controlplane.core.jobs.claims import LEASE
from controlplane.core.jobs.models import Job
from controlplane.core.outbox.models import OutboxMessage

NOW = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
LEASE_OVER = LEASE + SECOND
KIND, TICK = "test", "test.turn"
ACTOR = system_actor("test")


class Died(BaseException):
    """The worker is gone: nothing of ours handles this."""


@dataclass
class Dying:
    """A probe that dies the `at`-th time it is asked; it remembers the points it came by."""

    at: int = 0
    points: list[str] = field(default_factory=list)

    def __call__(self, point: str) -> None:
        self.points.append(point)
        if len(self.points) == self.at:
            raise Died(point)


@dataclass
class Outside:
    """A system outside: it may be called any number of times, and acts once for each key."""

    asked: list[str] = field(default_factory=list)

    def act(self, key: str) -> None:
        self.asked.append(key)

    @property
    def acted(self) -> list[str]:
        return sorted(set(self.asked))


def kind(work: Any, **more: Any) -> kinds.JobKind:
    arguments = {"name": KIND, "title": "Test job", "tick": TICK, "path": path, **more}
    return kinds.JobKind(work=work, **arguments)


def path(job: Job) -> str:
    return f"/jobs/{job.pk}/"


def begin(*steps: str, now: datetime = NOW, actor: Actor = ACTOR, **more: Any) -> Job:
    """Create a job of the tests' kind about `segment:finance`, with `more` as other arguments."""
    arguments = {"kind": KIND, "subject": "segment:finance", "reason": "because", **more}
    planned = [control.PlannedStep(name) for name in steps or ("one",)]
    with transaction.atomic():
        job = control.create_job(steps=planned, actor=actor, now=now, **arguments)
    assert job is not None
    return job


def ended(count: int, *, at: datetime, seconds: float = 10, **more: Any) -> list[Job]:
    """Create jobs that ended at `at` after `seconds`."""
    began_at = at - timedelta(seconds=seconds)
    arguments = {"kind": KIND, "subject": "segment:finance", "state": "completed", **more}
    return Job.objects.bulk_create(
        Job(
            created_by="test",
            created_at=began_at,
            started_at=began_at,
            heartbeat_at=at,
            finished_at=at,
            **arguments,
        )
        for _ in range(count)
    )


def turn(now: datetime = NOW, probe: Any = kinds.no_probe) -> int:
    return engine.run_tick(TICK, now, probe)


def state_of(job: Job) -> str:
    return Job.objects.get(pk=job.pk).state


def audited(*actions: str) -> list[str]:
    found = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    return [action for action in found if not actions or action in actions]


def list_messages(event: str) -> list[OutboxMessage]:
    return list(OutboxMessage.objects.filter(event=event).order_by("id"))
