"""The breaker agrees step by step with another library, where both mean the same."""

from contextvars import Context, copy_context

import interlock
from hypothesis import given
from hypothesis import strategies as st

from switchgear.patterns.breaker import Breaker
from switchgear.patterns.parameters import BreakerParameters
from switchgear.refusals import CircuitOpen
from tests.hypothesis_examples import examples
from tests.patterns.clocks import Clock

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.just(0.0)),
        st.tuples(st.just("leave"), st.integers(0, 5)),
        st.tuples(st.just("fail"), st.integers(0, 5)),
        st.tuples(st.just("abort"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([0.25, 0.5, 1.0, 2.0])),
    ),
    max_size=60,
)


class Other:
    """The other library's breaker and ours, each call in a context of its own for both."""

    def __init__(self, ours: BreakerParameters) -> None:
        self.clock = Clock()
        window = interlock.WindowType.COUNT_BASED
        if ours.window_type == "time":
            window = interlock.WindowType.TIME_BASED
        config = interlock.Config(
            failure_rate_threshold=ours.failure_rate,
            minimum_number_of_calls=ours.needed_calls,
            slow_call_duration_threshold=ours.slow_call_seconds or 0.0,
            slow_call_rate_threshold=ours.slow_call_rate,
            permitted_calls_in_half_open=ours.half_open_calls,
            max_concurrent_probes=ours.half_open_concurrent,
            wait_duration_in_open=ours.open_seconds,
            wait_duration_backoff_multiplier=ours.open_multiplier,
            wait_duration_in_open_max=ours.open_max_seconds,
            window_type=window,
            window_size=ours.size,
        )
        self.theirs = interlock.CircuitBreaker(name="d", config=config, clock=self)
        self.ours = Breaker("d", ours, clock=self.clock)
        self.calls: list[Context] = []

    def monotonic(self) -> float:
        return self.clock.now

    def enter(self) -> None:
        context = copy_context()
        ours, theirs = self._admits(context, self.ours), self._admits(context, self.theirs)
        assert ours == theirs
        if ours:
            self.calls.append(context)

    def _admits(self, context: Context, breaker: "Breaker | interlock.CircuitBreaker") -> bool:
        try:
            context.run(breaker.__enter__)
        except (CircuitOpen, interlock.CircuitOpenError):
            return False
        return True

    def leave(self, which: int, error: BaseException | None) -> None:
        context = self.calls.pop(which % len(self.calls))
        for breaker in (self.ours, self.theirs):
            context.run(breaker.__exit__, type(error) if error else None, error, None)


@examples(150)
@given(
    steps=STEPS,
    parameters=st.builds(
        BreakerParameters,
        window_type=st.sampled_from(["count", "time"]),
        window_size=st.integers(1, 5),
        minimum_calls=st.integers(1, 5),
        failure_rate=st.sampled_from([0.25, 0.5, 0.6, 1.0]),
        # Never as long as a call: what is just as long is slow to them.
        slow_call_seconds=st.sampled_from([0.6, 1.1]),
        slow_call_rate=st.sampled_from([0.5, 1.0]),
        open_seconds=st.just(1.0),
        open_multiplier=st.sampled_from([1.0, 2.0]),
        open_max_seconds=st.just(4.0),
        open_jitter=st.just(0.0),
        half_open_calls=st.integers(2, 3),
        half_open_concurrent=st.integers(1, 2),
        half_open_max_seconds=st.just(80_000.0),
    ),
)
def test_any_course_of_calls_goes_as_in_interlock(
    steps: list[tuple[str, float]], parameters: BreakerParameters
) -> None:
    both = Other(parameters)

    for name, value in steps:
        if name == "wait":
            both.clock.goes(value)
        elif name == "enter":
            both.enter()
        elif both.calls:
            errors = {"leave": None, "fail": ValueError("no"), "abort": KeyboardInterrupt()}
            both.leave(int(value), errors[name])
        assert both.ours.state == both.theirs.state.value
        if both.ours.state == "closed":
            ours, theirs = both.ours.look(), both.theirs.snapshot()
            assert ours.calls == theirs.total_calls
            if ours.failure_rate is not None:
                assert ours.failure_rate == theirs.failure_rate
                assert ours.slow_rate == theirs.slow_call_rate
