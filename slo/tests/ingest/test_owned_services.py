"""Counts of services and SLOs that a team owns come from its own tokens and services only."""

from typing import Any

import pytest

from controlplane.accounts.models import Membership, Ownership, Team, User
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import Api, person, signed_in
from slo.ingest import client_reports
from slo.models import ReportedEvents, Sli, Slo

from .sample_helpers import MINUTE, NOW, load_counters, moment_at, objective

pytestmark = pytest.mark.django_db
CORE = {"slo": "core-availability", "source": "core/a1", "good": 9, "total": 10}


def make_team(slug: str, *patterns: str, parent: Team | None = None) -> Team:
    team = Team.objects.create(slug=slug, name=slug.title(), parent=parent, created_at=NOW)
    for pattern in patterns:
        Ownership.objects.create(pattern=pattern, team=team)
    return team


def api_of(owner: User, **limits: Any) -> Api:
    _, text = tokens.create_token(
        name="reporter",
        owner=owner,
        scopes=["report:write"],
        actor=system_actor("test"),
        now=db_now(),
        **limits,
    )
    return Api(x_api_key=text)


def push(api: Api, **fields: Any) -> int:
    return api.post("/sli/", {"points": [{**CORE, **fields}]}).status_code


@pytest.fixture
def payments() -> Team:
    objective(service="core")
    return make_team("payments", "service:core", parent=make_team("finance"))


def test_stranger_pushes_nothing_in_the_name_of_an_owned_service(payments: Team) -> None:
    api = api_of(person("operator", "kim"))

    response = api.post("/sli/", {"points": [CORE]})

    assert response.status_code == 403
    assert response.json()["owner"] == "payments"
    assert push(api, source="gateway/a1") == 403, "the SLO is of the owned service"


def test_owner_and_teams_above_and_named_services_push(payments: Team) -> None:
    kim, lee = person("operator", "kim"), person("operator", "lee")
    Membership.objects.create(team=Team.objects.get(slug="finance"), user=lee)

    assert push(api_of(kim, team=payments)) == 200
    assert push(api_of(lee)) == 200
    assert push(api_of(kim, limit_to=["core"])) == 200


def test_owner_of_the_slo_decides_before_that_of_its_service(payments: Team) -> None:
    search = make_team("search", "slo:core-*")

    assert push(api_of(person("operator", "kim"), team=search), source="a") == 200
    assert push(api_of(person("operator", "lee"), team=payments), source="a") == 403


def test_person_pushes_as_before(payments: Team) -> None:
    assert push(signed_in(person("operator", "kim"))) == 200


def test_unowned_slo_without_a_service_takes_all(payments: Team) -> None:
    Slo.objects.update(service="")
    Ownership.objects.update(pattern="service:*")

    assert push(api_of(person("operator", "kim")), source="a") == 200


@pytest.mark.parametrize(
    ("reporter", "is_counted"),
    [("core", True), ("web", False), ("vault", True), ("ledger", True), ("unowned", False)],
)
def test_reported_counts_of_unrelated_services_are_dropped(
    payments: Team, reporter: str, is_counted: bool
) -> None:
    make_team("web", "service:web")
    Ownership.objects.create(pattern="service:vault", team=Team.objects.get(slug="finance"))
    make_team("ledger", "service:ledger", parent=payments)
    ReportedEvents.objects.create(
        slo="core-availability",
        instance=f"{reporter}/a1",
        began_at=moment_at(-60),
        ended_at=moment_at(0),
        good=9,
        total=10,
    )

    assert client_reports.add_reported(NOW, most=100) == 1

    counted = load_counters(Sli.objects.get(), MINUTE, MINUTE)
    assert counted == [(9, 10, 1) if is_counted else (0, 0, 0)]
