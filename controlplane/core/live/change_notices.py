"""Redis notifications of changed resources, for processes with open sockets.

A notification contains ids only; the receiver reads the resources from the database. If
notifications may have been lost, the receiver tells its clients to reload.
"""

from collections.abc import Iterable

import orjson

from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.core.wakeups import publish_on_commit

MAX_IDS = 200
"""Maximum number of ids in a notification; more ids are split into several."""


def encode_notices(topic: str, ids: Iterable[str]) -> list[bytes]:
    unique_ids = sorted(set(ids))
    return [
        orjson.dumps({"topic": topic, "ids": unique_ids[start : start + MAX_IDS]})
        for start in range(0, len(unique_ids), MAX_IDS)
    ]


def notify_changed(topic: str, *ids: str) -> None:
    """Notify browsers with open sockets of changed resources, after the transaction commits.

    `topic` is one of switches, ramps, breakers, dlq, slo and degradation.
    """
    for text in encode_notices(topic, ids):
        publish_on_commit(LIVE_CHANNEL, text)


def notify_missed() -> None:
    """After the transaction commits, tell all sockets to reload: they may have missed changes."""
    publish_on_commit(LIVE_CHANNEL, MISSED_NOTE)


def decode_notice(text: bytes) -> tuple[str, list[str]] | None:
    """Return the topic and ids of a notification; None if it is invalid."""
    try:
        notice = orjson.loads(text)
        topic, ids = notice["topic"], notice["ids"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(topic, str) or not isinstance(ids, list):
        return None
    return topic, [each for each in ids if isinstance(each, str)]
