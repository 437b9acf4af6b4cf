"""Texts about ramps and their gates for screens, messages and the audit trail."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

ABORTED = "Aborted on the console"
"""Default reason of an abort by button."""
ABORTED_BY = re.compile(r"Aborted by [a-z]+:(\S+): (.*)", re.DOTALL)
MAX_DETAILS = 4
MAX_DETAIL_LENGTH = 60


def format_percent(value: Any) -> str:
    return f"{float(value):g} %"


def get_explanation(evidence: Mapping[str, Any]) -> str:
    """Return the explanation (`why`) in a gate's evidence without its full stop; empty if none."""
    why = evidence.get("why")
    return why.rstrip(".") if isinstance(why, str) else ""


def describe_result(result: Mapping[str, Any]) -> str:
    """Return a gate's result as text, such as `external gate smoke: fail, 12 errors`."""
    evidence = result["evidence"]
    details = [*_list_details(evidence), *_list_details(evidence.get("evidence"))][:MAX_DETAILS]
    parts = [_to_words(result["verdict"]), *(details or [get_explanation(evidence)])]
    return f"{result['gate']}: {', '.join(filter(None, parts))}"


def describe_plan(steps: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(format_percent(step["percent"]) for step in steps)


def describe_outcome(outcome: str) -> str:
    """Return a ramp's outcome for display; an abort by a person reads `Aborted by kim: INC-12`."""
    found = ABORTED_BY.fullmatch(outcome)
    if found is None:
        return outcome
    name, why = found.groups()
    return f"Aborted by {name} on the console." if why == ABORTED else f"Aborted by {name}: {why}"


def _list_details(evidence: Any) -> list[str]:
    if not isinstance(evidence, Mapping):
        return []
    details = [
        (name, value)
        for name, value in evidence.items()
        if name not in _NO_DETAILS
        and isinstance(value, int | float | str)
        and len(str(value)) <= MAX_DETAIL_LENGTH
    ]
    details.sort(key=lambda detail: isinstance(detail[1], str))
    return [_format_detail(_to_words(name), value) for name, value in details]


def _format_detail(name: str, value: float | str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,} {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _to_words(name: str) -> str:
    return name.replace("_", " ")


_NO_DETAILS = ("why", "said", "by", "since", "observed_at", "left_out")
