"""Execution of intents in Redis, by scripts that are safe to repeat.

Each script leaves a note of what was done with an entry. The notes of one day are in a hash in the
slot of the stream, named after the day of the intent, so that a repetition finds them.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from redis.crc import key_slot

from breakers.dead_letters.letters import ids, packing
from breakers.dead_letters.letters.entries import METADATA, RETRY_COUNT, RETRY_OF, LetterEntry
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader, samples, servers
from breakers.dead_letters.redis_servers.servers import RedisServer, ScriptCall, ServerRefused
from controlplane.core.errors import NotFound

NOTED_FOR = timedelta(days=7)
"""Retention of notes; an older intent is not repeated, as its outcome is unknown."""
MAX_DROPPED = 500
PEEK_LIMITS = reader.ReadLimits(value_bytes=1, fields=1, entries=1)

TRANSIENT_ERRORS = (
    "maxmemory",
    "misconf",
    "noreplicas",
    "readonly",
    "read only replica",
    "loading",
    "busy",
    "masterdown",
    "tryagain",
)
"""Parts of Redis errors that are temporary."""

Kind = Literal["done", "again", "gone", "refused"]
Delivery = Literal["exactly once", "at least once"]


@dataclass(frozen=True)
class RemovalOutcome:
    """The outcome of an intent in Redis.

    `again`: executed before; `gone`: somebody else had removed the entry; `refused`: nothing was
    done, and `why`. `new_id` is the entry's id in the origin after a retry.
    """

    kind: Kind
    new_id: str = ""
    why: str = ""

    @property
    def is_passing(self) -> bool:
        """True if the refusal is due to the server's state, not to the letter."""
        return any(words in self.why.lower() for words in TRANSIENT_ERRORS)


def execute_intents(
    stream: LetterStream, departures: Sequence[Departure]
) -> dict[int, RemovalOutcome]:
    """Execute intents of one stream in Redis; return the outcomes by primary key.

    It writes no table, and is safe to repeat for a week. Raises :class:`ServerUnavailable`, after
    which any of them may have been executed: call it again.
    """
    server = servers.get_server(stream.server)
    retries = [one for one in departures if one.action == Departure.Action.RETRY]
    drops = [one for one in departures if one.action != Departure.Action.RETRY]
    return {**_execute_retries(server, stream, retries), **_execute_drops(server, stream, drops)}


def execute_restore(departure: Departure) -> RemovalOutcome:
    """Add an archived letter to its stream again, complete.

    Repeats and errors are as of :func:`execute_intents`.
    """
    stream = departure.stream
    day = departure.restored_at or departure.intended_at
    pairs = packing.unpack(departure.fields)
    keys = [stream.name, notes_key(stream, day)]
    arguments: list[bytes | str | int] = [
        f"restore:{departure.pk}",
        _notes_ttl_seconds(),
        *_flatten(pairs),
    ]
    try:
        return _parse_outcome(
            servers.get_server(stream.server).run("restore", ScriptCall(keys, arguments))
        )
    except ServerRefused as error:
        return _parse_outcome(error)


def is_responding(stream: LetterStream) -> bool:
    """Return True if the stream's server answers a small call now."""
    try:
        samples.sample_stream(stream.server, stream.name)
    except (servers.ServerUnavailable, NotFound):
        return False
    except ServerRefused:
        return True
    return True


def delivery_guarantee(stream: LetterStream) -> Delivery:
    """Return the guarantee of a retry.

    In a cluster that has the origin on another node, a retry that failed halfway may be delivered
    twice after a week or more.
    """
    if not servers.get_server(stream.server).is_cluster:
        return "exactly once"
    together = _key_slot(stream.name) == _key_slot(stream.origin)
    return "exactly once" if together else "at least once"


def replayed_message(departure: Departure) -> tuple[tuple[bytes, bytes], ...]:
    """Return the pairs that go to the origin: the message and what a retry adds."""
    entry = LetterEntry(ids.to_entry_id(departure.position), packing.unpack(departure.fields))
    kept = entry.original if departure.edited is None else packing.unpack(departure.edited)
    ours = METADATA | {RETRY_OF, RETRY_COUNT}
    return (
        *(pair for pair in kept if pair[0] not in ours),
        (RETRY_OF, entry.id.encode()),
        (RETRY_COUNT, b"%d" % (entry.retries + 1)),
    )


