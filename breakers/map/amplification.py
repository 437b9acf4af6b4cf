"""How retries multiply along a chain of calls. Pure.

A caller that tries three times, called by one that tries three times, may ask nine times for one
wish: unless the inner one knows that it is being retried already.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Edge = tuple[str, str]
MAX_CHECKS = 10_000
"""Ways through cycles are too many to see them all: after so many steps, what was found counts."""


@dataclass(frozen=True)
class RetryChain:
    """Services in the order of calls, and how many tries the last one may get for one wish: or at
    least so many, if not every way was looked at."""

    services: Sequence[str]
    tries: int
    is_whole: bool = True

    @property
    def hops(self) -> int:
        return len(self.services) - 1


def find_worst_chain(
    attempts: Mapping[Edge, int], caller: str, callee: str, *, most: int = MAX_CHECKS
) -> RetryChain:
    """The chain that ends with `caller` → `callee` and multiplies most; the longer one of two
    alike. `attempts` are the tries (1 is no retry) of each hop above. No service is in it twice."""
    search = _Search(attempts, (caller, callee), most)
    tries, services = search.look(caller, frozenset({caller, callee}))
    last = max(attempts.get((caller, callee), 1), 1)
    return RetryChain((*services, callee), tries * last, is_whole=search.left > 0)


class _Search:
    """Looks at every way up. What was found above a service holds for each way down from it, unless
    it is on a cycle: then it depends on who is on that way already."""

    def __init__(self, attempts: Mapping[Edge, int], last: Edge, most: int) -> None:
        self.left = most
        self._attempts = attempts
        self._above: dict[str, list[str]] = {}
        for source, target in sorted(attempts):
            self._above.setdefault(target, []).append(source)
        import networkx as nx  # Large: loaded by the first page that needs it.

        parts = nx.strongly_connected_components(nx.DiGraph([*attempts, last]))
        self._on_cycles = {service for part in parts if len(part) > 1 for service in part}
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}

    def look(self, service: str, under: frozenset[str]) -> tuple[int, tuple[str, ...]]:
        if service in self._known:
            return self._known[service]
        self.left -= 1
        best: tuple[int, tuple[str, ...]] = (1, (service,))
        for source in self._above.get(service, ()):
            if source in under or self.left <= 0:
                continue
            tries, services = self.look(source, under | {source})
            found = (tries * max(self._attempts[source, service], 1), (*services, service))
            best = max(best, found, key=lambda one: (one[0], len(one[1])))
        if service not in self._on_cycles:
            self._known[service] = best
        return best
