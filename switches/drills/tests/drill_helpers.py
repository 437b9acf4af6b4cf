"""Helpers of drill tests: instances report that they are marked, and ticks run the drill's job."""

from datetime import datetime, timedelta

from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.instances.models import Acknowledgement, Instance
from controlplane.core.jobs import engine
from controlplane.core.jobs.kinds import Probe, no_probe
from controlplane.core.jobs.models import Job
from switches.drills import services
from switches.models import Drill, Publication
from switches.tests.instances import report_version

SHELL = system_actor("test")
WHY = "Before the sale weekend"
CANARY = "core/canary-1"


def mark(*patterns: str, now: datetime) -> None:
    for pattern in patterns:
        services.mark_instances(pattern=pattern, actor=SHELL, now=now)


def begin(
    switch: str = "segment:finance", mode: str = "live", by: Actor = SHELL, *, now: datetime
) -> Drill:
    scope, _, key = switch.partition(":")
    return services.begin_drill(scope=scope, key=key, mode=mode, reason=WHY, actor=by, now=now)


def turn(now: datetime, probe: Probe = no_probe) -> None:
    engine.run_tick("jobs.turn", now, probe)


def acknowledge(*names: str, now: datetime, after_ms: int = 40) -> None:
    """Report that each instance applied the published version `after_ms` after its commit."""
    head = Publication.objects.get()
    for name in names:
        report_version(name, head.version, now)
        Acknowledgement.objects.get_or_create(
            epoch=head.epoch,
            version=head.version,
            instance=name,
            defaults={"acknowledged_at": published_at() + timedelta(milliseconds=after_ms)},
        )


def report_present(*names: str, now: datetime) -> None:
    """Report each instance as present, without an acknowledgment."""
    for name in names:
        if not Instance.objects.filter(pk=name).update(heard_at=now):
            report_version(name, None, now)


def published_at() -> datetime:
    """Return the time at which the last change of a drill was committed."""
    drill = Drill.objects.order_by("-pk").first()
    moment = (drill.released_at or drill.engaged_at) if drill else None
    return moment or Publication.objects.get().published_at


def run_drill(
    drill: Drill, *names: str, now: datetime, pace: timedelta = timedelta(seconds=1)
) -> Drill:
    """Run turns until the drill is over, with instances that acknowledge at once."""
    for _ in range(400):
        acknowledge(*names, now=now)
        turn(now)
        drill.refresh_from_db()
        if not drill.live and not Job.objects.get(pk=drill.pk).is_live:
            return drill
        now += pace
    raise AssertionError("the drill does not end")


def audit_actions() -> list[str]:
    """Return the audit actions about drills, in order."""
    entries = AuditEntry.objects.filter(action__startswith="drill.").order_by("id")
    return list(entries.values_list("action", flat=True))


def version() -> int:
    return Publication.objects.get().version
