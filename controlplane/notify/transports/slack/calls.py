"""Calls of Slack's Web API within one deadline per attempt, and the check of responses."""

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings

from controlplane.notify.transports.failures import PermanentFailure, TransientFailure
from controlplane.notify.transports.outbound import ReceiverResponse, post, post_form

from .codes import IN_DOUBT, PERMANENT, TRANSIENT

MIN_CALL_SECONDS = 1.0

_CODE = re.compile(r"[a-z][a-z_]{1,60}")


class SlackRefusal(PermanentFailure):
    """Slack rejected the call with an error code that the calling code may handle."""

    def __init__(self, reason: str, code: str) -> None:
        super().__init__(reason)
        self.code = code


class SlackCalls:
    """Calls of Slack's Web API within one attempt.

    A call raises :class:`TransientFailure` if less than `MIN_CALL_SECONDS` are left.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def write(self, method: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a method that changes something; raise a `DeliveryFailure` unless it succeeds."""
        return self._call(method, lambda url, auth, left: post(url, said, auth, whole_seconds=left))

    def write_again(self, method: str, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call an idempotent method that changes something; a failure is never in doubt."""
        return self._without_doubt(lambda: self.write(method, said))

    def read(self, method: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Call a read-only method; an unknown error code is permanent."""
        return self._without_doubt(
            lambda: self._call(
                method,
                lambda url, auth, left: post_form(url, form, auth, whole_seconds=left),
                reading=True,
            )
        )

    def _call(
        self,
        method: str,
        ask: Callable[[str, Mapping[str, str], float], ReceiverResponse],
        *,
        reading: bool = False,
    ) -> Mapping[str, Any]:
        left = self._ends - time.monotonic()
        if left < MIN_CALL_SECONDS:
            raise TransientFailure(f"no time was left for {method}")
        slack = settings.SLACK
        auth = {"Authorization": f"Bearer {slack.bot_token}"}
        answer = ask(f"{slack.api_url.rstrip('/')}/{method}", auth, left)
        return check_response(answer, must_say_ok=True, reading=reading)

    def _without_doubt(self, ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        try:
            return ask()
        except TransientFailure as failure:
            raise TransientFailure(
                failure.reason, retry_after_seconds=failure.retry_after_seconds
            ) from failure


def post_to_webhook(said: Mapping[str, Any]) -> None:
    check_response(post(settings.SLACK.webhook_url, said, {}), must_say_ok=False)


def check_response(
    answer: ReceiverResponse, *, must_say_ok: bool, reading: bool = False
) -> Mapping[str, Any]:
    """Return Slack's response if it accepted the call, else raise a `DeliveryFailure`.

    With `must_say_ok` the body must contain `ok` (Web API); without it, the status decides
    (webhook). With `reading`, unknown error codes are permanent.
    """
    said = _parse_json(answer.body)
    ok = said.get("ok", None if must_say_ok else True)
    if answer.is_accepted and ok is True:
        return said
    code = _error_code(said, answer.body)
    if code in PERMANENT:
        raise SlackRefusal(f"Slack says {code}: {PERMANENT[code]}", code)
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


def _parse_json(body: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _error_code(said: Mapping[str, Any], body: bytes) -> str:
    """Return the error code of a response, if any. No other text of a response may be stored."""
    code = said.get("error", body.decode("utf-8", "replace").strip())
    return code if isinstance(code, str) and _CODE.fullmatch(code) else ""
