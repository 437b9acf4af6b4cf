"""The person on call for a team: of its own rotation, or of the nearest team above."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models import Team
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person
from controlplane.core.outbox import router
from controlplane.core.outbox.router import OnCall
from controlplane.notify.models import TeamContact

from .people import add

pytestmark = pytest.mark.django_db


@pytest.fixture
def payments():
    """The team `payments`, below `root`."""
    now = db_now()
    root = Team.objects.create(slug="root", name="Operations", created_at=now)
    return Team.objects.create(slug="payments", name="Payments", parent=root, created_at=now)


def put_on_call(team, name, **more):
    """Make a person with an account the only member of a rotation that is on call for the team."""
    user = person("operator", name)
    add(name, user=user.username)
    rotation = add(f"{name}-rotation", "on_call", members=[name], rotation_starts_at=db_now())
    TeamContact.objects.create(team=team, kind="on_call", target=rotation)
    return user


def test_own_rotation_comes_before_the_parents(payments):
    put_on_call(payments.parent, "rita")
    pat = put_on_call(payments, "pat")

    found = router.find_on_call("payments", db_now())

    assert found == OnCall("payments", "pat", pat.pk, "pat")


def test_parents_rotation_stands_in_for_a_missing_one(payments):
    rita = put_on_call(payments.parent, "rita")

    assert router.find_on_call("payments", db_now()) == OnCall("root", "rita", rita.pk, "rita")


def test_parents_rotation_stands_in_for_a_deactivated_person(payments):
    put_on_call(payments.parent, "rita")
    pat = put_on_call(payments, "pat")
    pat.is_active = False
    pat.save()

    assert router.find_on_call("payments", db_now()).name == "rita"


def test_nobody_is_on_call_without_rotations(payments):
    assert router.find_on_call("payments", db_now()) is None
    assert router.find_on_call("unknown", db_now()) is None


def test_number_of_queries_does_not_depend_on_the_number_of_teams(payments):
    now = db_now()
    for number in range(20):
        team = Team.objects.create(slug=f"t{number}", name=f"T{number}", created_at=now)
        put_on_call(team, f"person{number}")
    router.find_on_call("t1", now)  # Reads the teams, once after each change.

    with CaptureQueriesContext(connection) as caught:
        found = router.get().people_on_call([f"t{number}" for number in range(20)], now)

    assert {slug: one.name for slug, one in found.items()} == {
        f"t{number}": f"person{number}" for number in range(20)
    }
    assert len(caught) <= 3
