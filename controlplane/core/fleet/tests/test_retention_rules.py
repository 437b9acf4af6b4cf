"""Processes that are silent for a day leave the fleet; the numbers of their batches stay."""

import pytest

from controlplane.core import retention
from controlplane.core.clock import db_now
from controlplane.core.fleet import queries
from controlplane.core.fleet.retention_rules import DATA_PLANES
from controlplane.core.fleet.tests.rows import create_process
from controlplane.core.models import DataPlane

pytestmark = pytest.mark.django_db
DAY = 24 * 3600


def test_numbers_of_counted_batches_outlast_the_listing() -> None:
    now = db_now()
    create_process("heard", now)
    create_process("plane", now, silent_for=DAY + 60)
    create_process("relay", now, silent_for=DAY + 60, upstream="heard", counted_seq=5)
    create_process("old", now, silent_for=31 * DAY + 60, upstream="heard", counted_seq=5)

    assert retention.purge([DATA_PLANES], now) == 2

    assert set(DataPlane.objects.values_list("name", flat=True)) == {"heard", "relay"}
    assert [member.name for member in queries.load_fleet(now).members] == ["heard"]
