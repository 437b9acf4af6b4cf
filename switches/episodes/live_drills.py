"""Lookup and early end of a switch's live drill."""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from controlplane.core.jobs import control
from controlplane.core.jobs.models import Job
from switches.models import Drill, Switch
from switches.models.drill import WHY

KIND = "drill"
LIVE, DRY, EMERGENCY = "live", "dry", "emergency"
MODES = (LIVE, DRY, EMERGENCY)
MAX_DURATION = timedelta(minutes=5)
"""Clients end a drill this long after its engage, even if its worker died."""


def find_live_drill(switch_id: str) -> Drill | None:
    return Drill.objects.select_related("job").filter(switch_id=switch_id, live=True).first()


def find_drills_in_force() -> QuerySet[Drill]:
    """Return the drills whose switch is now published as engaged to the marked instances."""
    return Drill.objects.filter(live=True, engaged_at__isnull=False, released_at__isnull=True)


def supersede(switch: Switch, why: str, now: datetime) -> Drill | None:
    """End the switch's live drill as failed, because the switch is engaged for real.

    The caller has locked the :class:`Publication` row and the switch, and publishes afterwards. The
    drill's job loses its lease, so that engaging doesn't wait for its worker.
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
        control.take_over(job, now, next_at=now)
    return drill
