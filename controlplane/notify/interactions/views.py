"""Slack's interaction endpoint: verifies the signature and responds within Slack's 3 seconds."""

import threading
import time

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from controlplane.core import threads
from controlplane.core.http import problems
from controlplane.core.http.requests import client_ip, request_id_of
from controlplane.notify.transports.slack_reply import transport as slack_reply

from . import payloads, services, signatures
from .payloads import Pressed

WORK_SECONDS = 2.0
"""Seconds after which nothing is committed."""
ANSWER_SECONDS = 2.4
"""Seconds within which Slack gets its response: it allows 3, including the network."""

log = structlog.get_logger(__name__)


@csrf_exempt
@require_POST
def pressed(request: HttpRequest) -> HttpResponse:
    """Answer 401 unless Slack signed the request, else 200; the presser gets the result by reply.

    Answers 404 without a signing secret, and 400 for an invalid payload.
    """
    started = time.monotonic()
    secret = settings.SLACK.signing_secret
    if not secret:
        return HttpResponse(status=404)
    body = request.body
    timestamp, signature = _header(request, "Request-Timestamp"), _header(request, "Signature")
    if not signatures.genuine(secret, timestamp, signature, body, timezone.now().timestamp()):
        log.warning("slack.refused", ip=client_ip(request))
        return HttpResponse(status=401)
    try:
        found = payloads.read(body)
    except payloads.Unreadable:
        return HttpResponse(status=400)
    if found is not None:
        _answer(request, found, signatures.digest(timestamp, body), started)
    return HttpResponse(status=200)


def _header(request: HttpRequest, name: str) -> str:
    return request.headers.get(f"X-Slack-{name}", "")


def _answer(request: HttpRequest, pressed: Pressed, digest: str, started: float) -> None:
    """Run the action in a thread, because the database may not respond in time."""
    told = threading.Lock()  # Acquired before the failure reply, so that it is sent once.
    context = (request_id_of(request), client_ip(request))
    thread = threading.Thread(
        target=_work,
        args=(pressed, digest, started + WORK_SECONDS, context, told),
        daemon=True,
        name="slack-interaction",
    )
    thread.start()
    thread.join(max(0.0, started + ANSWER_SECONDS - time.monotonic()))
    if thread.is_alive():
        log.warning("slack.not_in_time", button=pressed.name)
        _tell_directly(pressed, told)


def _work(
    pressed: Pressed, digest: str, ends: float, context: tuple[str, str], told: threading.Lock
) -> None:
    request_id, ip = context
    with structlog.contextvars.bound_contextvars(request_id=request_id):
        try:
            with threads.own_connection():
                actor = services.answer(pressed, digest, ends=ends, request_id=request_id, ip=ip)
        except Exception as error:
            if problems.as_domain_error(error) is None:
                log.exception("slack.interaction_failed", button=pressed.name)
            _tell_directly(pressed, told)
        else:
            log.info("slack.pressed", button=pressed.name, actor=actor.label if actor else None)


def _tell_directly(pressed: Pressed, told: threading.Lock) -> None:
    """Reply without the outbox, as its database does not respond; at most once."""
    if told.acquire(blocking=False):
        threading.Thread(
            target=slack_reply.try_once,
            args=(pressed.response_url, services.NOT_NOW),
            daemon=True,
            name="slack-reply",
        ).start()
