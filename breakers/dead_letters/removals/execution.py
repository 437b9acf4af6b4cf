"""Execution of removal intents in Redis, by idempotent scripts.

Each script stores a note of the outcome in Redis, so that a repetition returns the same outcome. A
stream has one hash of notes for each day of intents, in the stream's cluster slot.
"""

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from redis.crc import key_slot

from breakers.dead_letters.letters.entries import OUTLINE, RESERVED_NAMES, RETRY_COUNT, RETRY_OF
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader, samples, servers
from breakers.dead_letters.redis_servers.servers import (
    RedisServer,
    ScriptCall,
    ServerRefused,
    ServerUnavailable,
)
from controlplane.core.errors import NotFound

NOTED_FOR = timedelta(days=7)
"""Retention of notes; an older intent is not repeated, as its outcome is unknown."""
NOTES_TTL_SECONDS = int(NOTED_FOR.total_seconds())
MAX_DROPPED = 500

TRANSIENT_ERRORS = (
    *("maxmemory", "misconf", "noreplicas", "readonly", "read only replica"),
    *("loading", "busy", "masterdown", "tryagain"),
)
"""Parts of Redis error messages that mean a temporary refusal."""

Kind = Literal["done", "again", "gone", "refused"]
Delivery = Literal["exactly once", "at least once"]


@dataclass(frozen=True)
class RemovalOutcome:
    """Outcome of a removal intent in Redis.

    `done`: removed now; `again`: removed by an earlier execution; `gone`: another client had
    removed the entry; `refused`: nothing was done, for the reason `why`. `new_id` is the entry id
    in the origin after a retry.
    """

    kind: Kind
    new_id: str = ""
    why: str = ""

    @property
    def is_temporary(self) -> bool:
        """True if the refusal is due to the state of the server, not to the letter."""
        return any(words in self.why.lower() for words in TRANSIENT_ERRORS)


Outcomes = dict[int, RemovalOutcome]
"""Outcomes by primary key of the intent."""


def execute_intents(stream: LetterStream, departures: Sequence[Departure]) -> Outcomes:
    """Execute removal intents of one stream in Redis; return the outcomes by primary key.

    Writes nothing to the database, and can be repeated for a week. Raises
    :class:`ServerUnavailable`, after which any of the intents may have been executed.
    """
    server = servers.get_server(stream.server)
    retries = [one for one in departures if one.action == Departure.Action.RETRY]
    drops = [one for one in departures if one.action != Departure.Action.RETRY]
    return {**_execute_retries(server, stream, retries), **_execute_drops(server, stream, drops)}


def execute_restore(departure: Departure) -> RemovalOutcome:
    """Add an archived letter to its stream again.

    Repetitions and errors are as with :func:`execute_intents`.
    """
    stream = departure.stream
    keys = [stream.name, notes_key(stream, departure.restored_at or departure.intended_at)]
    fields = _flatten_pairs(departure.entry.pairs)
    call = ScriptCall(keys, [f"restore:{departure.pk}", NOTES_TTL_SECONDS, *fields])
    try:
        return _parse_outcome(servers.get_server(stream.server).run("restore", call))
    except ServerRefused as error:
        return _parse_outcome(error)


def execute_or_withdraw(
    server: str,
    execute: Callable[[], RemovalOutcome],
    withdraw: Callable[[RemovalOutcome], object],
    *,
    noted: str,
) -> RemovalOutcome:
    """Return the result of `execute`, which executes a committed intent.

    If the server refuses, `withdraw` is called with the outcome and :class:`ServerRefused` is
    raised. If the server is unavailable, raises :class:`ServerUnavailable`: its message says that
    `noted`, such as "The restore", will be carried out later.
    """
    try:
        outcome = execute()
    except ServerUnavailable as error:
        raise ServerUnavailable(
            f"The Redis server {server} does not respond. {noted} is saved and runs when the"
            " server is available again. You can safely repeat it."
        ) from error
    if outcome.kind == "refused":
        withdraw(outcome)
        raise ServerRefused(outcome.why, server=server)
    return outcome


def is_responding(stream: LetterStream) -> bool:
    """Return True if the stream's server responds to a small call."""
    try:
        samples.sample_stream(stream.server, stream.name)
    except ServerRefused:
        return True
    except (ServerUnavailable, NotFound):
        return False
    return True


def delivery_guarantee(stream: LetterStream) -> Delivery:
    """Return the delivery guarantee of a retry: "exactly once" or "at least once".

    It is "at least once" if the origin is in another cluster slot: a retry that failed halfway may
    be delivered twice if it is repeated after a week or more.
    """
    is_cluster = servers.get_server(stream.server).is_cluster
    is_split = is_cluster and _key_slot(stream.name) != _key_slot(stream.origin)
    return "at least once" if is_split else "exactly once"


