"""What an alert sets off: people are called, a switch is asked to be stopped, ramps are held.

Whatever is done twice is done once: each has a key that names the alert.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from controlplane.core.canonical import timestamp
from controlplane.core.escalation import services as escalation
from controlplane.core.gates import holds
from controlplane.core.gates.models import Hold
from controlplane.core.trip_requests import services as trip_requests
from controlplane.core.trip_requests.models import TripRequest
from slo.arithmetic.evaluate import FIRING, UNKNOWN
from slo.arithmetic.objective import PAGE, TICKET
from slo.evaluation.evaluator import Seen
from slo.evaluation.statuses import Since
from slo.models import Alert, Slo

from . import notifications

TRIP, HOLD_RAMPS = "trip", "hold_ramps"
LABELS = {"page": (PAGE,), "ticket": (TICKET,), "any": (PAGE, TICKET)}
CALLED_FOR = ("critical", "warning")
UNKNOWN_FOR = timedelta(minutes=5)
"""So long nothing may be known before an action that is to fail closed does."""
SOURCE = "slo:"
MAX_SOURCE_LENGTH = 120
ALERT, BLIND = "alert:", "unknown:"
"""What keys begin with, by their cause."""
SAID_OVER = ":over"


@dataclass(frozen=True)
class _Deed:
    """An action that is to follow; `time` tells one occasion from the next, where `key` does
    not."""

    action: Mapping[str, Any]
    slo: Slo
    key: str
    said: str
    path: str
    evidence: Mapping[str, Any]
    time: str = ""

    @property
    def request(self) -> str:
        return f"{self.key}{self.time}:{self.action['switch']}"


def call(alerts: Sequence[Alert], now: datetime) -> None:
    """Have people called for those that have opened, unless somebody knows, in the caller's
    transaction. Thousands may have opened at once."""
    for severity in CALLED_FOR:
        facts = {
            notifications.subject(one): notifications.facts(one)
            for one in alerts
            if one.severity == severity and one.acknowledged_at is None
        }
        escalation.open_announced(facts, event=notifications.BEGUN, severity=severity, now=now)


def begin(alerts: Sequence[Alert], now: datetime) -> None:
    """What their SLOs say that follows alerts which have opened, in the caller's transaction."""
    _act([deed for alert in alerts for deed in _following(alert)], now)


def end(ids: Collection[int], now: datetime) -> None:
    """What follows once these alerts have resolved, in the caller's transaction."""
    subjects = [f"{ALERT}{pk}" for pk in ids]
    escalation.close_all(subjects, now=now)
    _over(subjects, now)


def unknown(seen: Sequence[Seen], since: Since, at: datetime, now: datetime) -> None:
    """What follows while nothing is known of SLOs with an action that is to fail closed then; once
    something is, or nobody wants that any more, what was done is over. What was done for one that
    can't be judged stays. In the caller's transaction."""
    minutes = int(UNKNOWN_FOR.total_seconds() / 60)
    due: list[_Deed] = []
    standing: list[_Deed] = []
    for one in seen:
        said = f"Nothing has been known of the SLO {one.slo.name} for {minutes} minutes"
        page = notifications.slo_page(one.slo)
        for place, action in enumerate(one.slo.actions):
            if action.get("on_unknown") != "act":
                continue
            key = f"{BLIND}{one.slo.pk}.{place}"
            begun = _blind_since(action, one, since.get(one.slo.pk, {}))
            if begun is None and not one.error:
                continue
            evidence = {"slo": one.slo.name, "unknown_since": timestamp(begun or at)}
            time = f"@{begun or at:%Y%m%dT%H%M}"
            standing.append(_Deed(action, one.slo, key, said, page, evidence, time))
            if begun is not None and begun <= at - UNKNOWN_FOR:
                due.append(standing[-1])
    _act(due, now)
    _take_back(standing, now)


def _blind_since(
    action: Mapping[str, Any], seen: Seen, since: Mapping[str, datetime]
) -> datetime | None:
    """Since when nothing has been known of a label that the action is for: none of its rules fires,
    and one is unknown."""
    for label in LABELS[action.get("on", PAGE)]:
        rules = [one for one in seen.evaluation.rules if one.rule.severity == label]
        blind = [one.rule.key for one in rules if one.state == UNKNOWN]
        if blind and not any(one.state == FIRING for one in rules):
            return min((since[key] for key in blind if key in since), default=None)
    return None


