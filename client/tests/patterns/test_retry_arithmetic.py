"""The bounds of pauses and budgets."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchgear.patterns.parameters import RetryParameters
from switchgear.patterns.retry_budget import RetryBudget
from switchgear.patterns.retry_rules import backoff_seconds, jitter_retry_after, parse_retry_after
from tests.patterns.clocks import Clock

DEFAULT = RetryParameters()


def test_ceilings_double_up_to_the_cap():
    assert [backoff_seconds(n, DEFAULT, lambda: 1.0) for n in range(8)] == [
        0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0,
    ]  # fmt: skip


@given(
    retries=st.integers(0, 10_000),
    base=st.floats(0, 100),
    cap=st.floats(0, 100),
    draw=st.floats(0, 1, exclude_max=True),
    backoff=st.sampled_from(["exponential", "linear"]),
)
def test_a_pause_is_within_its_range(retries, base, cap, draw, backoff):
    parameters = RetryParameters(base_seconds=base, cap_seconds=cap, backoff=backoff)
    assert 0 <= backoff_seconds(retries, parameters, lambda: draw) <= cap


@given(requested=st.floats(0, 30), draw=st.floats(0, 1, exclude_max=True))
def test_jittered_retry_after_is_never_shorter(requested, draw):
    assert (
        requested <= jitter_retry_after(requested, DEFAULT, lambda: draw) <= requested * 1.1 + 0.1
    )


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7", 7), ("1.5", 1.5), ("Sun, 22 Nov 2026 02:00:30 GMT", 30), ("soon", None), (None, None),
     ("-1", None), ("1e9", None), ("inf", None), ("nan", None)],
)  # fmt: skip
def test_retry_after_is_parsed(text, seconds):
    assert parse_retry_after(text, 1_795_312_800.0) == seconds


def test_retries_are_a_part_of_the_calls_and_a_few_beside():
    clock = Clock()
    budget = RetryBudget(0.2, 1.0, clock=clock)
    for _ in range(100):
        budget.record_call()
    assert sum(budget.take() for _ in range(100)) == 30


def test_calls_and_retries_expire_after_ten_seconds():
    clock = Clock()
    budget = RetryBudget(0.2, 0.0, clock=clock)
    for _ in range(50):
        budget.record_call()
    clock.goes(9)
    assert [budget.take() for _ in range(11)] == [True] * 10 + [False]
    clock.goes(1)
    for _ in range(5):
        budget.record_call()
    assert not budget.take()
    clock.goes(9)
    for _ in range(5):
        budget.record_call()
    assert [budget.take(), budget.take(), budget.take()] == [True, True, False]


def test_new_figures_hold_at_once():
    budget = RetryBudget(0.0, 0.0)
    assert not budget.take()
    budget.configure(0.0, 0.1)
    assert [budget.take(), budget.take()] == [True, False]


def test_budget_is_reset_in_a_child():
    budget = RetryBudget(0.0, 0.1)
    budget.take()
    budget.after_fork()
    assert budget.take()


def test_a_hundred_threads_get_no_more_than_there_is():
    clock = Clock()
    budget, taken = RetryBudget(0.1, 0.0, clock=clock), []
    start = threading.Barrier(100)

    def work():
        start.wait()
        for _ in range(100):
            budget.record_call()
        start.wait()
        taken.append(sum(budget.take() for _ in range(30)))

    threads = [threading.Thread(target=work) for _ in range(100)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(taken) == 1000
