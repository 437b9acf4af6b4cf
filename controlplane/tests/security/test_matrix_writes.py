"""The permission matrix with valid writes: a refused write changes no table or stream."""

import orjson
import pytest
from django.http import HttpResponse
from django.test import Client

from controlplane.accounts.models.people import User
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actions import Action
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.tests.security import callers, matrix, personas, refused_writes, writes

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("frameless"),
]
TABLE = matrix.needs()
CHANGING = {"POST", "PUT", "PATCH", "DELETE"}


@pytest.fixture
def house(settings):
    with refused_writes.full_house(settings) as found:
        yield found


def needed(write):
    """Return the need of a write; None if only the requester may do it."""
    if write.need == "who asked":
        return None
    need = TABLE[f"api/v1/{write.route}"][write.method]
    if not write.need:
        return need
    other = matrix.need(write.need)
    return other._replace(actions=other.actions or need.actions)


def send_write(client, write, house):
    """The answer, and what changed though it was refused."""
    path, body = write.path(house), orjson.dumps(write.sent(house))
    return refused_writes.answered(
        house,
        lambda: client.generic(write.method, path, body, content_type="application/json"),
    )


def test_every_write_of_the_table_is_tried():
    tried = {(write.method, f"api/v1/{write.route}") for write in writes.WRITES}
    tried |= {(method, f"api/v1/{route}") for method, route in writes.OF_ONE_PERSON}
    there = {
        (method, route)
        for route, methods in TABLE.items()
        for method in methods.keys() & CHANGING
        if route.startswith("api/v1/")
    }

    assert tried == there


def test_a_trace_in_a_table_or_a_stream_is_seen(house):
    house, _people = house

    def refused(leave=lambda: None):
        leave()
        return HttpResponse(status=403)

    def leave():
        callers.person("viewer", "somebody-new")
        house.letters.add(to="bulk")

    _answer, nothing = refused_writes.answered(house, refused)
    _answer, found = refused_writes.answered(house, lambda: refused(leave))

    assert nothing == set()
    assert found == {"core_user", str(house.letters.name("bulk").encode())}


@pytest.mark.exhaustive
def test_a_good_write_is_done_for_who_may_and_leaves_no_trace_of_others(house):
    house, people = house
    wrong = {}
    for write in writes.WRITES:
        need = needed(write)
        for role, client in people.items():
            may = need is not None and callers.person_may(need, role)
            if complaint := refused_writes.complaint(write, *send_write(client, write, house), may):
                wrong[f"{write.method} {write.route} {role}"] = complaint

    assert not wrong, refused_writes.format_complaints(wrong)


@pytest.mark.exhaustive
def test_a_write_about_what_a_team_owns_is_for_those_of_the_table(house):
    house, _people = house
    callers_of = personas.create_callers(User.objects.get(username__startswith="ada"), house.there)
    wrong, tried = {}, set()
    for write in writes.WRITES:
        need = needed(write)
        if need is None or not need.actions:
            continue
        for name, caller in callers_of.items():
            may = caller.may(need, f"api/v1/{write.route}")
            answer, changed = send_write(caller.client, write, house)
            tried |= {(action, may) for action in need.actions}
            if complaint := refused_writes.complaint(write, answer, changed, may):
                wrong[f"{write.method} {write.route} {name}"] = complaint

    assert not wrong, refused_writes.format_complaints(wrong)
    assert {action for action, may in tried if may} == set(Action)
    assert {action for action, may in tried if not may} == set(Action)


@pytest.mark.exhaustive
def test_a_good_write_of_a_program_takes_its_scope_and_its_owners_rank(house):
    house, _people = house
    everything = tuple(callers.ALL_SCOPES)
    owner, demoted = callers.person("admin", "owner"), callers.person("admin", "demoted")
    weak = callers.program(*everything, owner=demoted)
    type(demoted).objects.filter(pk=demoted.pk).update(role="viewer")
    strong, wrong = callers.program(*everything, owner=owner), {}
    for write in writes.WRITES:
        need = needed(write)
        suiting = callers.token_scopes(need) if need is not None else []
        callers_of = [
            (strong, bool(suiting)),
            (weak, bool(suiting) and callers.person_may(need, "viewer")),
        ]
        callers_of += [(callers.program(*one, owner=owner), True) for one in suiting]
        if need is not None:
            lacking = callers.too_few_scopes(need)
            callers_of += [(callers.program(*one, owner=owner), False) for one in lacking]
        for number, (client, may) in enumerate(callers_of):
            answer, changed = send_write(client, write, house)
            complaint = refused_writes.complaint(write, answer, changed, may)
            # A token is told that sessions are a person's, whosever they are.
            if complaint and not (write.hidden and answer.status_code == 403 and not changed):
                wrong[f"{write.method} {write.route} {number}"] = complaint

    assert not wrong, refused_writes.format_complaints(wrong)


READING = {"check", "slos/<str:name>/backtest", "configuration/diff"}
"""Routes that change nothing for anybody."""
REFUSED_IN_THE_ANSWER = {"hooks/alertmanager"}
"""Routes that answer with the refusal of each of several requests, which they record."""


def test_a_limited_token_of_an_admin_writes_nothing_beyond_its_limits(house):
    house, _people = house
    _token, text = tokens.create_token(
        name="limited",
        owner=User.objects.get(username__startswith="ada"),
        scopes=callers.ALL_SCOPES,
        patterns=["segment:nothing-here"],
        actor=system_actor("tests"),
        now=db_now(),
    )
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {text}"})
    wrong = {}
    for write in writes.WRITES:
        if write.route in READING:
            continue
        answer, changed = send_write(client, write, house)
        if write.route in REFUSED_IN_THE_ANSWER:
            assert "limited to segment:nothing-here" in answer.content.decode()
        elif answer.status_code != 403 or changed:
            wrong[f"{write.method} {write.route}"] = answer.status_code, changed

    assert not wrong, refused_writes.format_complaints(wrong)
