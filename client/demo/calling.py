"""One service asks another: JSON by HTTP, with a deadline."""

import http.client
import json
from collections.abc import Mapping
from typing import Any

from demo.world import HOST


class Unreachable(Exception):
    """No answer, or none that can be read."""


def call(
    port: int, path: str, body: Mapping[str, Any], *, seconds: float, method: str = "POST"
) -> tuple[int, dict[str, Any]]:
    """Status and document. Raises :class:`Unreachable`."""
    connection = http.client.HTTPConnection(HOST, port, timeout=seconds)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        document = json.loads(response.read() or b"{}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"{path}: {type(error).__name__}") from error
    finally:
        connection.close()
    if not isinstance(document, dict):
        raise Unreachable(f"{path}: an answer that is no object")
    return response.status, document
