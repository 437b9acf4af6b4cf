"""Overrides and registrations of what a team owns: anyone may stop, the owner starts again."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from breakers.models import Override, Registry
from breakers.services import catalog, override_undo, overrides, registry
from breakers.tests.house import REASON, dependency, forced
from controlplane.accounts.models import AuthorityRule
from controlplane.accounts.models.people import User
from controlplane.accounts.teams.storage import lock_teams
from controlplane.accounts.teams.tests.teams import create_team, create_token_actor
from controlplane.core.errors import Forbidden
from controlplane.core.http.tests.callers import person
from controlplane.core.http.tests.sessions import until_waiting

pytestmark = pytest.mark.django_db
ENDS = {"forced_closed", "disabled", "metrics_only"}


@pytest.fixture
def owner():
    """Return an operator of Payments, which owns `core->oracle` and `service:core`."""
    pat = person("operator", "pat")
    lee = person("operator", "lee")
    create_team("payments", "dependency:core->*", "service:core", members=[pat], leads=[lee])
    return pat.as_actor()


@pytest.fixture
def other(owner):
    """Return an operator of another team."""
    sam = person("operator", "sam")
    create_team("search", members=[sam])
    return sam.as_actor()


@pytest.fixture
def oracle(now):
    return dependency("core->oracle", now)


def force(mode, actor, now, *, expires_in="1h", caller="core"):
    return overrides.set_override(
        caller=caller,
        callee="oracle",
        mode=mode,
        reason=REASON,
        expires_in=expires_in,
        actor=actor,
        now=now,
    )


def end(actor, now):
    return overrides.remove_override(caller="core", callee="oracle", actor=actor, now=now)


def undo(actor, now):
    return override_undo.undo_override(caller="core", callee="oracle", actor=actor, now=now)


def live():
    return Override.objects.filter(ended_at__isnull=True).first()


@pytest.mark.parametrize("mode", Override.Mode.values)
def test_others_force_open_and_no_other_mode(owner, other, oracle, now, mode):
    if mode == "forced_open":
        force(mode, other, now)
    else:
        with pytest.raises(Forbidden) as refused:
            force(mode, other, now)
        assert refused.value.extra["owner"] == "payments"
        assert refused.value.extra["who_may"] == ["lee", "pat"]
        assert live() is None
        force(mode, owner, now)

    assert live().mode == mode


@pytest.mark.parametrize("mode", Override.Mode.values)
def test_others_end_what_lets_every_call_through(other, oracle, now, mode):
    forced(oracle, now, mode)

    if mode in ENDS:
        end(other, now)
        assert live() is None
    else:
        with pytest.raises(Forbidden, match="Payments owns dependency:core->oracle"):
            end(other, now)
        assert live().mode == mode


def test_owner_ends_what_others_forced_open(owner, other, oracle, now):
    force("forced_open", other, now)

    end(owner, now)

    assert live() is None


def test_others_may_lengthen_a_forced_open_and_not_shorten_it(other, oracle, now):
    first = forced(oracle, now, expires_in="1h")

    with pytest.raises(Forbidden):
        force("forced_open", other, now, expires_in="1s")
    assert live() == first
    force("forced_open", other, now, expires_in="2h")

    assert live().expires_at == now + timedelta(hours=2)


def test_author_undoes_a_forced_open_within_the_window(other, oracle, now):
    closed = forced(oracle, now, "forced_closed")
    force("forced_open", other, now)

    assert undo(other, now) == closed

    assert live() == closed


def test_author_who_left_the_team_does_not_undo_another_mode(owner, oracle, now):
    force("forced_closed", owner, now)
    create_team("fraud", "dependency:core->oracle")

    with pytest.raises(Forbidden, match="Fraud owns"):
        undo(owner, now)


@pytest.mark.parametrize(
    ("limits", "refused"),
    [
        ({"patterns": frozenset({"dependency:core->*"})}, False),
        ({"patterns": frozenset({"dependency:web->*"})}, True),
        ({"only_owned": True}, False),
    ],
)
def test_token_keeps_to_its_limits_even_to_stop(owner, oracle, now, limits, refused):
    token = create_token_actor(User.objects.get(pk=owner.user_id), **limits)

    if refused:
        with pytest.raises(Forbidden, match="This token is limited to dependency:web"):
            force("forced_open", token, now)
    else:
        force("forced_open", token, now)

    assert (live() is None) is refused


def test_token_for_what_its_team_owns_forces_nothing_else(owner, now):
    dependency("web->oracle", now)
    token = create_token_actor(User.objects.get(pk=owner.user_id), only_owned=True)

    with pytest.raises(Forbidden, match="what its own team owns"):
        force("forced_open", token, now, caller="web")


def test_admin_edits_and_does_not_start_again(oracle, now, owner):
    admin = person("admin", "ada").as_actor()
    forced(oracle, now)

    registry.put_dependency(
        caller="core", callee="oracle", fields={"timeout_ms": 7}, actor=admin, now=now
    )
    with pytest.raises(Forbidden, match="Only its members may override it"):
        registry.remove_dependency(caller="core", callee="oracle", actor=admin, now=now)
    assert live().mode == "forced_open"
    end(owner, now)

    assert registry.remove_dependency(caller="core", callee="oracle", actor=admin, now=now)


def test_rule_lets_leads_edit_what_their_team_owns(now, owner):
    lead = User.objects.get(username="lee").as_actor()
    for kind in ("dependency", "service"):
        AuthorityRule.objects.create(action="edit", kind=kind, relation="owner", role="approver")
    fields = {"timeout_ms": 7}

    registry.put_dependency(caller="core", callee="oracle", fields=fields, actor=lead, now=now)
    catalog.put_service(slug="core", fields={}, actor=lead, now=now)
    for slug in ("web", "oracle"):
        with pytest.raises(Forbidden):
            catalog.put_service(slug=slug, fields={}, actor=lead, now=now)
    with pytest.raises(Forbidden, match="the role approver or higher"):
        registry.put_dependency(caller="core", callee="oracle", fields={}, actor=owner, now=now)


@pytest.mark.django_db(transaction=True)
def test_a_mode_that_waits_for_a_change_of_teams_lets_others_force_open(owner, other, oracle, now):
    dependency("vision->oracle", now)

    def force_closed():
        try:
            force("forced_closed", owner, now)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lock_teams(to_change=True)
            waiting = pool.submit(force_closed)
            until_waiting(1)
            Registry.objects.select_for_update(nowait=True).get()
            force("forced_open", other, now, caller="vision")
        waiting.result(10)

    assert {one.mode for one in Override.objects.all()} == {"forced_closed", "forced_open"}
