"""Errors of a ramp's phases, from the counters of SLOs.

These are the SLOs that the ramp's gates read, then those of the services that check its switch.
Services report no outcomes by arm, so each phase has the events of the whole service.
"""

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import BooleanField, ExpressionWrapper, Q

from controlplane.core.page_registry import RAMP_ERRORS, PhaseErrors
from slo.alerts.notifications import slo_path
from slo.arithmetic.minutes import last_ended, minute_of
from slo.arithmetic.windows import measure_window
from slo.counters import reader
from slo.models import Slo

MAX_SLOS = 6


@RAMP_ERRORS.add()
def read_phase_errors(
    services: Collection[str],
    gate_slos: Collection[str],
    phases: Sequence[tuple[datetime, datetime]],
) -> list[PhaseErrors]:
    """Return the bad and total events of each SLO in the whole minutes of each phase."""
    edges = [(minute_of(begin), last_ended(end)) for begin, end in phases]
    found = []
    is_gate = Q(name__in=gate_slos)
    slos = Slo.objects.present().filter(is_gate | Q(service__in=services), sli__first__isnull=False)
    by_gates = slos.annotate(is_gate=ExpressionWrapper(is_gate, BooleanField()))
    for slo in by_gates.select_related("sli").order_by("-is_gate", "name")[:MAX_SLOS]:
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
                slo.name in gate_slos,
            )
        )
    return found
