"""Gates and steps in words, for screens, messages and the audit trail. Pure."""

from collections.abc import Mapping
from typing import Any


def gate(spec: Mapping[str, Any]) -> str:
    """`SLO core-availability: burn rate over 5m at most 1`, `the external gate smoke`, …"""
    return _GATES[spec["type"]].format_map(spec)


def percent(value: Any) -> str:
    """`5 %`, `12.5 %`."""
    return f"{float(value):g} %"


def why(evidence: Mapping[str, Any]) -> str:
    """The sentence in the evidence, if there is one."""
    said = evidence.get("why")
    return said.rstrip(".") if isinstance(said, str) else ""


_GATES = {
    "slo": "SLO {slo}, burn rate over {window} at most {max_burn_rate}",
    "breaker": "breaker {dependency}",
    "manual": "a person's approval",
    "samples": "at least {min_events} events of {slo}",
    "external": "external gate {gate}",
}
