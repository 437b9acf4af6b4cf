"""The form editor of plans: a submitted form yields the plan that was typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from controlplane.core.gates.kinds import GATE_KINDS
from switches.ramps import plan as plans
from switches.ramps import plan_editor as editor

PERCENTS = st.lists(
    st.integers(1, 9999).map(lambda hundredths: hundredths / 100), unique=True, max_size=6
)
NAMES = st.text("abcdefghij-.", min_size=1, max_size=20)
GATES = st.one_of(
    st.builds(lambda name: {"type": "external", "gate": name}, NAMES),
    st.builds(lambda name: {"type": "breaker", "dependency": f"a->{name}"}, NAMES),
    st.builds(lambda seconds: {"type": "manual", "timeout_seconds": seconds}, st.integers(1, 9000)),
    st.builds(lambda name, n: {"type": "samples", "slo": name, "min_events": n}, NAMES,
              st.integers(1, 10**6)),
    st.builds(lambda name, rate: {"type": "slo", "slo": name, "max_burn_rate": rate}, NAMES,
              st.sampled_from([0, 1, 0.5, 14.4])),
)  # fmt: skip
STEPS = st.tuples(
    PERCENTS, st.lists(st.tuples(st.integers(0, 604_800), st.lists(GATES, max_size=3)), min_size=7)
)


def as_sent(form):
    return dict(form.fields)


@given(STEPS)
def test_any_plan_comes_back_from_the_form_as_it_was(steps):
    percents, more = steps
    steps_given = [
        {"percent": percent, "dwell_seconds": dwell, "gates": gates}
        for percent, (dwell, gates) in zip([*sorted(percents), 100], more, strict=False)
    ]
    try:
        plan = plans.read_plan(steps_given)
    except InvalidInput:
        return  # The same gate twice.

    assert plans.read_plan(editor.read_form(as_sent(editor.open_plan(plan))).plan()) == plan


@pytest.mark.parametrize(
    ("typed", "seconds"),
    [("5m", 300), ("90s", 90), ("2h", 7200), ("300", 300), ("0", 0), ("5 m", 300), ("", 300)],
)
def test_dwell_is_read_as_people_write_it(typed, seconds):
    sent = {"step-0-percent": "100", "step-0-dwell": typed}

    assert plans.read_plan(editor.read_form(sent).plan())[0]["dwell_seconds"] == seconds


@pytest.mark.parametrize("typed", ["five", "5 minutes", "-5", "1e999", "nan", "8d", "<b>"])
def test_dwell_that_is_none_is_told_beside_its_field(typed):
    form = editor.read_form({"step-0-percent": "100", "step-0-dwell": typed})

    with pytest.raises(InvalidInput) as refused:
        plans.read_plan(form.plan())
    row = form.with_errors(refused.value.errors).rows()[0]

    errors = {field["name"]: field["errors"] for field in row["fields"]}
    assert errors["step-0-dwell"]
    assert not errors["step-0-percent"]
    assert row["fields"][1]["value"] == typed


def test_form_without_a_plan_has_none():
    assert editor.read_form({"justification": "x", "mode": "ramp"}) is None


def test_step_is_added_before_the_last_halfway():
    form = editor.press_button(editor.open_plan(plans.read_plan()), "add-step", {})

    assert [step["percent"] for step in form.plan()] == [5, 25, 62, 100]
    assert form.focus == "step-2-percent"


def test_step_in_the_middle_is_removed_with_its_gates():
    gates = [{"type": "external", "gate": "b"}]
    plan = plans.read_plan([{"percent": 5}, {"percent": 25, "gates": gates}, {"percent": 100}])

    form = editor.press_button(editor.open_plan(plan), "remove-step-1", {})

    assert [step["percent"] for step in form.plan()] == [5, 100]
    assert form.gates == 0


def test_last_step_that_is_left_can_not_be_removed():
    form = editor.open_plan(plans.read_plan([{"percent": 100}]))

    assert editor.press_button(form, "remove-step-0", {}) == form


@pytest.mark.parametrize("kind", list(GATE_KINDS.values()), ids=str)
def test_gate_of_each_kind_is_added_with_its_defaults_and_removed(kind):
    plan = editor.open_plan(plans.read_plan())

    form = editor.press_button(plan, "add-gate-1", {"step-1-new": kind.name})
    gate = form.plan()[1]["gates"][0]
    defaults = {
        field.name: field.default
        for field in kind.fields
        if isinstance(field.default, int | float | str)
    }

    assert gate == {"type": kind.name, **defaults}
    assert form.rows()[1]["gates"][0]["fields"][0]["focused"]
    assert editor.press_button(form, "remove-gate-1-0", {}).plan() == plan.plan()


@pytest.mark.parametrize("button", ["", "x", "remove-step-9", "add-gate-77", "remove-gate-0-5"])
def test_button_that_is_none_changes_nothing(button):
    plan = editor.open_plan(plans.read_plan())

    assert editor.press_button(plan, button, {}) == plan


def test_error_of_a_gate_goes_to_its_field():
    sent = {"step-0-percent": "100", "step-0-gate-0-type": "slo", "step-0-gate-0-min_events": "no"}
    form = editor.read_form(sent)

    with pytest.raises(InvalidInput) as refused:
        plans.read_plan(form.plan())
    fields = form.with_errors(refused.value.errors).rows()[0]["gates"][0]["fields"]

    errors = {field["name"].rpartition("-")[2]: field["errors"] for field in fields}
    assert errors["slo"] == ["Is required."]
    assert errors["min_events"] == ["Must be a whole number from 1 to 1000000000."]
    assert not errors["window"]
