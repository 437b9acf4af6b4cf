"""Alertmanager webhook; each alert is processed in its own transaction.

Repeated alerts change nothing, so a message that failed half-way can be sent again.
"""

import hashlib
import io
import re
import time
from collections.abc import Mapping
from typing import IO, Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.actors import Actor
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, InvalidInput
from controlplane.core.http.json_format import StrictJSONParser
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.views import ApiView
from controlplane.core.protocol import max_body_bytes

from . import alertmanager, history, resolution, services
from .alertmanager import AlertmanagerAlert, AlertmanagerMessage
from .bodies import AlertmanagerNotificationShape, AlertmanagerResultShape

MAX_SECONDS = 5.0
"""Seconds after which no further alert is started; Alertmanager's timeout is 10 s."""
_NULL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_NO_LABEL = f"The alert has no label {alertmanager.SWITCH}: nothing was tripped."
_TOO_MANY = (
    f"At most {alertmanager.MAX_ALERTS} requests are handled per message, {MAX_SECONDS:g} seconds "
    f"long, and {alertmanager.MAX_SWITCHES} switches from one alert: group the route more finely, "
    "or set max_alerts."
)


class WebhookParser(StrictJSONParser):
    """JSON parser that replaces null characters, which PostgreSQL can't store, by U+FFFD.

    A null character in one annotation must not reject a whole group of alerts.
    """

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        request = (parser_context or {}).get("request")
        body = stream.read(max_body_bytes(request.path if request is not None else "") + 1)
        cleaned = _NULL.sub(rb"\1\\ufffd", body)
        return super().parse(io.BytesIO(cleaned), media_type, parser_context)


class AlertmanagerView(ApiView):
    write_scope = "switches:trip"
    parser_classes = (WebhookParser,)

    @extend_schema(request=AlertmanagerNotificationShape, responses=AlertmanagerResultShape)
    def post(self, request: Request) -> Response:
        """Receive Alertmanager's webhook.

        Alerts with the label `switchgear_switch` request a trip.

        The label `switchgear_expires_in` is the duration (`1h`). A resolved alert releases nothing.
        Alerts are deduplicated by fingerprint, so `Idempotency-Key` is ignored; a dry run treats
        each alert separately.
        """
        fields = AlertmanagerNotificationShape(data=dict(request.data)).read()
        rehearsed, actor = fields.pop("dry_run", False), actor_of(request)
        try:
            message = alertmanager.read_message(fields)
        except ValueError as error:
            raise InvalidInput({"alerts": [str(error)]}) from error
        results = _process(message, actor, rehearsed)
        if message.left_out and not rehearsed:
            _record_left_out(message, actor)
        truncated = alertmanager.truncated_alerts(fields)
        answer = {"results": results, "truncated": truncated, "left_out": message.left_out}
        return Response({**answer, "dry_run": True} if rehearsed else answer)


def _process(message: AlertmanagerMessage, actor: Actor, rehearsed: bool) -> list[dict[str, Any]]:
    """Process the alerts and return their results in the message's order.

    In case time runs out, new requests go first, then repeats, and resolved alerts last. The first
    error is raised after all alerts were processed, so that Alertmanager sends the message again.
    """
    ends = time.monotonic() + MAX_SECONDS
    alerts, results, failures = message.alerts, dict[int, dict[str, Any]](), list[Exception]()
    firing = history.firing_alerts(alert.fingerprint for alert in alerts)
    repeats = [(alert.switch, alert.fingerprint) in firing for alert in alerts]
    for place in sorted(range(len(alerts)), key=lambda n: (alerts[n].resolved, repeats[n])):
        alert = alerts[place]
        if alert.switch and time.monotonic() > ends:
            results[place] = _build_result(alert, _TOO_MANY)
            if not alert.resolved and not repeats[place]:
                message.leave_out(alert.switch)
            continue
        try:
            results[place] = _process_alert(alert, actor, rehearsed)
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    return [results[place] for place in sorted(results)]


def _process_alert(alert: AlertmanagerAlert, actor: Actor, rehearsed: bool) -> dict[str, Any]:
    """Process one alert; invalid alerts are recorded as refused, since resending can't fix them."""
    if not alert.switch:
        return _build_result(alert, _NO_LABEL)
    with transaction.atomic():
        if alert.resolved:
            alert_id = {"switch": alert.switch, "fingerprint": alert.fingerprint}
            result = _build_result(alert, _resolve(alert_id, actor))
        else:
            result = _request_trip(alert, actor)
        if rehearsed:
            transaction.set_rollback(True)
            result["trip"] = None
    return result


def _resolve(alert_id: Mapping[str, str], actor: Actor) -> str:
    try:
        return resolution.resolve_alert(**alert_id, actor=actor, now=db_now())
    except Forbidden as refused:
        return refused.detail


def _request_trip(alert: AlertmanagerAlert, actor: Actor) -> dict[str, Any]:
    request: dict[str, Any] = {
        "switch": alert.switch,
        "source": alert.source,
        "fingerprint": alert.fingerprint,
        "reason": alert.reason or alert.source,
        "evidence": dict(alert.evidence),
    }
    now = db_now()
    try:
        trip_result = services.request_trip(
            **request, expires_in=alert.expires_in, actor=actor, now=now
        )
    except InvalidInput as error:
        why = f"The alert's labels are not valid. {error.detail}"
        trip_result = services.record_refusal(**request, why=why, actor=actor, now=now)
    except Forbidden as refused:
        trip_result = services.record_refusal(
            **request,
            why=refused.detail,
            escalate=f"forbidden:{actor.label}",
            actor=actor,
            now=now,
        )
    result = {"tripped": trip_result.tripped, "why": trip_result.why, "trip": trip_result.trip.pk}
    return {**_build_result(alert, trip_result.why), **result}


def _record_left_out(message: AlertmanagerMessage, actor: Actor) -> None:
    named = message.left_switches
    rest = message.left_out - len(named)
    services.record_refusal(
        switch=named[0],
        source="alertmanager",
        fingerprint=f"left-out:{hashlib.sha256(message.group.encode()).hexdigest()[:16]}",
        reason=(
            f"{message.left_out:,} requests of one message were not handled: "
            f"{', '.join(named[:10])}{'…' if message.left_out > 10 else ''}"
        ),
        evidence={"switches": named, "more": rest, "groupKey": message.group},
        why=_TOO_MANY,
        escalate=f"left-out:{actor.label}",
        actor=actor,
        now=db_now(),
    )


def _build_result(alert: AlertmanagerAlert, why: str) -> dict[str, Any]:
    switch = alert.switch or None
    result = {"fingerprint": alert.fingerprint, "switch": switch, "tripped": False}
    return {**result, "why": why, "trip": None}
