"""How retries multiply along a chain of calls. Pure.

A caller that tries three times, called by one that tries three times, may ask nine times for one
wish: unless the inner one knows that it is being retried already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Edge = tuple[str, str]


@dataclass(frozen=True)
class Chain:
    """Services in the order of calls, and how many tries the last one may get for one wish."""

    services: Sequence[str]
    tries: int

    @property
    def hops(self) -> int:
        return len(self.services) - 1


def worst(attempts: Mapping[Edge, int], caller: str, callee: str) -> Chain:
    """The chain that ends with `caller` → `callee` and multiplies most; the longer one of two
    alike. `attempts` are the tries (1 is no retry) of each hop above. A cycle counts once."""
    above: dict[str, list[str]] = {}
    for source, target in attempts:
        above.setdefault(target, []).append(source)
    known: dict[str, tuple[int, tuple[str, ...]]] = {}

    def look(service: str, under: frozenset[str]) -> tuple[int, tuple[str, ...]]:
        if service in known:
            return known[service]
        best: tuple[int, tuple[str, ...]] = (1, (service,))
        for source in sorted(above.get(service, ())):
            if source in under:
                continue
            tries, services = look(source, under | {source})
            if service in services:
                continue
            found = (tries * max(attempts[source, service], 1), (*services, service))
            best = max(best, found, key=lambda one: (one[0], len(one[1])))
        known[service] = best
        return best

    tries, services = look(caller, frozenset({caller, callee}))
    last = max(attempts.get((caller, callee), 1), 1)
    return Chain((*services, callee), tries * last)
