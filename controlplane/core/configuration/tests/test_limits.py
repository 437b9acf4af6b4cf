"""A plan refuses what the load of the same files refuses, with the same message."""

import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext

from breakers import names
from breakers.models import Dependency
from controlplane.core import provision
from controlplane.core.approvals.models import Approval
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.readers import CHANGED, NEW, LoadOptions
from controlplane.core.errors import Conflict, DomainError, InvalidInput
from controlplane.core.http.tests.callers import Api, person, signed_in, token_text
from controlplane.core.outbox.models import OutboxMessage
from controlplane.tests.rows import multiply
from slo.models import Slo, ThresholdRule
from slo.objectives import services as slos
from slo.thresholds import services as thresholds
from switches.models import TripPolicy
from switches.rules import configuration as rules
from switches.rules.tests.factories import create_rule
from switches.trips import policies

from .whole_installation import TEXTS, load

pytestmark = pytest.mark.django_db

RULE = {"kind": "exclusive", "switches": ["feature:*"]}


def dump_entries(file, part, **found):
    return {file: yaml.safe_dump({part: found})}


def dump_slos(**found):
    return dump_entries("slo.yaml", "slos", **found)


def build_minutes_slo(share=0.9):
    return {"target": 0.99, "slice_target": share}


def build_threshold(value=0.1):
    return {"metric": "timeout_rate", "value": value, "severity": "warning"}


def build_policy(trigger):
    title = {"title": trigger, "sources": ["*"], "scopes": ["feature"], "gate": "automatic"}
    return {"trigger": trigger, **title}


def fill_dependencies():
    now = db_now()
    row = Dependency.objects.create(
        caller="c0", callee="x", document={"timeout_ms": 1}, registered_at=now, changed_at=now
    )
    multiply(row, names.MAX_REGISTERED - 1, caller="'c' || i")
    return dump_entries("timeout.yaml", "dependencies", **{"core->oracle": {}})


def fill_slos():
    load(dump_slos(old={"target": 0.9}))
    multiply(Slo.objects.get(), slos.MAX_SLOS - 1, name="'old-' || i")
    return dump_slos(more={"target": 0.9})


def fill_slos_with_minutes():
    load(dump_slos(old=build_minutes_slo()))
    multiply(Slo.objects.get(), slos.MAX_SLICE_SLOS - 2, name="'old-' || i")
    return dump_slos(more=build_minutes_slo(), most=build_minutes_slo())


def fill_slos_with_minutes_by_a_change():
    fill_slos_with_minutes()
    load(dump_slos(last=build_minutes_slo(), plain={"target": 0.9}))
    return dump_slos(plain=build_minutes_slo())


def fill_thresholds():
    load(dump_entries("thresholds.yaml", "thresholds", old=build_threshold()))
    row, present = ThresholdRule.objects.get(name="old"), ThresholdRule.objects.count()
    multiply(row, thresholds.MAX_RULES - present, name="'old-' || i")
    return dump_entries("thresholds.yaml", "thresholds", more=build_threshold())


def fill_policies():
    TripPolicy.objects.all().delete()
    load({"trips.yaml": yaml.safe_dump({"policies": [build_policy("old")]})})
    row = TripPolicy.objects.get()
    multiply(row, policies.MAX_ROWS - 1, trigger="'old-' || i", position="i")
    return {"trips.yaml": yaml.safe_dump({"policies": [build_policy("new")]})}


def propose_another_change():
    signed_in(person("admin", "ada")).post("/rules/", {**RULE, "name": "new", "kind": "protected"})
    return dump_entries("rules.yaml", "rules", new=RULE)


def create_rule_of_similar_name():
    create_rule("exclusive", "segment:*", name="Payments")
    return dump_entries("rules.yaml", "rules", payments=RULE)


def name_two_rules_alike():
    return dump_entries("rules.yaml", "rules", Payments=RULE, payments=RULE)


def change_many_rules():
    found = {f"rule {number}": RULE for number in range(101)}
    return dump_entries("rules.yaml", "rules", **found)


def load_refused(texts, **options):
    with pytest.raises(DomainError) as refused:
        load(texts, **options)
    return type(refused.value), refused.value.detail