def notes_key(stream: LetterStream, at: datetime, *, beside: str = "") -> str:
    """Return the key of a day's notes, in the slot of `beside`.

    That is the stream of dead letters by default.
    """
    beside = beside or stream.name
    return f"{{{_hash_tag(beside)}}}:switchgear:retried:{stream.name}:{at.astimezone(UTC):%Y%m%d}"


def _execute_retries(
    server: RedisServer, stream: LetterStream, departures: Sequence[Departure]
) -> dict[int, RemovalOutcome]:
    if not departures:
        return {}
    if delivery_guarantee(stream) == "at least once":
        return {one.pk: _retry_across_slots(server, stream, one) for one in departures}
    given = server.run_many("retry", [_retry_call(stream, one) for one in departures])
    return {one.pk: _parse_outcome(what) for one, what in zip(departures, given, strict=True)}


def _retry_call(stream: LetterStream, departure: Departure) -> ScriptCall:
    keys = [stream.name, stream.origin, notes_key(stream, departure.intended_at)]
    entry_id = ids.to_entry_id(departure.position)
    return ScriptCall(
        keys, [entry_id, _notes_ttl_seconds(), *_flatten(replayed_message(departure))]
    )


def _retry_across_slots(
    server: RedisServer, stream: LetterStream, departure: Departure
) -> RemovalOutcome:
    """Add, note, and only then delete: the note reveals a crash in between."""
    entry_id = ids.to_entry_id(departure.position)
    keys = [stream.origin, notes_key(stream, departure.intended_at, beside=stream.origin)]
    try:
        there = (
            reader.read_entry(stream.server, stream.name, entry_id, limits=PEEK_LIMITS) is not None
        )
        fields = _flatten(replayed_message(departure)) if there else ()
        what = "add" if there else "look"
        given = server.run(
            "add_once", ScriptCall(keys, [entry_id, _notes_ttl_seconds(), what, *fields])
        )
        if there:
            dropped_notes = notes_key(stream, departure.intended_at)
            server.run(
                "drop", ScriptCall([stream.name, dropped_notes], [_notes_ttl_seconds(), entry_id])
            )
    except ServerRefused as error:
        return _parse_outcome(error)
    return _parse_outcome(given)


def _execute_drops(
    server: RedisServer, stream: LetterStream, departures: Sequence[Departure]
) -> dict[int, RemovalOutcome]:
    found: dict[int, RemovalOutcome] = {}
    for notes, some in _group_by_notes(stream, departures):
        wanted = [ids.to_entry_id(one.position) for one in some]
        try:
            given = server.run(
                "drop", ScriptCall([stream.name, notes], [_notes_ttl_seconds(), *wanted])
            )
        except ServerRefused as error:
            given = [error] * len(some)
        answers = zip(some, given, strict=True)
        found |= {one.pk: _parse_outcome(what) for one, what in answers}
    return found


def _group_by_notes(
    stream: LetterStream, departures: Sequence[Departure]
) -> Iterator[tuple[str, Sequence[Departure]]]:
    """Yield intents that share a hash of notes, a bounded number at a time.

    A script blocks the server.
    """

    def notes_of(one: Departure) -> str:
        return notes_key(stream, one.intended_at)

    grouped = itertools.groupby(sorted(departures, key=notes_of), key=notes_of)
    for notes, together in grouped:
        while some := list(itertools.islice(together, MAX_DROPPED)):
            yield notes, some


def _parse_outcome(given: Any) -> RemovalOutcome:
    """Return the outcome of a script's answer or refusal."""
    if isinstance(given, ServerRefused):
        return RemovalOutcome("refused", why=given.detail)
    kind, *rest = given if isinstance(given, list) else [given]
    return RemovalOutcome(kind.decode(), rest[0].decode() if rest else "")


def _flatten(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    return [part for pair in pairs for part in pair]


def _notes_ttl_seconds() -> int:
    return int(NOTED_FOR.total_seconds())


def _key_slot(name: str) -> int:
    return int(key_slot(name.encode()))


@functools.lru_cache(maxsize=10_000)
def _hash_tag(name: str) -> str:
    """Return a hash tag in the slot of a key of this name.

    It is its own, the whole name, or a number in the same slot if the name's braces allow neither.
    """
    _, opened, rest = name.partition("{")
    own, closed, _ = rest.partition("}")
    if opened and closed and own:
        return own
    if "}" not in name:
        return name
    return next(str(n) for n in itertools.count() if _key_slot(str(n)) == _key_slot(name))
