"""Gates and steps in words, for screens, messages and the audit trail. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

ABORTED = "Aborted on the console"
"""The reason of whoever gave none: one press aborts."""
ABORTED_BY = re.compile(r"Aborted by [a-z]+:(\S+): (.*)", re.DOTALL)
MAX_DETAILS = 4
MAX_DETAIL_LENGTH = 60


def percent(value: Any) -> str:
    """`5 %`, `12.5 %`."""
    return f"{float(value):g} %"


def why(evidence: Mapping[str, Any]) -> str:
    """The sentence in the evidence, if there is one."""
    said = evidence.get("why")
    return said.rstrip(".") if isinstance(said, str) else ""


def seen(found: Mapping[str, Any]) -> str:
    """What one gate said: `external gate smoke: fail, 12 errors`."""
    evidence = found["evidence"]
    shown = [*_details(evidence), *_details(evidence.get("evidence"))][:MAX_DETAILS]
    parts = [_plain(found["verdict"]), *(shown or [why(evidence)])]
    return f"{found['gate']}: {', '.join(filter(None, parts))}"


def plan(steps: Sequence[Mapping[str, Any]]) -> str:
    """`5 %, 25 %, 100 %`."""
    return ", ".join(percent(step["percent"]) for step in steps)


def aborted(outcome: str) -> str:
    """`Aborted by kim: INC-12`, or `Aborted by kim on the console.`; anything else as it is."""
    found = ABORTED_BY.fullmatch(outcome)
    if found is None:
        return outcome
    name, why = found.groups()
    return f"Aborted by {name} on the console." if why == ABORTED else f"Aborted by {name}: {why}"


def _details(evidence: Any) -> list[str]:
    """Numbers, then short texts; what a reader of a message can do nothing with is left out."""
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
    return [_detail(_plain(name), value) for name, value in found]


def _detail(name: str, value: float | str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,} {name}"
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"


def _plain(name: str) -> str:
    return name.replace("_", " ")


_NO_DETAILS = ("why", "said", "by", "since", "observed_at", "left_out")
