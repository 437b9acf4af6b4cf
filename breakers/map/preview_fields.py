"""The field `dependents` of a switch's preview: services that check it, and their callers."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from breakers import names
from breakers.models import Dependency
from breakers.states.reporting_counts import was_reported
from controlplane.core.instances.queries import list_callers
from controlplane.core.page_registry import PREVIEW_FIELDS
from controlplane.core.scopes import global_switch_id

MAX_SERVICES = 50
MAX_CALLERS = 50
TOKEN = "token:"  # noqa: S105 - a caller that gave no name of its own goes by its token's.
WORST_FIRST = ("critical", "high", "medium", "low")


@PREVIEW_FIELDS.add(10)
def find_dependents(switch_id: str, now: datetime) -> Mapping[str, Any]:
    """Return the services that checked the switch within the last hour, with their callers."""
    found, _ = list_callers(None if switch_id == global_switch_id() else switch_id, now, most=None)
    checking = {one.service for one in found if not one.id.startswith(TOKEN)}
    services = sorted(one for one in checking if names.is_slug(one))[:MAX_SERVICES]
    callers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows = Dependency.objects.registered().filter(callee__in=services)
    called: list[Any] = list(rows.annotate(was_reported=was_reported()))
    for one in sorted(called, key=_rank_caller):
        callers[one.callee].append(
            {
                "service": one.caller,
                "dependency": one.name,
                "criticality": one.criticality,
                "was_reported": one.was_reported,
            }
        )
    dependents = [
        {
            "service": slug,
            "callers_total": len(callers[slug]),
            "callers": callers[slug][:MAX_CALLERS],
        }
        for slug in services
    ]
    return {"dependents": dependents}


def _rank_caller(dependency: Any) -> tuple[bool, int, str]:
    """Rank dependencies that were reported first, then the most critical."""
    criticality = WORST_FIRST.index(dependency.criticality)
    return not dependency.was_reported, criticality, dependency.caller
