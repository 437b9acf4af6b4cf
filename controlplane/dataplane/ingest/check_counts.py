"""Counter of `/check` requests by client and switch, buffered in memory.

A count whose write failed is lost rather than counted twice.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NamedTuple

from controlplane.dataplane.memory.instance_names import service_of_caller

MAX_PAIRS = 50_000
MAX_SWITCHES = 1000
"""Most switches per client, as many as an instance's row stores."""


class CallerCounts(NamedTuple):
    """The `/check` requests of one client since `since`, as switch id → [allowed, blocked]."""

    service: str
    since: datetime
    switches: dict[str, list[int]]


class CheckCounter:
    """Counter of `/check` requests for at most `MAX_PAIRS` pairs of client and switch.

    Requests for further pairs are not counted.
    """

    def __init__(self, wall: Callable[[], datetime]) -> None:
        self.left_out = 0
        """Number of requests that were not counted because the limit was reached."""
        self._wall = wall
        self._since: datetime
        self._clear()

    def __len__(self) -> int:
        return self._pairs

    def record_check(self, caller: str, switch_ids: Iterable[str], blocked_by: str | None) -> None:
        """Count a `/check` request: as blocked for `blocked_by`, as allowed for other switches."""
        switches = self._callers.get(caller)
        if switches is None:
            service = service_of_caller(caller)
            if service is None:
                return
            if self._pairs >= MAX_PAIRS:
                self.left_out += 1
                return
            if not self._callers:
                self._since = self._wall()
            switches = self._callers[caller] = {}
            self._services[caller] = service
        for switch in switch_ids:
            counts = switches.get(switch)
            if counts is None:
                if self._pairs >= MAX_PAIRS or len(switches) >= MAX_SWITCHES:
                    self.left_out += 1
                    continue
                self._pairs += 1
                counts = switches[switch] = [0, 0]
            counts[switch == blocked_by] += 1

    def take_counts(self) -> dict[str, CallerCounts]:
        taken = {
            caller: CallerCounts(self._services[caller], self._since, switches)
            for caller, switches in self._callers.items()
        }
        self._clear()
        return taken

    def _clear(self) -> None:
        self._callers: dict[str, dict[str, list[int]]] = {}
        self._services: dict[str, str] = {}
        self._pairs = 0
