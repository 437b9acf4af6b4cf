"""`teams.yaml`: loaded at once from the shell, by people after approval; exported as loaded."""

import pytest

from controlplane.accounts.models import AuthorityRule, Membership, Team
from controlplane.accounts.teams import services
from controlplane.core.approvals import services as approvals
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import services as loading
from controlplane.core.configuration.readers import CHANGED, NEW, SAME, LoadOptions
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.tests.callers import person

from .company import SHELL, make_team

TEXT = """
teams:
  payments:
    name: Payments
    parent: company
    members: {kim: lead}
    owns: [segment:finance*, service:core]
  company: {name: Company, members: {ada: lead, bob: member}}
authority:
  replay:stream: {relation: anyone, role: operator}
"""


@pytest.fixture
def ada(db):
    person("approver", "bob")
    person("operator", "kim")
    return person("admin", "ada")


def load(text, actor=SHELL, **options):
    options = LoadOptions(actor=actor, now=db_now(), **options)
    return loading.load_texts({"teams.yaml": text}, options)


def outcomes(loaded):
    return {one.name: one.outcome for one in loaded.changes}


def test_shell_loads_teams_and_rules_whatever_their_order(ada):
    loaded = load(TEXT)

    assert outcomes(loaded) == {"payments": NEW, "company": NEW, "replay:stream": CHANGED}
    assert services.read_document("payments")["parent"] == "company"
    assert Membership.objects.count() == 3
    assert AuthorityRule.objects.get().relation == "anyone"
    rows = AuditEntry.objects.exclude(action="configuration.loaded").values_list("target", "reason")
    assert set(rows) == {
        ("team:company", "config load"),
        ("team:payments", "config load"),
        ("authority:replay:stream", "config load"),
    }


def test_second_load_and_export_change_nothing(ada):
    load(TEXT)
    exported = loading.export_texts()["teams.yaml"]

    for text in (TEXT, exported):
        assert set(outcomes(load(text)).values()) == {SAME}
    assert "replay:stream" in exported


def test_dry_run_changes_nothing(ada):
    loaded = load(TEXT, dry_run=True)

    assert loaded.count(NEW) == 2
    assert not Team.objects.exists()


def test_load_by_a_person_waits_team_by_team(ada):
    bob = type(ada).objects.get(username="bob")
    loaded = load(TEXT, actor=ada.as_actor())

    assert not Team.objects.exists()
    requests = {one.name: one.approval for one in loaded.changes}
    assert all(requests.values())
    assert {one.note for one in loaded.changes} == {"needs a second person's approval"}
    with pytest.raises(Conflict, match="There is no team company"):
        approvals.approve(requests["payments"], comment="", actor=bob.as_actor(), now=db_now())
    for name in ("company", "payments", "replay:stream"):
        approvals.approve(requests[name], comment="", actor=bob.as_actor(), now=db_now())
    assert set(outcomes(load(TEXT, dry_run=True)).values()) == {SAME}


def test_pattern_and_parent_move_in_one_load(ada):
    load(TEXT)
    moved = TEXT.replace("owns: [segment:finance*, service:core]", "owns: [service:core]")
    moved = moved.replace("    parent: company\n", "").replace(
        "bob: member}", "bob: member}, parent: payments, owns: [segment:finance*]"
    )

    load(moved)

    assert services.read_document("company")["owns"] == ["segment:finance*"]
    assert services.read_document("company")["parent"] == "payments"


def test_default_rule_is_restored_by_an_empty_entry(ada):
    load(TEXT)

    loaded = load("authority: {replay:stream: }")

    assert outcomes(loaded) == {"replay:stream": CHANGED}
    assert loaded.elsewhere == ("team company", "team payments")
    assert not AuthorityRule.objects.exists()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("teams: {Bad Name: {name: x}}", "teams.yaml: Bad Name: slug"),
        ("teams: {x: {}}", "teams.yaml: x: name"),
        ("teams: {x: {name: x, boss: kim}}", "teams.yaml: x: boss"),
        ("teams: {x: {name: x, parent: y}}", "teams.yaml: teams: x: parent"),
        ("teams: {x: {name: x, members: {nobody: lead}}}", "teams.yaml: teams: x: members"),
        ("teams: {x: {name: x, owns: [segment:a]}}", "teams.yaml: teams: x: owns"),
        ("authority: {fly: {relation: root, role: admin}}", "teams.yaml: fly: action"),
        ("authority: {release: {relation: root}}", "teams.yaml: release: role"),
        ("people: {}", "teams.yaml: people"),
    ],
)
def test_wrong_entry_is_named(ada, text, place):
    make_team("owner", owns=["segment:a"])

    with pytest.raises(InvalidInput) as refused:
        load(text)

    assert place in refused.value.errors


def test_person_is_not_allowed_to_lock_everyone_out(ada):
    with pytest.raises(InvalidInput, match="Nobody could then"):
        load("teams: {company: {name: Company, members: {kim: member}}}", actor=ada.as_actor())
    assert not Approval.objects.exists()
