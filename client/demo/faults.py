"""Faults that are injected into a service."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

MAX_DELAY_MS = 10_000
MAX_SECONDS = 3600.0


class Broken(Exception):
    """A call that fails because of an injected fault."""


class WrongFault(ValueError):
    """The fault is invalid; the message says why."""


@dataclass(frozen=True)
class Fault:
    """The fault of a service.

    `errors` is the share of calls that fail, and each takes `delay_ms` longer; with `only` just the
    calls of this experiment. `garbled` is the share of events that are written wrongly,
    `overloaded` the share of questions that oracle's first model rejects. `down` closes connections
    without an answer. It ends after `seconds`.
    """

    errors: float = 0.0
    delay_ms: int = 0
    only: str = ""
    garbled: float = 0.0
    overloaded: float = 0.0
    down: bool = False
    seconds: float = 600.0


WELL = Fault()


def read(given: Mapping[str, Any]) -> Fault:
    """Return the fault described by `given`. Raise :class:`WrongFault`."""
    known = {field.name: type(field.default) for field in fields(Fault)}
    wrong = sorted(set(given) - set(known))
    if wrong:
        raise WrongFault(f"{wrong[0]} is unknown; there are {', '.join(known)}")
    for name, value in given.items():
        if not _fits(value, known[name]):
            raise WrongFault(f"{name} must be like {asdict(WELL)[name]!r}")
    fault = Fault(**given)
    if not all(0 <= share <= 1 for share in (fault.errors, fault.garbled, fault.overloaded)):
        raise WrongFault("errors, garbled and overloaded are shares from 0 to 1")
    if not 0 <= fault.delay_ms <= MAX_DELAY_MS:
        raise WrongFault(f"delay_ms is from 0 to {MAX_DELAY_MS}")
    if not 0 < fault.seconds <= MAX_SECONDS:
        raise WrongFault(f"seconds are more than 0, and at most {MAX_SECONDS:.0f}")
    return fault


class Faults:
    """The current fault of one service. Thread-safe."""

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

    def put(self, fault: Fault) -> None:
        with self._lock:
            self._fault, self._until = fault, self._clock() + fault.seconds

    @property
    def present(self) -> Fault:
        with self._lock:
            return self._fault if self._clock() < self._until else WELL

    def strike(self, experiment: str = "") -> None:
        """Apply the fault to one call: delay it, and maybe raise :class:`Broken`."""
        fault = self.present
        if fault.only and fault.only != experiment:
            return
        if fault.delay_ms:
            self._sleep(fault.delay_ms / 1000)
        if self._chance() < fault.errors:
            raise Broken("the model gave no answer")

    def garbles(self) -> bool:
        """Return True if this event is to be written wrongly."""
        return self._chance() < self.present.garbled

    def overloads(self) -> bool:
        """Return True if the first model is to reject this question."""
        return self._chance() < self.present.overloaded


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
