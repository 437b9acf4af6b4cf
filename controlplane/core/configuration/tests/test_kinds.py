"""The peculiarities of the kinds: order of trip policies, secrets of channels, times of drills."""

from datetime import timedelta

import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.accounts.models.people import User
from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.configuration import services as configuration
from controlplane.core.configuration.readers import CHANGED, KEPT, NEW
from controlplane.core.errors import Conflict, InvalidInput
from controlplane.core.http.tests.callers import as_role, person, signed_in
from controlplane.notify.models.targets import Target
from controlplane.notify.transports import destinations
from switches.models import DrillSchedule, Publication, Rule, Switch, TripPolicy

from .whole_installation import TEXTS, load

pytestmark = pytest.mark.django_db

KEY = "0123456789abcdef0123456789abcdef"


def policy(trigger, **fields):
    title = {"title": trigger, "sources": ["*"], "scopes": ["feature"], "gate": "automatic"}
    return {"trigger": trigger, **title, **fields}


def load_policies(*policies, **options):
    return load({"trips.yaml": yaml.safe_dump({"policies": list(policies)})}, **options)


def triggers():
    return list(TripPolicy.objects.order_by("position").values_list("trigger", flat=True))


@pytest.fixture
def _two_policies():
    TripPolicy.objects.all().delete()
    load_policies(policy("a"), policy("b"))


@pytest.mark.usefixtures("_two_policies")
def test_policies_of_no_file_keep_their_place():
    load_policies(policy("new"), policy("b"))

    assert triggers() == ["a", "new", "b"]


@pytest.mark.usefixtures("_two_policies")
def test_other_order_of_policies_is_a_change():
    planned = load_policies(policy("b"), policy("a"), dry_run=True)
    assert triggers() == ["a", "b"]

    loaded = load_policies(policy("b"), policy("a"))

    assert triggers() == ["b", "a"]
    assert [one.differences for one in loaded.changes if one.outcome == CHANGED] == [
        ("order: a, b → b, a",)
    ]
    assert planned.changes == loaded.changes


def test_automatic_policy_of_the_global_switch_is_refused():
    with pytest.raises(InvalidInput) as refused:
        load_policies(policy("a", scopes=["global"]))

    assert "trips.yaml: policies.0: scopes" in refused.value.errors


def pager():
    return Target.objects.get(name="pager")


def is_complete(target):
    transport = destinations.transport_of(target)
    return transport.settings.is_complete(target)


def test_new_channel_reaches_no_one_until_its_secret_is_entered():
    person("operator", "kim")

    loaded = load({"targets.yaml": TEXTS["targets.yaml"]})

    assert any(
        "pager reaches no one until you enter a routing key" in one for one in loaded.remarks
    )
    assert any("hook reaches no one until you enter a URL" in one for one in loaded.remarks)
    assert not is_complete(pager())
    hook = Target.objects.get(name="hook")
    assert (hook.webhook_url, hook.webhook_secret) == ("", "")


def test_secret_is_neither_exported_nor_lost_by_a_load():
    person("operator", "kim")
    load({"targets.yaml": TEXTS["targets.yaml"]})
    body = {"name": "pager", "kind": "channel", "address": "pagerduty"}
    admin = as_role("admin")
    answer = admin.send("put", f"/targets/{pager().pk}/", {**body, "pagerduty_routing_key": KEY})
    assert answer.status_code == 200, answer.content
    assert is_complete(pager())

    texts = configuration.export_texts()
    load(
        {
            "targets.yaml": texts["targets.yaml"].replace(
                "pagerduty_region: eu", "pagerduty_region: us"
            )
        }
    )

    assert KEY not in "".join(texts.values())
    assert is_complete(pager())
    assert KEY not in "".join(AuditEntry.objects.values_list("after", flat=True))


