"""The teams in the database are read again after each change, and locked for decisions."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from controlplane.accounts.models import AuthorityRule, Membership, Ownership, Team
from controlplane.accounts.teams import storage
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.approvals.models import Approval
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import person
from controlplane.core.http.tests.sessions import until_waiting

FINANCE = "segment:finance"


@pytest.fixture
def team():
    return Team.objects.create(slug="payments", name="Payments", created_at=db_now())


def test_change_is_seen_at_once(db, team):
    kim = person("operator", "kim")
    pat = person("operator", "pat")
    assert authority.decide(kim.as_actor(), Action.RELEASE, FINANCE).is_allowed

    Ownership.objects.create(pattern="segment:fin*", team=team)
    Membership.objects.create(team=team, user=pat)
    assert not authority.decide(kim.as_actor(), Action.RELEASE, FINANCE).is_allowed
    with pytest.raises(Forbidden) as refused:
        authority.require(kim.as_actor(), Action.RELEASE, FINANCE)
    assert refused.value.extra["owner"] == "payments"
    assert refused.value.extra["who_may"] == ["pat"]
    assert authority.names_with_permission(refused.value.extra) == ["pat"]

    AuthorityRule.objects.create(action="release", kind="", relation="anyone", role="operator")
    assert authority.decide(kim.as_actor(), Action.RELEASE, FINANCE).is_allowed


def test_rolled_back_change_is_not_remembered(db, team):
    with transaction.atomic():
        Ownership.objects.create(pattern="segment:fin*", team=team)
        assert authority.read_teams().owner_of(FINANCE) is not None
        transaction.set_rollback(True)
    Ownership.objects.create(pattern="segment:other", team=team)

    assert authority.read_teams().owner_of(FINANCE) is None


def test_deactivated_member_may_nothing(db, team):
    pat = person("operator", "pat")
    Ownership.objects.create(pattern="segment:fin*", team=team)
    Membership.objects.create(team=team, user=pat)
    pat.is_active = False
    pat.save()

    assert authority.who_may(Action.RELEASE, FINANCE) == []


@pytest.mark.parametrize(("action", "allowed"), [("release", True), ("replay", False)])
def test_approved_request_allows_its_action_for_an_hour(db, team, action, allowed):
    kim, now = person("operator", "kim"), db_now()
    Ownership.objects.create(pattern="segment:fin*", team=team)
    Approval.objects.create(
        kind="grant",
        target=f"{FINANCE}#{action}:{kim.pk}",
        requested_at=now,
        decided_at=now,
        state="approved",
    )

    assert authority.decide(kim.as_actor(), Action.RELEASE, FINANCE).is_allowed is allowed


@pytest.mark.django_db(transaction=True)
def test_change_of_teams_waits_for_decisions():
    pat, now = person("operator", "pat"), db_now()
    team = Team.objects.create(slug="payments", name="Payments", created_at=now)
    Ownership.objects.create(pattern="segment:fin*", team=team)
    Membership.objects.create(team=team, user=pat)

    def change():
        try:
            with transaction.atomic():
                storage.lock_teams(to_change=True)
                Membership.objects.all().delete()
        finally:
            connection.close()

    with ThreadPoolExecutor() as threads:
        with transaction.atomic():
            authority.require(pat.as_actor(), Action.RELEASE, FINANCE)
            changing = threads.submit(change)
            until_waiting(1)
            assert Membership.objects.exists()
        changing.result()

    assert not authority.decide(pat.as_actor(), Action.RELEASE, FINANCE).is_allowed


def test_team_created_while_the_teams_are_read_is_read_next_time(db, team):
    def create_after(execute, sql, params, many, context):
        found = execute(sql, params, many, context)
        if sql.startswith("SELECT") and 'FROM "core_team"' in sql and not created:
            created.append(Team(slug="search", name="Search", created_at=db_now()))
            created[0].save()
            Ownership.objects.create(pattern="segment:*", team=created[0])
        return found

    created: list[Team] = []
    Ownership.objects.create(pattern="segment:fin*", team=team)
    with connection.execute_wrapper(create_after):
        owner = authority.read_teams().owner_of("segment:other")

    assert created
    assert owner is None
    assert authority.read_teams().owner_of("segment:other").slug == "search"
