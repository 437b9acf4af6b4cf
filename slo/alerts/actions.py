"""Actions of alerts: escalations, trip requests and holds of ramps, started and ended.

Action keys contain the alert's id, so performing an action twice has no further effect.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from controlplane.core.canonical import timestamp
from controlplane.core.escalations import services as escalation
from controlplane.core.gates import holds
from controlplane.core.gates.models import Hold
from controlplane.core.trip_requests import services as trip_requests
from controlplane.core.trip_requests.models import TripRequest
from slo.arithmetic.objective import PAGE, TICKET
from slo.models import Alert, Slo
from slo.models.objective import HOLD_RAMPS, TRIP

from . import notifications
from .notifications import ALERT_PREFIX

LABELS = {"page": (PAGE,), "ticket": (TICKET,), "any": (PAGE, TICKET)}
"""Severities of rules whose alerts trigger an action, by the value of the action's `on`."""
ESCALATED_SEVERITIES = ("critical", "warning")
SOURCE_PREFIX = "slo:"
MAX_SOURCE_LENGTH = 120
UNKNOWN_PREFIX = "unknown:"
"""Prefix of the keys of actions of unknown SLOs; those of alerts have `ALERT_PREFIX`."""
END_SUFFIX = ":over"


@dataclass(frozen=True)
class PlannedAction:
    """An SLO's action to perform: hold ramps, or trip a switch.

    `key` identifies its cause, an alert or an unknown SLO. `time` distinguishes trips that the same
    cause requests at different times.
    """

    action: Mapping[str, Any]
    slo: Slo
    key: str
    reason: str
    path: str
    evidence: Mapping[str, Any]
    time: str = ""

    @property
    def request(self) -> str:
        return f"{self.key}{self.time}:{self.action['switch']}"


def start_escalations(alerts: Sequence[Alert], now: datetime) -> None:
    """Open an escalation for each critical or warning alert that is not acknowledged."""
    for severity in ESCALATED_SEVERITIES:
        due = {
            notifications.alert_subject(one): one
            for one in alerts
            if one.severity == severity and one.acknowledged_at is None
        }
        escalation.open_announced(
            {subject: notifications.alert_facts(one) for subject, one in due.items()},
            resources={subject: one.resource for subject, one in due.items()},
            event=notifications.ALERT_EVENT,
            severity=severity,
            now=now,
        )


def end_actions(ids: Collection[int], now: datetime) -> None:
    """Close the escalations of resolved alerts, and end their holds and trip requests."""
    keys = [f"{ALERT_PREFIX}{pk}" for pk in ids]
    escalation.close_all(keys, now=now)
    holds.release_holds(keys)
    _end_trip_requests(_active_trip_requests().filter(fingerprint__in=keys), now)


def plan_alert_actions(alert: Alert) -> Iterator[PlannedAction]:
    """Yield the actions that an alert triggers: those its SLO defines for its severity."""
    evidence = {
        "alert": alert.pk,
        "slo": alert.subject,
        "rule": alert.rule,
        "since": timestamp(alert.opened_at),
        **alert.evidence,
    }
    for action in alert.slo.actions if alert.slo else ():
        if alert.slo and alert.label in LABELS.get(action.get("on", PAGE), ()):
            key, page = notifications.alert_subject(alert), notifications.alert_path(alert)
            reason = alert.summary
            if action["do"] == HOLD_RAMPS:  # A hold's reason is read long after the opening.
                opened = f"{alert.opened_at.astimezone(UTC):%-d %b %H:%M} UTC"
                reason = f"alert {alert.pk}, open since {opened}: {reason}"
            yield PlannedAction(action, alert.slo, key, reason, page, evidence)


def perform_actions(planned: Sequence[PlannedAction], now: datetime) -> None:
    """Perform actions: place the ramp holds and request the trips that do not exist yet."""
    _hold_ramps([one for one in planned if one.action["do"] == HOLD_RAMPS], now)
    _request_trips([one for one in planned if one.action["do"] == TRIP], now)


def _hold_ramps(planned: Sequence[PlannedAction], now: datetime) -> None:
    keys = Hold.objects.filter(key__in={one.key for one in planned}).values_list("key", flat=True)
    done = set(keys)
    new = [one for one in planned if one.key not in done]
    names: dict[str, list[str]] = defaultdict(list)
    rows = Slo.objects.present().filter(service__in={one.slo.service for one in new})
    for service, name in rows.values_list("service", "name"):
        names[service].append(name)
    for one in new:
        service = one.slo.service
        slos = names[service]
        holds.place_hold(
            key=one.key, service=service, slos=slos, why=one.reason, path=one.path, now=now
        )


def _request_trips(planned: Sequence[PlannedAction], now: datetime) -> None:
    rows = TripRequest.objects.filter(key__in={one.request for one in planned})
    done = set(rows.values_list("key", flat=True))
    for one in planned:
        if one.request in done:
            continue
        trip_requests.request_trip(
            key=one.request,
            switch=one.action["switch"],
            source=f"{SOURCE_PREFIX}{one.slo.name}"[:MAX_SOURCE_LENGTH],
            fingerprint=one.key,
            reason=f"{one.reason}.",
            evidence=one.evidence,
            expires_in=one.action.get("expires_in") or "",
            now=now,
        )


def end_all_but(active: Sequence[PlannedAction], now: datetime) -> None:
    """End SLOs' ramp holds and trip requests, except those of `active` actions and open alerts."""
    held = Hold.objects.filter(Q(key__startswith=ALERT_PREFIX) | Q(key__startswith=UNKNOWN_PREFIX))
    keys = set(held.values_list("key", flat=True))
    requests = [
        one
        for one in _active_trip_requests()
        if one.fingerprint.startswith((ALERT_PREFIX, UNKNOWN_PREFIX))
    ]
    if not keys and not requests:
        return
    action_keys = keys.union(one.fingerprint for one in requests)
    ids = [one.removeprefix(ALERT_PREFIX) for one in action_keys if one.startswith(ALERT_PREFIX)]
    ids = [one for one in ids if one.isdecimal()]
    rows = Alert.objects.filter(pk__in=ids, resolved_at__isnull=True)
    of_alerts = (one for alert in rows.select_related("slo") for one in plan_alert_actions(alert))
    needed = [*active, *of_alerts]
    holding = {one.key for one in needed if one.action["do"] == HOLD_RAMPS}
    tripping = {(one.key, one.action["switch"]) for one in needed if one.action["do"] == TRIP}
    if ended_holds := keys - holding:
        holds.release_holds(ended_holds)
    _end_trip_requests(
        [one for one in requests if (one.fingerprint, one.switch) not in tripping], now
    )


def _active_trip_requests() -> QuerySet[TripRequest]:
    ended = TripRequest.objects.filter(key=Concat(OuterRef("key"), Value(END_SUFFIX)))
    rows = TripRequest.objects.filter(source__startswith=SOURCE_PREFIX, is_over=False)
    return rows.exclude(Exists(ended)).order_by("pk")


def _end_trip_requests(requests: Iterable[TripRequest], now: datetime) -> None:
    for one in requests:
        trip_requests.report_cause_over(
            key=f"{one.key}{END_SUFFIX}",
            switch=one.switch,
            source=one.source,
            fingerprint=one.fingerprint,
            now=now,
        )
