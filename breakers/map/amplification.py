"""Amplification of retries along a chain of calls. Pure.

A caller with three attempts, called by one with three attempts, may send nine calls for one
request, unless the inner one knows that it is being retried.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Edge = tuple[str, str]
MAX_CHECKS = 10_000
"""Ways through cycles are too many to see them all: after so many steps, what was found counts."""


@dataclass(frozen=True)
class RetryChain:
    """Services in the order of calls, and the most attempts of the last one for one request.

    If not `is_whole`, the search ended early and `tries` is a lower bound.
    """

    services: Sequence[str]
    tries: int
    is_whole: bool = True

    @property
    def hops(self) -> int:
        return len(self.services) - 1


def find_worst_chain(
    attempts: Mapping[Edge, int], caller: str, callee: str, *, most: int = MAX_CHECKS
) -> RetryChain:
    """Return the chain ending in `caller` → `callee` with the highest amplification.

    It is the longer one of two equal ones. `attempts` are the attempts of each hop above (1: no
    retry). No service appears twice.
    """
    search = _Search(attempts, (caller, callee), most)
    tries, services = search.search(caller, frozenset({caller, callee}))
    last = max(attempts.get((caller, callee), 1), 1)
    return RetryChain((*services, callee), tries * last, is_whole=search.left > 0)


class _Search:
    """A depth-first search upwards, memoized for services that are not on a cycle.

    On a cycle the result depends on the services already in the path.
    """

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

    def search(self, service: str, under: frozenset[str]) -> tuple[int, tuple[str, ...]]:
        if service in self._known:
            return self._known[service]
        self.left -= 1
        best: tuple[int, tuple[str, ...]] = (1, (service,))
        for source in self._above.get(service, ()):
            if source in under or self.left <= 0:
                continue
            tries, services = self.search(source, under | {source})
            found = (tries * max(self._attempts[source, service], 1), (*services, service))
            best = max(best, found, key=lambda one: (one[0], len(one[1])))
        if service not in self._on_cycles:
            self._known[service] = best
        return best
