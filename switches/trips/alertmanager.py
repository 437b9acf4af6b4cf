"""What Alertmanager's webhook (version 4) says, as wishes to stop or to note that it is over. Pure.

An alert concerns us if it carries the label `switchgear_switch`; `switchgear_expires_in` says for
how long, `switchgear_source` names the source for the policies if the alert's name will not do.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.core import canonical
from switches.trips import words

SWITCH, EXPIRES_IN, SOURCE = (
    "switchgear_switch",
    "switchgear_expires_in",
    "switchgear_source",
)
USUAL_EXPIRY = "1h"
LONGEST_SOURCE, LONGEST_FINGERPRINT, LONGEST_SWITCH = 120, 200, 131
MOST_TEXT = 500
KEPT = ("startsAt", "endsAt", "generatorURL")


@dataclass(frozen=True)
class Alert:
    """One alert about one switch. `switch` is empty if its labels name none."""

    fingerprint: str
    switch: str
    source: str
    reason: str
    expires_in: str
    resolved: bool
    evidence: Mapping[str, Any] = field(default_factory=dict)


def read(payload: Mapping[str, Any]) -> Iterator[Alert]:
    """Every alert of the payload, once for each switch it names.

    Raises ValueError for what is not such a payload.
    """
    alerts = payload.get("alerts")
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise ValueError("Must be a list of alerts, as Alertmanager's webhook sends it.")
    shared = {name: payload[name] for name in ("externalURL", "groupKey") if payload.get(name)}
    missing = payload.get("truncatedAlerts")
    if isinstance(missing, int) and missing > 0:
        shared["truncated_alerts"] = missing
    return (one for alert in alerts for one in _of(alert, shared))


def _of(alert: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[Alert]:
    labels, notes = _texts(alert.get("labels")), _texts(alert.get("annotations"))
    name = labels.get("alertname", "")
    source = words.readable(labels.get(SOURCE, "")) or f"alertmanager:{words.readable(name)}"
    evidence = {
        "labels": labels,
        "annotations": notes,
        **{key: alert[key] for key in KEPT if isinstance(alert.get(key), str)},
        **shared,
    }
    named = [switch.strip() for switch in labels.get(SWITCH, "").split(",") if switch.strip()]
    for switch in dict.fromkeys(named) or [""]:
        yield Alert(
            fingerprint=_fingerprint(alert, labels),
            switch=words.clipped(words.readable(switch), LONGEST_SWITCH),
            source=words.clipped(source.rstrip(":"), LONGEST_SOURCE),
            reason=_reason(name, notes),
            expires_in=labels.get(EXPIRES_IN, "").strip() or USUAL_EXPIRY,
            resolved=alert.get("status") == "resolved",
            evidence=words.fitting(evidence),
        )


def _reason(name: str, notes: Mapping[str, str]) -> str:
    """`HighErrorRate: 12 % of payments fail. Since the deploy…`, each part shortened."""
    told = [words.readable(notes.get(key, "")) for key in ("summary", "description")]
    text = " · ".join(words.clipped(part, MOST_TEXT) for part in dict.fromkeys(told) if part)
    shown = words.clipped(words.readable(name), MOST_TEXT)
    return ": ".join(part for part in (shown, text) if part)


def _fingerprint(alert: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Alertmanager's own, or else one made from the labels, as that one is."""
    given = alert.get("fingerprint")
    if isinstance(given, str) and words.readable(given):
        return words.clipped(words.readable(given), LONGEST_FINGERPRINT)
    return hashlib.sha256(canonical.dumps(labels).encode()).hexdigest()[:16]


def _texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, str)}
