"""Parser of Alertmanager's webhook payload (version 4) into trip requests.

Only alerts with the label `switchgear_switch` count. The label `switchgear_expires_in` is the
duration; `switchgear_source` replaces the alert's name as the source that policies match.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from controlplane.core import canonical
from switches.trips import texts

SWITCH, EXPIRES_IN, SOURCE = ("switchgear_switch", "switchgear_expires_in", "switchgear_source")
DEFAULT_EXPIRY = "1h"
MAX_SOURCE_LENGTH, MAX_FINGERPRINT_LENGTH, MAX_SWITCH_LENGTH = 120, 200, 131
MAX_TEXT_LENGTH, MAX_DETAIL_LENGTH = 500, 4000
MAX_ALERTS = 100
"""Maximum requests per message, and maximum alerts without a switch listed in the response."""
MAX_SWITCHES = 20
"""Maximum switches named by one alert."""
MAX_LEFT_NAMED = 50
KEPT_FIELDS = ("startsAt", "endsAt", "generatorURL")


@dataclass(frozen=True)
class AlertmanagerAlert:
    """An alert, with the one switch that it names; `switch` is empty if its labels name none."""

    fingerprint: str
    switch: str
    source: str = ""
    reason: str = ""
    expires_in: str = ""
    resolved: bool = False
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class AlertmanagerMessage:
    """A parsed message: at most `MAX_ALERTS` alerts with a switch, in order.

    `left_out` counts the further alerts; `left_switches` names the switches of their first 50.
    """

    group: str
    alerts: list[AlertmanagerAlert] = field(default_factory=list)
    left_out: int = 0
    left_switches: list[str] = field(default_factory=list)

    def leave_out(self, switch: str) -> None:
        self.left_out += 1
        if len(self.left_switches) < MAX_LEFT_NAMED:
            self.left_switches.append(texts.clip(texts.clean_text(switch), MAX_SWITCH_LENGTH))


def truncated_alerts(payload: Mapping[str, Any]) -> int:
    """Return the number of alerts that Alertmanager truncated; 0 if absent or invalid."""
    count = payload.get("truncatedAlerts")
    return count if type(count) is int and count > 0 else 0


def read_message(payload: Mapping[str, Any]) -> AlertmanagerMessage:
    """Return an alert for each switch that the payload names; raise ValueError if it is invalid."""
    alerts = payload.get("alerts")
    if not isinstance(alerts, list) or not all(isinstance(alert, dict) for alert in alerts):
        raise ValueError("Must be a list of alerts, as Alertmanager's webhook sends it.")
    shared: dict[str, Any] = {
        name: texts.clip(payload[name], MAX_DETAIL_LENGTH)
        for name in ("externalURL", "groupKey")
        if isinstance(payload.get(name), str) and payload[name]
    }
    if missing := truncated_alerts(payload):
        shared["truncated_alerts"] = missing
    message = AlertmanagerMessage(group=str(shared.get("groupKey", "")))
    labelled = without = 0
    for alert in alerts:
        label = _select_texts(alert.get("labels")).get(SWITCH, "")
        names = list(dict.fromkeys(name.strip() for name in label.split(",") if name.strip()))
        if not names and without < MAX_ALERTS:
            without += 1
            message.alerts.append(
                AlertmanagerAlert(_get_fingerprint(alert, _select_texts(alert.get("labels"))), "")
            )
        accepted = names[: min(MAX_SWITCHES, MAX_ALERTS - labelled)]
        if accepted:
            labelled += len(accepted)
            message.alerts += _build_alerts(alert, accepted, shared)
        if alert.get("status") != "resolved":
            for name in names[len(accepted) :]:
                message.leave_out(name)
    return message


def _build_alerts(
    alert: Mapping[str, Any], switches: Sequence[str], shared: Mapping[str, Any]
) -> list[AlertmanagerAlert]:
    labels, notes = _select_texts(alert.get("labels")), _select_texts(alert.get("annotations"))
    name = labels.get("alertname", "")[:MAX_DETAIL_LENGTH]
    kept = {key: text[:MAX_DETAIL_LENGTH] for key, text in _select_texts(alert).items()}
    details = {key: kept[key] for key in KEPT_FIELDS if key in kept}
    source = texts.clean_text(labels.get(SOURCE, "")[:MAX_DETAIL_LENGTH])
    source = source or f"alertmanager:{texts.clean_text(name)}"
    first = AlertmanagerAlert(
        fingerprint=_get_fingerprint(alert, labels),
        switch="",
        source=texts.clip(source.rstrip(":"), MAX_SOURCE_LENGTH).strip(),
        reason=_build_reason(name, notes),
        expires_in=labels.get(EXPIRES_IN, "").strip() or DEFAULT_EXPIRY,
        resolved=alert.get("status") == "resolved",
        evidence=texts.fit_evidence({"labels": labels, "annotations": notes, **details, **shared}),
    )
    return [
        replace(first, switch=texts.clip(texts.clean_text(switch), MAX_SWITCH_LENGTH))
        for switch in switches
    ]


def _build_reason(name: str, notes: Mapping[str, str]) -> str:
    parts = [
        texts.clean_text(notes.get(key, "")[:MAX_DETAIL_LENGTH])
        for key in ("summary", "description")
    ]
    text = " · ".join(texts.clip(part, MAX_TEXT_LENGTH) for part in dict.fromkeys(parts) if part)
    title = texts.clip(texts.clean_text(name), MAX_TEXT_LENGTH)
    return ": ".join(part for part in (title, text) if part)


def _get_fingerprint(alert: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    fingerprint = alert.get("fingerprint")
    text = fingerprint[:MAX_DETAIL_LENGTH] if isinstance(fingerprint, str) else ""
    cleaned = texts.clip(texts.clean_text(text), MAX_FINGERPRINT_LENGTH)
    return cleaned or canonical.digest(labels)[:16]


def _select_texts(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, str)}
