"""Ramps in tests of screens: begun, evaluated, and with gate results."""

from datetime import timedelta
from typing import Any

from controlplane.accounts.models.people import User
from controlplane.core.clock import db_now
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import JobStep
from switches import services
from switches.models import Ramp
from switches.tests.browsers import SAFE_NOW, engaged

QUICK = [{"percent": 5, "dwell_seconds": 60}, {"percent": 100, "dwell_seconds": 60}]


def gated_plan(*gates: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a plan whose first step has these gates."""
    return [{**QUICK[0], "gates": list(gates)}, QUICK[1]]


def start_ramp(
    switch: str = "segment:finance", *, plan: Any = None, by: User | None = None, **more: Any
) -> Ramp:
    """Engage a switch and release it by ramp."""
    user = engaged(switch, by=by)
    scope, _, key = switch.partition(":")
    arguments: dict[str, Any] = {"justification": SAFE_NOW, "now": db_now(), **more}
    services.release(scope=scope, key=key, plan=plan, actor=user.as_actor(), **arguments)
    return Ramp.objects.get(switch_id=switch, live=True)


def run_workers(after_seconds: float = 1) -> None:
    """Run the workers' turn on ramps, so many seconds from now."""
    engine.run_tick("ramps.turn", db_now() + timedelta(seconds=after_seconds))


def first_gate_result(ramp: Ramp, **gate: Any) -> None:
    """Return the result of the first gate of the first step, as stored."""
    step = JobStep.objects.get(job_id=ramp.pk, index=0)
    step.data["gates"][0].update(gate)
    step.save()
