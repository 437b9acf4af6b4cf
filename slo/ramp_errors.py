"""Errors of a ramp's phases, from the counters of the SLOs of the services that check its switch.

Services report no outcomes by arm, so each phase has the events of the whole service.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from controlplane.core.page_registry import RAMP_ERRORS, PhaseErrors
from slo.alerts.notifications import slo_path
from slo.arithmetic.minutes import last_ended, minute_of
from slo.arithmetic.windows import measure_window
from slo.counters import reader
from slo.models import Slo

MAX_SLOS = 4


@RAMP_ERRORS.add()
def read_phase_errors(
    services: Collection[str], phases: Sequence[tuple[datetime, datetime]]
) -> list[PhaseErrors]:
    """Return the bad and total events of each SLO in the whole minutes of each phase."""
    edges = [(minute_of(begin), last_ended(end)) for begin, end in phases]
    found = []
    slos = Slo.objects.present().filter(service__in=services, sli__first__isnull=False)
    for slo in slos.select_related("sli").order_by("name")[:MAX_SLOS]:
        first, last = edges[0][0], max(end for _, end in edges)
        counts = reader.load_history(slo.sli.pk, first, max(first, last)).counts_at
        windows = [
            measure_window(end - begin, end, counts, ()) if end > begin else None
            for begin, end in edges
        ]
        found.append(
            PhaseErrors(
                slo.name,
                slo_path(slo),
                tuple(
                    (float(one.bad), float(one.total)) if one is not None and one.total else None
                    for one in windows
                ),
            )
        )
    return found
