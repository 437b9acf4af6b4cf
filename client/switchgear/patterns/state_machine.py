"""The state machine of a breaker: CLOSED, OPEN, HALF_OPEN, and the modes that overrule them.

It knows no locks and tells nobody: whoever calls it holds the breaker's lock, and hands on what is
in `news` once that is released.
"""

from collections import deque
from collections.abc import Callable

from switchgear.patterns.breaker_rules import open_length, why_close, why_open, why_reopen
from switchgear.patterns.generation import (
    IllegalTransition,
    Mode,
    Permit,
    Standing,
    State,
    Term,
    Transition,
    WouldOpen,
    shown,
)
from switchgear.patterns.parameters import BreakerParameters
from switchgear.patterns.sliding_window import Tally, window_of

LEGAL = frozenset(
    {("closed", "open"), ("open", "half_open"), ("half_open", "open"), ("half_open", "closed")}
)


class Machine:
    """Its methods raise nothing but :class:`IllegalTransition`."""

    def __init__(
        self,
        parameters: BreakerParameters,
        clock: Callable[[], float],
        rng: Callable[[], float],
        mode: Mode = "normal",
    ) -> None:
        self.parameters = parameters
        self.mode: Mode = mode
        self.news: deque[Transition | WouldOpen] = deque()
        self._clock, self._rng = clock, rng
        self._n = self._reopened = 0
        self._open_seconds = self._open_until = 0.0
        self._judged = Tally()
        self._would_open = False
        self.term = self._new_term(shown(mode), clock())

    def admit(self) -> tuple[Permit | None, float | None]:
        """A permit; or none, and the seconds until there may be one (see `CircuitOpen`)."""
        if self.term.state == "closed":
            return self.term.permit, None
        if self.mode == "forced_open":
            return None, None
        now = self._clock()
        term = self._update(now)
        if term.state == "closed":
            return term.permit, None
        if term.state == "open":
            if now < self._open_until:
                return None, self._open_until - now
            self.move("half_open", now, f"open_seconds {self._open_seconds:.1f} over")
        term, limits = self.term, self.parameters
        in_flight = len(term.probes)
        begun = in_flight + term.done.calls
        if begun >= limits.half_open_calls or in_flight >= limits.half_open_concurrent:
            return None, 0.0
        probe = Permit(term)
        term.probes[probe] = now
        return probe, None

    def record(self, permit: Permit, failed: bool, slow: bool) -> None:
        """The call of `permit` has ended: a probe, or one that failed, or was slow. Of an older
        generation, it is dropped."""
        term = permit.term
        if term.state == "half_open":
            self._record_probe(permit, failed, slow)
            return
        # First this, then the tally: a success is counted first, and looks at this then.
        permit.wary = True
        term.window.add(failed, slow)
        term.consecutive = term.consecutive + 1 if failed else 0
        self._judge(permit)

    def succeeded(self, permit: Permit) -> None:
        """After `permit.succeed()` of a closed generation, if it was wary."""
        permit.term.consecutive = 0
        self._judge(permit)

    def give_back(self, permit: Permit) -> None:
        """The call of `permit` has ended and says nothing. A probe may be made in its place."""
        if permit in self.term.probes:
            del self.term.probes[permit]
            self._judge_probes()

    def give_back_lost(self) -> None:
        """Give back the oldest probe of a `with` block: a block has ended in a context other than
        the one it began in, so its permit is unknown, and the probe would stay in flight
        forever."""
        probe = next((each for each in list(self.term.probes) if each.is_block), None)
        if probe is not None:
            self.give_back(probe)

    def force(self, mode: Mode) -> bool:
        """Override the state by `mode`, with an empty window. Return False if that is the mode
        already, which changes nothing."""
        if mode == self.mode:
            return False
        cause = "override ended" if mode == "normal" else f"override {mode}"
        self._begin_anew(mode, cause)
        return True

    def reset(self) -> bool:
        """Go to CLOSED, with an empty window, and end the mode. Return True if there was one."""
        was_forced = self.mode != "normal"
        self._begin_anew("normal", "reset")
        return was_forced

    def configure(self, parameters: BreakerParameters) -> None:
        """What has been counted stays, unless the window is another one."""
        old, self.parameters = self.parameters, parameters
        term = self.term
        is_other = (old.window_type, old.size) != (parameters.window_type, parameters.size)
        if is_other and term.state == "closed":
            self.term = self._new_term("closed", term.since)
        self.term.permit.wary = True
        if term.state == "half_open":
            self._expire(self._clock())
            self._judge_probes()

    def look(self) -> Standing:
        if self.term.state == "half_open":
            self._expire(self._clock())
        term, parameters = self.term, self.parameters
        seen = term.window.tally() if term.state == "closed" else self._judged
        known = seen.calls >= parameters.needed_calls
        is_open = term.state == "open" and self.mode == "normal"
        return Standing(
            state=term.state,
            mode=self.mode,
            since=term.since,
            failure_rate=seen.failure_rate() if known else None,
            slow_rate=seen.slow_rate() if known and parameters.slow_call_seconds else None,
            calls=seen.calls,
            open_until=self._open_until if is_open else None,
            would_open=self._would_open,
        )

    def _record_probe(self, permit: Permit, failed: bool, slow: bool) -> None:
        if permit not in self.term.probes:
            return
        self._expire(self._clock())
        term = self.term
        if permit not in term.probes:
            return
        del term.probes[permit]
        done = term.done
        term.done = Tally(done.calls + 1, done.failures + failed, done.slow + slow)
        self._judge_probes()

    def _judge(self, permit: Permit) -> None:
        """Whether to open, after an outcome in a closed generation."""
        term, parameters = self.term, self.parameters
        if permit.term is not term:
            return
        tally = term.window.tally()
        has_enough = tally.calls >= parameters.needed_calls
        if not term.consecutive:
            # Whether a success may open it: by being the last that was needed, or with older ones
            # gone, and only if there are others than successes.
            may_tip = parameters.failure_count is None and (tally.failures or tally.slow)
            permit.wary = bool(may_tip) and (term.window.slides_by_itself or not has_enough)
        if self.mode == "forced_closed":
            return
        cause = why_open(parameters, tally, term.consecutive)
        if cause is None:
            return
        rate = tally.failure_rate() if has_enough else None
        if self.mode == "metrics_only":
            if not self._would_open:
                self._would_open = True
                self.news.append(WouldOpen(cause, rate, tally.calls))
            return
        self._judged = tally
        self._open(self._clock(), cause)

    def _judge_probes(self) -> None:
        term, parameters = self.term, self.parameters
        done = term.done
        if term.state != "half_open" or term.probes or done.calls < parameters.half_open_calls:
            return
        self._judged = done
        cause = why_reopen(parameters, done)
        now = self._clock()
        if cause is not None:
            self._reopened += 1
            self._open(now, cause)
        else:
            self._reopened = 0
            self.move("closed", now, why_close(parameters, done))

    def _open(self, now: float, cause: str) -> None:
        self._open_seconds = open_length(self.parameters, self._reopened, self._rng())
        self._open_until = now + self._open_seconds
        self.move("open", now, cause)

    def _update(self, now: float) -> Term:
        """Update a half-open state whose probe is in flight for too long, or whose last probe is
        gone without an outcome; return the term after it."""
        self._expire(now)
        self._judge_probes()
        return self.term

    def _expire(self, now: float) -> None:
        """Go back to OPEN if a probe has been in flight for too long: from the moment that it was,
        and for as long as before."""
        limit = self.parameters.half_open_max_seconds
        oldest = next(iter(self.term.probes.values()), None)
        if not limit or oldest is None:
            return
        ends = oldest + limit
        if now >= ends:
            self._open_until = ends + self._open_seconds
            self.move("open", ends, f"half_open_max_seconds {limit:.1f} over")

    def _begin_anew(self, mode: Mode, cause: str) -> None:
        self.mode = mode
        self._would_open = False
        self._reopened = 0
        self._judged = Tally()
        self._enter(shown(mode), self._clock(), cause)

    def move(self, after: State, at: float, cause: str) -> None:
        if (self.term.state, after) not in LEGAL or self.mode != "normal":
            raise IllegalTransition(f"{self.term.state} to {after} in mode {self.mode}: {cause}")
        self._enter(after, at, cause)

    def _enter(self, after: State, at: float, cause: str) -> None:
        before, seen = self.term.state, self._judged
        self.term = self._new_term(after, self.term.since if before == after else at)
        if before != after:
            self._n += 1
            known = seen.calls >= self.parameters.needed_calls
            rate = seen.failure_rate() if known else None
            self.news.append(Transition(self._n, before, after, at, cause, rate, seen.calls))

    def _new_term(self, state: State, since: float) -> Term:
        window = window_of(self.parameters, self._clock)
        return Term(state, since, window, is_counted=self.mode != "disabled")
