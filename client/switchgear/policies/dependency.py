"""What all policies of one name have in common: one breaker, one bulkhead, one budget for retries,
and what the console says of them."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from switchgear.patterns import forks
from switchgear.patterns.breaker import Breaker
from switchgear.patterns.bulkhead import Bulkhead
from switchgear.patterns.counters import Counters
from switchgear.patterns.generation import StateTransition
from switchgear.patterns.parameters import (
    BreakerParameters,
    BulkheadParameters,
    RetryParameters,
    SpendParameters,
    Tier,
    resolve_bulkhead_parameters,
)
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.policies.arguments import BreakerArguments
from switchgear.policies.documents import NOTHING, RESET, Override, Said

if TYPE_CHECKING:
    from switchgear.llm.spend_budget import SpendBudget

MAX_KEPT_STEPS = 100
"""As many as the console keeps of one breaker out of one report."""

log = logging.getLogger("switchgear")


class Dependency:
    """One name's. Safe to use from any thread. `clock` is monotonic.

    What the console says is put in force by :meth:`say`, in place: a breaker stays as open as it
    is. One thread at a time does that, and those that come meanwhile leave theirs to it: no lock
    is held while the breaker is changed, whose watchers may want another policy.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        self.name = name
        self.sleep = sleep
        """A replacement for the waits between attempts, by a test's clock."""
        self.said: Said = NOTHING
        """What is in force: another object after each change, by which policies see that there was
        one."""
        self.counters = Counters()
        self.budget = RetryBudget(clock=clock)
        """Of all retries of this name."""
        self._clock = clock
        self._lock = threading.RLock()
        self._breaker: Breaker | None = None
        self._bulkhead: Bulkhead | None = None
        self._breaker_arguments: BreakerArguments = {}
        self._bulkhead_parameters: BulkheadParameters | None = None
        self._retry_parameters: RetryParameters | None = None
        self._spend: SpendBudget | None = None
        self._spend_parameters: SpendParameters | None = None
        self._wanted: Said = NOTHING
        self._now = float("-inf")
        self._is_due = self._is_working = False
        self._mode: str | None = None
        self._applied: Override | None = None
        self._complaints: set[str] = set()
        self.steps: deque[StateTransition] = deque(maxlen=MAX_KEPT_STEPS)
        """The latest of its breaker that nobody has taken away, by number."""
        self.on_step: Callable[[], object] | None = None
        """Is called after each of them, in the thread in which it happened."""
        forks.register(self)

    @property
    def clock(self) -> Callable[[], float]:
        """The monotonic clock of all patterns of this name."""
        return self._clock

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
        with self._lock:
            known, wrong = self._merged(arguments)
            breaker = self._breaker
            if breaker is None:
                rest = {name: one for name, one in known.items() if name != "parameters"}
                self._breaker = breaker = Breaker(
                    self.name,
                    self._breaker_parameters(known),
                    counters=self.counters,
                    clock=self._clock,
                    **rest,  # type: ignore[arg-type]
                )
                breaker.watch(self._step)
                if self._bulkhead is not None:
                    self._bulkhead.sources = (breaker,)
            self._breaker_arguments = known
            self._is_due = True
        self._complain(*wrong)
        self.settle()
        return breaker

    def bulkhead_of(self, parameters: BulkheadParameters | Tier | None = None) -> Bulkhead:
        """The bulkhead; without parameters from anybody all pass through it. :class:`ValueError`
        for a tier that there is not."""
        given = resolve_bulkhead_parameters(parameters)
        with self._lock:
            is_other = given is not None and self._bulkhead_parameters not in (None, given)
            self._bulkhead_parameters = self._bulkhead_parameters or given
            self._bulkhead = bulkhead = self._bulkhead or Bulkhead(self.name, clock=self._clock)
            if self._breaker is not None:
                bulkhead.sources = (self._breaker,)
            self._is_due = True
        if is_other:
            self._complain("parameters of its bulkhead")
        self.settle()
        return bulkhead

    def budget_of(self, parameters: RetryParameters | None) -> RetryBudget:
        """The budget for retries; that of the first parameters holds for all."""
        with self._lock:
            first = self._retry_parameters = self._retry_parameters or parameters
            self._is_due = True
        if first is not None and parameters is not None and _budget(first) != _budget(parameters):
            self._complain("the budget of its retries")
        self.settle()
        return self.budget

    def spend_of(self, parameters: SpendParameters | None) -> "SpendBudget":
        """Return the token budget, with the limits of the console, else the first ones of the code.
        Raises :class:`TypeError` for parameters of the wrong type."""
        if not isinstance(parameters, SpendParameters | None):
            raise TypeError(f"budget must be SpendParameters, not {parameters!r:.100}")
        from switchgear.llm.spend_budget import SpendBudget  # Needed only for calls to models.

        with self._lock:
            first = self._spend_parameters = self._spend_parameters or parameters
            spend = self._spend
            if spend is None:
                limits = self._wanted.budget or first
                self._spend = spend = SpendBudget(self.name, limits, clock=self._clock)
                self._is_due = True
            elif first is parameters:
                self._is_due = True
        if parameters not in (None, first):
            self._complain("its token budget")
        self.settle()
        return spend

    def say(self, said: Said, now: float) -> None:
        """The console says so; `now` is UNIX seconds by its clock. It is in force at the return,
        unless another thread is at it: see `is_settled`."""
        self.want(said, now)
        self.settle()

    def want(self, said: Said, now: float) -> None:
        """As :meth:`say`, but only :meth:`settle` puts it in force."""
        with self._lock:
            self._wanted, self._now = said, now
            self._is_due = True

    def expire(self, now: float) -> None:
        """End an override whose time is over; or begin it again, if it turns out that it is not."""
        with self._lock:
            override = self._wanted.override
            if override is None or override.mode == RESET:
                return
            is_ended = self._applied is None
            if self.is_settled and is_ended == (override.ends_at <= now):
                return  # So that whoever says something meanwhile need not leave it to us.
            self._now = now
            self._is_due = True
        self.settle()

    def settle(self) -> None:
        """Put in force what was said last. A thread that is at it already does this, too."""
        while self._begins():
            try:
                self._put_in_force()
            except Exception:  # Of a hook: what comes next must not suffer from that.
                log.exception("switchgear: policy of %.100r was not put in force", self.name)
            finally:
                self._is_working = False

    @property
    def wanted(self) -> Said:
        """The latest configuration, in force or not yet."""
        return self._wanted

    @property
    def is_settled(self) -> bool:
        """Whether all that was said is in force."""
        return not self._is_due and not self._is_working

    @property
    def ends_at(self) -> float | None:
        """When its override ends by itself, or has ended; None without one."""
        override = self._wanted.override
        return None if override is None or override.mode == RESET else override.ends_at

    def after_fork(self) -> None:
        """In a child: nothing is told of the parent's breaker. That of the child begins anew, in
        the same mode. What a thread of the parent was at is to be settled again."""
        self._lock = threading.RLock()
        self._is_due, self._is_working = True, False
        self.steps.clear()

    def _step(self, step: StateTransition) -> None:
        self.steps.append(step)
        if self.on_step is not None:
            self.on_step()

    def _begins(self) -> bool:
        with self._lock:
            if self._is_working or not self._is_due:
                return False
            self._is_working, self._is_due = True, False
            return True

    def _put_in_force(self) -> None:
        """In one thread at a time. `said` comes after what policies find by it."""
        with self._lock:
            said, now = self._wanted, self._now
            breaker, bulkhead = self._breaker, self._bulkhead
            for_breaker = self._breaker_parameters(self._breaker_arguments)
            for_bulkhead = said.bulkhead or self._bulkhead_parameters
            for_retry = said.retry or self._retry_parameters
            spend, for_spend = self._spend, said.budget or self._spend_parameters
        is_other = said != self.said
        if for_retry is not None:
            self.budget.configure(*_budget(for_retry))
        if bulkhead is not None and bulkhead.parameters != for_bulkhead:
            bulkhead.configure(for_bulkhead)
            is_other = True
        if spend is not None:
            spend.configure(for_spend or SpendParameters())
        if is_other:
            self.said = replace(said)
        if breaker is not None:
            if breaker.parameters != for_breaker:
                breaker.configure(for_breaker)
            self._force(breaker, said.override, now)

    def _force(self, breaker: Breaker, override: Override | None, now: float) -> None:
        """Bring the breaker into the mode of the override, once for each, as long as it lasts."""
        if override is not None and override.mode != RESET and override.ends_at <= now:
            override = None
        mode = None if override is None or override.mode == RESET else override.mode
        if self._mode is not None and mode is None:
            breaker.unforce()
        if override is not None and override != self._applied:
            if override.mode == RESET:
                breaker.reset()
            else:
                breaker.force(override.mode)  # type: ignore[arg-type]
        self._mode, self._applied = mode, override

    def _merged(self, arguments: BreakerArguments) -> tuple[BreakerArguments, list[str]]:
        """Return the known arguments merged with new ones, and the arguments that conflict or come
        too late."""
        known, wrong = self._breaker_arguments.copy(), []
        for name, one in arguments.items():
            if one is None or one == ():
                continue
            # What judges calls is the breaker's from the beginning.
            is_late = name != "parameters" and name not in known and self._breaker is not None
            if is_late or known.setdefault(name, one) != one:  # type: ignore[misc]
                wrong.append(f"{name} of its breaker")
        return known, wrong

    def _breaker_parameters(self, known: BreakerArguments) -> BreakerParameters:
        given = known.get("parameters")
        return self._wanted.breaker or given or BreakerParameters()

    def _complain(self, *differences: str) -> None:
        for what in differences:
            if what not in self._complaints:
                self._complaints.add(what)
                log.warning(
                    "switchgear: policies of %.100r differ in %s: those said first hold for all of"
                    " that name",
                    *(self.name, what),
                )


def _budget(parameters: RetryParameters) -> tuple[float, float]:
    return parameters.budget_rate, parameters.budget_per_second
