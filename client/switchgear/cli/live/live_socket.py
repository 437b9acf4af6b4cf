"""The console's live WebSocket and its errors."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from switchgear.cli import exits
from switchgear.cli.api_client import ApiClient

OPEN_SECONDS = 10.0
QUIET_SECONDS = 45.0
"""Silence after which a socket counts as lost; the console sends a message every 20 s."""
MAX_MESSAGE_BYTES = 16 * 2**20

__all__ = ["SocketLost", "SocketRefused", "open_socket", "receive"]


class SocketLost(Exception):
    """Raised if the socket was closed, or can't be opened now."""


class SocketRefused(SocketLost):
    """Raised if the console, or a proxy in front of it, does not accept sockets."""


@contextmanager
def open_socket(console: ApiClient) -> Iterator[ClientConnection]:
    """Return a context manager that opens and closes the live socket.

    Raise :class:`SocketLost`, :class:`SocketRefused`, or :class:`exits.CommandExit` for bad
    credentials.
    """
    address = f"{console.socket_scheme}://{console.host}/ws/live/"
    try:
        socket = connect(
            address,
            additional_headers={"Authorization": f"Bearer {console.token}"},
            user_agent_header="switchgear-cli",
            open_timeout=OPEN_SECONDS,
            close_timeout=1,
            max_size=MAX_MESSAGE_BYTES,
        )
    except InvalidStatus as error:
        raise _refusal_error(error) from None
    except InvalidHandshake as error:
        raise SocketRefused(f"the WebSocket was refused: {type(error).__name__}") from None
    except (OSError, WebSocketException) as error:
        raise SocketLost(f"can't open a WebSocket: {type(error).__name__}") from None
    with socket:
        yield socket


def receive(socket: ClientConnection, seconds: float) -> dict[str, Any] | None:
    """Return the next message, None after `seconds` without one. Raise :class:`SocketLost`."""
    try:
        message = json.loads(socket.recv(timeout=seconds))
    except TimeoutError:
        return None
    except ValueError:
        raise SocketLost("received invalid JSON") from None
    except (OSError, WebSocketException) as error:
        raise SocketLost(f"the WebSocket was closed: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise SocketLost("received JSON that is not an object")
    return message


def _refusal_error(error: InvalidStatus) -> Exception:
    status = error.response.status_code
    if status not in (401, 403):
        kind = SocketLost if status in (429, 502, 503, 504) else SocketRefused
        return kind(f"the WebSocket was refused with {status}")
    try:
        problem = json.loads(error.response.body or b"")
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "detail" not in problem:
        return SocketRefused(f"the WebSocket was refused with {status}")
    return exits.make_problem_exit(problem, status)
