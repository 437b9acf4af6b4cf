"""Endpoint for Slack's interactions, which responds within the 3 seconds that Slack allows."""

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
from .payloads import ButtonPress

WORK_SECONDS = 2.0
"""Longest time of an action, in seconds; a slower action is rolled back."""
ANSWER_SECONDS = 2.4
"""Longest time until the response, in seconds; Slack's limit of 3 includes the network."""

log = structlog.get_logger(__name__)


@csrf_exempt
@require_POST
def receive_press(request: HttpRequest) -> HttpResponse:
    """Handle the press of a button in Slack; its result goes to the Slack user as a separate reply.

    Returns 404 if no signing secret is configured, 401 for a request that Slack did not sign, and
    400 for an invalid payload.
    """
    started = time.monotonic()
    secret = settings.SLACK.signing_secret
    if not secret:
        return HttpResponse(status=404)
    body = request.body
    timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
    signature = request.headers.get("X-Slack-Signature", "")
    if not signatures.is_genuine(secret, timestamp, signature, body, timezone.now().timestamp()):
        log.warning("slack.refused", ip=client_ip(request))
        return HttpResponse(status=401)
    try:
        found = payloads.parse_payload(body)
    except payloads.InvalidPayload:
        return HttpResponse(status=400)
    if found is not None:
        _handle_in_time(request, found, signatures.request_digest(timestamp, body), started)
    return HttpResponse(status=200)


def _handle_in_time(
    request: HttpRequest, pressed: ButtonPress, digest: str, started: float
) -> None:
    """Run the button's action in a thread; if it takes too long, reply that it failed."""
    replied = threading.Lock()  # Acquired before the failure reply, so that it is sent once.
    origin = {"request_id": request_id_of(request), "ip": client_ip(request)}
    thread = threading.Thread(
        target=_handle_press,
        args=(pressed, digest, started + WORK_SECONDS, origin, replied),
        daemon=True,
        name="slack-interaction",
    )
    thread.start()
    thread.join(max(0.0, started + ANSWER_SECONDS - time.monotonic()))
    if thread.is_alive():
        log.warning("slack.action_timed_out", button=pressed.name)
        _reply_directly(pressed, replied)


def _handle_press(
    pressed: ButtonPress, digest: str, ends: float, origin: dict[str, str], replied: threading.Lock
) -> None:
    with structlog.contextvars.bound_contextvars(request_id=origin["request_id"]):
        try:
            with threads.own_connection():
                actor = services.handle_press(pressed, digest, ends=ends, **origin)
        except Exception as error:
            if problems.as_domain_error(error) is None:
                log.exception("slack.interaction_failed", button=pressed.name)
            _reply_directly(pressed, replied)
        else:
            log.info(
                "slack.button_pressed", button=pressed.name, actor=actor.label if actor else None
            )


def _reply_directly(pressed: ButtonPress, replied: threading.Lock) -> None:
    """Reply to the Slack user without the outbox, because the database does not respond.

    Do nothing if the action's thread has replied already; it then holds the lock `replied`.
    """
    if replied.acquire(blocking=False):
        threading.Thread(
            target=slack_reply.try_to_post,
            args=(pressed.response_url, services.NOT_NOW),
            daemon=True,
            name="slack-reply",
        ).start()
