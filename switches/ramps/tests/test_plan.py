"""Validation of plans: every error is reported, and a validated plan validates to itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from switches.ramps import plan

NAMES = st.text("abcXYZ09._-", min_size=1, max_size=120)
TEXTS = st.text("abc 09->:/", min_size=1, max_size=60).filter(lambda text: text.strip())
COUNTS = st.integers(1, 10**9)
GATES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("slo"), "slo": TEXTS},
        optional={
            "window": st.sampled_from(["30s", "5m", "1h"]),
            "max_burn_rate": st.floats(0, 1000, allow_nan=False),
            "min_events": COUNTS,
            "min_bad": COUNTS,
        },
    ),
    st.fixed_dictionaries({"type": st.just("breaker"), "dependency": st.just("core->oracle")}),
    st.fixed_dictionaries(
        {"type": st.just("manual")}, optional={"timeout_seconds": st.integers(1, 604800)}
    ),
    st.fixed_dictionaries({"type": st.just("external"), "gate": NAMES}),
    st.fixed_dictionaries(
        {"type": st.just("samples"), "slo": TEXTS}, optional={"min_events": COUNTS}
    ),
)
STEPS = st.fixed_dictionaries(
    {},
    optional={
        "dwell_seconds": st.integers(0, 604800),
        "max_hold_seconds": st.integers(0, 86400),
        "gates": st.lists(GATES, max_size=4, unique_by=lambda gate: gate["type"]),
    },
)
HUNDREDTHS = st.lists(st.integers(1, 9999), max_size=6, unique=True).map(sorted)


@st.composite
def plans(draw):
    percents = [hundredth / 100 for hundredth in draw(HUNDREDTHS)] + [100]
    return [{"percent": percent, **draw(STEPS)} for percent in percents]


def errors_of(given_plan, **more):
    with pytest.raises(InvalidInput) as wrong:
        plan.read_plan(given_plan, **more)
    return wrong.value.errors


@given(plans(), st.none() | st.integers(0, 86400))
def test_what_is_read_reads_the_same_again(given_plan, max_hold):
    steps = plan.read_plan(given_plan, max_hold)

    assert plan.read_plan(steps) == steps
    assert [step["percent"] for step in steps] == [step["percent"] for step in given_plan]
    for step, step_given in zip(steps, given_plan, strict=True):
        assert step["dwell_seconds"] == step_given.get("dwell_seconds", 300)
        usual = 3600 if max_hold is None else max_hold
        assert step["max_hold_seconds"] == step_given.get("max_hold_seconds", usual)
        assert len(step["gates"]) == len(step_given.get("gates", []))


@given(plans(), st.integers(0, 5))
def test_a_step_that_does_not_grow_is_named(given_plan, at):
    if len(given_plan) < 2:
        return
    index = 1 + at % (len(given_plan) - 1)
    given_plan[index]["percent"] = given_plan[index - 1]["percent"]

    assert f"plan[{index}].percent" in errors_of(given_plan)


@pytest.mark.slow
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_whatever_is_no_plan_is_refused_and_never_an_error_of_ours(nonsense):
    if nonsense is None:
        return

    assert errors_of(nonsense)


def test_usual_plan_is_that_of_the_contract():
    steps = plan.read_plan()

    assert [step["percent"] for step in steps] == [5, 25, 100]
    assert {step["dwell_seconds"] for step in steps} == {300}
    assert {step["max_hold_seconds"] for step in steps} == {3600}
    assert plan.read_plan(None) == steps


def test_defaults_of_every_gate_are_filled_in():
    gates = [
        {"type": "slo", "slo": "core-availability"},
        {"type": "breaker", "dependency": " core -> oracle "},
        {"type": "manual"},
        {"type": "samples", "slo": "core-availability"},
        {"type": "external", "gate": "smoke"},
    ]

    (step,) = plan.read_plan([{"percent": 100, "gates": gates}])

    assert step["gates"] == [
        {
            "type": "slo",
            "slo": "core-availability",
            "window": "5m",
            "max_burn_rate": 1,
            "min_events": 100,
            "min_bad": 3,
        },
        {"type": "breaker", "dependency": "core->oracle"},
        {"type": "manual", "timeout_seconds": 7200},
        {"type": "samples", "slo": "core-availability", "min_events": 100},
        {"type": "external", "gate": "smoke"},
    ]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ([], "plan"),
        ([{"percent": 100}] * 21, "plan"),
        ({"percent": 100}, "plan"),
        ([5, 100], "plan[0]"),
        ([{"percent": 0}, {"percent": 100}], "plan[0].percent"),
        ([{"percent": 0.009}, {"percent": 100}], "plan[0].percent"),
        ([{"percent": 5.123}, {"percent": 100}], "plan[0].percent"),
        ([{"percent": float("nan")}, {"percent": 100}], "plan[0].percent"),
        ([{"percent": True}, {"percent": 100}], "plan[0].percent"),
        ([{"percent": "5"}, {"percent": 100}], "plan[0].percent"),
        ([{"percent": 100.01}], "plan[0].percent"),
        ([{"percent": 99.99}], "plan[0].percent"),
        ([{"dwell_seconds": 5}], "plan[0].percent"),
        ([{"percent": 100, "dwell_seconds": -1}], "plan[0].dwell_seconds"),
        ([{"percent": 100, "dwell_seconds": 604801}], "plan[0].dwell_seconds"),
        ([{"percent": 100, "max_hold_seconds": 86401}], "plan[0].max_hold_seconds"),
        ([{"percent": 100, "dwell": 5}], "plan[0].dwell"),
        ([{"percent": 100, "gates": {}}], "plan[0].gates"),
        ([{"percent": 100, "gates": [{}]}], "plan[0].gates[0].type"),
        ([{"percent": 100, "gates": [{"type": "hope"}]}], "plan[0].gates[0].type"),
        ([{"percent": 100, "gates": [{"type": "slo"}]}], "plan[0].gates[0].slo"),
        (
            [{"percent": 100, "gates": [{"type": "slo", "slo": "a", "window": "soon"}]}],
            "plan[0].gates[0].window",
        ),
        (
            [{"percent": 100, "gates": [{"type": "slo", "slo": "a", "min_bad": 0}]}],
            "plan[0].gates[0].min_bad",
        ),
        (
            [{"percent": 100, "gates": [{"type": "breaker", "dependency": "oracle"}]}],
            "plan[0].gates[0].dependency",
        ),
        (
            [{"percent": 100, "gates": [{"type": "external", "gate": "a b"}]}],
            "plan[0].gates[0].gate",
        ),
        (
            [{"percent": 100, "gates": [{"type": "manual", "timeout_seconds": 0}]}],
            "plan[0].gates[0].timeout_seconds",
        ),
        (
            [{"percent": 100, "gates": [{"type": "manual"}, {"type": "manual"}]}],
            "plan[0].gates[1]",
        ),
        (
            [{"percent": 100, "gates": [{"type": "external", "gate": "a", "x": 1}]}],
            "plan[0].gates[0].x",
        ),
    ],
)
def test_what_is_wrong_is_named(wrong, field):
    assert field in errors_of(wrong)


@pytest.mark.parametrize(
    "right",
    [
        [{"percent": 100}],
        [{"percent": 0.01}, {"percent": 100}],
        [{"percent": 99.99}, {"percent": 100}],
        [{"percent": 100, "dwell_seconds": 0, "max_hold_seconds": 0}],
        [{"percent": 100, "dwell_seconds": 604800, "max_hold_seconds": 86400}],
        [{"percent": number} for number in (*range(1, 20), 100)],
    ],
)
def test_what_is_just_right_passes(right):
    assert len(plan.read_plan(right)) == len(right)


def test_everything_that_is_wrong_is_told_at_once():
    steps = [
        {"percent": 0, "dwell_seconds": -1, "gates": [{"type": "slo"}, {"type": "hope"}]},
        {"percent": 200, "pause": 1},
    ]

    assert set(errors_of(steps, max_hold_seconds=-1)) == {
        "max_hold_seconds",
        "plan[0].percent",
        "plan[0].dwell_seconds",
        "plan[0].gates[0].slo",
        "plan[0].gates[1].type",
        "plan[1].percent",
        "plan[1].pause",
    }


@pytest.mark.parametrize(
    ("steps", "hasty"),
    [
        ([(25, 59.9), (100, 300)], True),
        ([(25, 60), (100, 300)], False),
        ([(1, 20), (5, 20), (25, 20), (100, 0)], False),
        ([(25.01, 7200), (100, 0)], True),
        ([(100, 7200)], True),
    ],
)
def test_plan_that_spends_less_than_a_minute_at_a_quarter_or_less_is_hasty(steps, hasty):
    given = [{"percent": percent, "dwell_seconds": dwell} for percent, dwell in steps]

    assert plan.is_hasty(plan.read_plan(given)) == hasty


@pytest.mark.parametrize("percents", [[100], [5, 100], [5, 25, 50, 100]])
@pytest.mark.parametrize("last_dwell", [0, 7200])
def test_immediate_plan_is_hasty(percents, last_dwell):
    steps = [{"percent": percent, "dwell_seconds": 0} for percent in percents]
    steps[-1]["dwell_seconds"] = last_dwell
    given = plan.read_plan(steps)

    assert plan.is_immediate(given)
    assert plan.is_hasty(given)


def test_only_a_plan_that_begins_with_everything_is_at_once():
    assert plan.is_immediate(plan.read_plan([{"percent": 100}]))
    assert not plan.is_immediate(plan.read_plan())
