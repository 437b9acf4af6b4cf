"""Ticks of breakers."""

from datetime import timedelta

import pytest

from breakers.models import Dependency
from breakers.tests.fleet import HOUR, dependency, reports
from controlplane.core import ticks
from controlplane.core.clock import db_now

pytestmark = pytest.mark.django_db


def test_what_was_taken_out_and_is_reported_still_is_there_again():
    now = db_now()
    dependency()
    reports(at=now)
    Dependency.objects.update(removed_at=now - HOUR)

    assert ticks.run("breakers.rediscover", "test") == 1

    assert not Dependency.objects.registered().get().document


def test_names_that_nobody_reports_any_more_are_purged():
    old = db_now() - timedelta(days=2)
    dependency("made-up->name", version=0, registered_at=old)

    assert ticks.run("breakers.purge", "test") == 1

    assert not Dependency.objects.exists()
