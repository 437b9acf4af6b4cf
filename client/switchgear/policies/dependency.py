"""What all policies of one name have in common: one breaker, one bulkhead, one budget for retries,
and what the console says of them."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Unpack

from switchgear.patterns import forks
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.counters import Counters
from switchgear.patterns.parameters import (
    TIERS,
    BreakerParameters,
    BulkheadParameters,
    Tier,
)
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.terms import Transition
from switchgear.policies.arguments import BreakerArguments
from switchgear.policies.documents import NOTHING, RESET, Override, Said

MOST_STEPS = 100
"""As many as the console keeps of one breaker out of one report."""

log = logging.getLogger("switchgear")


class Dependency:
    """One name's. Safe to use from any thread. `clock` is monotonic.

    What the console says is put in force by :meth:`say`, in place: a breaker stays as open as it
    is. Policies look whether `said` is still the one that they were built by.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self.said: Said = NOTHING
        self.counters = Counters()
        self.budget = RetryBudget(clock=clock)
        """Of all retries of this name."""
        self._clock = clock
        self._lock = threading.RLock()
        self._breaker: Breaker | None = None
        self._bulkhead: Bulkhead | None = None
        self._breaker_arguments: BreakerArguments = {}
        self._bulkhead_parameters: BulkheadParameters | None = None
        self._mode: str | None = None
        self._applied: int | None = None
        self._is_over: int | None = None
        self._has_complained = False
        self.steps: deque[Transition] = deque(maxlen=MOST_STEPS)
        """The latest of its breaker that nobody has taken away, by number."""
        self.on_step: Callable[[], object] | None = None
        """Is called after each of them, in the thread in which it happened."""
        forks.register(self)

    @property
    def breaker(self) -> Breaker | None:
        """None before anybody wanted it."""
        return self._breaker

    @property
    def bulkhead(self) -> Bulkhead | None:
        """None before anybody wanted it."""
        return self._bulkhead

    def breaker_of(self, **arguments: Unpack[BreakerArguments]) -> Breaker:
        """The breaker; what the first one says of it holds for all."""
        given: BreakerArguments = {}
        for name, one in arguments.items():
            if one is not None and one != ():
                given[name] = one  # type: ignore[literal-required]
        with self._lock:
            known = self._breaker_arguments
            for name, one in given.items():
                if known.setdefault(name, one) != one:  # type: ignore[misc]
                    self._complain(f"{name} of its breaker")
            if self._breaker is None:
                rest = {name: one for name, one in known.items() if name != "parameters"}
                self._breaker = Breaker(
                    self.name,
                    self._breaker_parameters(),
                    counters=self.counters,
                    clock=self._clock,
                    **rest,  # type: ignore[arg-type]
                )
                self._breaker.watch(self._step)
                self._force()
            else:
                self._configure()
            return self._breaker

    def bulkhead_of(self, parameters: BulkheadParameters | Tier | None = None) -> Bulkhead:
        """The bulkhead; without parameters from anybody all pass through it."""
        given = TIERS[parameters] if isinstance(parameters, str) else parameters
        with self._lock:
            if given is not None and self._bulkhead_parameters not in (None, given):
                self._complain("parameters of its bulkhead")
            self._bulkhead_parameters = self._bulkhead_parameters or given
            if self._bulkhead is None:
                self._bulkhead = Bulkhead(self.name)
            self._configure()
            return self._bulkhead

    def say(self, said: Said, now: float) -> None:
        """The console says so; `now` is UNIX seconds by its clock."""
        with self._lock:
            if said != self.said:
                self.said = said
                self._configure()
            self._end(now)
            self._force()

    def expire(self, now: float) -> None:
        """End an override whose time is over."""
        with self._lock:
            self._end(now)
            self._force()

    @property
    def ends_at(self) -> float | None:
        """When the override that is in force ends by itself; None without one."""
        override = self._override()
        return None if override is None or override.mode == RESET else override.ends_at

    def after_fork(self) -> None:
        """In a child: nothing is told of the parent's breaker. That of the child begins anew, in
        the same mode."""
        self._lock = threading.RLock()
        self.steps.clear()

    def _step(self, step: Transition) -> None:
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step()

    def _override(self) -> Override | None:
        override = self.said.override
        return None if override is None or override.version == self._is_over else override

    def _end(self, now: float) -> None:
        override = self.said.override
        if override is not None and override.mode != RESET and override.ends_at <= now:
            self._is_over = override.version

    def _force(self) -> None:
        """Bring the breaker into the mode of the override, once for each of its versions."""
        breaker, override = self._breaker, self._override()
        if breaker is None:
            return
        mode = None if override is None or override.mode == RESET else override.mode
        version = None if override is None else override.version
        if self._mode is not None and mode is None:
            breaker.unforce()
        if override is not None and version != self._applied:
            if override.mode == RESET:
                breaker.reset()
            else:
                breaker.force(override.mode)  # type: ignore[arg-type]
        self._mode = mode
        if version is not None:
            self._applied = version

    def _configure(self) -> None:
        breaker, bulkhead = self._breaker, self._bulkhead
        if breaker is not None and breaker.parameters != self._breaker_parameters():
            breaker.configure(self._breaker_parameters())
        if bulkhead is not None:
            wanted = self.said.bulkhead or self._bulkhead_parameters
            if bulkhead.parameters != wanted:
                bulkhead.configure(wanted)

    def _breaker_parameters(self) -> BreakerParameters:
        given = self._breaker_arguments.get("parameters")
        return self.said.breaker or given or BreakerParameters()

    def _complain(self, what: str) -> None:
        if not self._has_complained:
            self._has_complained = True
            log.warning(
                "switchgear: policies of %.100r differ in %s: those said first hold for all of"
                " that name",
                *(self.name, what),
            )
