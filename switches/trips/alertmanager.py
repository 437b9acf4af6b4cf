"""What Alertmanager's webhook (version 4) says, as wishes to stop or to note that it is over. Pure.

An alert concerns us if it carries the label `switchgear_switch`; `switchgear_expires_in` says for
how long, `switchgear_source` names the source for the policies if the alert's name will not do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controlplane.core import canonical
from switches.trips import words

SWITCH, EXPIRES_IN, SOURCE = (
    "switchgear_switch",
    "switchgear_expires_in",
    "switchgear_source",
)
USUAL_EXPIRY = "1h"
MAX_SOURCE_LENGTH, MAX_FINGERPRINT_LENGTH, MAX_SWITCH_LENGTH = 120, 200, 131
MAX_TEXT_LENGTH, MAX_DETAIL_LENGTH = 500, 4000
MAX_ALERTS = 100
"""Wishes taken from one message; as many alerts without a switch are answered."""
MAX_SWITCHES = 20
"""Switches that one alert may name."""
MAX_LEFT_NAMED = 50
KEPT = ("startsAt", "endsAt", "generatorURL")


@dataclass(frozen=True)
class Alert:
    """One alert about one switch. `switch` is empty if its labels name none."""

    fingerprint: str
    switch: str
    source: str = ""
    reason: str = ""
    expires_in: str = ""
    resolved: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Message:
    """What is taken of a message: `alerts` in its order, at most `MAX_ALERTS` with a switch.

    `left_out` counts the wishes to stop beyond that, and `left_switches` names the first of them.
    """

    group: str
    alerts: list[Alert] = field(default_factory=list)
    left_out: int = 0
    left_switches: list[str] = field(default_factory=list)

    def leave_out(self, switch: str) -> None:
        self.left_out += 1
        if len(self.left_switches) < MAX_LEFT_NAMED:
            self.left_switches.append(words.clipped(words.readable(switch), MAX_SWITCH_LENGTH))


def truncated(payload: Mapping[str, Any]) -> int:
    """Return how many alerts Alertmanager left out; 0 unless it says a positive whole number."""
    said = payload.get("truncatedAlerts")
    return said if type(said) is int and said > 0 else 0


def read(payload: Mapping[str, Any]) -> Message:
    """Every alert of the payload, once for each switch it names, up to what is taken from one.

    Raises ValueError for what is not such a payload.
    """
    alerts = payload.get("alerts")
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise ValueError("Must be a list of alerts, as Alertmanager's webhook sends it.")
    shared: dict[str, Any] = {
        name: words.clipped(payload[name], MAX_DETAIL_LENGTH)
        for name in ("externalURL", "groupKey")
        if isinstance(payload.get(name), str) and payload[name]
    }
    if missing := truncated(payload):
        shared["truncated_alerts"] = missing
    message = Message(group=str(shared.get("groupKey", "")))
    labelled = without = 0
    for alert in alerts:
        names = _switches(alert)
        if not names and without < MAX_ALERTS:
            without += 1
            message.alerts.append(Alert(_fingerprint(alert, _texts(alert.get("labels"))), ""))
        taken = names[: min(MAX_SWITCHES, MAX_ALERTS - labelled)]
        if taken:
            labelled += len(taken)
            message.alerts += _wishes(alert, taken, shared)
        if alert.get("status") != "resolved":
            for name in names[len(taken) :]:
                message.leave_out(name)
    return message


def _switches(alert: Mapping[str, Any]) -> list[str]:
    label = _texts(alert.get("labels")).get(SWITCH, "")
    return list(dict.fromkeys(name.strip() for name in label.split(",") if name.strip()))


def _wishes(
    alert: Mapping[str, Any], switches: Sequence[str], shared: Mapping[str, Any]
) -> list[Alert]:
    """One for each switch; all that they have in common is made once."""
    labels, notes = _texts(alert.get("labels")), _texts(alert.get("annotations"))
    name = labels.get("alertname", "")[:MAX_DETAIL_LENGTH]
    source = words.readable(labels.get(SOURCE, "")[:MAX_DETAIL_LENGTH])
    source = source or f"alertmanager:{words.readable(name)}"
    first = Alert(
        fingerprint=_fingerprint(alert, labels),
        switch="",
        source=words.clipped(source.rstrip(":"), MAX_SOURCE_LENGTH).strip(),
        reason=_reason(name, notes),
        expires_in=labels.get(EXPIRES_IN, "").strip() or USUAL_EXPIRY,
        resolved=alert.get("status") == "resolved",
        evidence=words.fitting(
            {
                "labels": labels,
                "annotations": notes,
                **{k: alert[k][:MAX_DETAIL_LENGTH] for k in KEPT if isinstance(alert.get(k), str)},
                **shared,
            }
        ),
    )
    return [
        replace(first, switch=words.clipped(words.readable(switch), MAX_SWITCH_LENGTH))
        for switch in switches
    ]


def _reason(name: str, notes: Mapping[str, str]) -> str:
    """`HighErrorRate: 12 % of payments fail. Since the deploy…`, each part shortened."""
    told = [
        words.readable(notes.get(key, "")[:MAX_DETAIL_LENGTH]) for key in ("summary", "description")
    ]
    text = " · ".join(words.clipped(part, MAX_TEXT_LENGTH) for part in dict.fromkeys(told) if part)
    shown = words.clipped(words.readable(name), MAX_TEXT_LENGTH)
    return ": ".join(part for part in (shown, text) if part)


def _fingerprint(alert: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Alertmanager's own, or else one made from the labels, as that one is."""
    given = alert.get("fingerprint")
    known = words.fingerprint(given[:MAX_DETAIL_LENGTH]) if isinstance(given, str) else ""
    if known:
        return words.clipped(known, MAX_FINGERPRINT_LENGTH)
    return canonical.digest(labels)[:16]


def _texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, str)}
