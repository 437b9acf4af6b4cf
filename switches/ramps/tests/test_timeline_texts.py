"""Texts of a ramp's timeline: the share's label, the warning about gates, the outcome."""

from datetime import UTC, datetime

import pytest

from controlplane.core.jobs.models import Job, JobStep
from switches.models import Ramp
from switches.ramps.timeline import StepLine, Timeline

NOW = datetime(2026, 11, 24, 3, 10, tzinfo=UTC)
SLO, PERSON = {"can_fail": True, "verdict": "pass"}, {"can_fail": False, "verdict": "waiting"}


def timeline(*gates, live=True, state="running", step_index=0, at_once=False, **job):
    steps = [
        StepLine(row=JobStep(index=index), state="", is_present=False, gates=each, rest=None)
        for index, each in enumerate(gates)
    ]
    return Timeline(
        ramp=Ramp(live=live),
        job=Job(step_index=step_index, **job),
        state=state,
        share=5,
        is_released_at_once=at_once,
        steps=steps,
        approval=None,
        is_stuck=False,
        pace_seconds=2,
    )


@pytest.mark.parametrize(
    ("gates", "warning"),
    [
        (([], []), "No gates: only time advances this ramp."),
        (([PERSON], []), "No gate of this ramp can fail."),
        (([], [SLO]), "Step 1 has no gate that can fail."),
        (([SLO], []), ""),
        (([SLO, PERSON], [SLO]), ""),
    ],
)
def test_live_ramp_warns_if_no_gate_can_fail(gates, warning):
    assert timeline(*gates).gate_warning == warning


def test_gates_of_passed_steps_no_longer_count():
    ramp = timeline([SLO], [], step_index=1)

    assert ramp.gate_warning == "No gates: only time advances this ramp."


def test_ended_ramp_warns_of_nothing():
    assert timeline([], live=False, state="completed").gate_warning == ""


@pytest.mark.parametrize(
    ("state", "more", "label"),
    [
        ("pending_approval", {}, "allowed now; starts when approved"),
        ("holding", {}, "allowed now"),
        ("completed", {"live": False}, "allowed at the end"),
        ("aborted", {"live": False, "at_once": True}, "allowed: released at once"),
        ("aborted", {"live": False, "started_at": NOW}, "Stopped; switch engaged again"),
        ("aborted", {"live": False}, "Never started"),
    ],
)
def test_share_says_when_it_is_allowed(state, more, label):
    assert timeline([], state=state, **more).share_label == label


def test_abort_by_a_person_needs_no_heading():
    by_person = timeline([], live=False, state="aborted", outcome="Aborted by user:kim: INC-4411")
    by_gate = timeline([], live=False, state="aborted", outcome="A gate failed: SLO x.")

    assert (by_person.outcome_heading, by_gate.outcome_heading) == ("", "Aborted.")


def test_verdicts_are_counted_in_words():
    (step,) = timeline([SLO, SLO, {"can_fail": True, "verdict": "no_data"}]).steps

    assert step.verdicts == "2 pass, 1 without data"
