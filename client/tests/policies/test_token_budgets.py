"""The token budget of a dependency: from the code, or from the console, followed live."""

import pytest

from switchgear import Policy
from switchgear.llm import SpendBudget, SpendExceeded, SpendParameters
from switchgear.testing import Console, FakeClock

NAME = "core->openai"


@pytest.fixture
def console():
    return Console()


def test_limits_of_the_code_hold_for_all_policies_of_the_name(console):
    gear = console.client()
    gear.policy(NAME, budget=SpendParameters(tokens=100))
    other = gear.policy(NAME)

    assert isinstance(other.budget, SpendBudget)
    assert other.budget is other.budget
    with pytest.raises(SpendExceeded, match="core->openai"):
        other.budget.reserve(101)


def test_limits_of_the_console_go_before_the_code_and_are_followed_live(console):
    policy = console.client().policy(NAME, budget=SpendParameters(tokens=100))
    policy.budget.reserve(80).settle()

    console.configure(NAME, {"budget": {"tokens": 500, "window_seconds": 30, "per_key_tokens": 50}})
    assert policy.budget.parameters == SpendParameters(
        tokens=500, window_seconds=30, per_key_tokens=50
    )
    assert policy.budget.look().spent == 80
    with pytest.raises(SpendExceeded, match="per key"):
        policy.budget.reserve(51, key="kim")

    console.configure(NAME, None)
    with pytest.raises(SpendExceeded):
        policy.budget.reserve(21)


def test_budget_that_is_first_wanted_later_has_what_the_console_said_before(console):
    policy = console.client().policy(NAME)
    console.configure(NAME, {"budget": {"tokens": 100}})

    with pytest.raises(SpendExceeded):
        policy.budget.reserve(101)


def test_budget_without_limits_refuses_nothing(console):
    budget = console.client().policy(NAME).budget

    assert budget.reserve(10**9).reserved == 10**9
    assert budget.parameters == SpendParameters()


def test_window_runs_by_the_clock_of_the_client():
    time = FakeClock()
    policy = Console(time).client().policy(NAME, budget=SpendParameters(tokens=100))
    policy.budget.reserve(100).settle()

    time.advance(64)

    assert policy.budget.reserve(100).reserved == 100


@pytest.mark.parametrize(
    "section",
    [5, {"tokens": 0}, {"tokens": "many"}, {"window_seconds": -1}, {"per_key_tokens": []}],
)
def test_section_that_makes_no_sense_is_refused(console, section):
    with pytest.raises(ValueError, match="budget"):
        console.configure(NAME, {"budget": section})


def test_policies_that_differ_in_their_budget_are_told_of(console, caplog):
    gear = console.client()
    first = gear.policy(NAME, budget=SpendParameters(tokens=100))
    gear.policy(NAME, budget=SpendParameters(tokens=200))

    assert first.budget.parameters.tokens == 100
    assert "differ in its token budget" in caplog.text


@pytest.mark.parametrize("wrong", [1000, {"tokens": 5}, SpendBudget("mine")])
def test_budget_of_a_wrong_type_is_refused_and_poisons_no_name(console, wrong):
    gear = console.client()

    with pytest.raises(TypeError, match="budget"):
        gear.policy(NAME, budget=wrong)

    assert gear.policy(NAME, budget=SpendParameters(tokens=5)).budget.parameters.tokens == 5


def test_policy_without_a_client_has_a_budget_too():
    policy = Policy("a", budget=SpendParameters(tokens=5))

    with pytest.raises(SpendExceeded):
        policy.budget.reserve(6)
