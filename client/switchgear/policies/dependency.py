"""A dependency: the breaker, bulkhead, budgets and configuration that its policies share."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from switchgear.journal import log
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
from switchgear.policies.documents import EMPTY_CONFIG, RESET, DependencyConfig, ForcedMode

if TYPE_CHECKING:
    from switchgear.llm.spend_budget import SpendBudget

MAX_TRANSITIONS = 100
"""The console's limit of transitions of one breaker in one report."""


class Dependency:
    """The shared state of all policies of one name. Thread-safe; `clock` is monotonic.

    :meth:`apply_pending` applies the console's configuration to the existing patterns: an open
    breaker stays open. One thread at a time does so, also for configurations that other threads set
    meanwhile. No lock is held while the breaker changes, since its listeners may request another
    policy.
    """

    def __init__(
        self,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] | None = None,
    ) -> None:
        self.name = name
        self.sleep = sleep
        """A function called instead of waiting between attempts; None to wait."""
        self.config: DependencyConfig = EMPTY_CONFIG
        """The configuration in force, a new object after each change: policies compare identity."""
        self.counters = Counters()
        self.budget = RetryBudget(clock=clock)
        self.clock = clock
        """The monotonic clock of all patterns of this name."""
        self._lock = threading.RLock()
        self.breaker: Breaker | None = None
        self.bulkhead: Bulkhead | None = None
        """The breaker and the bulkhead, each None before its first use."""
        self._breaker_arguments: BreakerArguments = {}
        self._bulkhead_parameters: BulkheadParameters | None = None
        self._retry_parameters: RetryParameters | None = None
        self._spend: SpendBudget | None = None
        self._spend_parameters: SpendParameters | None = None
        self.target_config: DependencyConfig = EMPTY_CONFIG
        """The latest configuration, applied or not."""
        self._now = float("-inf")
        self._is_pending = self._is_applying = False
        self._forced_mode: str | None = None
        self._applied_override: ForcedMode | None = None
        self._warned: set[str] = set()
        self.transitions: deque[StateTransition] = deque(maxlen=MAX_TRANSITIONS)
        """The latest transitions of the breaker that the console has not accepted yet."""
        self.on_transition: Callable[[], object] | None = None
        """Called after each transition, in the thread in which it happened."""
        forks.register(self)

    def get_breaker(self, **arguments: Unpack[BreakerArguments]) -> Breaker:
        """Return the breaker, created at the first call.

        All policies of this name share it, and the first value given for each argument applies.
        """
        with self._lock:
            known, wrong = self._merge_arguments(arguments)
            breaker = self.breaker
            if breaker is None:
                rest = {name: value for name, value in known.items() if name != "parameters"}
                self.breaker = breaker = Breaker(
                    self.name,
                    self._breaker_parameters(known),
                    counters=self.counters,
                    clock=self.clock,
                    **rest,  # type: ignore[arg-type]
                )
                breaker.watch(self._record_transition)
                if self.bulkhead is not None:
                    self.bulkhead.sources = (breaker,)
            self._breaker_arguments = known
            self._is_pending = True
        self._warn_differences(*wrong)
        self.apply_pending()
        return breaker

    def get_bulkhead(self, parameters: BulkheadParameters | Tier | None = None) -> Bulkhead:
        """Return the bulkhead, created at the first call; the first `parameters` given apply.

        Raise :class:`ValueError` for an unknown tier.
        """
        given = resolve_bulkhead_parameters(parameters)
        with self._lock:
            is_other = given is not None and self._bulkhead_parameters not in (None, given)
            self._bulkhead_parameters = self._bulkhead_parameters or given
            self.bulkhead = bulkhead = self.bulkhead or Bulkhead(self.name, clock=self.clock)
            if self.breaker is not None:
                bulkhead.sources = (self.breaker,)
            self._is_pending = True
        if is_other:
            self._warn_differences("parameters of its bulkhead")
        self.apply_pending()
        return bulkhead

    def get_retry_budget(self, parameters: RetryParameters | None) -> RetryBudget:
        """Return the retry budget that all policies share; the first `parameters` given apply."""
        with self._lock:
            first = self._retry_parameters = self._retry_parameters or parameters
            self._is_pending = True
        limits = {_budget_limits(each) for each in (first, parameters) if each is not None}
        if len(limits) > 1:
            self._warn_differences("the budget of its retries")
        self.apply_pending()
        return self.budget

    def get_token_budget(self, parameters: SpendParameters | None) -> "SpendBudget":
        """Return the token budget, created at the first call, with the limits of the console.

        If the console has none, the first `parameters` given by the code apply. Raise
        :class:`TypeError` for parameters of the wrong type.
        """
        if not isinstance(parameters, SpendParameters | None):
            raise TypeError(f"budget must be SpendParameters, not {parameters!r:.100}")
        from switchgear.llm.spend_budget import SpendBudget  # Needed only for calls to models.

        with self._lock:
            first = self._spend_parameters = self._spend_parameters or parameters
            spend = self._spend
            if spend is None:
                limits = self.target_config.budget or first
                self._spend = spend = SpendBudget(self.name, limits, clock=self.clock)
                self._is_pending = True
            elif first is parameters:
                self._is_pending = True
        if parameters not in (None, first):
            self._warn_differences("its token budget")
        self.apply_pending()
        return spend

    def set_config(self, config: DependencyConfig, now: float) -> None:
        """Store the console's configuration, which the next :meth:`apply_pending` applies.

        `now` is UNIX seconds by the console's clock.
        """
        with self._lock:
            self.target_config, self._now = config, now
            self._is_pending = True

    def expire_override(self, now: float) -> None:
        """End the operator's override of the breaker if its time is over at `now`.

        Restore it if it was ended too early, by a clock that was wrong.
        """
        with self._lock:
            override = self.target_config.override
            if override is None or override.mode == RESET:
                return
            is_ended = self._applied_override is None
            if self.is_applied and is_ended == (override.ends_at <= now):
                return  # A configuration set meanwhile is applied by the thread that sets it.
            self._now = now
            self._is_pending = True
        self.apply_pending()

    def apply_pending(self) -> None:
        """Apply the latest configuration. Return at once if another thread is applying one."""
        while self._claim_pending():
            try:
                self._apply_target()
            except Exception:  # Of a hook: later configurations must still be applied.
                log.exception("switchgear: policy of %.100r could not be applied", self.name)
            finally:
                self._is_applying = False

    @property
    def is_applied(self) -> bool:
        """True if the latest configuration is in force in all patterns."""
        return not self._is_pending and not self._is_applying

    @property
    def ends_at(self) -> float | None:
        """The end of the operator's override in UNIX seconds, even if passed; None without one."""
        override = self.target_config.override
        return None if override is None or override.mode == RESET else override.ends_at

    def after_fork(self) -> None:
        """Reset in a forked child: drop the parent's transitions and apply the configuration again.

        The child's breaker starts over in the same mode.
        """
        self._lock = threading.RLock()
        self._is_pending, self._is_applying = True, False
        self.transitions.clear()

    def _record_transition(self, step: StateTransition) -> None:
        self.transitions.append(step)
        if self.on_transition is not None:
            self.on_transition()

    def _claim_pending(self) -> bool:
        with self._lock:
            if self._is_applying or not self._is_pending:
                return False
            self._is_applying, self._is_pending = True, False
            return True

    def _apply_target(self) -> None:
        """Apply the latest configuration to all patterns. Called by one thread at a time."""
        with self._lock:
            config, now = self.target_config, self._now
            breaker, bulkhead = self.breaker, self.bulkhead
            for_breaker = self._breaker_parameters(self._breaker_arguments)
            for_bulkhead = config.bulkhead or self._bulkhead_parameters
            for_retry = config.retry or self._retry_parameters
            spend, for_spend = self._spend, config.budget or self._spend_parameters
        is_other = config != self.config
        if for_retry is not None:
            self.budget.configure(*_budget_limits(for_retry))
        if bulkhead is not None and bulkhead.parameters != for_bulkhead:
            bulkhead.configure(for_bulkhead)
            is_other = True
        if spend is not None:
            spend.configure(for_spend or SpendParameters())
        if is_other:
            self.config = replace(config)
        if breaker is not None:
            if breaker.parameters != for_breaker:
                breaker.configure(for_breaker)
            self._apply_override(breaker, config.override, now)

    def _apply_override(self, breaker: Breaker, override: ForcedMode | None, now: float) -> None:
        """Force or reset the breaker if `override` is new; end a forced mode with its override."""
        if override is not None and override.mode != RESET and override.ends_at <= now:
            override = None
        mode = None if override is None or override.mode == RESET else override.mode
        if self._forced_mode is not None and mode is None:
            breaker.unforce()
        if override is not None and override != self._applied_override:
            if override.mode == RESET:
                breaker.reset()
            else:
                breaker.force(override.mode)  # type: ignore[arg-type]
        self._forced_mode, self._applied_override = mode, override

    def _merge_arguments(self, arguments: BreakerArguments) -> tuple[BreakerArguments, list[str]]:
        """Return the breaker's arguments so far merged with `arguments`, and the rejected ones.

        An argument is rejected if an earlier policy gave another value. Once the breaker exists,
        any new argument except `parameters` is rejected, too. Rejected arguments are texts for a
        warning.
        """
        known, wrong = self._breaker_arguments.copy(), []
        for name, value in arguments.items():
            if value is None or value == ():
                continue
            # The rules by which a breaker counts outcomes can't be changed.
            is_late = name != "parameters" and name not in known and self.breaker is not None
            if is_late or known.setdefault(name, value) != value:  # type: ignore[misc]
                wrong.append(f"{name} of its breaker")
        return known, wrong

    def _breaker_parameters(self, known: BreakerArguments) -> BreakerParameters:
        given = known.get("parameters")
        return self.target_config.breaker or given or BreakerParameters()

    def _warn_differences(self, *differences: str) -> None:
        for what in differences:
            if what not in self._warned:
                self._warned.add(what)
                log.warning(
                    "switchgear: policies of %.100r differ in %s: the first one applies to all of"
                    " that name",
                    *(self.name, what),
                )


def _budget_limits(parameters: RetryParameters) -> tuple[float, float]:
    return parameters.budget_rate, parameters.budget_per_second
