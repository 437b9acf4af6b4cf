"""Topics to which live pages subscribe: changes of switches and of ramps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from controlplane.core.live import topics
from switches import switch_list
from switches.ramps import resources as ramps

SCOPE = "switches:read"


def read_switches(ids: Sequence[str], _now: datetime) -> dict[str, dict[str, Any]]:
    return switch_list.read_resources(ids)


def read_ramps(ids: Sequence[str], now: datetime) -> dict[str, dict[str, Any]]:
    found = ramps.ROWS.filter(pk__in=[int(pk) for pk in ids if pk.isdecimal()])
    shown = ramps.add_related(found, now)
    return {str(ramp.ramp.pk): ramps.RampShape.render(ramp) for ramp in shown}


topics.register("switches", scope=SCOPE, event="switch.changed", read=read_switches)
topics.register("ramps", scope=SCOPE, event="ramp.changed", read=read_ramps)
