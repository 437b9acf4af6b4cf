"""Live topics of switches and ramps: when they change, and equal to the API."""

import time
from collections.abc import Iterator

import pytest
import redis
from django.conf import settings

from controlplane.core.clock import db_now
from controlplane.core.http.tests.callers import as_role, person
from controlplane.core.live import change_notices
from controlplane.core.protocol import LIVE_CHANNEL
from switches import services, topics
from switches.models import Ramp
from switches.ramps import actions
from switches.tests.browsers import SAFE_NOW, engaged

pytestmark = pytest.mark.django_db


class Listening:
    """Receives change notices over the real Redis channel, and commits the changes."""

    def __init__(self, pubsub, committing) -> None:
        self._pubsub = pubsub
        self._committing = committing

    def hears(self, topic: str, resource: str, change) -> bool:
        with self._committing(execute=True):
            change()
        ends = time.monotonic() + 1
        while time.monotonic() < ends:
            message = self._pubsub.get_message(ignore_subscribe_messages=True, timeout=0.2)
            note = change_notices.decode_notice(message["data"]) if message else None
            if note and note[0] == topic and resource in note[1]:
                return True
        return False


@pytest.fixture
def listening(django_capture_on_commit_callbacks) -> Iterator[Listening]:
    client = redis.Redis.from_url(settings.REDIS_URL)
    with client.pubsub() as pubsub:
        pubsub.subscribe(LIVE_CHANNEL)
        pubsub.get_message(timeout=1)
        yield Listening(pubsub, django_capture_on_commit_callbacks)
    client.close()


def ramping(switch: str) -> Ramp:
    user = engaged(switch)
    scope, _, key = switch.partition(":")
    services.release(
        scope=scope, key=key, justification=SAFE_NOW, actor=user.as_actor(), now=db_now()
    )
    return Ramp.objects.get(switch_id=switch)


def test_engaging_a_switch_is_noted(listening):
    assert listening.hears("switches", "segment:noted", lambda: engaged("segment:noted"))


def test_describing_a_switch_is_noted_though_nothing_is_published(listening):
    def describe():
        actor = person("operator", "lee").as_actor()
        change = {"owner": "Payments"}
        services.describe(
            scope="segment", key="described", changes=change, actor=actor, now=db_now()
        )

    assert listening.hears("switches", "segment:described", describe)


def test_beginning_a_ramp_is_noted(listening):
    def begin():
        begun.append(str(ramping("segment:begun").pk))

    begun: list[str] = []

    with_ids = listening.hears("switches", "segment:begun", begin)

    assert with_ids
    assert listening.hears("ramps", begun[0], lambda: paused(begun[0]))


def paused(ramp_id: str) -> None:
    actor = person("operator", "ann").as_actor()
    reason = "waiting for the vendor to confirm"
    actions.pause(ramp_id=int(ramp_id), reason=reason, actor=actor, now=db_now())


def test_ramp_that_an_engagement_ends_is_noted(listening):
    ramp = ramping("segment:again")

    assert listening.hears("ramps", str(ramp.pk), lambda: engaged("segment:again"))


def test_reading_gives_what_the_api_shows():
    engaged("segment:shown")
    engaged("feature:other")

    (shown,) = topics.read_switches(["segment:shown", "segment:unheard-of"], db_now()).values()

    response = as_role("viewer").get("/switches/segment/shown/").json()
    assert shown == response


def test_reading_ramps_gives_what_the_api_shows():
    ramp = ramping("segment:ramped")

    found = topics.read_ramps([str(ramp.pk), "0", "no-number"], db_now())

    assert list(found) == [str(ramp.pk)]
    assert found[str(ramp.pk)] == as_role("viewer").get(f"/ramps/{ramp.pk}/").json()


def test_reading_costs_the_same_for_many_switches_as_for_one(django_assert_max_num_queries):
    names = [f"segment:many-{n}" for n in range(12)]
    for name in names:
        engaged(name)

    with django_assert_max_num_queries(9):
        found = topics.read_switches(names, db_now())

    assert sorted(found) == sorted(names)
