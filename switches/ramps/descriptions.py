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
    """Return a share as text, such as `5 %` or `12.5 %`."""
    return f"{float(value):g} %"


def get_explanation(evidence: Mapping[str, Any]) -> str:
    """Return the `why` of a gate's evidence without its full stop; empty if there is none."""
    said = evidence.get("why")
    return said.rstrip(".") if isinstance(said, str) else ""


def describe_result(found: Mapping[str, Any]) -> str:
    """Return a gate's result as text, such as `external gate smoke: fail, 12 errors`."""
    evidence = found["evidence"]
    shown = [*_list_details(evidence), *_list_details(evidence.get("evidence"))][:MAX_DETAILS]
    parts = [_to_words(found["verdict"]), *(shown or [get_explanation(evidence)])]
    return f"{found['gate']}: {', '.join(filter(None, parts))}"


def describe_plan(steps: Sequence[Mapping[str, Any]]) -> str:
    """Return the shares of a plan, such as `5 %, 25 %, 100 %`."""
    return ", ".join(format_percent(step["percent"]) for step in steps)


def describe_outcome(outcome: str) -> str:
    """Return a ramp's outcome for display, such as `Aborted by kim: INC-12`.

    Outcomes other than aborts by a person are returned unchanged.
    """
    found = ABORTED_BY.fullmatch(outcome)
    if found is None:
        return outcome
    name, why = found.groups()
    return f"Aborted by {name} on the console." if why == ABORTED else f"Aborted by {name}: {why}"


def _list_details(evidence: Any) -> list[str]:
    """Return evidence fields as texts, numbers first, without internal fields and long texts."""
    if not isinstance(evidence, Mapping):
        return []
    found = [
        (name, value)
        for name, value in evidence.items()
        if name not in _NO_DETAILS
        and isinstance(value, int | float | str)
        and len(str(value)) <= MAX_DETAIL_LENGTH
    ]
    found.sort(key=lambda detail: isinstance(detail[1], str))
    return [_format_detail(_to_words(name), value) for name, value in found]


def _format_detail(name: str, value: float | str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,} {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _to_words(name: str) -> str:
    return name.replace("_", " ")


_NO_DETAILS = ("why", "said", "by", "since", "observed_at", "left_out")