def _following(alert: Alert) -> Iterator[_Deed]:
    if alert.slo is None:
        return
    for action in alert.slo.actions:
        if alert.label in LABELS.get(action.get("on", PAGE), ()):
            key, page = notifications.subject(alert), notifications.page(alert)
            yield _Deed(action, alert.slo, key, alert.said, page, _evidence(alert))


def _act(deeds: Sequence[_Deed], now: datetime) -> None:
    """Do what was not done yet: an alert may wait for a minute until it is told of."""
    _hold([one for one in deeds if one.action["do"] == HOLD_RAMPS], now)
    _ask([one for one in deeds if one.action["do"] == TRIP], now)


def _hold(deeds: Sequence[_Deed], now: datetime) -> None:
    if not deeds:
        return
    keys = Hold.objects.filter(key__in={one.key for one in deeds}).values_list("key", flat=True)
    done = set(keys)
    new = [one for one in deeds if one.key not in done]
    names: dict[str, list[str]] = {}
    if new:
        rows = Slo.objects.present().filter(service__in={one.slo.service for one in new})
        for service, name in rows.values_list("service", "name"):
            names.setdefault(service, []).append(name)
    for one in new:
        service = one.slo.service
        slos = names.get(service, ())
        holds.place(key=one.key, service=service, slos=slos, why=one.said, path=one.path, now=now)


def _ask(deeds: Sequence[_Deed], now: datetime) -> None:
    if not deeds:
        return
    rows = TripRequest.objects.filter(key__in={one.request for one in deeds})
    done = set(rows.values_list("key", flat=True))
    for one in deeds:
        if one.request in done:
            continue
        trip_requests.ask(
            key=one.request,
            switch=one.action["switch"],
            source=f"{SOURCE}{one.slo.name}"[:MAX_SOURCE_LENGTH],
            fingerprint=one.key,
            reason=f"{one.said}.",
            evidence=one.evidence,
            expires_in=one.action.get("expires_in") or "",
            now=now,
        )


def _take_back(blind: Sequence[_Deed], now: datetime) -> None:
    """Nothing is held or asked for ever: what is done neither for these nor for an alert that is
    open, by an action that is still there, is over."""
    held = Hold.objects.filter(Q(key__startswith=ALERT) | Q(key__startswith=BLIND))
    keys = set(held.values_list("key", flat=True))
    asked = [one for one in _not_over() if one.fingerprint.startswith((ALERT, BLIND))]
    if not keys and not asked:
        return
    alerts = [_alert_id(one) for one in {*keys, *(one.fingerprint for one in asked)}]
    rows = Alert.objects.filter(pk__in=[pk for pk in alerts if pk], resolved_at__isnull=True)
    wanted = [*blind, *(deed for one in rows.select_related("slo") for deed in _following(one))]
    holding = {one.key for one in wanted if one.action["do"] == HOLD_RAMPS}
    asking = {(one.key, one.action["switch"]) for one in wanted if one.action["do"] == TRIP}
    if gone := keys - holding:
        holds.release(gone)
    _say_over([one for one in asked if (one.fingerprint, one.switch) not in asking], now)


def _alert_id(key: str) -> int | None:
    number = key.removeprefix(ALERT)
    return int(number) if key.startswith(ALERT) and number.isdecimal() else None


def _over(keys: Collection[str], now: datetime) -> None:
    holds.release(keys)
    _say_over(_not_over().filter(fingerprint__in=list(keys)), now)


def _not_over() -> QuerySet[TripRequest]:
    """What SLOs have asked for and have not said to be over."""
    said = TripRequest.objects.filter(key=Concat(OuterRef("key"), Value(SAID_OVER)))
    rows = TripRequest.objects.filter(source__startswith=SOURCE, is_over=False)
    return rows.exclude(Exists(said)).order_by("pk")


def _say_over(asked: Iterable[TripRequest], now: datetime) -> None:
    for one in asked:
        trip_requests.say_over(
            key=f"{one.key}{SAID_OVER}",
            switch=one.switch,
            source=one.source,
            fingerprint=one.fingerprint,
            now=now,
        )


def _evidence(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.pk,
        "slo": alert.subject,
        "rule": alert.rule,
        "since": timestamp(alert.opened_at),
        **alert.evidence,
    }
