"""Helpers of ramp tests: start ramps, and run ticks at chosen times."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from controlplane.accounts.models.people import User
from controlplane.core.actors import Actor, system_actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.gates import external
from controlplane.core.http.tests.callers import person
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import JobStep
from switches import services
from switches.models import Episode, Ramp, Rule, Switch
from switches.ramps import live_ramps

SHELL = system_actor("shell")
REASON = "OpenAI 5xx on completions since 02:10, INC-4411"
SAFE = "5xx below 0.1 % for twenty minutes"
SMOKE = {"type": "external", "gate": "smoke"}
MANUAL = {"type": "manual", "timeout_seconds": 60}
CHAT = "feature:chat"
THREE = [{"percent": share, "dwell_seconds": 60} for share in (5, 25, 100)]
GATED = [{"percent": 5, "dwell_seconds": 60, "gates": [SMOKE]}, {"percent": 100}]


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def get_person(role: str = "operator", name: str = "kim") -> Actor:
    """Return a signed-in person of this name, created on first use."""
    return (User.objects.filter(username=name).first() or person(role, name)).as_actor()


def engage(switch: str, now: datetime, *, by: Actor = SHELL, **more: Any) -> Episode:
    scope, _, key = switch.partition(":")
    arguments = {"reason": REASON, "expires_in": "24h", **more}
    return services.engage(scope=scope, key=key, actor=by, now=now, **arguments).episode


def release(switch: str, now: datetime, *, by: Actor = SHELL, **more: Any) -> services.Release:
    scope, _, key = switch.partition(":")
    arguments = {"justification": SAFE, **more}
    return services.release(scope=scope, key=key, actor=by, now=now, **arguments)


def start_ramp(
    now: datetime,
    plan: Sequence[dict[str, Any]] | None = None,
    *,
    switch: str = CHAT,
    by: Actor = SHELL,
    **more: Any,
) -> Ramp:
    """Engage a switch for a day, or as `more` says, and return the ramp of its release."""
    engage(switch, now, **more)
    ramp = release(switch, now, by=by, plan=plan).ramp
    assert ramp is not None
    return ramp


def run_tick(now: datetime) -> int:
    """Run a tick of the ramps; return the number of transitions."""
    return engine.run_tick("ramps.turn", now)


def report_gate(verdict: str, now: datetime, gate: str = "smoke", **evidence: Any) -> None:
    """Report the verdict of an external gate."""
    external.record_verdict(name=gate, verdict=verdict, evidence=evidence, actor=SHELL, now=now)


def add_rule(kind: str, *switches: str, name: str = "one way") -> Rule:
    """Create a safety rule about these switches."""
    now = db_now()
    return Rule.objects.create(
        name=name, kind=kind, switches=list(switches), created_at=now, changed_at=now
    )


def get_step(ramp: Ramp, index: int = 0) -> JobStep:
    return JobStep.objects.get(job_id=ramp.pk, index=index)


def get_ramp_state(ramp: Ramp) -> str:
    """Return the state that the API shows."""
    fresh = Ramp.objects.select_related("job").get(pk=ramp.pk)
    return live_ramps.STATES[fresh.job.state]


def get_outcome(ramp: Ramp) -> str:
    return str(Ramp.objects.select_related("job").get(pk=ramp.pk).job.outcome)


def get_share(switch: str = CHAT) -> float:
    """Return the share that services let flow."""
    episode = Switch.objects.get(pk=switch).episode
    return 100.0 if episode is None else float(episode.allow_percent)


def get_state(switch: str = CHAT) -> str:
    return str(Switch.objects.get(pk=switch).state)


def list_actions(switch: str = CHAT) -> list[str]:
    """Return the actions of the audit trail about the switch itself, oldest first."""
    rows = AuditEntry.objects.filter(target=switch).order_by("id")
    kinds = ("switch.", "ramp.", "episode.")
    return [row.action for row in rows if row.action.startswith(kinds)]
