"""Alertmanager's webhook: each alert in a transaction of its own, and all of them within seconds.

An alert that comes again changes nothing that is done already, so a message that failed half way
may be sent again as it is.
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
from controlplane.core.errors import InvalidInput
from controlplane.core.http.permissions import actor_of
from controlplane.core.http.rendering import StrictJSONParser
from controlplane.core.http.views import ApiView
from controlplane.core.wire import largest_body
from switches.trips import alertmanager, history, services, settle
from switches.trips.alertmanager import Alert, Message
from switches.trips.bodies import AlertmanagerBody, AlertmanagerShape

SECONDS = 5.0
"""After so long no further alert of a message is begun: Alertmanager waits ten."""
_NULL = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_NO_LABEL = f"The alert has no label {alertmanager.SWITCH}: nothing was asked for."
_TOO_MANY = (
    f"At most {alertmanager.MAX_ALERTS} wishes are taken from one message, {SECONDS:g} seconds "
    f"long, and {alertmanager.MAX_SWITCHES} switches from one alert: group the route more finely, "
    "or set max_alerts."
)


class HookParser(StrictJSONParser):
    """Null characters, which PostgreSQL can't keep, become U+FFFD: one in an annotation must not
    keep a whole group of alerts from being heard."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        request = (parser_context or {}).get("request")
        body = stream.read(largest_body(request.path if request is not None else "") + 1)
        cleaned = _NULL.sub(rb"\1\\ufffd", body)
        return super().parse(io.BytesIO(cleaned), media_type, parser_context)


class AlertmanagerView(ApiView):
    write_scope = "switches:trip"
    parser_classes = (HookParser,)

    @extend_schema(request=AlertmanagerBody, responses=AlertmanagerShape)
    def post(self, request: Request) -> Response:
        """A receiver for Alertmanager's webhook. Alerts with the label `switchgear_switch` trip it.

        `switchgear_expires_in` says for how long (`1h`). A resolved alert releases nothing. Each
        alert is taken by itself, once for its fingerprint, so `Idempotency-Key` is ignored here; a
        dry run answers for each alert as if it were alone.
        """
        fields = AlertmanagerBody(data=dict(request.data)).read()
        rehearsed, actor = fields.pop("dry_run", False), actor_of(request)
        try:
            message = alertmanager.read(fields)
        except ValueError as error:
            raise InvalidInput({"alerts": [str(error)]}) from error
        results = _taken(message, actor, rehearsed)
        if message.left_out and not rehearsed:
            _tell_what_was_left_out(message, actor)
        truncated = alertmanager.truncated(fields)
        answer = {"results": results, "truncated": truncated, "left_out": message.left_out}
        return Response({**answer, "dry_run": True} if rehearsed else answer)


def _taken(message: Message, actor: Actor, rehearsed: bool) -> list[dict[str, Any]]:
    """What comes of each alert, in the message's order. New wishes go first, then repeats of what
    is kept already, and last what is over: where time runs out, the next message begins.

    One that fails keeps none of the others from being heard; then the message fails as a whole,
    and Alertmanager sends it again.
    """
    ends = time.monotonic() + SECONDS
    alerts, results, failures = message.alerts, dict[int, dict[str, Any]](), list[Exception]()
    known = history.firing(alert.fingerprint for alert in alerts)
    repeats = [(alert.switch, alert.fingerprint) in known for alert in alerts]
    for place in sorted(range(len(alerts)), key=lambda n: (alerts[n].resolved, repeats[n])):
        alert = alerts[place]
        if alert.switch and time.monotonic() > ends:
            results[place] = _told(alert, _TOO_MANY)
            if not alert.resolved and not repeats[place]:
                message.leave_out(alert.switch)
            continue
        try:
            results[place] = _result(alert, actor, rehearsed)
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    return [results[place] for place in sorted(results)]


def _result(alert: Alert, actor: Actor, rehearsed: bool) -> dict[str, Any]:
    """What comes of one alert. Whatever is wrong with it is said and kept: an error would only
    make Alertmanager repeat it."""
    if not alert.switch:
        return _told(alert, _NO_LABEL)
    with transaction.atomic():
        told = _resolved(alert, actor) if alert.resolved else _asked(alert, actor)
        if rehearsed:
            transaction.set_rollback(True)
            told["trip"] = None
    return told


def _resolved(alert: Alert, actor: Actor) -> dict[str, Any]:
    about = {"switch": alert.switch, "fingerprint": alert.fingerprint}
    return _told(alert, settle.resolve(**about, actor=actor, now=db_now()))


def _asked(alert: Alert, actor: Actor) -> dict[str, Any]:
    wish: dict[str, Any] = {
        "switch": alert.switch,
        "source": alert.source,
        "fingerprint": alert.fingerprint,
        "reason": alert.reason or alert.source,
        "evidence": dict(alert.evidence),
    }
    now = db_now()
    try:
        asked = services.trip(**wish, expires_in=alert.expires_in, actor=actor, now=now)
    except InvalidInput as error:
        why = f"The alert's labels can't be followed. {error.detail}"
        asked = services.refuse(**wish, why=why, actor=actor, now=now)
    told = {"tripped": asked.tripped, "why": asked.why, "trip": asked.trip.pk}
    return {**_told(alert, asked.why), **told}


def _tell_what_was_left_out(message: Message, actor: Actor) -> None:
    """Keep it and have a person told: nobody else hears of what was not even looked at."""
    named = message.left_switches
    rest = message.left_out - len(named)
    services.refuse(
        switch=named[0],
        source="alertmanager",
        fingerprint=f"left-out:{hashlib.sha256(message.group.encode()).hexdigest()[:16]}",
        reason=(
            f"{message.left_out:,} wishes of one message were not looked at: "
            f"{', '.join(named[:10])}{'…' if message.left_out > 10 else ''}"
        ),
        evidence={"switches": named, "more": rest, "groupKey": message.group},
        why=_TOO_MANY,
        escalate=f"left-out:{actor.label}",
        actor=actor,
        now=db_now(),
    )


def _told(alert: Alert, why: str) -> dict[str, Any]:
    switch = alert.switch or None
    told = {"fingerprint": alert.fingerprint, "switch": switch, "tripped": False}
    return {**told, "why": why, "trip": None}
