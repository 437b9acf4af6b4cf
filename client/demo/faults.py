"""Faults that somebody puts into a service, to see what becomes of it."""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

MAX_DELAY_MS = 10_000
MAX_SECONDS = 3600.0


class Broken(Exception):
    """A call that fails because somebody wants it to."""


class WrongFault(ValueError):
    """What can't be a fault; the message says why."""


@dataclass(frozen=True)
class Fault:
    """What is wrong with a service.

    `errors` is the share of calls that fail, and each takes `delay_ms` longer; with `only` that is
    so for the calls of this experiment alone. `garbled` is the share of events that are written
    wrongly, `overloaded` that of questions for which oracle's first model has no time. `down`
    closes connections without an answer. It is over after `seconds`.
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
    """The fault that this asks for. Raises :class:`WrongFault`."""
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
    """The fault of one service. Every method may be called from any thread."""

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
        """What happens to one call: it takes its time, and perhaps raises :class:`Broken`."""
        fault = self.present
        if fault.only and fault.only != experiment:
            return
        if fault.delay_ms:
            self._sleep(fault.delay_ms / 1000)
        if self._chance() < fault.errors:
            raise Broken("the model gave no answer")

    def garbles(self) -> bool:
        """Whether this event is to be written wrongly."""
        return self._chance() < self.present.garbled

    def overloads(self) -> bool:
        """Whether the first model has no time for this question."""
        return self._chance() < self.present.overloaded


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
