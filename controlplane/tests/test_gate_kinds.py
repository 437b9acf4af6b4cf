"""A gate kind that is registered from one module is there everywhere: this one, for instance."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.core.checks import check_gate_options
from controlplane.core.clock import db_now
from controlplane.core.gates import kinds
from controlplane.core.gates.fields import NUMBER, GateField, check_text, whole_number_between
from controlplane.core.gates.kinds import GATE_KINDS
from controlplane.core.gates.questions import FAIL, PASS, GateAnswer
from controlplane.core.gates.verdicts import build_no_data
from controlplane.core.http.tests.callers import as_role
from switches.models import Ramp
from switches.ramps.resources import RampGateShape
from switches.ramps.tests.ramp_helpers import (
    get_outcome,
    get_ramp_state,
    get_share,
    run_tick,
    start_ramp,
)
from switches.tests.browsers import Tags, browser_as, engaged, page
from switchgear.cli.commands import release
from switchgear.cli.views import ramps as cli_ramps

OPERATE = Path(__file__).resolve().parents[2] / "docs" / "operate.md"
SPEC = {"type": "weather", "place": "Lisbon"}
PLAN = [{"percent": 5, "dwell_seconds": 0, "gates": [SPEC]}, {"percent": 100}]
FORM = "/switches/feature/chat/release/"
PART = {"HX-Request": "true", "HX-Target": "plan-editor"}

WIND: dict[str, int] = {}
"""The wind in each place, in km/h."""


def judge(question, wind, _now):
    if wind is None:
        return build_no_data(question, "nobody has measured the wind", {})
    is_calm = wind <= question.spec["max_wind"]
    return GateAnswer(PASS if is_calm else FAIL, {"wind": wind, "why": f"the wind is {wind} km/h"})


WEATHER = kinds.GateKind(
    name="weather",
    label="Weather",
    summary="calm in {place}, up to {max_wind} km/h",
    passes_when="the wind is low",
    fields=(
        GateField("place", "Place", check_text, placeholder="Lisbon"),
        GateField("max_wind", "Most wind, km/h", whole_number_between(0, 200), 30, input=NUMBER),
    ),
    look_up=lambda questions, _now: [WIND.get(one.spec["place"]) for one in questions],
    evaluate=judge,
    position=60,
)


@pytest.fixture(autouse=True)
def weather():
    with GATE_KINDS.registered(WEATHER):
        yield
    WIND.clear()


def test_documentation_lists_every_other_kind():
    rows = re.findall(r"^\| `[a-z]+` \| .*(?:$)", OPERATE.read_text(), re.MULTILINE)
    table = [row for row in kinds.document_kinds() if row not in rows]

    assert table == ["| `weather` | the wind is low |"]


def test_openapi_names_it():
    field = RampGateShape().fields["type"]

    assert "weather" in field.choices
    assert "`weather`: the wind is low" in field.help_text


@pytest.mark.django_db
def test_api_takes_and_shows_it():
    operator = as_role("operator")
    operator.engage("feature:chat")
    body = {"justification": "5xx below 0.1 % for twenty minutes"}

    wrong = [{"percent": 100, "gates": [{**SPEC, "max_wind": 500}]}]
    refused = operator.post("/switches/feature/chat/release", {**body, "plan": wrong})
    accepted = operator.post("/switches/feature/chat/release", {**body, "plan": PLAN})

    assert refused.json()["errors"] == {
        "plan[0].gates[0].max_wind": ["Must be a whole number from 0 to 200."]
    }
    (gate,) = accepted.json()["ramp"]["steps"][0]["gates"]
    assert gate == {
        **SPEC,
        "max_wind": 30,
        "summary": "calm in Lisbon, up to 30 km/h",
        "finding": "calm in Lisbon, up to 30 km/h",
        "verdict": "no_data",
        "evidence": {},
        "checked_at": None,
    }


@pytest.mark.django_db
def test_plan_editor_offers_it_with_its_fields():
    engaged("feature:chat")
    client = browser_as("operator")

    offered = " ".join(page(client.get(FORM)).split())
    sent = {"step-0-percent": "100", "do": "add-gate-0", "step-0-new": "weather"}
    added = Tags(page(client.post(FORM, sent, headers=PART)))

    assert '<option value="weather">Weather</option>' in offered
    assert added.value("step-0-gate-0-max_wind") == "30"


def test_command_line_sends_and_shows_it():
    sent = release._parse_gate("weather:place=Lisbon,max_wind=30")
    result = {**sent, "verdict": "fail", "evidence": {"why": "the wind is 31 km/h"}}
    shown = {**result, "finding": kinds.describe_finding(result)}

    assert sent == {**SPEC, "max_wind": 30}
    assert "up to 30 km/h: the wind is 31 km/h" in str(cli_ramps.format_gate(shown))


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wind", "expected", "share"), [(None, "holding", 5), (30, "running", 100), (31, "aborted", 0)]
)
def test_ramp_holds_goes_on_or_goes_back_by_its_verdict(wind, expected, share):
    now = db_now()
    ramp = start_ramp(now, PLAN)
    if wind is not None:
        WIND["Lisbon"] = wind

    run_tick(now)

    assert (get_ramp_state(ramp), get_share()) == (expected, share)
    if expected == "aborted":
        assert "calm in Lisbon, up to 30 km/h: the wind is 31 km/h" in get_outcome(ramp)


@pytest.mark.django_db
def test_ramp_holds_once_its_kind_is_gone():
    now = db_now()
    ramp = start_ramp(now, PLAN)
    GATE_KINDS.unregister("weather")

    run_tick(now)

    assert get_ramp_state(ramp) == "holding"
    assert "unknown gate type weather" in Ramp.objects.get().job.hold_reason


@pytest.mark.parametrize(("options", "found"), [("places", ["core.E002"]), ("slos", []), ("", [])])
def test_list_of_options_that_is_not_registered_fails_the_system_check(options, found):
    GATE_KINDS.unregister("weather")
    fields = tuple(replace(field, options=options) for field in WEATHER.fields[:1])

    with GATE_KINDS.registered(replace(WEATHER, fields=fields)):
        problems = check_gate_options()

    assert [problem.id for problem in problems] == found
    assert all("weather.place" in problem.msg for problem in problems)
