"""A scope registered as one object is accepted by every part of the product."""

import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from controlplane.core.errors import InvalidInput
from controlplane.core.http.tests.callers import as_role
from controlplane.core.scopes import global_switch_id, is_switch_id, is_trippable
from controlplane.notify.targets.forms import RouteForm
from switches.models import Switch
from switches.rules import evaluation
from switches.scopes import SCOPES, SwitchScope, split_id
from switches.services.registration import identify
from switches.templatetags.switchboard import switch_url
from switches.tests.browsers import browser_as
from switches.trips.default_policies import default_policies
from switchgear.evaluation import scopes as client_scopes

DOCS = Path(__file__).resolve().parents[2] / "docs"
REGION = SwitchScope(
    name="region",
    position=15,
    question_field="regions",
    noun="region",
    plural="regions",
    description="One place where we run",
    example="eu-west",
    default_on_expiry="hold",
    overdue_severity="critical",
    trip_triggers=frozenset({"provider-outage"}),
)
REASON = "Packet loss in Frankfurt since 02:10, INC-4411"
_ROW = re.compile(r"^\| `([a-z]+)` \| .* \| `\1:", re.MULTILINE)


@pytest.fixture
def region():
    with SCOPES.registered(REGION) as scope:
        yield scope


def documented():
    return set(_ROW.findall((DOCS / "operate.md").read_text()))


def openapi(tmp_path):
    file = tmp_path / "schema.json"
    call_command("spectacular", format="openapi-json", file=str(file))
    return json.loads(file.read_text())


def test_client_has_the_same_table():
    ours = [
        (scope.name, scope.only_key, scope.default_on_expiry, scope.position)
        for scope in SCOPES.values()
    ]
    theirs = [
        (scope.name, scope.only_key, scope.default_on_expiry)
        for scope in client_scopes.SCOPES.values()
    ]

    assert [row[:3] for row in ours] == theirs
    assert global_switch_id() == client_scopes.GLOBAL_ID


def test_every_scope_has_its_row_in_the_docs():
    assert documented() == set(SCOPES.names)


def test_new_scope_is_missed_in_the_docs(region):
    assert set(SCOPES.names) - documented() == {"region"}


@pytest.mark.parametrize("name", ["Region", "", "region:", "regionregion", "région"])
def test_name_that_would_not_fit_an_id_is_refused(name):
    with pytest.raises(ValueError, match="lower-case letters"):
        SwitchScope(name=name, position=1, noun="", plural="", description="", example="")


def test_name_that_is_taken_is_refused(region):
    with pytest.raises(ValueError, match="registered twice"):
        SCOPES.register(REGION)


def test_scope_is_in_decision_order_and_gone_after_the_test(region):
    assert [*SCOPES.names] == ["global", "segment", "region", "feature", "experiment"]
    SCOPES.unregister("region")
    assert [*SCOPES.names] == ["global", "segment", "feature", "experiment"]
    SCOPES.register(region)


def test_ids_of_a_new_scope_are_read_everywhere(region):
    assert is_switch_id("region:eu")
    assert is_trippable("region:eu")
    assert not is_switch_id("region:")
    assert not is_switch_id("region:e u")
    assert split_id(" Region : eu") == ("region", "eu")
    assert evaluation.is_pattern("region:eu-*")


def test_ids_of_a_scope_that_is_not_registered_are_refused():
    assert not is_switch_id("region:eu")
    assert split_id("region:eu") is None
    assert not evaluation.is_pattern("region:*")


@pytest.mark.parametrize(
    ("switch", "is_valid"),
    [
        ("feature:nl2sql", True),
        ("feature:a..b", True),
        ("feature:..", True),
        ("feature:" + "k" * 120, True),
        ("feature:" + "k" * 121, False),
        ("feature:", False),
        ("feature:a b", False),
        ("feature:a/b", False),
        ("feature:a:b", False),
        ("global:all", True),
        ("global:other", False),
        ("region:eu", False),
        ("all", False),
    ],
)
def test_screens_and_api_accept_the_same_ids(switch, is_valid):
    scope, _, key = switch.partition(":")
    if is_valid:
        assert identify(scope, key) == switch
    else:
        with pytest.raises(InvalidInput):
            identify(scope, key)

    assert is_switch_id(switch) is is_valid
    assert bool(switch_url(switch)) is is_valid


def test_default_trip_policies_follow(region):
    scopes = {row["trigger"]: row["scopes"] for row in default_policies()}

    assert scopes["provider-outage"] == ["segment", "region", "feature"]
    assert "region" in scopes["data-leak"]
    assert scopes["srm"] == ["experiment"]


@pytest.mark.django_db
def test_switch_of_a_new_scope_is_engaged_by_the_api_and_blocks(region):
    operator = as_role("operator")

    engaged = operator.post(
        "/switches/region/eu-west/engage", {"reason": REASON, "expires_in": "1h"}
    )

    assert engaged.status_code == 200, engaged.content
    assert engaged.json()["on_expiry"] == "hold"
    decision = operator.post("/check", {"regions": ["us", "eu-west"], "features": ["chat"]}).json()
    assert (decision["allowed"], decision["switch"]) == (False, "region:eu-west")
    assert operator.post("/check", {"regions": ["us"]}).json()["allowed"] is True
    listed = operator.get("/switches/?scope=region").json()["results"]
    assert [switch["id"] for switch in listed] == ["region:eu-west"]


@pytest.mark.django_db
def test_scope_that_is_not_registered_is_refused_by_the_api():
    response = as_role("operator").post(
        "/switches/region/eu/engage", {"reason": REASON, "expires_in": "1h"}
    )

    assert response.status_code == 400
    assert "global, segment, feature, experiment" in response.json()["errors"]["scope"][0]


@pytest.mark.slow
@pytest.mark.django_db
def test_new_scope_is_in_the_openapi_document(region, tmp_path):
    document = openapi(tmp_path)

    parameters = document["paths"]["/api/v1/switches/{scope}/{key}/engage"]["post"]["parameters"]
    (scope,) = [one for one in parameters if one["name"] == "scope"]
    assert "region" in scope["schema"]["enum"]
    body = document["paths"]["/api/v1/check"]["post"]["requestBody"]["content"]
    name = body["application/json"]["schema"]["$ref"].rpartition("/")[2]
    question = document["components"]["schemas"][name]["properties"]
    assert {"segments", "regions", "features", "experiments", "targeting_key"} == question.keys()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "select"), [("/switches/engage/", "id_scope"), ("/", "scope-filter")]
)
def test_new_scope_can_be_chosen_on_the_screens(region, path, select):
    text = browser_as("operator").get(path).content.decode()

    chosen = text[text.index(f'id="{select}"') :]
    assert '<option value="region"' in chosen[: chosen.index("</select>")]


@pytest.mark.django_db
def test_new_scope_is_engaged_from_the_screen_with_its_default(region):
    form = {"scope": "region", "key": "eu", "reason": REASON, "how_long": "24h", "confirm": ""}

    browser_as("operator").post("/switches/engage/", {**form, "on_expiry": "hold"})

    assert Switch.objects.get().episode.on_expiry == "hold"


@pytest.mark.django_db
def test_new_scope_is_an_option_of_the_command(region, capsys):
    call_command("killswitch", "engage", "--region", "eu", "--reason", REASON)

    assert "region:eu  engaged" in capsys.readouterr().out
    assert Switch.objects.get().pk == "region:eu"


@pytest.mark.django_db
def test_messages_are_routed_by_the_new_scope(region):
    assert ("region", "region") in RouteForm().fields["scope"].choices