def replayed_message(departure: Departure) -> tuple[tuple[bytes, bytes], ...]:
    """Return the fields that are added to the origin: the message and the retry metadata."""
    entry = departure.entry
    message = entry.original if departure.edited_pairs is None else departure.edited_pairs
    return (
        *(pair for pair in message if pair[0] not in RESERVED_NAMES),
        (RETRY_OF, entry.id.encode()),
        (RETRY_COUNT, b"%d" % (entry.retries + 1)),
    )


def notes_key(stream: LetterStream, at: datetime, *, beside: str = "") -> str:
    """Return the Redis key of a stream's notes of outcomes on the day of `at`.

    The key is in the cluster slot of the key `beside`, by default the slot of the stream.
    """
    beside = beside or stream.name
    return f"{{{_hash_tag(beside)}}}:switchgear:retried:{stream.name}:{at.astimezone(UTC):%Y%m%d}"


def _execute_retries(
    server: RedisServer, stream: LetterStream, departures: Sequence[Departure]
) -> Outcomes:
    if not departures:
        return {}
    if delivery_guarantee(stream) == "at least once":
        return {one.pk: _retry_across_slots(server, stream, one) for one in departures}
    calls = [
        ScriptCall(
            [stream.name, stream.origin, notes_key(stream, one.intended_at)],
            [one.entry_id, NOTES_TTL_SECONDS, *_flatten_pairs(replayed_message(one))],
        )
        for one in departures
    ]
    replies = zip(departures, server.run_many("retry", calls), strict=True)
    return {one.pk: _parse_outcome(reply) for one, reply in replies}


def _retry_across_slots(
    server: RedisServer, stream: LetterStream, departure: Departure
) -> RemovalOutcome:
    """Retry a letter whose origin is in another slot: add the message and a note, then delete.

    After a crash in between, the note prevents a second addition.
    """
    entry_id, day = departure.entry_id, departure.intended_at
    keys = [stream.origin, notes_key(stream, day, beside=stream.origin)]
    try:
        entry = reader.read_entry(stream.server, stream.name, entry_id, limits=OUTLINE)
        fields = [] if entry is None else _flatten_pairs(replayed_message(departure))
        mode = "look" if entry is None else "add"
        call = ScriptCall(keys, [entry_id, NOTES_TTL_SECONDS, mode, *fields])
        reply = server.run("add_once", call)
        if entry is not None:
            keys = [stream.name, notes_key(stream, day)]
            server.run("drop", ScriptCall(keys, [NOTES_TTL_SECONDS, entry_id]))
    except ServerRefused as error:
        return _parse_outcome(error)
    return _parse_outcome(reply)


def _execute_drops(
    server: RedisServer, stream: LetterStream, departures: Sequence[Departure]
) -> Outcomes:
    """Delete letters from their stream without retrying them; return the outcomes.

    A script call deletes up to `MAX_DROPPED` letters whose intents are from the same day.
    """
    by_key: dict[str, list[Departure]] = defaultdict(list)
    for one in departures:
        by_key[notes_key(stream, one.intended_at)].append(one)
    outcomes: Outcomes = {}
    for notes, rows in sorted(by_key.items()):
        for start in range(0, len(rows), MAX_DROPPED):
            batch = rows[start : start + MAX_DROPPED]
            arguments: list[str | int] = [NOTES_TTL_SECONDS, *(one.entry_id for one in batch)]
            try:
                replies = server.run("drop", ScriptCall([stream.name, notes], arguments))
            except ServerRefused as error:
                replies = [error] * len(batch)
            pairs = zip(batch, replies, strict=True)
            outcomes |= {one.pk: _parse_outcome(reply) for one, reply in pairs}
    return outcomes


def _parse_outcome(reply: Any) -> RemovalOutcome:
    if isinstance(reply, ServerRefused):
        return RemovalOutcome("refused", why=reply.detail)
    kind, *rest = reply if isinstance(reply, list) else [reply]
    return RemovalOutcome(kind.decode(), rest[0].decode() if rest else "")


def _flatten_pairs(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    return [part for pair in pairs for part in pair]


def _key_slot(name: str) -> int:
    return int(key_slot(name.encode()))


@functools.lru_cache(maxsize=10_000)
def _hash_tag(name: str) -> str:
    """Return a Redis Cluster hash tag that maps to the same slot as the key `name`.

    It is the name's own tag if there is one, otherwise the whole name. If the name contains `}` and
    so can't be a tag, it is a number in the same slot.
    """
    _, opened, rest = name.partition("{")
    own, closed, _ = rest.partition("}")
    if opened and closed and own:
        return own
    if "}" not in name:
        return name
    return next(str(n) for n in itertools.count() if _key_slot(str(n)) == _key_slot(name))
