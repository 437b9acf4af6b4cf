"""Notes that a resource changed, through Redis: a hint for every process that has open sockets.

A note says only which resource it is; whoever hears it reads the truth from the database. Losing
one costs a moment: a process that may have missed notes has its clients read everything anew.
"""

from collections.abc import Iterable

import orjson

from controlplane.core.protocol import LIVE_CHANNEL, MISSED_NOTE
from controlplane.core.wakeups import publish_on_commit

MAX_IDS = 200
"""In one note; more of them are told as several."""


def note(topic: str, ids: Iterable[str]) -> list[bytes]:
    """The notes that tell of these resources, as they go through Redis."""
    wanted = sorted(set(ids))
    return [
        orjson.dumps({"topic": topic, "ids": wanted[start : start + MAX_IDS]})
        for start in range(0, len(wanted), MAX_IDS)
    ]


def changed(topic: str, *ids: str) -> None:
    """Tell open sockets that these resources changed, once the current transaction has committed.

    `topic` is one of the contract's: switches, ramps, breakers, dlq, slo, degradation.
    """
    for text in note(topic, ids):
        publish_on_commit(LIVE_CHANNEL, text)


def missed() -> None:
    """Tell that changes were not told, nobody knows which: sockets have everything read anew."""
    publish_on_commit(LIVE_CHANNEL, MISSED_NOTE)


def read(text: bytes) -> tuple[str, list[str]] | None:
    """The topic and the ids of a note as it came; None if it is not one of ours."""
    try:
        said = orjson.loads(text)
        topic, ids = said["topic"], said["ids"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    if not isinstance(topic, str) or not isinstance(ids, list):
        return None
    return topic, [one for one in ids if isinstance(one, str)]
