"""The permission matrix with valid writes: a refused write changes no table or stream."""

import orjson
import pytest
from django.http import HttpResponse

from controlplane.tests.security import callers, matrix, refused_writes, writes

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
    return matrix.need(write.need) if write.need else TABLE[f"api/v1/{write.route}"][write.method]


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
