"""Risk facts of a request: reached instances and duration."""

from datetime import timedelta
from math import inf

import pytest

from controlplane.core.approvals.risk import classify_facts
from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import person, signed_in
from controlplane.core.instances import rates
from controlplane.core.instances.models import Instance
from switches.blast import risk_facts

pytestmark = pytest.mark.django_db


def create_instances(count, now, *, ago=timedelta(minutes=1)):
    entry = rates.add_calls(None, 1, 0, now - ago)
    present = Instance.objects.count()
    Instance.objects.bulk_create(
        Instance(
            id=f"mailer/{present + number}",
            service="mailer",
            heard_at=now - ago,
            checks={"feature:mail": entry},
        )
        for number in range(count)
    )


def test_more_than_a_hundred_instances_are_a_high_risk():
    now = db_now()
    create_instances(100, now)
    create_instances(50, now, ago=timedelta(hours=2))

    assert risk_facts("feature:mail", now).recipients == 100
    assert classify_facts(risk_facts("feature:mail", now)) == "low"
    create_instances(1, now)
    assert classify_facts(risk_facts("feature:mail", now)) == "high"
    assert classify_facts(risk_facts("global:all", now)) == "high"
    assert classify_facts(risk_facts("feature:unknown", now)) == "low"


def test_what_stays_for_good_is_no_low_risk():
    facts = risk_facts("feature:mail", db_now(), for_good=True)

    assert facts.duration_minutes == inf
    assert classify_facts(facts) == "medium"


def test_requests_have_a_risk_of_at_least_their_kind():
    kim = signed_in(person("operator", "kim"))
    kim.engage("global:all")
    release = {"justification": "queue empty"}
    approval = kim.post("/switches/global/all/release", release).json()["approval"]
    kept = kim.engage("segment:finance", expires_in="permanent").json()["approval"]

    assert (approval["risk"], kept["risk"]) == ("critical", "high")
