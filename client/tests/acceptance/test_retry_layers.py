"""Budgets of nested retries: for test_composition.py."""

import pytest

from switchgear import Retry, RetryParameters
from switchgear.patterns.counters import Counters
from switchgear.patterns.retry_budget import RetryBudget
from tests.acceptance.callee import Callee, away
from tests.patterns.clocks import Clock


@pytest.mark.parametrize("is_shared", [False, True], ids=["of each layer", "shared"])
def test_layers_of_retries_stay_within_one_budget(is_shared):
    """Finagle: RetriesTest "moduleWithRetryPolicy end to end to end with RetryBudget" """
    clock = Clock()
    budgets = [RetryBudget(rate=0.2, per_second=0, clock=clock) for _ in range(2)]
    if is_shared:
        budgets[1] = budgets[0]
    callee, counters = Callee(away()), [Counters(), Counters()]
    front, middle = (
        Retry(
            "callee",
            RetryParameters(attempts=5, base_seconds=0),
            budget=budget,
            counters=counted,
        )
        for budget, counted in zip(budgets, counters, strict=True)
    )
    call = front(middle(callee))

    for _ in range(100):
        with pytest.raises(ConnectionError):
            call()

    assert sum(each.counted()["retry"] for each in counters) == 20
    assert len(callee.calls) == 120
