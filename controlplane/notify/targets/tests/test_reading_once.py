"""Routes are read once for a batch of messages, and again after it."""

import threading

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.notify.models.targets import Route, Target
from controlplane.notify.targets import routing

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _somebody():
    Route.objects.all().delete()
    target = Target.objects.create(
        name="all", kind="channel", address="email:all@example.org", created_at=db_now()
    )
    Route.objects.create(target=target, event="ramp.*", created_at=db_now())


def routed(event="ramp.held", severity="warning"):
    return routing.find_destinations(event, "feature", severity, db_now())


def test_batch_reads_routes_once_for_each_kind_of_message():
    with routing.cached_routing():
        assert routed() == ["email:all@example.org"]
        with CaptureQueriesContext(connection) as queries:
            again = routing.find_destinations("ramp.held", "feature", "warning", None)
        assert (again, len(queries)) == (["email:all@example.org"], 0)
        assert routed(event="switch.engaged") == []


def test_what_one_caller_adds_to_its_answer_no_other_gets():
    with routing.cached_routing():
        routed().append("email:stranger@example.org")
        assert routed() == ["email:all@example.org"]


def test_route_made_after_a_batch_counts_for_the_next():
    with routing.cached_routing():
        assert routed(event="switch.engaged") == []
        Route.objects.update(event="*")
    assert routed(event="switch.engaged") == ["email:all@example.org"]
    with routing.cached_routing():
        assert routed(event="switch.engaged") == ["email:all@example.org"]


def test_batch_of_one_thread_is_nothing_to_another():
    found = []
    with routing.cached_routing():
        thread = threading.Thread(target=lambda: found.append(routing._cache.get()))
        thread.start()
        thread.join()
    assert found == [None]
