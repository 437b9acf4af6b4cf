"""Amplification of retries along a chain of calls.

Pure. Two callers in a chain that make three attempts each can cause nine calls of the last service
for one request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Edge = tuple[str, str]
MAX_CHECKS = 10_000
"""Limit of visited services: the number of paths through cycles grows exponentially."""


@dataclass(frozen=True)
class RetryChain:
    """A chain of services in call order, with the calls that retries may cause.

    `tries` is the maximum number of calls of the last service for one request. `is_whole` is False
    if the search for the chain stopped at its limit.
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
    """Return the chain that ends with `caller` → `callee` and has the most calls per request.

    `attempts` are the attempts of each dependency, 1 without retries. Of two equal chains the
    longer one is returned; no service appears twice. At most `most` services are visited.
    """
    search = _Search(attempts, (caller, callee), most)
    tries, services = search.search(caller, frozenset({caller, callee}))
    last = max(attempts.get((caller, callee), 1), 1)
    return RetryChain((*services, callee), tries * last, is_whole=search.left > 0)


class _Search:
    """A depth-first search up the callers for the worst chain; memoized, except on cycles."""

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
