"""POST requests to other servers, with a deadline and without redirects."""

import asyncio
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from controlplane.core.egress_guard.allowed_networks import UrlRefused
from controlplane.core.egress_guard.name_resolution import Unresolved

from . import connections
from .failures import PermanentFailure, TransientFailure
from .rate_limits import MAX_KEEP_AWAY

CONNECT_SECONDS = 3.0
READ_SECONDS = 5.0
WHOLE_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 1024
MAX_RESPONSE_BYTES = 4 * 1024 * 1024
MAX_RETRY_AFTER_SECONDS = MAX_KEEP_AWAY.total_seconds()


_tls_context = functools.cache(httpx.create_ssl_context)


@dataclass(frozen=True)
class ReceiverResponse:
    """A receiver's response: status, beginning of the body, seconds of `Retry-After` if given."""

    status: int
    body: bytes
    retry_after_seconds: float | None

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_transient(self) -> bool:
        """True for errors that may pass: timeouts, rate limits and server errors."""
        return self.status in {408, 425, 429} or self.status >= 500

    def check(self, sender: str, *, doubt_server_errors: bool = False) -> None:
        """Raise a `DeliveryFailure` that names `sender` if the status is not 2xx.

        With `doubt_server_errors`, the message may have been delivered in spite of a 5xx.
        """
        reason = f"HTTP {self.status} from {sender}"
        if self.is_transient:
            raise TransientFailure(
                reason,
                retry_after_seconds=self.retry_after_seconds,
                in_doubt=doubt_server_errors and self.status >= 500,
            )
        if not self.is_accepted:
            raise PermanentFailure(reason)


def post(
    url: str,
    payload: Mapping[str, Any] | bytes,
    headers: Mapping[str, str],
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    whole_seconds: float = WHOLE_SECONDS,
) -> ReceiverResponse:
    """POST `payload` as JSON, or unchanged if it is bytes; return the response.

    Redirects are not followed, because they would carry secrets elsewhere. Raises
    :class:`TransientFailure` if there is no response; the delivery is then in doubt if a connection
    was established. The call takes at most `whole_seconds`.
    """
    body = {"content": payload} if isinstance(payload, bytes) else {"json": payload}
    return _call(url, headers, body, transport, whole_seconds, MAX_ANSWER_BYTES)


def post_form(
    url: str, form: Mapping[str, str], headers: Mapping[str, str], *, whole_seconds: float
) -> ReceiverResponse:
    """POST a form to read data; like :func:`post`, but the response may be larger."""
    return _call(url, headers, {"data": form}, None, whole_seconds, MAX_RESPONSE_BYTES)


def _call(
    url: str,
    headers: Mapping[str, str],
    body: Mapping[str, Any],
    transport: httpx.AsyncBaseTransport | None,
    whole_seconds: float,
    largest: int,
) -> ReceiverResponse:
    seconds = min(WHOLE_SECONDS, whole_seconds)
    timeouts = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)

    async def send() -> ReceiverResponse:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(
                timeout=timeouts, verify=_tls_context(), follow_redirects=False, transport=transport
            ) as client,
            client.stream("POST", url, headers=headers, **body) as response,
        ):
            body_start = b""
            async for chunk in response.aiter_bytes():
                body_start += chunk
                if len(body_start) > largest:
                    break
            retry_after = _parse_retry_after(response.headers.get("retry-after"))
            return ReceiverResponse(response.status_code, body_start[:largest], retry_after)

    connections.release_connection()
    try:
        return asyncio.run(send())
    except UrlRefused as error:
        raise PermanentFailure(str(error)) from error
    except Unresolved as error:
        raise TransientFailure(str(error)) from error
    except httpx.ConnectTimeout as error:
        raise TransientFailure(f"no connection within {CONNECT_SECONDS:g} s") from error
    except (httpx.TimeoutException, TimeoutError) as error:
        raise TransientFailure(
            "no response in time; the message may have been delivered", in_doubt=True
        ) from error
    except httpx.ConnectError as error:
        raise TransientFailure("connection failed") from error
    except httpx.TransportError as error:
        reason = (
            f"the connection broke ({type(error).__name__}); the message may have been delivered"
        )
        raise TransientFailure(reason, in_doubt=True) from error
    except httpx.InvalidURL as error:
        raise PermanentFailure("the destination's URL is not valid") from error


def _parse_retry_after(retry_after: str | None) -> float | None:
    """Return the seconds of `Retry-After` (seconds or a date); None if missing or invalid."""
    if not retry_after:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            until = parsedate_to_datetime(retry_after)
        except ValueError:
            return None
        seconds = (until.replace(tzinfo=until.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    if not seconds >= 0:
        return None
    return min(seconds, MAX_RETRY_AFTER_SECONDS)
