"""Creating, changing and removing threshold rules: permissions and audit."""

import json

import pytest

from controlplane.core.audit.models import AuditEntry
from controlplane.core.clock import db_now
from controlplane.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from slo.models import ThresholdRule
from slo.thresholds import services

from .factories import ADMIN, OPERATOR, VIEWER

pytestmark = pytest.mark.django_db

FIELDS = {"metric": "timeout_rate", "value": 0.02, "severity": "warning"}


def put_rule(name="core-timeouts", actor=ADMIN, **more):
    fields = {**FIELDS, **more.pop("fields", {})}
    return services.put_rule(name=name, fields=fields, actor=actor, now=db_now(), **more)


def audited():
    rows = AuditEntry.objects.filter(action__startswith="threshold.").order_by("pk")
    return [(one.action, one.target, one.reason) for one in rows]


def test_a_rule_is_made_changed_and_removed_and_each_is_audited():
    rule, is_new = put_rule(reason=" for the batch ")
    changed, still_new = put_rule(fields={"value": 0.03}, reason="too loud")
    services.remove_rule(name="core-timeouts", actor=ADMIN, now=db_now(), reason="gone")

    assert (is_new, still_new) == (True, False)
    assert (rule.version, changed.version, changed.value) == (1, 2, 0.03)
    assert audited() == [
        ("threshold.created", "threshold:core-timeouts", "for the batch"),
        ("threshold.changed", "threshold:core-timeouts", "too loud"),
        ("threshold.removed", "threshold:core-timeouts", "gone"),
    ]
    entry = AuditEntry.objects.get(action="threshold.changed")
    values = [json.loads(one)["value"] for one in (entry.before, entry.after)]
    assert values == [0.02, 0.03]
    assert not ThresholdRule.objects.filter(name="core-timeouts").exists()


def test_what_is_the_same_already_changes_nothing():
    put_rule()

    again, is_new = put_rule()

    assert (again.version, is_new) == (1, False)
    assert len(audited()) == 1


@pytest.mark.parametrize("actor", [OPERATOR, VIEWER])
def test_only_admins_may(actor):
    with pytest.raises(Forbidden):
        put_rule(actor=actor)
    with pytest.raises(Forbidden):
        services.remove_rule(name="timeout_rate", actor=actor, now=db_now())

    assert ThresholdRule.objects.filter(name="timeout_rate").exists()


def test_one_that_was_changed_meanwhile_is_not_overwritten():
    put_rule()
    put_rule(fields={"value": 0.03})

    with pytest.raises(Conflict):
        put_rule(fields={"value": 0.04}, version=1)

    assert put_rule(fields={"value": 0.04}, version=2)[0].value == 0.04


def test_what_is_wrong_is_refused_and_not_written():
    with pytest.raises(InvalidInput) as error:
        put_rule(fields={"value": 7, "window": "1s"})

    assert set(error.value.errors) == {"window"}
    assert not ThresholdRule.objects.filter(name="core-timeouts").exists()


def test_one_that_is_not_there_is_not_found():
    for name in ("nobody", "new", "a/b", "\x00"):
        with pytest.raises(NotFound):
            services.find_rule(name)
        with pytest.raises(NotFound):
            services.remove_rule(name=name, actor=ADMIN, now=db_now())


def test_more_than_two_hundred_are_too_many():
    count = ThresholdRule.objects.count()
    ThresholdRule.objects.bulk_create(
        ThresholdRule(
            name=f"r{place}",
            metric="concurrency",
            statistic="now",
            comparison=">",
            value=0.5,
            severity="info",
            changed_at=db_now(),
        )
        for place in range(200 - count)
    )

    with pytest.raises(Conflict):
        put_rule()
