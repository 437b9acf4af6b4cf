"""Live topics of switches and ramps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.live import topics
from switches.effect import measure_effects
from switches.models import Switch
from switches.ramps import resources as ramps
from switches.resources import switch_resource

SCOPE = "switches:read"


def read_switches(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    found = list(Switch.objects.with_open_episode().filter(pk__in=ids))
    measured, under_way = (
        measure_effects(found, now),
        ramps.find_live_ramps([one.pk for one in found]),
    )
    return {
        one.pk: switch_resource(one, measured.get(one.pk), under_way.get(one.pk)) for one in found
    }


def read_ramps(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    found = list(ramps.ROWS.filter(pk__in=[int(each) for each in ids if each.isdecimal()]))
    around = ramps.fetch_related(found)
    return {str(one.pk): ramps.ramp_resource(one, around, now) for one in found}


topics.register("switches", scope=SCOPE, event="switch.changed", read=read_switches)
topics.register("ramps", scope=SCOPE, event="ramp.changed", read=read_ramps)
