"""Helpers for tests of removals."""

from typing import Any

from breakers.dead_letters.letters.entries import LetterEntry
from breakers.dead_letters.models import Departure, LetterStream
from breakers.dead_letters.redis_servers import reader
from breakers.dead_letters.removals import intents, settlement
from breakers.tests.fleet import NOW
from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.roles import SCOPES_OF, Role

from .heaps import Heap

REASON = "INC-4411 fixed in 2.14.1"


def actor(name: str = "kim", role: Role = Role.OPERATOR) -> Actor:
    return Actor(type="user", name=name, role=role, scopes=SCOPES_OF[role])


KIM, LEE = actor("kim"), actor("lee")


def declare(heap: Heap, *ids: str, action: str = "retry", by: Actor = KIM, **more: Any) -> Any:
    stream = heap.stream()
    given = {"reason": REASON, "now": NOW, **more}
    entries = [entry(stream, one) for one in ids]
    return intents.declare_intents(stream=stream, entries=entries, action=action, actor=by, **given)


def entry(stream: LetterStream, entry_id: str) -> LetterEntry:
    found = reader.read_entry(stream.server, stream.name, entry_id)
    assert found is not None
    return found


def origin(heap: Heap) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Return the messages put back into the origin, in order."""
    return list(heap.redis.xrange(f"{heap.prefix}:events"))


def dead(heap: Heap) -> list[str]:
    return [one.decode() for one, _ in heap.redis.xrange(heap.name())]


def audited(action: str = "") -> list[AuditEntry]:
    rows = AuditEntry.objects.order_by("id")
    return list(rows.filter(action=action) if action else rows)


def departures() -> list[tuple[str, str]]:
    return list(Departure.objects.order_by("id").values_list("action", "state"))


def settle_and_count(stream, departures, outcomes, now):
    """Settle intents; return their number by kind."""
    found = settlement.settle_intents(stream, departures, outcomes, now)
    return {kind: len(rows) for kind, rows in found.items() if rows}
