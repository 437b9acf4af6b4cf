"""Emergency orders under rules of authority, and withdrawals of other people's orders."""

from datetime import timedelta

import pytest

from controlplane.accounts.emergency_codes.services import create_code
from controlplane.accounts.models import AuthorityRule
from controlplane.accounts.people.services import change_user
from controlplane.accounts.tokens import services as tokens
from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from switches.models import Episode
from switches.tests.teams import FINANCE, People

from .orders import person_with_code, reconcile, reload, store, store_by, store_withdrawal

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    return People()


def _name_giver(user):
    return {"by_type": "user", "by_name": user.username, "by_id": user.pk}


def test_anyone_with_a_code_stops_what_another_team_owns(people):
    order = store_by(person_with_code("zoe"))

    reconcile()

    assert reload(order).state == "reconciled"


def test_order_against_a_rule_of_authority_is_refused(people):
    AuthorityRule.objects.create(action="engage", kind="segment", relation="owner", role="operator")
    order = store_by(person_with_code("zoe"))

    reconcile()

    assert reload(order).state == "refused"
    assert reload(order).refusal.startswith("Payments owns segment:finance.")


@pytest.mark.parametrize(
    ("limits", "state"),
    [
        ({"patterns": ["segment:*"]}, "reconciled"),
        ({"patterns": ["experiment:*"]}, "refused"),
        ({"only_owned": True}, "refused"),
    ],
)
def test_order_by_a_limited_token(people, limits, state):
    token, _ = tokens.create_token(
        name="ci",
        owner=people.stranger,
        scopes=["switches:emergency"],
        actor=system_actor("test"),
        now=db_now(),
    )
    type(token).objects.filter(pk=token.pk).update(**limits)
    order = store(by_type="token", by_name="ci", by_id=token.pk)

    reconcile()

    assert reload(order).state == state


def test_order_by_a_teams_token_outlives_the_account_of_its_creator(people):
    token, _ = tokens.create_token(
        name="ci",
        owner=people.member,
        team=people.payments,
        scopes=["switches:emergency"],
        actor=system_actor("test"),
        now=db_now(),
    )
    change_user(user=people.member, actor=system_actor("test"), now=db_now(), is_active=False)
    order = store(by_type="token", by_name="ci", by_id=token.pk, at=db_now())

    reconcile()

    assert reload(order).state == "reconciled"


@pytest.mark.parametrize(
    ("who", "engaged"), [("same", False), ("stranger", True), ("member", False)]
)
def test_order_of_another_is_withdrawn_by_the_owner_of_the_switch(people, who, engaged):
    zoe = person_with_code("zoe")
    order = store_by(zoe)
    by = zoe if who == "same" else getattr(people, who)
    if who != "same":
        _give_code(by)
    withdrawal = store_withdrawal(order, **_name_giver(by))

    reconcile()

    assert Episode.objects.filter(switch_id=FINANCE, ended_at=None).exists() is engaged
    assert reload(withdrawal).state == ("refused" if engaged else "withdrawn")


def _give_code(user):
    create_code(user=user, actor=user.as_actor(), now=db_now() - timedelta(days=1))
