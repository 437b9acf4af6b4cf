"""The state machine of a breaker: CLOSED, OPEN, HALF_OPEN, and the modes that override them.

It takes no lock and notifies no listener: callers hold the breaker's lock, and report the `events`
after its release.
"""

from collections import deque
from collections.abc import Callable

from switchgear.patterns.breaker_rules import (
    draw_open_seconds,
    open_cause,
    reopen_cause,
)
from switchgear.patterns.generation import (
    BreakerStatus,
    CallPermit,
    Generation,
    IllegalTransition,
    Mode,
    State,
    StateTransition,
    WouldOpen,
    initial_state,
)
from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.sliding_window import CallCounts, make_window

LEGAL_TRANSITIONS = frozenset(
    {("closed", "open"), ("open", "half_open"), ("half_open", "open"), ("half_open", "closed")}
)


class BreakerStateMachine:
    """The states of one breaker, and the rules of their changes.

    Its methods raise nothing but :class:`IllegalTransition`.
    """

    def __init__(
        self,
        parameters: BreakerParameters,
        clock: Callable[[], float],
        rng: Callable[[], float],
        mode: Mode = "normal",
    ) -> None:
        self.parameters = parameters
        self.mode: Mode = mode
        self.events: deque[StateTransition | WouldOpen] = deque()
        self._clock, self._rng = clock, rng
        self._transition_count = self._reopen_count = 0
        self._open_seconds = self._open_until = 0.0
        self._evaluated, self._has_evaluated_probes = CallCounts(), False
        self._would_open = False
        self.generation = self._new_generation(initial_state(mode), clock())

    def admit(self) -> tuple[CallPermit | None, float | None]:
        """Return a permit for a call, or None and the seconds until one may be free.

        The seconds are the `retry_after` of `CircuitOpen`, None if the breaker is forced open.
        """
        if self.generation.state == "closed":
            return self.generation.permit, None
        if self.mode == "forced_open":
            return None, None
        now = self._clock()
        self._expire(now)
        self._evaluate_probes()
        generation = self.generation
        if generation.state == "closed":
            return generation.permit, None
        if generation.state == "open":
            if now < self._open_until:
                return None, self._open_until - now
            self.transition("half_open", now, f"open_seconds {self._open_seconds:.1f} over")
        generation, limits = self.generation, self.parameters
        in_flight = len(generation.probes)
        begun = in_flight + generation.probe_counts.calls
        if begun >= limits.half_open_calls or in_flight >= limits.half_open_concurrent:
            return None, 0.0
        probe = CallPermit(generation)
        generation.probes[probe] = now
        return probe, None

    def record(self, permit: CallPermit, failed: bool, slow: bool) -> None:
        """Record a probe, or a failed or slow call, unless the generation it began in is over."""
        generation = permit.generation
        if generation.state == "half_open":
            self._record_probe(permit, failed, slow)
            return
        # Set before the counts are read: a concurrent success is counted before it reads this.
        permit.needs_evaluation = True
        generation.window.add(failed, slow)
        generation.consecutive_failures = generation.consecutive_failures + 1 if failed else 0
        self._evaluate(permit)

    def evaluate_success(self, permit: CallPermit) -> None:
        """Evaluate the window after a success in the closed state: the breaker may open."""
        permit.generation.consecutive_failures = 0
        self._evaluate(permit)

    def release(self, permit: CallPermit) -> None:
        """End a call whose outcome does not count. After a probe, another may take its place."""
        if permit in self.generation.probes:
            del self.generation.probes[permit]
            self._evaluate_probes()

    def release_lost_probe(self) -> None:
        """Release the oldest probe of a `with` block, whose end can't be matched with its start.

        A block has ended in a context other than the one it began in, so its permit is unknown, and
        the probe would stay in flight forever.
        """
        probe = next((each for each in list(self.generation.probes) if each.is_block), None)
        if probe is not None:
            self.release(probe)

    def force(self, mode: Mode) -> bool:
        """Force `mode` on the breaker and empty its window; return False if it was in this mode."""
        if mode == self.mode:
            return False
        cause = "override ended" if mode == "normal" else f"override {mode}"
        self._restart(mode, cause)
        return True

    def reset(self) -> bool:
        """Close the breaker, with an empty window; return True if this ended a forced mode."""
        was_forced = self.mode != "normal"
        self._restart("normal", "reset")
        return was_forced

    def configure(self, parameters: BreakerParameters) -> None:
        """Apply `parameters` to the breaker. The window is kept unless its type or size changes."""
        old, self.parameters = self.parameters, parameters
        generation = self.generation
        is_other = (old.window_type, old.size) != (parameters.window_type, parameters.size)
        if is_other and generation.state == "closed":
            self.generation = self._new_generation("closed", generation.since)
        self.generation.permit.needs_evaluation = True
        if generation.state == "half_open":
            self._expire(self._clock())
            self._evaluate_probes()

    def status(self) -> BreakerStatus:
        if self.generation.state == "half_open":
            self._expire(self._clock())
        generation, parameters = self.generation, self.parameters
        counts = generation.window.get_counts() if generation.state == "closed" else self._evaluated
        known = self._is_known(counts)
        is_open = generation.state == "open" and self.mode == "normal"
        return BreakerStatus(
            state=generation.state,
            mode=self.mode,
            since=generation.since,
            failure_rate=counts.failure_rate() if known else None,
            slow_rate=counts.slow_rate() if known and parameters.slow_call_seconds else None,
            calls=counts.calls,
            open_until=self._open_until if is_open else None,
            would_open=self._would_open,
        )

    def _is_known(self, counts: CallCounts) -> bool:
        """Return True if `counts` are enough for rates, as those of evaluated probes always are."""
        return counts.calls >= self.parameters.needed_calls or (
            self._has_evaluated_probes and counts is self._evaluated
        )

    def _record_probe(self, permit: CallPermit, failed: bool, slow: bool) -> None:
        if permit not in self.generation.probes:
            return
        self._expire(self._clock())
        generation = self.generation
        if permit not in generation.probes:
            return
        del generation.probes[permit]
        done = generation.probe_counts
        generation.probe_counts = CallCounts(
            done.calls + 1, done.failures + failed, done.slow + slow
        )
        self._evaluate_probes()

    def _evaluate(self, permit: CallPermit) -> None:
        """Open the breaker if the rates in the window demand it, after the outcome of a call.

        Do nothing if the call did not begin in the present, closed generation.
        """
        generation, parameters = self.generation, self.parameters
        if permit.generation is not generation:
            return
        counts = generation.window.get_counts()
        has_enough = counts.calls >= parameters.needed_calls
        if not generation.consecutive_failures:
            # A success may open the breaker as the last call needed for a rate, or when older
            # successes have left the window; but only if the window has failures or slow calls.
            may_tip = parameters.failure_count is None and (counts.failures or counts.slow)
            permit.needs_evaluation = bool(may_tip) and (
                generation.window.is_time_based or not has_enough
            )
        if self.mode == "forced_closed":
            return
        cause = open_cause(parameters, counts, generation.consecutive_failures)
        if cause is None:
            return
        rate = counts.failure_rate() if has_enough else None
        if self.mode == "metrics_only":
            if not self._would_open:
                self._would_open = True
                self.events.append(WouldOpen(cause, rate, counts.calls))
            return
        self._evaluated, self._has_evaluated_probes = counts, False
        self._open(self._clock(), cause)

    def _evaluate_probes(self) -> None:
        generation, parameters = self.generation, self.parameters
        done = generation.probe_counts
        if (
            generation.state != "half_open"
            or generation.probes
            or done.calls < parameters.half_open_calls
        ):
            return
        self._evaluated, self._has_evaluated_probes = done, True
        cause = reopen_cause(parameters, done)
        now = self._clock()
        if cause is not None:
            self._reopen_count += 1
            self._open(now, cause)
        else:
            self._reopen_count = 0
            rates = f"{done.failure_rate():.2f} < {parameters.failure_rate:.2f}"
            self.transition("closed", now, f"probes: failure_rate {rates}")

    def _open(self, now: float, cause: str) -> None:
        self._open_seconds = draw_open_seconds(self.parameters, self._reopen_count, self._rng())
        self._open_until = now + self._open_seconds
        self.transition("open", now, cause)

    def _expire(self, now: float) -> None:
        """Reopen a half-open breaker if a probe has been in flight for longer than its limit.

        The breaker is open as long as before the probe, counted from the end of the limit.
        """
        limit = self.parameters.half_open_max_seconds
        oldest = next(iter(self.generation.probes.values()), None)
        if not limit or oldest is None:
            return
        ends = oldest + limit
        if now >= ends:
            self._open_until = ends + self._open_seconds
            self.transition("open", ends, f"half_open_max_seconds {limit:.1f} over")

    def _restart(self, mode: Mode, cause: str) -> None:
        self.mode = mode
        self._would_open = False
        self._reopen_count = 0
        self._evaluated, self._has_evaluated_probes = CallCounts(), False
        self._enter(initial_state(mode), self._clock(), cause)

    def transition(self, after: State, at: float, cause: str) -> None:
        if (self.generation.state, after) not in LEGAL_TRANSITIONS or self.mode != "normal":
            raise IllegalTransition(
                f"{self.generation.state} to {after} in mode {self.mode}: {cause}"
            )
        self._enter(after, at, cause)

    def _enter(self, after: State, at: float, cause: str) -> None:
        before, counts = self.generation.state, self._evaluated
        self.generation = self._new_generation(
            after, self.generation.since if before == after else at
        )
        if before != after:
            self._transition_count += 1
            rate = counts.failure_rate() if self._is_known(counts) else None
            self.events.append(
                StateTransition(
                    self._transition_count, before, after, at, cause, rate, counts.calls
                )
            )

    def _new_generation(self, state: State, since: float) -> Generation:
        window = make_window(self.parameters, self._clock)
        return Generation(state, since, window, is_counted=self.mode != "disabled")
