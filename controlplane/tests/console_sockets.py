"""Listening at the sockets of a real web process, in tests."""

import json
import time
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from django.conf import settings
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from controlplane.accounts.models.people import User
from controlplane.core.protocol import LIVE_CHANNEL
from controlplane.dataplane.tests.lines import Line
from controlplane.dataplane.tests.processes import Server
from switches.tests.browsers import browser

ENDED_WITHIN = 5


@dataclass
class Console:
    """A web process, and the lines by which it reaches PostgreSQL and Redis."""

    server: Server
    database: Line
    redis: Line

    @property
    def address(self) -> str:
        return self.server.url.replace("http", "ws") + "/ws/live/"

    def listen(self, token: str, **options: Any) -> ClientConnection:
        """A program's socket."""
        return self.connect({"Authorization": f"Bearer {token}"}, **options)

    def sit_down(self, user: User) -> ClientConnection:
        """A browser's socket."""
        return self.connect(self.cookie_of(user))

    def connect(self, headers: dict[str, str], **options: Any) -> ClientConnection:
        """Open a socket that buffers without limit.

        Otherwise closing takes ten seconds if another test sends many messages to all sockets.
        Retries, because a new token is accepted after a moment, and the database seems down while a
        test's tables are truncated.
        """
        options = {"max_queue": None, **options}
        ends = time.monotonic() + 5
        while True:
            try:
                return connect(self.address, additional_headers=headers, **options)
            except InvalidStatus as error:
                if error.response.status_code not in {401, 503} or time.monotonic() > ends:
                    raise
                time.sleep(0.1)

    def cookie_of(self, user: User, origin: str | None = None) -> dict[str, str]:
        key = browser(user).cookies[settings.SESSION_COOKIE_NAME].value
        cookie = f"{settings.SESSION_COOKIE_NAME}={key}"
        return {"Cookie": cookie, "Origin": origin or self.server.url}


def receive_message(listening: ClientConnection, seconds: float = 3) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(listening.recv(timeout=seconds))
    return body


def hears(listening: ClientConnection, topic: str, seconds: float = 10, **wanted: Any) -> dict:
    """Return the topic's next message with the wanted data, skipping others."""
    return hears_each(listening, {topic: wanted}, seconds)[topic]


def hears_each(
    listening: ClientConnection, wanted: dict[str, dict[str, Any]], seconds: float = 10
) -> dict[str, dict]:
    """Return the first message of each topic whose data is as wanted, in whatever order they come.

    What others change passes by.
    """
    ends = time.monotonic() + seconds
    found: dict[str, dict] = {}
    while len(found) < len(wanted):
        message = receive_message(listening, max(0.01, ends - time.monotonic()))
        topic, data = message["topic"], message.get("data", {})
        if topic in wanted and all(data.get(k) == v for k, v in wanted[topic].items()):
            found.setdefault(topic, message)
    return found


def refusal(address: str, headers: dict[str, str]) -> Any:
    with pytest.raises(InvalidStatus) as refused:
        connect(address, additional_headers=headers)
    return refused.value.response


def ends_with(listening: ClientConnection, seconds: float = ENDED_WITHIN) -> int:
    """Return the close code, skipping earlier messages."""
    ends = time.monotonic() + seconds
    while True:
        try:
            listening.recv(timeout=max(0.01, ends - time.monotonic()))
        except ConnectionClosed as closed:
            assert closed.rcvd is not None
            return closed.rcvd.code


def publish(*notes: Any) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as client:
        for note in notes:
            client.publish(LIVE_CHANNEL, json.dumps(note))
