"""Housekeeping: instances that are gone and acknowledgements that are old are forgotten."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from controlplane.core import retention
from controlplane.core.instances import rates
from controlplane.core.instances.retention_rules import INSTANCES
from controlplane.core.models import Acknowledgement, Instance
from controlplane.core.tasks import purge_instances

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATELY = NOW - timedelta(hours=23, minutes=59)
LONG_AGO = NOW - timedelta(hours=24, minutes=1)


def test_instances_silent_for_a_day_are_forgotten_and_others_kept() -> None:
    old = rates.add_calls(None, 1, 0, LONG_AGO)
    recent = rates.add_calls(None, 1, 0, LATELY)
    made = {
        "gone/1": {"heard_at": LONG_AGO, "reported_at": LONG_AGO, "checks": {"segment:a": old}},
        "gone/2": {},
        "here/heard": {"heard_at": LATELY, "reported_at": LONG_AGO},
        "here/reported": {"heard_at": LONG_AGO, "reported_at": LATELY},
        "token:asked": {"checks": {"segment:a": old, "segment:b": recent}},
    }
    for name, fields in made.items():
        Instance.objects.create(id=name, service="s", **fields)

    done = purge_instances(NOW)

    assert done == 2
    left = set(Instance.objects.values_list("id", flat=True))
    assert left == {"here/heard", "here/reported", "token:asked"}


def test_acknowledgements_older_than_eight_days_are_forgotten() -> None:
    for days in (7.9, 8.1):
        Acknowledgement.objects.create(
            epoch=uuid4(),
            version=1,
            instance=f"a/{days}",
            acknowledged_at=NOW - timedelta(days=days),
        )

    done = purge_instances(NOW)

    assert done == 1
    assert Acknowledgement.objects.get().instance == "a/7.9"


def test_no_more_than_asked_are_forgotten_at_once() -> None:
    for number in range(5):
        Instance.objects.create(id=f"gone/{number}", service="gone")

    assert retention.purge([INSTANCES], NOW, most=3) == 3
    assert Instance.objects.count() == 2
