"""Every path by every role: exactly the contract's permissions."""

import pytest

from breakers.tests.house import dependency
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.tests.security import callers, matrix, urls
from slo.tests import factories as making

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("frameless"),
]
TABLE = matrix.needs()
# Here what is asked for is read before who asks: an empty body or a thing that is not there ends
# it with what is wrong with that. Tests of each room ask with good bodies.
READ_FIRST = {400, 404}


def list_places():
    return [place for place in urls.places() if not place.is_admin and not place.other_form]


def format_complaints(wrong):
    return "\n" + "\n".join(f"{what}: {found}" for what, found in wrong.items())


@pytest.fixture(autouse=True)
def _things():
    """Create the objects named by the sample paths."""
    dependency("core->oracle", db_now())
    making.slo("core-availability")


def read_first(answer, place, need):
    is_about_a_thing = "<" in place.route or (place.is_api and need.has_rank)
    return is_about_a_thing and answer.status_code in READ_FIRST


def iterate_needs():
    """Each place, method and need of the table."""
    for place in list_places():
        for method, need in TABLE.get(place.route, {}).items():
            yield place, method, need


def programs():
    """The same, of what programs ask."""
    for place, method, need in iterate_needs():
        if not place.is_page and not need.open:
            yield place, method, need


def test_the_table_has_every_address_and_no_other():
    routes = {place.route for place in list_places()}

    assert routes - TABLE.keys() == set(), "who may go there? say so in matrix.py"
    assert TABLE.keys() - routes == set(), "no such address"


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", callers.RANKS)
def test_each_role_gets_in_where_it_may_and_nowhere_else(role):
    client = callers.somebody(role)
    wrong = {}
    for place, method, need in iterate_needs():
        if method == "GET" and matrix.names_a_thing(place.route, need):
            continue  # Asked in `test_matrix_there.py`, where there is such a thing.
        expected = "in" if callers.person_may(need, role) else "out"
        answer = callers.ask(client, method, place)
        if callers.verdict(answer, place) != expected and not read_first(answer, place, need):
            wrong[f"{method} {place.route}"] = (answer.status_code, expected)

    assert not wrong, format_complaints(wrong)


def test_nobody_gets_in_where_it_is_not_open():
    wrong = {}
    for place, method, need in iterate_needs():
        answer = callers.ask(callers.nobody(), method, place)
        if callers.verdict(answer, place) != ("in" if need.open else "out"):
            wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, format_complaints(wrong)


@pytest.mark.exhaustive
def test_a_method_that_is_not_in_the_table_does_nothing():
    client, wrong = callers.somebody("admin"), {}
    for place in (one for one in list_places() if not callers.is_entry(one)):
        for method in {"POST", "PUT", "DELETE"} - TABLE.get(place.route, {}).keys():
            answer = callers.ask(client, method, place)
            if callers.verdict(answer, place) not in {"none", "out"}:
                wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, format_complaints(wrong)


def test_a_token_with_just_the_scope_gets_in():
    owner, clients, wrong = person("admin", "owner"), {}, {}
    for place, method, need in programs():
        for scopes in callers.token_scopes(need):
            client = clients.get(scopes) or callers.program(*scopes, owner=owner)
            clients[scopes] = client
            answer = callers.ask(client, method, place)
            if callers.verdict(answer, place) != "in":
                wrong[f"{method} {place.route} {scopes}"] = answer.status_code

    assert not wrong, format_complaints(wrong)


def test_a_token_with_every_scope_but_the_one_stays_out():
    owner, clients, wrong = person("admin", "owner"), {}, {}
    for place, method, need in programs():
        for scopes in callers.too_few_scopes(need):
            client = clients.get(scopes) or callers.program(*scopes, owner=owner)
            clients[scopes] = client
            answer = callers.ask(client, method, place)
            if callers.verdict(answer, place) != "out" and not read_first(answer, place, need):
                wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, format_complaints(wrong)


def test_a_token_for_scim_opens_nothing_else():
    client, wrong = callers.program("scim", owner=person("admin", "owner")), {}
    for place, method, need in programs():
        answer = callers.ask(client, method, place)
        verdict = callers.verdict(answer, place)
        if not need.program and verdict != "out" and not read_first(answer, place, need):
            wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, format_complaints(wrong)


def test_a_token_opens_no_page():
    client = callers.program(*callers.ALL_SCOPES, owner=person("admin", "owner"))
    wrong = {}
    for place, method, need in iterate_needs():
        if place.is_page and not need.open:
            answer = callers.ask(client, method, place)
            if callers.verdict(answer, place) != "out":
                wrong[f"{method} {place.route}"] = answer.status_code

    assert not wrong, format_complaints(wrong)


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["viewer", "operator", "approver"])
def test_a_token_may_no_more_than_its_owner(role):
    """Made while its owner was an admin, who is one no more."""
    owner = person("admin", f"owner-{role}")
    client = callers.program(*callers.ALL_SCOPES, owner=owner)
    type(owner).objects.filter(pk=owner.pk).update(role=role)
    wrong = {}
    for place, method, need in programs():
        may = bool(callers.token_scopes(need)) and callers.person_may(need, role)
        answer = callers.ask(client, method, place)
        if callers.verdict(answer, place) != ("in" if may else "out") and not read_first(
            answer, place, need
        ):
            wrong[f"{method} {place.route}"] = (answer.status_code, may)

    assert not wrong, format_complaints(wrong)


@pytest.mark.exhaustive
@pytest.mark.parametrize("role", ["nobody", "viewer", "operator", "approver"])
def test_the_administration_is_closed_to_all_but_admins(role):
    client = callers.nobody() if role == "nobody" else callers.somebody(role)
    wrong = {}
    for place in urls.places():
        if place.is_admin:
            answer = callers.ask(client, "GET", place)
            if answer.status_code not in {301, 302, 403}:
                wrong[place.route] = answer.status_code

    assert not wrong, format_complaints(wrong)
