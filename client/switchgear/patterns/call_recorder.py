"""The part of a circuit breaker that admits calls and records their outcomes."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from switchgear import journal
from switchgear.failures.error_labels import describe_error, is_timeout
from switchgear.patterns import forks
from switchgear.patterns.argument_checks import check_exceptions, check_functions, check_type
from switchgear.patterns.breaker_rules import OutcomeClassifier
from switchgear.patterns.counters import Counters
from switchgear.patterns.generation import MODES, BreakerStatus, CallPermit, Mode, State
from switchgear.patterns.listeners import BreakerListeners, TransitionListener, add_listener
from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.queue_time import is_queue_timeout
from switchgear.patterns.state_machine import BreakerStateMachine
from switchgear.refusals import CircuitOpen

T = TypeVar("T")
FAILED_RESULT = "a result that counts as a failure"


class CallRecorder:
    """The base class of a breaker: admits calls, records their outcomes and controls its mode.

    The arguments are those of :class:`~switchgear.patterns.breaker.Breaker`.
    """

    def __init__(
        self,
        name: str = "unnamed",
        parameters: BreakerParameters | None = None,
        *,
        ignore: tuple[type[BaseException], ...] = (),
        is_failure: Callable[[BaseException], bool] | None = None,
        is_failed_result: Callable[[Any], bool] | None = None,
        counters: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
        rng: Callable[[], float] = random.random,
    ) -> None:
        parameters = BreakerParameters() if parameters is None else parameters
        counters = Counters() if counters is None else counters
        check_type("name", name, str)
        check_type("parameters", parameters, BreakerParameters)
        check_type("counters", counters, Counters)
        check_exceptions("ignore", ignore)
        check_functions(is_failure=is_failure, is_failed_result=is_failed_result)
        check_functions(is_optional=False, clock=clock, rng=rng)
        self.name: Final = name
        self.counters: Final = counters
        self._classifier: Final = OutcomeClassifier(ignore, is_failure, is_failed_result)
        self._clock, self._rng = clock, rng
        self._listeners = BreakerListeners(name)
        self._last_failure: str | None = None
        self._reset_state(parameters, "normal")
        forks.register(self)

    @property
    def parameters(self) -> BreakerParameters:
        return self._machine.parameters

    @property
    def state(self) -> State:
        """The current state of the breaker; if a mode is forced, the state it is forced to."""
        return self.look().state

    @property
    def mode(self) -> Mode:
        return self._machine.mode

    def admit(self) -> CallPermit:
        """Return the permit for one call, or raise :class:`CircuitOpen`.

        After the call, pass the permit to `settle`, or to one of `succeed`, `fail` and `release`.
        """
        permit = self._shared_permit
        if permit is not None:
            return permit
        permit, retry_after = self._run_locked(self._machine.admit)
        if permit is None:
            self.counters.rejected()
            journal.record("call_rejected", self.name, retry_after=retry_after)
            raise CircuitOpen(self.name, retry_after, self._last_failure)
        return permit

    def succeed(self, permit: CallPermit, seconds: float | None = None) -> None:
        """Record a success that took `seconds`, None if unknown."""
        generation = permit.generation
        if not generation.is_counted:
            return
        slow = seconds is not None and self._is_slow(seconds)
        if slow or generation.state == "half_open":
            self.counters.success()
            self._run_locked(self._machine.record, permit, False, slow)
        else:
            self._record_success(permit)

    def fail(
        self, permit: CallPermit, error: BaseException | None, seconds: float | None = None
    ) -> None:
        """Record a failed call: it raised `error`, or without one, its result is a failure."""
        if not permit.generation.is_counted:
            return
        self._last_failure = FAILED_RESULT if error is None else describe_error(error)
        timed_out = error is not None and is_timeout(error)
        (self.counters.timeout if timed_out else self.counters.failure)()
        slow = seconds is not None and self._is_slow(seconds)
        self._run_locked(self._machine.record, permit, True, slow)

    def release(self, permit: CallPermit) -> None:
        """End a call whose outcome does not count."""
        if permit.generation.state == "half_open":
            self._run_locked(self._machine.release, permit)

    def settle(
        self, permit: CallPermit, error: BaseException | None, seconds: float | None = None
    ) -> None:
        """Record the outcome of a call that raised `error`, None for a success."""
        outcome = "good" if error is None else self._classifier.classify_error(error)
        if outcome == "good":
            self.succeed(permit, seconds)
        elif outcome == "bad" and not (error is not None and is_queue_timeout(error)):
            self.fail(permit, error, seconds)
        else:
            self.release(permit)

    def force(self, mode: Mode) -> None:
        """Force the breaker into `mode` and empty its window of calls.

        Raise :class:`ValueError` for an unknown mode.
        """
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r:.50}")
        if self._run_locked(self._machine.force, mode):
            self._listeners.notify_mode()

    def unforce(self) -> None:
        """End the forced mode and close the breaker. Do nothing if no mode is forced."""
        self.force("normal")

    def reset(self) -> None:
        """Close the breaker, with an empty window and without a forced mode."""
        if self._run_locked(self._machine.reset):
            self._listeners.notify_mode()

    def configure(self, parameters: BreakerParameters) -> None:
        """Apply `parameters` from now on. Raise :class:`TypeError` for a wrong type.

        An open breaker stays open until the time set when it opened. The outcomes so far are
        evaluated again after the next call. If the type or size of the window changes, the new
        window is empty, and calls in flight do not count in it.
        """
        check_type("parameters", parameters, BreakerParameters)
        self._run_locked(self._machine.configure, parameters)

    def look(self) -> BreakerStatus:
        """Return the current state, mode and rates of the breaker."""
        return self._run_locked(self._machine.status)

    def watch(self, watcher: TransitionListener) -> Callable[[], None]:
        """Call `watcher` with each transition, and return a function that ends this.

        `watcher` runs in the thread of the call that caused the transition and must not block; its
        errors are logged. Two threads may report transitions at once or out of order: sort them by
        their number `n`.
        """
        return add_listener(self._listeners.of_transitions, watcher)

    def refusal(self) -> CircuitOpen | None:
        """Return the error that refuses new calls if the breaker is forced open, else None."""
        if self._machine.mode != "forced_open":
            return None
        return CircuitOpen(self.name, None, self._last_failure)

    def subscribe(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` after each change of the forced mode; return a function that ends this.

        `callback` runs in the thread that called `force`, `unforce` or `reset`; its errors are
        logged. Forked children start without callbacks. Calls that wait in a queue use it to be
        woken.
        """
        return add_listener(self._listeners.of_modes, callback)

    def after_fork(self) -> None:
        """Reset the breaker in a forked child: empty its window, close it unless it is forced."""
        forks.keep_alive(self._lock)
        self.counters.after_fork()
        self._listeners.of_modes.clear()  # They belong to calls that wait in the parent.
        self._reset_state(self._machine.parameters, self._machine.mode)

    def _reset_state(self, parameters: BreakerParameters, mode: Mode) -> None:
        self._lock, self._last_failure = threading.RLock(), None
        self._machine = BreakerStateMachine(parameters, self._clock, self._rng, mode)
        self._refresh()

    def _refresh(self) -> None:
        """Copy the values that calls read without the lock from the breaker's state machine."""
        generation, parameters = self._machine.generation, self._machine.parameters
        self._slow_seconds = parameters.slow_call_seconds
        self._shared_permit = generation.permit if generation.state == "closed" else None
        """The permit that all calls share while the breaker is closed."""
        needs_more = self._slow_seconds is not None or not generation.is_counted
        self._fast_permit = None if needs_more else self._shared_permit
        """The shared permit if calls need neither timing nor a check of the mode, else None."""

    def _record_success(self, permit: CallPermit) -> None:
        self.counters.success()
        if permit.is_time_based and self._clock() >= permit.generation.window.ends:
            self._run_locked(permit.generation.window.get_counts)
        permit.succeed()
        if permit.needs_evaluation:
            self._run_locked(self._machine.evaluate_success, permit)

    def _is_slow(self, seconds: float) -> bool:
        if self._slow_seconds is None or seconds <= self._slow_seconds:
            return False
        self.counters.slow()
        return True

    def _run_locked(self, act: Callable[..., T], *args: Any) -> T:
        machine = self._machine
        with self._lock:
            permit, parameters = machine.generation.permit, machine.parameters
            done = act(*args)
            if machine.generation.permit is not permit or machine.parameters is not parameters:
                self._refresh()
        if machine.events:
            self._listeners.notify(machine.events)
        return done
