"""The console's live socket: its messages in order, and whatever breaks them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from switchgear.cli import exits
from switchgear.cli.console import Console

OPEN_SECONDS = 10.0
QUIET_SECONDS = 45.0
"""Without a word for so long, though the console says something every 20 s, it is dead."""
MAX_MESSAGE_BYTES = 16 * 2**20

__all__ = ["Lost", "Refused", "opened", "receive"]


class Lost(Exception):
    """The socket is gone, or can't be opened now."""


class Refused(Lost):
    """Something on the way does not let sockets through."""


@contextmanager
def opened(console: Console) -> Iterator[ClientConnection]:
    """Raises :class:`Lost`, :class:`Refused`, and :class:`exits.Ended` for bad credentials."""
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
        raise _refused(error) from None
    except InvalidHandshake as error:
        raise Refused(f"the socket is refused: {type(error).__name__}") from None
    except (OSError, WebSocketException) as error:
        raise Lost(f"no socket: {type(error).__name__}") from None
    with socket:
        yield socket


def receive(socket: ClientConnection, seconds: float) -> dict[str, Any] | None:
    """The next message; None if there is none within `seconds`. Raises :class:`Lost`."""
    try:
        message = json.loads(socket.recv(timeout=seconds))
    except TimeoutError:
        return None
    except ValueError:
        raise Lost("a message is no JSON") from None
    except (OSError, WebSocketException) as error:
        raise Lost(f"the socket ended: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise Lost("a message is no object")
    return message


def _refused(error: InvalidStatus) -> Exception:
    status = error.response.status_code
    if status not in (401, 403):
        kind = Lost if status in (429, 502, 503, 504) else Refused
        return kind(f"the socket is refused with {status}")
    try:
        problem = json.loads(error.response.body or b"")
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "detail" not in problem:
        return Refused(f"the socket is refused with {status}")
    return exits.refused(problem, status)
