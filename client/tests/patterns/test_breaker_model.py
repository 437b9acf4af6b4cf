"""The breaker agrees with an independent, slow oracle in any sequence of events."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.generation import MODES, CallPermit, StateTransition
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.hypothesis_examples import examples
from tests.patterns.breaker_oracle import Call, Oracle
from tests.patterns.clocks import Clock

# All of them are sums of powers of two, so that both add up to the same.
PARAMETERS = st.builds(
    BreakerParameters,
    window_type=st.sampled_from(["count", "time"]),
    window_size=st.integers(1, 6),
    minimum_calls=st.integers(1, 7),
    failure_rate=st.sampled_from([0.25, 0.5, 0.6, 1.0]),
    failure_count=st.none() | st.integers(1, 4),
    consecutive_failures=st.none() | st.integers(1, 4),
    slow_call_seconds=st.none() | st.just(1.0),
    slow_call_rate=st.sampled_from([0.5, 1.0]),
    open_seconds=st.sampled_from([1.0, 2.5]),
    open_multiplier=st.sampled_from([1.0, 2.0]),
    open_max_seconds=st.just(4.0),
    open_jitter=st.sampled_from([0.0, 0.25]),
    half_open_calls=st.integers(1, 3),
    half_open_concurrent=st.integers(1, 3),
    half_open_max_seconds=st.sampled_from([0, 2.0, 3.0]),
)


class BreakerAndOracle(RuleBasedStateMachine):
    @initialize(parameters=PARAMETERS, drawn=st.sampled_from([0.0, 0.25, 0.75]))
    def begin(self, parameters: BreakerParameters, drawn: float) -> None:
        self.clock = Clock()
        self.breaker = Breaker("d", parameters, clock=self.clock, rng=lambda: drawn)
        self.oracle = Oracle(parameters, self.clock.now, drawn)
        self.transitions: list[StateTransition] = []
        self.breaker.watch(self.transitions.append)
        self.calls: list[tuple[CallPermit, Call]] = []

    @rule()
    def ask(self) -> None:
        expected = self.oracle.ask()
        try:
            permit = self.breaker.admit()
        except CircuitOpen as refused:
            assert not isinstance(expected, Call)
            assert refused.retry_after == expected
        else:
            assert isinstance(expected, Call)
            self.calls.append((permit, expected))

    @rule(failures=st.lists(st.booleans(), min_size=1, max_size=6))
    def call_in_a_row(self, failures: list[bool]) -> None:
        for failed in failures:
            before = len(self.calls)
            self.ask()
            if len(self.calls) > before:
                self.end(before, failed, 0.0)

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0), failed=st.booleans(), seconds=st.sampled_from([1.0, 1.5]))
    def end(self, which: int, failed: bool, seconds: float) -> None:
        permit, call = self.calls.pop(which % len(self.calls))
        self.oracle.end(call, failed, seconds)
        self.breaker.settle(permit, ValueError("no") if failed else None, seconds)

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0))
    def take_back(self, which: int) -> None:
        permit, call = self.calls.pop(which % len(self.calls))
        self.oracle.take_back(call)
        self.breaker.release(permit)

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0))
    def lose(self, which: int) -> None:
        permit, call = self.calls.pop(which % len(self.calls))
        self.oracle.lose(call)
        del permit

    @rule(seconds=st.sampled_from([0.25, 0.5, 1.0, 2.5, 10.0]))
    def pass_time(self, seconds: float) -> None:
        self.clock.goes(seconds)
        self.oracle.pass_time(seconds)

    @rule(mode=st.sampled_from(MODES))
    def force(self, mode: str) -> None:
        self.oracle.force(mode)
        self.breaker.force(mode)  # type: ignore[arg-type]

    @rule()
    def unforce(self) -> None:
        self.oracle.force("normal")
        self.breaker.unforce()

    @rule()
    def reset(self) -> None:
        self.oracle.begin("normal")
        self.breaker.reset()

    @rule(parameters=PARAMETERS)
    def configure(self, parameters: BreakerParameters) -> None:
        self.oracle.configure(parameters)
        self.breaker.configure(parameters)

    @rule()
    def look(self) -> None:
        self.oracle.notice()
        status, oracle = self.breaker.look(), self.oracle
        assert status.state == oracle.state
        assert status.since == oracle.since
        is_open = oracle.state == "open" and oracle.mode == "normal"
        assert status.open_until == (oracle.open_until if is_open else None)
        assert status.would_open == oracle.would_open
        if oracle.state == "closed":
            window = oracle.in_window()
            known = oracle.has_enough()
            failures = sum(failed for failed, _ in window)
            assert status.calls == len(window)
            assert status.failure_rate == (failures / len(window) if known else None)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "oracle"):
            return
        oracle, breaker = self.oracle, self.breaker
        assert breaker.mode == oracle.mode
        transitions = [(each.n, each.before, each.after, each.at) for each in self.transitions]
        assert transitions == oracle.changes
        counted = breaker.counters.counted()
        assert {name: counted[name] for name in oracle.totals} == oracle.totals


TestBreakerAndOracle = BreakerAndOracle.TestCase
TestBreakerAndOracle.settings = examples(80, stateful_step_count=40)
