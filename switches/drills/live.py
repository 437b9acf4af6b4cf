"""The live drill of a switch: finding it, and ending it when somebody engages the switch for real.

Imports none of the services of switches, so that all of them can ask here.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from switches.models import Drill, Switch

KIND = "drill"
LIVE, DRY = "live", "dry"
MODES = (LIVE, DRY)
LASTS = timedelta(minutes=5)
"""A drill ends by itself this long after it engaged, whatever became of whoever runs it."""
WHY = "why"
"""What of `Drill.measured` tells why the drill has not passed."""
MARKED = "marked"
"""What of `Drill.measured` tells who is stopped by it: the marks since it engaged."""


def of_switch(switch_id: str) -> Drill | None:
    """The drill that is under way, with its job."""
    return Drill.objects.select_related("job").filter(switch_id=switch_id, live=True).first()


def in_force() -> QuerySet[Drill]:
    """The drills by which marked instances are told otherwise than all others."""
    return Drill.objects.filter(live=True, engaged_at__isnull=False, released_at__isnull=True)


def why_not(drill: Drill) -> str:
    """Why it can't pass any more; empty while it can."""
    return str(drill.measured.get(WHY, ""))


def supersede(switch: Switch, why: str, now: datetime) -> Drill | None:
    """End a drill of this switch that is under way: what is real wins. It has failed, for `why`.

    The publication row and the switch are locked, and the caller publishes: from that version on
    everybody is told the same again. A worker that is at it touches no row any more; the next one
    only writes down what came of it, so that nothing of that waits here.
    """
    under_way = Drill.objects.select_for_update().filter(switch=switch, live=True, mode=LIVE)
    drill = under_way.first()
    if drill is None:
        return None
    if drill.engaged_at is not None and drill.released_at is None:
        drill.released_at = now
    drill.measured = {WHY: why, **drill.measured}
    drill.save(update_fields=["released_at", "measured"])
    job = Job.objects.select_for_update().get(pk=drill.pk)
    if job.is_live:
        control.seize(job, now, next_at=now)
    return drill
