"""HTTP calls between the demo's services, which pass the caller's deadline in a header."""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from demo.world import HOST
from switchgear.patterns import deadline
from switchgear.patterns.propagation import outgoing

MIN_SECONDS = 0.001


class Unreachable(ConnectionError):
    """Raised if a service sent no response, or a response that is not a JSON object."""


class TooLate(Unreachable, TimeoutError):
    """Raised if a service did not respond before the timeout."""


def call(
    port: int, path: str, body: Mapping[str, Any], *, seconds: float, method: str = "POST"
) -> tuple[int, dict[str, Any]]:
    """Send a JSON request to a service of the demo; return status and JSON of its response.

    Raise `TooLate` after `seconds` or the caller's deadline, `Unreachable` without a usable
    response.
    """
    left = deadline.remaining_seconds()
    most = seconds if left is None else max(min(seconds, left), MIN_SECONDS)
    connection = http.client.HTTPConnection(HOST, port, timeout=most)
    try:
        headers = {"Content-Type": "application/json", **outgoing()}
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        document = json.loads(response.read() or b"{}")
    except TimeoutError as error:
        raise TooLate(f"{path}: no response within {most:.1f} s") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{path}: {type(error).__name__}") from error
    finally:
        connection.close()
    if not isinstance(document, dict):
        raise Unreachable(f"{path}: the response is not a JSON object")
    return response.status, document
