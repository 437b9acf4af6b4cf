"""The list of SLOs that gates can name."""

from collections.abc import Collection
from datetime import datetime

from django.db.models import Q

from controlplane.core.gates.options import NO_DATA_LABEL, OPTION_LISTS, GateOption, OptionList
from controlplane.core.gates.samples import SLOS
from slo.dashboard.board import assess_status, slo_condition
from slo.models import Slo
from slo.templatetags.slos import CONDITIONS


def list_slos(now: datetime, most: int) -> list[GateOption]:
    """Return SLOs with their condition on the board, by name; those without any data last."""
    options = []
    rows = Slo.objects.present().select_related("status", "sli").alias(is_empty=Q(sli__first=None))
    for slo in rows.order_by("is_empty", "name")[:most]:
        sli = getattr(slo, "sli", None)
        if sli is None or sli.first is None:
            options.append(GateOption(slo.name, NO_DATA_LABEL))
            continue
        status = getattr(slo, "status", None)
        freshness = assess_status(status, now)
        _, word, _ = CONDITIONS[slo_condition(status)]
        options.append(GateOption(slo.name, word, freshness.at if freshness.is_stale else None))
    return options


def find_existing(names: Collection[str]) -> set[str]:
    return set(Slo.objects.present().filter(name__in=names).values_list("name", flat=True))


OPTION_LISTS.register(OptionList(SLOS, "SLO", list_slos, find_existing))
