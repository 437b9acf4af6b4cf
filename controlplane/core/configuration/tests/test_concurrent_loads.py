"""Loads at the same time: one waits for the other, and then its outdated plan is refused."""

import threading

import pytest
from django.db import connection, transaction

from controlplane.core.configuration import services as configuration
from controlplane.core.errors import Conflict
from controlplane.core.http.tests.sessions import until_waiting
from slo.models import ThresholdRule

from .whole_installation import load

pytestmark = pytest.mark.django_db(transaction=True)


def limit(value):
    rule = f"{{metric: timeout_rate, value: {value}, severity: warning}}"
    return {"thresholds.yaml": f"thresholds: {{slow: {rule}}}"}


def test_plan_that_another_load_outdates_meanwhile_is_refused():
    load(limit(0.1))
    plan = configuration.digest_plan(limit(0.2), load(limit(0.2), dry_run=True))
    refused = []

    def load_planned():
        try:
            load(limit(0.2), plan=plan)
        except Conflict as error:
            refused.append(error.detail)
        finally:
            connection.close()

    other = threading.Thread(target=load_planned)
    with transaction.atomic():
        load(limit(0.3))
        other.start()
        until_waiting(1)
    other.join(10)

    assert [text.split(".")[0] for text in refused] == [
        "The configuration has changed since this plan was made"
    ]
    assert ThresholdRule.objects.get(name="slow").value == 0.3
