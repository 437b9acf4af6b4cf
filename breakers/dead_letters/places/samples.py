"""How streams of dead letters stand on their servers, without a look at what lies in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from breakers.dead_letters.letters import ids
from breakers.dead_letters.places import servers
from breakers.dead_letters.places.servers import Call, ServerRefused

AT_ONCE = 200


@dataclass(frozen=True)
class Sample:
    """A stream at one moment: its depth, and positions of its first and its last entry (empty: it
    has none), and of the last that it ever had. It is not `there` when there is no such key, or
    when what is stored there is no stream."""

    there: bool
    depth: int
    first: str
    last: str
    last_given: str


NOTHING = Sample(there=False, depth=0, first="", last="", last_given="")


def of(server: str, names: Sequence[str]) -> dict[str, Sample]:
    """How the streams of these names stand, by name; one that the server refuses to tell of is left
    out. Raises :class:`servers.ServerAway`."""
    found: dict[str, Sample] = {}
    for start in range(0, len(names), AT_ONCE):
        asked = names[start : start + AT_ONCE]
        given = servers.of(server).run_many("sample", [Call([name]) for name in asked])
        told = zip(asked, given, strict=True)
        found |= {name: _sample(one) for name, one in told if not isinstance(one, ServerRefused)}
    return found


def one(server: str, name: str) -> Sample:
    """How one stream stands. Raises :class:`servers.ServerAway` and
    :class:`servers.ServerRefused`."""
    return _sample(servers.of(server).run("sample", Call([name])))


def _sample(given: Any) -> Sample:
    there, depth, *places = given
    first, last, last_given = (_position(place) for place in places)
    return Sample(bool(there), int(depth), first, last, last_given)


def _position(entry_id: bytes) -> str:
    return ids.position(entry_id.decode()) if entry_id else ""
