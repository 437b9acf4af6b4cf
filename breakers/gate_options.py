"""The list of dependencies that breaker gates can name."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from breakers import names
from breakers.gate_kinds import DEPENDENCIES
from breakers.models import Dependency
from breakers.states.dependency_status import find_by_names, load_statuses
from breakers.states.reporting_counts import was_reported
from breakers.templatetags.breakers import STATES
from controlplane.core.gates.options import NO_DATA_LABEL, OPTION_LISTS, GateOption, OptionList


def list_dependencies(now: datetime, most: int) -> list[GateOption]:
    """Return dependencies with the worst state of their breakers, by name; without data last."""
    rows = Dependency.objects.registered().annotate(was_reported=was_reported())
    found: list[Any] = list(rows.order_by("-was_reported", "caller", "callee")[:most])
    options = []
    for row, status in zip(found, load_statuses(found, now), strict=True):
        _, word, _ = STATES[status.state]
        is_stale = status.instances > 0 and not status.fresh
        state = f"{word}, not current" if is_stale else word
        if not row.was_reported:
            state = NO_DATA_LABEL
        name = status.dependency.name
        options.append(GateOption(name, state, label=names.format_name(name)))
    return options


def find_existing(wanted: Collection[str]) -> set[str]:
    return {one.name for one in find_by_names(wanted)}


OPTION_LISTS.register(OptionList(DEPENDENCIES, "dependency", list_dependencies, find_existing))