@pytest.mark.parametrize(
    ("fill", "error", "message"),
    [
        (fill_dependencies, Conflict, "At most 20,000 dependencies can be registered."),
        (fill_slos, Conflict, "At most 20,000 SLOs are allowed."),
        (fill_slos_with_minutes, Conflict, "At most 100 SLOs can count minutes."),
        (fill_slos_with_minutes_by_a_change, Conflict, "At most 100 SLOs can count minutes."),
        (fill_thresholds, Conflict, "At most 200 threshold rules are allowed."),
        (fill_policies, InvalidInput, "trips.yaml: rows: Between 1 and 100 policies."),
        (change_many_rules, InvalidInput, "At most 100 rules can be new or changed."),
        (
            create_rule_of_similar_name,
            InvalidInput,
            "rules.yaml: payments: name: “Payments” and “payments” differ in case only.",
        ),
        (
            name_two_rules_alike,
            InvalidInput,
            "rules.yaml: payments: name: “Payments” and “payments” differ in case only.",
        ),
    ],
)
def test_dry_run_fails_with_the_error_of_the_load(fill, error, message):
    texts = fill()
    rows = AuditEntry.objects.count()

    planned = load_refused(texts, dry_run=True)

    assert planned[0] is error
    assert message in planned[1]
    assert load_refused(texts) == planned
    assert AuditEntry.objects.count() == rows


def test_full_installation_still_changes_its_entries():
    fill_thresholds()
    texts = dump_entries("thresholds.yaml", "thresholds", old=build_threshold(0.2))

    assert load(texts, dry_run=True).count(CHANGED) == 1
    assert load(texts).count(CHANGED) == 1


def test_minute_counting_can_move_between_slos_at_the_limit():
    fill_slos_with_minutes()
    load(dump_slos(last=build_minutes_slo(), plain={"target": 0.9}))
    texts = dump_slos(last={"target": 0.9}, plain=build_minutes_slo())

    assert load(texts, dry_run=True).changes == load(texts).changes


def test_plan_of_rules_requests_no_approval():
    reader = Api(authorization=f"Bearer {token_text(person('admin', 'ci'), ('config:read',))}")
    rows = AuditEntry.objects.count()

    answer = reader.post("/configuration/diff", {"files": {"rules.yaml": TEXTS["rules.yaml"]}})

    assert [one["approval"] for one in answer.json()["changes"]] == [None, None]
    assert not Approval.objects.exists()
    assert (AuditEntry.objects.count(), OutboxMessage.objects.count()) == (rows, 0)


def test_plan_notes_a_pending_change_by_someone_else():
    texts = propose_another_change()
    rows = AuditEntry.objects.count()

    (planned,) = load(texts, dry_run=True).changes

    assert planned.outcome == NEW
    assert planned.note == (
        "needs a second person's approval; a change requested by user:ada is pending"
        f" (approval {Approval.objects.get().pk})"
    )
    assert "requested another change of rule:new" in load_refused(texts)[1]
    assert AuditEntry.objects.count() == rows


def test_plan_of_rules_locks_and_writes_nothing():
    options = LoadOptions(actor=provision.ACTOR, now=db_now(), dry_run=True)

    with CaptureQueriesContext(connection) as queries:
        rules.load_file({"rules.yaml": TEXTS["rules.yaml"]}, options)

    assert queries.captured_queries
    assert all(query["sql"].startswith("SELECT") for query in queries)
    assert not any("FOR UPDATE" in query["sql"] for query in queries)


def test_load_that_fails_at_its_last_file_leaves_nothing():
    person("operator", "kim")
    propose_another_change()
    refused = dump_entries("rules.yaml", "rules", another=RULE, new=RULE)
    texts = configuration.export_texts()
    counts = [model.objects.count() for model in (Approval, AuditEntry, OutboxMessage)]
    shipped = {"timeout.yaml": "dependencies: {core->oracle: {}}"}
    assert load({**TEXTS, **shipped}, dry_run=True).count(NEW) == 20

    with pytest.raises(Conflict, match="requested another change of rule:new"):
        load({**TEXTS, **shipped, **refused})

    assert configuration.export_texts() == texts
    assert [model.objects.count() for model in (Approval, AuditEntry, OutboxMessage)] == counts