def test_secret_in_a_file_is_refused():
    text = "targets: {x: {kind: channel, address: webhook, settings: {webhook_url: https://a.b/c}}}"

    with pytest.raises(InvalidInput) as refused:
        load({"targets.yaml": text})

    assert "targets.yaml: x: settings.webhook_url" in refused.value.errors
    assert "a.b" not in str(refused.value)


def test_targets_may_refer_to_later_ones_and_a_dry_run_leaves_nothing():
    person("operator", "kim")

    planned = load({"targets.yaml": TEXTS["targets.yaml"]}, dry_run=True)

    assert planned.count(NEW) == 8
    assert not Target.objects.filter(name="pager").exists()
    assert load({"targets.yaml": TEXTS["targets.yaml"]}).changes == planned.changes


def test_unchanged_drill_schedule_keeps_its_times():
    load({"drills.yaml": TEXTS["drills.yaml"]})
    tomorrow = db_now() + timedelta(days=1)
    DrillSchedule.objects.update(next_at=tomorrow)
    changed = TEXTS["drills.yaml"].replace("every: 7d", "every: 14d")

    load({"drills.yaml": changed})

    times = dict(DrillSchedule.objects.values_list("switch_id", "next_at"))
    assert times["feature:nl2sql"] == tomorrow
    assert times["experiment:rag-v2"] > tomorrow


def test_drill_of_an_unknown_switch_registers_it():
    before = Publication.objects.get().registrations

    load({"drills.yaml": TEXTS["drills.yaml"]})

    assert Switch.objects.filter(pk="experiment:rag-v2").exists()
    assert Publication.objects.get().registrations == before + 2


def test_state_of_a_switch_is_not_configuration():
    load({"switches.yaml": TEXTS["switches.yaml"]})
    texts = configuration.export_texts()
    operator = as_role("operator")
    assert operator.engage("feature:nl2sql").status_code == 200

    assert configuration.export_texts() == texts
    load(texts)
    assert Switch.objects.with_open_episode().get(pk="feature:nl2sql").episode is not None


def test_rule_with_another_pending_change_stops_the_whole_load():
    admin = signed_in(person("admin", "ada"))
    rule = {"name": "At most two features", "kind": "exclusive", "switches": ["feature:*"]}
    assert admin.post("/rules/", rule).status_code in (200, 201, 202)

    with pytest.raises(Conflict):
        load({"rules.yaml": TEXTS["rules.yaml"], "switches.yaml": TEXTS["switches.yaml"]})

    assert not Switch.objects.filter(pk="segment:legal").exists()
    assert not Rule.objects.exists()


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("thresholds.yaml", ("put", "/thresholds/slow/", {"metric": "breaker_open", "value": 1,
                                                         "severity": "info"})),
        ("slo.yaml", ("put", "/slos/oracle-answers/", {"target": 0.9, "rules": []})),
        ("switches.yaml", ("patch", "/switches/feature/nl2sql", {"owner": "Kim"})),
    ],
)  # fmt: skip
def test_manual_edit_is_kept_on_request_and_else_overwritten(name, edit):
    load({name: TEXTS[name]})
    answer = as_role("admin").send(*edit)
    assert answer.status_code == 200, answer.content

    kept = load({name: TEXTS[name]}, keep_edited=True)
    overwritten = load({name: TEXTS[name]})

    assert (kept.count(KEPT), kept.count(CHANGED)) == (1, 0)
    assert overwritten.count(CHANGED) == 1
    assert next(one.edited for one in overwritten.changes if one.outcome == CHANGED)


def test_number_of_statements_does_not_grow_with_the_switches():
    def count(number):
        entries = {f"feature:f-{one}-of-{number}": {"owner": "Core"} for one in range(number)}
        with CaptureQueriesContext(
            connection,
        ) as captured:
            load({"switches.yaml": yaml.safe_dump({"switches": entries})})
            configuration.export_texts()
        return len(captured)

    assert count(400) == count(4)
    assert User.objects.count() == 0
