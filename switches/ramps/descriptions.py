"""Texts about ramps and their gates for screens, messages and the audit trail."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

ABORTED = "Aborted on the console"
"""Default reason of an abort by button."""
ABORTED_BY = re.compile(r"Aborted by [a-z]+:(\S+): (.*)", re.DOTALL)


def format_percent(value: Any) -> str:
    return f"{float(value):g} %"


def describe_plan(steps: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(format_percent(step["percent"]) for step in steps)


def describe_outcome(outcome: str) -> str:
    """Return a ramp's outcome for display; an abort by a person reads `Aborted by kim: INC-12`."""
    found = ABORTED_BY.fullmatch(outcome)
    if found is None:
        return outcome
    name, why = found.groups()
    return f"Aborted by {name} on the console." if why == ABORTED else f"Aborted by {name}: {why}"
