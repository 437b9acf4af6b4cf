"""The permission matrix on existing objects: 403 without permission, not 404."""

import pytest

from breakers.dead_letters.tests.heaps import heap
from controlplane.tests.security import callers, existing_objects, markup, matrix, urls

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures("frameless"),
]
TABLE = matrix.needs()


@pytest.fixture
def there(settings):
    """A house full of things, and what they are called."""
    with heap(settings) as letters:
        ada = markup.build(letters)
        existing_objects.more(ada, letters)
        yield existing_objects.arguments(letters)


def about_things(there):
    """Each place that reads something by its name, at an address where there is one."""
    for place in urls.places():
        need = TABLE.get(place.route, {}).get("GET")
        if need is not None and not place.other_form and matrix.names_a_thing(place.route, need):
            yield place._replace(path=existing_objects.path_of(there, place.route)), need


@pytest.mark.exhaustive
def test_who_may_see_a_thing_does_and_who_may_not_is_refused(there):
    wrong, seen = {}, set()
    clients = {role: callers.somebody(role) for role in callers.RANKS}
    for place, need in about_things(there):
        for role, client in clients.items():
            answer = callers.ask(client, "GET", place)
            may = callers.person_may(need, role)
            good = (
                answer.status_code < 400 or answer.status_code == 409
                if may
                else (answer.status_code == 403)
            )
            seen.add(place.route)
            if not good or (may and callers.verdict(answer, place) != "in"):
                wrong[f"{place.path} {role}"] = (answer.status_code, may)

    assert not wrong, "\n".join(f"{what}: {found}" for what, found in wrong.items())
    assert len(seen) > 80


def test_a_program_sees_a_thing_by_its_scope_alone(there):
    owner, wrong, seen = callers.person("admin", "owner"), {}, set()
    for place, need in about_things(there):
        if not place.is_api or need.person or not need.scopes:
            continue
        wanted = set(need.scopes)
        enough = callers.program(*wanted, owner=owner)
        others = callers.program(*(callers.ALL_SCOPES - wanted), owner=owner)
        statuses = (
            callers.ask(enough, "GET", place).status_code,
            callers.ask(others, "GET", place).status_code,
        )
        seen.add(place.route)
        if statuses != (200, 403):
            wrong[place.path] = statuses

    assert not wrong, "\n".join(f"{what}: {found}" for what, found in wrong.items())
    assert len(seen) > 20
