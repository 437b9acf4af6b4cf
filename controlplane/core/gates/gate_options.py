"""Registration of the list of external gates, which suggests names that have been reported."""

from datetime import datetime

from .external import EXTERNAL_GATES
from .models import ExternalVerdict
from .options import OPTION_LISTS, GateOption, OptionList
from .verdicts import FRESH


def list_external_gates(now: datetime, most: int) -> list[GateOption]:
    """Return reported gates with their latest verdict, by name."""
    reported = ExternalVerdict.objects.order_by("name").defer("evidence")[:most]
    return [
        GateOption(
            one.name,
            one.verdict,
            None if abs(now - one.observed_at) <= FRESH else one.observed_at,
        )
        for one in reported
    ]


OPTION_LISTS.register(OptionList(EXTERNAL_GATES, "external gate", list_external_gates))
