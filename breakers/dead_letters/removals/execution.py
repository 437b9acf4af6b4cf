"""Carrying out in Redis what was declared in PostgreSQL: scripts that are safe to repeat.

Each note that one leaves behind says what was done with an entry. Notes of one day share a hash in
the slot of the stream, named after the day of the intent, so that whoever repeats it finds it.
"""

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from redis.crc import key_slot

from breakers.dead_letters.letters import ids, packing
from breakers.dead_letters.letters.entries import METADATA, RETRY_COUNT, RETRY_OF, Entry
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader, samples, servers
from breakers.dead_letters.redis_servers.servers import Call, Server, ServerRefused
from controlplane.core.errors import NotFound

NOTED_FOR = timedelta(days=7)
"""What was begun before, nobody can tell the end of: it is not repeated blindly."""
DROPPED_AT_ONCE = 500
LOOK = reader.Limits(value_bytes=1, fields=1, entries=1)

PASSING = (
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
"""What a server says that will do it later."""

Kind = Literal["done", "again", "gone", "refused"]
Delivery = Literal["exactly once", "at least once"]


@dataclass(frozen=True)
class Outcome:
    """What became of an intent in Redis. `again`: it had been carried out before; `gone`: somebody
    else had taken the entry away; `refused`: nothing was done, and `why`. `new_id` is the entry's
    id in the origin, after a retry."""

    kind: Kind
    new_id: str = ""
    why: str = ""

    @property
    def is_passing(self) -> bool:
        """Whether it was refused as the server is now, not as the letter is."""
        return any(words in self.why.lower() for words in PASSING)


def carry_out(stream: LetterStream, departures: Sequence[Departure]) -> dict[int, Outcome]:
    """Do in Redis what these intents of one stream say; what came of each, by its key.

    It touches no table, and is harmless to repeat for a week. Raises :class:`servers.ServerAway`,
    after which any of them may have been carried out: ask again.
    """
    server = servers.of(stream.server)
    retries = [one for one in departures if one.action == Departure.Action.RETRY]
    drops = [one for one in departures if one.action != Departure.Action.RETRY]
    return {**_retry(server, stream, retries), **_drop(server, stream, drops)}


def put_back(departure: Departure) -> Outcome:
    """Add an archived letter to its stream again, with all that it had. As :func:`carry_out`."""
    stream = departure.stream
    day = departure.restored_at or departure.intended_at
    pairs = packing.unpack(departure.fields)
    keys = [stream.name, notes_key(stream, day)]
    arguments: list[bytes | str | int] = [f"restore:{departure.pk}", _seconds(), *_flat(pairs)]
    try:
        return _outcome(servers.of(stream.server).run("restore", Call(keys, arguments)))
    except ServerRefused as error:
        return _outcome(error)


def answers(stream: LetterStream) -> bool:
    """Whether the stream's server answers a small question now."""
    try:
        samples.one(stream.server, stream.name)
    except (servers.ServerAway, NotFound):
        return False
    except ServerRefused:
        return True
    return True


def delivery_of(stream: LetterStream) -> Delivery:
    """What a retry promises. In a cluster that keeps the origin on another node than the dead
    letters, one that failed in between may be delivered twice, a week later or more."""
    if not servers.of(stream.server).is_cluster:
        return "exactly once"
    together = _slot(stream.name) == _slot(stream.origin)
    return "exactly once" if together else "at least once"


def message(departure: Departure) -> tuple[tuple[bytes, bytes], ...]:
    """What goes to the origin: the message as it was or was edited, and what a retry adds."""
    entry = Entry(ids.entry_id(departure.position), packing.unpack(departure.fields))
    kept = entry.original if departure.edited is None else packing.unpack(departure.edited)
    ours = METADATA | {RETRY_OF, RETRY_COUNT}
    return (
        *(pair for pair in kept if pair[0] not in ours),
        (RETRY_OF, entry.id.encode()),
        (RETRY_COUNT, b"%d" % (entry.retries + 1)),
    )


def notes_key(stream: LetterStream, at: datetime, *, beside: str = "") -> str:
    """The hash of notes of a day, in the slot of `beside` (the dead letters, if it is not said)."""
    beside = beside or stream.name
    return f"{{{_tag(beside)}}}:switchgear:retried:{stream.name}:{at.astimezone(UTC):%Y%m%d}"


def _retry(
    server: Server, stream: LetterStream, departures: Sequence[Departure]
) -> dict[int, Outcome]:
    if not departures:
        return {}
    if delivery_of(stream) == "at least once":
        return {one.pk: _retry_apart(server, stream, one) for one in departures}
    given = server.run_many("retry", [_retry_call(stream, one) for one in departures])
    return {one.pk: _outcome(what) for one, what in zip(departures, given, strict=True)}


def _retry_call(stream: LetterStream, departure: Departure) -> Call:
    keys = [stream.name, stream.origin, notes_key(stream, departure.intended_at)]
    entry_id = ids.entry_id(departure.position)
    return Call(keys, [entry_id, _seconds(), *_flat(message(departure))])


def _retry_apart(server: Server, stream: LetterStream, departure: Departure) -> Outcome:
    """Add, note, and only then take away: whoever dies in between is found out by the note."""
    entry_id = ids.entry_id(departure.position)
    keys = [stream.origin, notes_key(stream, departure.intended_at, beside=stream.origin)]
    try:
        there = reader.one(stream.server, stream.name, entry_id, limits=LOOK) is not None
        fields = _flat(message(departure)) if there else ()
        what = "add" if there else "look"
        given = server.run("add_once", Call(keys, [entry_id, _seconds(), what, *fields]))
        if there:
            dropped_notes = notes_key(stream, departure.intended_at)
            server.run("drop", Call([stream.name, dropped_notes], [_seconds(), entry_id]))
    except ServerRefused as error:
        return _outcome(error)
    return _outcome(given)


def _drop(
    server: Server, stream: LetterStream, departures: Sequence[Departure]
) -> dict[int, Outcome]:
    found: dict[int, Outcome] = {}
    for notes, some in _by_notes(stream, departures):
        wanted = [ids.entry_id(one.position) for one in some]
        try:
            given = server.run("drop", Call([stream.name, notes], [_seconds(), *wanted]))
        except ServerRefused as error:
            given = [error] * len(some)
        answers = zip(some, given, strict=True)
        found |= {one.pk: _outcome(what) for one, what in answers}
    return found


def _by_notes(
    stream: LetterStream, departures: Sequence[Departure]
) -> Iterator[tuple[str, Sequence[Departure]]]:
    """Those whose notes share a hash, a bounded number at a time: a script stops all others."""

    def notes_of(one: Departure) -> str:
        return notes_key(stream, one.intended_at)

    grouped = itertools.groupby(sorted(departures, key=notes_of), key=notes_of)
    for notes, together in grouped:
        while some := list(itertools.islice(together, DROPPED_AT_ONCE)):
            yield notes, some


def _outcome(given: Any) -> Outcome:
    """The outcome that a script's answer, or the refusal of one, stands for."""
    if isinstance(given, ServerRefused):
        return Outcome("refused", why=given.detail)
    kind, *rest = given if isinstance(given, list) else [given]
    return Outcome(kind.decode(), rest[0].decode() if rest else "")


def _flat(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    return [part for pair in pairs for part in pair]


def _seconds() -> int:
    return int(NOTED_FOR.total_seconds())


def _slot(name: str) -> int:
    return int(key_slot(name.encode()))


@functools.lru_cache(maxsize=10_000)
def _tag(name: str) -> str:
    """A hash tag of the same slot as a key of this name: its own, all of it, or, for names whose
    braces allow neither, a number that happens to be there."""
    _, opened, rest = name.partition("{")
    own, closed, _ = rest.partition("}")
    if opened and closed and own:
        return own
    if "}" not in name:
        return name
    return next(str(n) for n in itertools.count() if _slot(str(n)) == _slot(name))
