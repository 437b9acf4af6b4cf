"""Notifications of changed resources through Redis, for processes with open sockets.

A notification only names the resource; the receiver reads it from the database. A loss costs a
moment: a process that may have missed some makes its clients reload.
"""

from collections.abc import Iterable

import orjson

from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.core.wakeups import publish_on_commit

MAX_IDS = 200
"""Maximum per notification; more ids are split."""


def note(topic: str, ids: Iterable[str]) -> list[bytes]:
    """Return the encoded notifications for these resources."""
    wanted = sorted(set(ids))
    return [
        orjson.dumps({"topic": topic, "ids": wanted[start : start + MAX_IDS]})
        for start in range(0, len(wanted), MAX_IDS)
    ]


def changed(topic: str, *ids: str) -> None:
    """Notify open sockets of changed resources, after the current transaction commits.

    `topic` is one of the contract's: switches, ramps, breakers, dlq, slo, degradation.
    """
    for text in note(topic, ids):
        publish_on_commit(LIVE_CHANNEL, text)


def missed() -> None:
    """Report that notifications may have been missed: all sockets reload."""
    publish_on_commit(LIVE_CHANNEL, MISSED_NOTE)


def read(text: bytes) -> tuple[str, list[str]] | None:
    """Return the topic and ids of a notification; None if it is invalid."""
    try:
        said = orjson.loads(text)
        topic, ids = said["topic"], said["ids"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(topic, str) or not isinstance(ids, list):
        return None
    return topic, [one for one in ids if isinstance(one, str)]
