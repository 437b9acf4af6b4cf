"""Notifications of changes to open sockets, once committed and only then."""

import time
from uuid import uuid4

import orjson
import pytest
import redis
from django.conf import settings
from django.db import transaction

from breakers.services import overrides, registry
from controlplane.core.clock import db_now
from controlplane.core.protocol import LIVE_CHANNEL

from .registered import ADMIN, REASON, dependency

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def callee():
    """A name of its own: tests that run beside this one publish on the same channel."""
    return f"told-{uuid4().hex}"


@pytest.fixture
def heard(callee):
    """Return how often the dependency was notified since the last call.

    A mark of our own ends each.
    """
    client = redis.Redis.from_url(settings.REDIS_URL)
    ear = client.pubsub(ignore_subscribe_messages=True)
    ear.subscribe(LIVE_CHANNEL)
    note = orjson.dumps({"topic": "breakers", "ids": [f"core->{callee}"]})

    def read_messages():
        mark, count, ends = uuid4().hex, 0, time.monotonic() + 10
        while not client.publish(LIVE_CHANNEL, mark):  # Until the subscription stands.
            assert time.monotonic() < ends
        while time.monotonic() < ends:
            message = ear.get_message(timeout=1)
            if message is None:
                continue
            if message["data"] == mark.encode():
                return count
            count += message["data"] == note
        raise AssertionError("the mark was not heard")

    read_messages()
    yield read_messages
    ear.close()
    client.close()


def test_every_change_is_told(heard, callee):
    arguments = {"caller": "core", "callee": callee, "actor": ADMIN}

    dependency(db_now(), f"core->{callee}")
    registered = heard()
    overrides.set_override(
        mode="disabled", reason=REASON, expires_in="90s", now=db_now(), **arguments
    )
    forced = heard()
    overrides.remove_override(now=db_now(), **arguments)
    let_go = heard()
    registry.remove_dependency(now=db_now(), **arguments)
    removed = heard()

    assert (registered, forced, let_go, removed) == (1, 1, 1, 1)


def test_what_is_rolled_back_is_told_to_nobody(heard, callee):
    with transaction.atomic():
        dependency(db_now(), f"core->{callee}")
        transaction.set_rollback(True)

    assert heard() == 0


def test_what_changes_nothing_is_told_to_nobody(heard, callee):
    dependency(db_now(), f"core->{callee}")
    heard()

    dependency(db_now(), f"core->{callee}")

    assert heard() == 0
