"""Faults to inject into a service of the demo."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

MAX_DELAY_MS = 10_000
MAX_SECONDS = 3600.0


class InjectedFailure(Exception):
    """Raised by a call that fails because of an injected fault."""


class WrongFault(ValueError):
    """Raised for an invalid fault in a request; the message states the problem."""


@dataclass(frozen=True)
class Fault:
    """A fault to inject into a service, which ends after `seconds`.

    `errors` is the ratio of calls that fail, and `delay_ms` the delay of each call; if `only` is
    set, both apply only to calls of that experiment. `garbled` is the ratio of events with an
    unreadable amount. `overloaded` is the ratio of questions that oracle's first model rejects.
    With `down` the service closes connections without a response.
    """

    errors: float = 0.0
    delay_ms: int = 0
    only: str = ""
    garbled: float = 0.0
    overloaded: float = 0.0
    down: bool = False
    seconds: float = 600.0


WELL = Fault()


def parse_fault(values: Mapping[str, Any]) -> Fault:
    """Return the fault in a request body; raise :class:`WrongFault` if it is invalid."""
    known = {field.name: type(field.default) for field in fields(Fault)}
    wrong = sorted(set(values) - set(known))
    if wrong:
        raise WrongFault(f"{wrong[0]} is unknown; use one of {', '.join(known)}")
    for name, value in values.items():
        if not _has_type(value, known[name]):
            raise WrongFault(f"{name} must be like {asdict(WELL)[name]!r}")
    fault = Fault(**values)
    if not all(0 <= share <= 1 for share in (fault.errors, fault.garbled, fault.overloaded)):
        raise WrongFault("errors, garbled and overloaded are shares from 0 to 1")
    if not 0 <= fault.delay_ms <= MAX_DELAY_MS:
        raise WrongFault(f"delay_ms is from 0 to {MAX_DELAY_MS}")
    if not 0 < fault.seconds <= MAX_SECONDS:
        raise WrongFault(f"seconds are more than 0, and at most {MAX_SECONDS:.0f}")
    return fault


class Faults:
    """The fault that is active in one service, if any. Thread-safe."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._sleep = sleep
        self._lock = threading.Lock()
        self._fault, self._until = WELL, 0.0

    def inject(self, fault: Fault) -> None:
        with self._lock:
            self._fault, self._until = fault, self._clock() + fault.seconds

    @property
    def present(self) -> Fault:
        with self._lock:
            return self._fault if self._clock() < self._until else WELL

    def strike(self, experiment: str = "") -> None:
        """Apply the active fault to one call of `experiment`: delay it, and let it fail at random.

        The delay is `delay_ms`. Raises :class:`InjectedFailure` with the probability `errors`.
        """
        fault = self.present
        if fault.only and fault.only != experiment:
            return
        if fault.delay_ms:
            self._sleep(fault.delay_ms / 1000)
        if self._chance() < fault.errors:
            raise InjectedFailure("the model did not respond")

    def garbles(self) -> bool:
        """Return True if the next event should have an unreadable amount."""
        return self._chance() < self.present.garbled

    def overloads(self) -> bool:
        """Return True if the first model should reject the next question."""
        return self._chance() < self.present.overloaded


def _has_type(value: object, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
