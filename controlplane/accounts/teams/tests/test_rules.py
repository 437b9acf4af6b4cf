"""Rules of authority change after a second person's approval, and never lock everyone out."""

import pytest

from controlplane.accounts.models import AuthorityRule, Team
from controlplane.accounts.teams import rules, services
from controlplane.core import authority
from controlplane.core.actions import Action
from controlplane.core.actors import system_actor
from controlplane.core.approvals import services as approvals
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput
from controlplane.core.http.tests.callers import person

SHELL = system_actor("shell:root")
ANYONE = {"relation": "anyone", "role": "operator"}


@pytest.fixture
def ada(db):
    return person("admin", "ada")


@pytest.fixture
def bob(db):
    return person("approver", "bob")


def request(by, action="replay", kind="stream", wanted=ANYONE):
    return rules.change_rule(
        action=action,
        kind=kind,
        wanted=wanted,
        reason="INC-4411 replays at night",
        actor=by.as_actor(),
        now=db_now(),
    )


def approve(approval, by):
    approvals.approve(approval.pk, comment="", actor=by.as_actor(), now=db_now())


def test_change_waits_for_a_second_person_and_can_be_undone(ada, bob):
    services.create_team(
        slug="company",
        wanted={"name": "Company", "members": {"ada": "lead", "bob": "lead"}, "owns": ["stream:*"]},
        actor=SHELL,
        now=db_now(),
    )
    kim = person("operator", "kim").as_actor()

    approval = request(ada)
    assert not authority.decide(kim, Action.REPLAY, "stream:mail").is_allowed
    approve(approval, bob)
    assert authority.decide(kim, Action.REPLAY, "stream:mail").is_allowed
    approve(request(ada, wanted=None), bob)

    assert not authority.decide(kim, Action.REPLAY, "stream:mail").is_allowed
    rows = AuditEntry.objects.filter(action="authority.changed").order_by("id")
    assert [(one.target, one.before, one.after) for one in rows] == [
        ("authority:replay:stream", "null", '{"relation":"anyone","role":"operator"}'),
        ("authority:replay:stream", '{"relation":"anyone","role":"operator"}', "null"),
    ]


def test_same_rule_needs_nothing(ada):
    assert request(ada, wanted=None) is None


def test_shell_needs_no_approval(db):
    rules.change_rule(action="replay", kind="", wanted=ANYONE, actor=SHELL, now=db_now())

    assert AuthorityRule.objects.get().relation == "anyone"


def test_outdated_request_is_refused(ada, bob):
    approval = request(ada)
    other = {"relation": "root", "role": "admin"}
    rules.change_rule(action="replay", kind="stream", wanted=other, actor=SHELL, now=db_now())

    with pytest.raises(Conflict, match="has changed since"):
        approve(approval, bob)


def test_only_admins_request(bob):
    with pytest.raises(Forbidden):
        request(bob)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"action": "fly"}, "action"),
        ({"kind": "moon"}, "kind"),
        ({"kind": "authority"}, "kind"),
        ({"wanted": {"relation": "friend", "role": "operator"}}, "relation"),
        ({"wanted": {"relation": "owner", "role": "boss"}}, "role"),
    ],
)
def test_wrong_field_is_named(ada, fields, wrong):
    with pytest.raises(InvalidInput) as refused:
        request(ada, **fields)

    assert list(refused.value.errors) == [wrong]


def test_rule_that_nobody_meets_is_refused(ada, bob):
    services.create_team(
        slug="company",
        wanted={"name": "Company", "members": {"bob": "lead"}},
        actor=SHELL,
        now=db_now(),
    )
    assert Team.objects.exists()

    with pytest.raises(InvalidInput, match="Nobody could then approve changes of teams"):
        request(ada, "approve", "team", {"relation": "root", "role": "admin"})


def test_list_has_defaults_and_stored_rules(db):
    rules.change_rule(action="replay", kind="stream", wanted=ANYONE, actor=SHELL, now=db_now())

    found = {(one.action, one.kind): one for one in rules.list_rules()}

    assert not found[Action.REPLAY, ""].is_stored
    assert found[Action.REPLAY, "stream"].is_stored
    assert found[Action.REPLAY, "stream"].default is None
    assert rules.describe_requirement(found[Action.RELEASE, "global"].rule) == (
        "an operator or a stronger role, of a root team"
    )
