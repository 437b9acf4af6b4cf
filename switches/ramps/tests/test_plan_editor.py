"""The form editor of plans: a submitted form yields the plan that was typed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.errors import InvalidInput
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.options import GateOption
from switches.ramps import plan as plans
from switches.ramps import plan_editor as editor
from switches.ramps.plan_buttons import press_button

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
    """Return what a browser would send of the form."""
    groups = [row["group"] for row in form.rows() if row["group"]]
    groups += [form.shared_group] if form.shared_group else []
    gates = [gate for group in groups for gate in group["gates"]]
    shown = [
        *(field for row in form.rows() for field in row["fields"]),
        *(field for gate in gates for field in (gate["type_field"], *gate["fields"])),
    ]
    sent = {field["name"]: field["value"] for field in shown}
    return {**sent, "gates": "all"} if form.shared_group else sent


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
    form = press_button(editor.open_plan(plans.read_plan()), "add-step", {})

    assert [step["percent"] for step in form.plan()] == [5, 25, 62, 100]
    assert form.focus == "step-2-percent"


def test_step_in_the_middle_is_removed_with_its_gates():
    gates = [{"type": "external", "gate": "b"}]
    plan = plans.read_plan([{"percent": 5}, {"percent": 25, "gates": gates}, {"percent": 100}])

    form = press_button(editor.open_plan(plan), "remove-step-1", {})

    assert [step["percent"] for step in form.plan()] == [5, 100]
    assert form.gates == 0


def test_last_step_that_is_left_can_not_be_removed():
    form = editor.open_plan(plans.read_plan([{"percent": 100}]))

    assert press_button(form, "remove-step-0", {}) == form


@pytest.mark.parametrize("kind", list(GATE_KINDS.values()), ids=str)
def test_gate_of_each_kind_is_added_to_a_step_with_its_defaults_and_removed(kind):
    plan = editor.open_plan(plans.read_plan()).split_gates()

    form = press_button(plan, "add-gate-1", {"step-1-new": kind.name})
    gate = form.plan()[1]["gates"][0]
    defaults = {
        field.name: field.default
        for field in kind.fields
        if isinstance(field.default, int | float | str)
    }

    assert gate == {"type": kind.name, **defaults}
    assert form.rows()[1]["group"]["gates"][0]["fields"][0]["focused"]
    assert press_button(form, "remove-gate-1-0", {}).plan() == plan.plan()


def test_shared_gate_is_added_to_every_step_and_removed_from_every_step():
    plan = editor.open_plan(plans.read_plan())

    form = press_button(plan, "add-gate-all", {"all-new": "external"})

    assert [step["gates"] for step in form.plan()] == [[{"type": "external"}]] * 3
    assert (form.summary, form.focus) == ("3 steps of 5 min, 1 gate each", "all-gate-0-gate")
    assert press_button(form, "remove-gate-all-0", {}).plan() == plan.plan()


@pytest.mark.parametrize(
    ("dwells", "summary"),
    [
        ((300, 300), "2 steps of 5 min, no gates"),
        ((90, 300), "2 steps, the last after at least 1 min 30 s, no gates"),
        ((60, 90, 300), "3 steps, the last after at least 2 min 30 s, no gates"),
        ((0, 0), "2 steps of 0 s, no gates"),
        ((60,), "1 step of 1 min, no gates"),
    ],
)
def test_summary_says_how_long_the_plan_takes(dwells, summary):
    percents = [5, 25, 100][-len(dwells) :]
    steps = [{"percent": p, "dwell_seconds": s} for p, s in zip(percents, dwells, strict=True)]

    assert editor.open_plan(plans.read_plan(steps)).summary == summary


@pytest.mark.parametrize("typed", ["five", "-5", "9" * 40])
def test_summary_of_an_invalid_dwell_gives_no_duration(typed):
    form = editor.read_form({"step-0-percent": "100", "step-0-dwell": typed})

    assert form.summary == "1 step, no gates"


def test_split_gates_are_copied_to_each_step_and_shared_ones_are_merged():
    gate, other = ({"type": "external", "gate": name} for name in "ab")
    same = plans.read_plan([{"percent": 5, "gates": [gate]}, {"percent": 100, "gates": [gate]}])
    different = plans.read_plan(
        [{"percent": 5, "gates": [gate]}, {"percent": 100, "gates": [other]}]
    )

    split = press_button(editor.open_plan(same), "split-gates", {})
    shared = press_button(editor.open_plan(different), "share-gates", {})

    assert editor.open_plan(same).shared_gates is not None
    assert editor.open_plan(different).shared_gates is None
    assert [row["group"]["key"] for row in split.rows()] == [0, 1]
    assert plans.read_plan(split.plan()) == same
    assert [step["gates"] for step in shared.plan()] == [[gate, other]] * 2


def test_field_with_a_short_list_is_a_select_that_keeps_an_unknown_name():
    sent = {
        "step-0-percent": "100",
        "gates": "all",
        "all-gate-0-type": "slo",
        "all-gate-0-slo": "x",
    }
    form = replace(editor.read_form(sent), options={"slos": [GateOption("core", "OK")]})

    field = form.shared_group["gates"][0]["fields"][0]

    assert field["select"]["is_unknown"]
    assert form.suggestions == {}
    assert form.find_name_errors({"slos": {"x"}}) == {
        "plan[0].gates[0].slo": ["No SLO is named x. Choose another."]
    }


def test_field_with_a_long_list_is_a_text_field_with_suggestions():
    names = [GateOption(f"slo-{number}") for number in range(201)]
    sent = {"step-0-percent": "100", "gates": "all", "all-gate-0-type": "slo"}
    form = replace(editor.read_form(sent), options={"slos": names})

    assert form.shared_group["gates"][0]["fields"][0]["select"] is None
    assert form.suggestions == {"slos": names}


@pytest.mark.parametrize("button", ["", "x", "remove-step-9", "add-gate-77", "remove-gate-0-5"])
def test_button_that_is_none_changes_nothing(button):
    plan = editor.open_plan(plans.read_plan())

    assert press_button(plan, button, {}) == plan


def test_error_of_a_gate_goes_to_its_field():
    sent = {"step-0-percent": "100", "step-0-gate-0-type": "slo", "step-0-gate-0-min_events": "no"}
    form = editor.read_form(sent)

    with pytest.raises(InvalidInput) as refused:
        plans.read_plan(form.plan())
    fields = form.with_errors(refused.value.errors).rows()[0]["group"]["gates"][0]["fields"]

    errors = {field["name"].rpartition("-")[2]: field["errors"] for field in fields}
    assert errors["slo"] == ["Is required."]
    assert errors["min_events"] == ["Must be a whole number from 1 to 1000000000."]
    assert not errors["window"]
