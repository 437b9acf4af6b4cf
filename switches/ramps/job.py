"""Registration of ramps as a job kind."""

from controlplane.core.jobs import kinds
from controlplane.core.jobs.models import Job
from switches.ramps import actions, tick

from .creation import KIND

TICK = "ramps.turn"


def _path(job: Job) -> str:
    return f"/ramps/{job.pk}/"


kinds.register(
    kinds.JobKind(
        name=KIND,
        title="Ramp",
        tick=TICK,
        work=tick.advance_ramps,
        path=_path,
        scope="ramps:write",
        interventions=actions.INTERVENTIONS,
    )
)
