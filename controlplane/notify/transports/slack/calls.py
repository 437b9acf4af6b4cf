"""Calls of Slack's Web API within one deadline per attempt, and the check of responses."""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.conf import settings

from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.outbound import ReceiverResponse, post, post_form

from .codes import IN_DOUBT, PERMANENT, TRANSIENT

MIN_CALL_SECONDS = 1.0

_CODE = re.compile(r"[a-z][a-z_]{1,60}")


class SlackRefusal(PermanentFailure):
    """Raised if Slack rejected a call with an error `code` that the caller may handle."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class SlackCalls:
    """Calls of Slack's Web API for one attempt to send a message, within `seconds` in all.

    A call raises :class:`TransientFailure` if less than `MIN_CALL_SECONDS` are left.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def write(self, method: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a method that changes something; raise a `DeliveryFailure` unless it succeeds."""
        url, auth, left = self._prepare(method)
        return check_response(post(url, message, auth, whole_seconds=left), must_say_ok=True)

    def write_again(self, method: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call an idempotent method that changes something; a failure is never in doubt."""
        with _never_in_doubt():
            return self.write(method, message)

    def read(self, method: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Call a read-only method; an unknown error code counts as a permanent failure."""
        with _never_in_doubt():
            url, auth, left = self._prepare(method)
            response = post_form(url, form, auth, whole_seconds=left)
            return check_response(response, must_say_ok=True, reading=True)

    def _prepare(self, method: str) -> tuple[str, dict[str, str], float]:
        left = self._ends - time.monotonic()
        if left < MIN_CALL_SECONDS:
            raise TransientFailure(f"no time left for {method}")
        slack = settings.SLACK
        auth = {"Authorization": f"Bearer {slack.bot_token}"}
        return f"{slack.api_url.rstrip('/')}/{method}", auth, left


@contextmanager
def _never_in_doubt() -> Iterator[None]:
    try:
        yield
    except TransientFailure as failure:
        retry_after = failure.retry_after_seconds
        raise TransientFailure(failure.reason, retry_after_seconds=retry_after) from failure


def post_to_webhook(content: Mapping[str, Any]) -> None:
    check_response(post(settings.SLACK.webhook_url, content, {}), must_say_ok=False)


def check_response(
    answer: ReceiverResponse, *, must_say_ok: bool, reading: bool = False
) -> Mapping[str, Any]:
    """Return Slack's response if it accepted the call, else raise a `DeliveryFailure`.

    With `must_say_ok` the body must contain `ok` (Web API); without it, the status decides
    (webhook). With `reading`, unknown error codes are permanent.
    """
    try:
        document = json.loads(answer.body)
    except ValueError:
        document = {}
    if not isinstance(document, dict):
        document = {}
    ok = document.get("ok", None if must_say_ok else True)
    if answer.is_accepted and ok is True:
        return document
    # No other text of a response may be stored.
    code = document.get("error", answer.body.decode("utf-8", "replace").strip())
    code = code if isinstance(code, str) and _CODE.fullmatch(code) else ""
    if code in PERMANENT:
        raise SlackRefusal(f"Slack returned {code}: {PERMANENT[code]}", code)
    reason = f"HTTP {answer.status} from Slack, {code or 'without an error code'}"
    if reading and ok is False and code not in TRANSIENT:
        raise SlackRefusal(reason, code)
    if answer.is_transient or answer.status < 300:
        says_nothing = answer.status < 300 and ok is None
        doubt = answer.status >= 500 or code in IN_DOUBT or says_nothing
        raise TransientFailure(
            reason, retry_after_seconds=answer.retry_after_seconds, in_doubt=doubt
        )
    raise PermanentFailure(reason)
