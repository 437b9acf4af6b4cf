"""Registration of ramps as a job kind."""

from controlplane.core.jobs import kinds
from switches.ramps import actions, tick

from .creation import KIND

TICK = "ramps.turn"


kinds.register(
    kinds.JobKind(
        name=KIND,
        title="Ramp",
        tick=TICK,
        work=tick.advance_ramps,
        path=lambda job: f"/ramps/{job.pk}/",
        scope="ramps:write",
        interventions=actions.INTERVENTIONS,
    )
)
