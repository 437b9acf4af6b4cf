"""Outages: acted upon once, as the policy of the dependency says, and then over."""

import threading
import time

import pytest
from django.db import connection, transaction

from breakers import publication
from breakers.models import Alarm, Dependency, Override
from breakers.outages.decision import (
    ObservedBreakers,
    OngoingOutage,
    OutageMove,
    OutagePolicy,
    decide_move,
)
from breakers.outages.services import watch_outages
from breakers.tests.fleet import (
    MINUTE,
    NOW,
    ORACLE,
    SECOND,
    dependency,
    list_outbox_messages,
    reachable,
    reports,
)
from breakers.tests.house import forced
from controlplane.core.audit.models import AuditEntry
from controlplane.core.http.tests.callers import at_once
from controlplane.core.outbox import renderer
from controlplane.core.trip_requests.models import TripRequest

TRIP = {"action": "trip", "switch": "segment:nl2sql", "open_share": 0.5, "for_seconds": 30}
FALLBACK = {"action": "fallback", "expires_in": "30m"}
POLICY = OutagePolicy.from_document(TRIP)


def outage(seconds=0, acted=False):
    return OngoingOutage(NOW - seconds * SECOND, NOW, acted)


@pytest.mark.parametrize(
    ("seen", "before", "move"),
    [
        (ObservedBreakers(4, open=1), None, OutageMove.NOTHING),
        (ObservedBreakers(4, open=2), None, OutageMove.BEGIN),
        (ObservedBreakers(4, half_open=4), None, OutageMove.NOTHING),
        (ObservedBreakers(0, blinded=4), None, OutageMove.NOTHING),
        (ObservedBreakers(), None, OutageMove.NOTHING),
        (ObservedBreakers(4, open=2), outage(29), OutageMove.SEE),
        (ObservedBreakers(4, open=2), outage(30), OutageMove.ACT),
        (ObservedBreakers(4, open=2), outage(30, acted=True), OutageMove.SEE),
        (ObservedBreakers(4, open=1, half_open=1), outage(30), OutageMove.ACT),
        (ObservedBreakers(4, open=1), outage(30), OutageMove.RECOVER),
        (ObservedBreakers(4), outage(30, acted=True), OutageMove.RECOVER),
        (ObservedBreakers(0, blinded=4), outage(600, acted=True), OutageMove.SEE),
        (ObservedBreakers(1, open=1, blinded=9), None, OutageMove.NOTHING),
        (ObservedBreakers(5, open=5, blinded=5), None, OutageMove.BEGIN),
        (ObservedBreakers(1, blinded=3), outage(60, acted=True), OutageMove.SEE),
        (ObservedBreakers(2, open=1, blinded=8), outage(60, acted=True), OutageMove.SEE),
        (ObservedBreakers(2, open=1, blinded=8), outage(60), OutageMove.SEE),
        (ObservedBreakers(), outage(600, acted=True), OutageMove.NOTHING),
    ],
)
def test_what_is_done_about_what_is_seen(seen, before, move):
    assert decide_move(POLICY, seen, before, NOW) == move


def test_an_outage_that_nobody_tells_of_for_five_minutes_is_over():
    assert decide_move(POLICY, ObservedBreakers(), outage(), NOW + 5 * MINUTE) == OutageMove.FORGET


def test_a_policy_that_is_taken_away_ends_the_outage():
    assert decide_move(None, ObservedBreakers(4, open=4), outage(), NOW) == OutageMove.DROP


@pytest.mark.parametrize("document", [{}, {"action": "panic"}])
def test_what_asks_for_nothing_known_is_no_policy(document):
    assert OutagePolicy.from_document(document) is None


def fail(at, state="open", instances=2):
    for number in range(instances):
        reports(f"core/a{number}", state, at=at)


@pytest.fixture
def _somewhere(settings):
    reachable(settings)


@pytest.mark.django_db
@pytest.mark.usefixtures("_somewhere")
def test_a_lasting_outage_asks_once_that_its_segment_be_stopped():
    dependency(on_outage=TRIP)
    fail(NOW)
    looks = [watch_outages(NOW)]

    for seconds in (2, 29, 30, 32, 60):
        fail(NOW + seconds * SECOND)
        looks.append(watch_outages(NOW + seconds * SECOND))

    assert looks == [1, 0, 0, 1, 0, 0]
    request = TripRequest.objects.get()
    assert (request.switch, request.source, request.fingerprint) == (
        "segment:nl2sql",
        "provider-outage",
        "breaker:core->oracle",
    )
    assert request.key.startswith("outage:core->oracle:2026-11-21T02:11:30")
    assert request.evidence["open"] == request.evidence["instances"] == 2
    assert len(list_outbox_messages("outage.acted")) == 1
    assert AuditEntry.objects.get(action="outage.acted").target == "dependency:core->oracle"


@pytest.mark.django_db
def test_a_short_one_asks_for_nothing():
    dependency(on_outage=TRIP)
    fail(NOW)
    watch_outages(NOW)
    fail(NOW + 20 * SECOND, "closed")
    watch_outages(NOW + 20 * SECOND)
    fail(NOW + 40 * SECOND)
    watch_outages(NOW + 40 * SECOND)

    assert not TripRequest.objects.exists()
    assert Alarm.objects.filter(rule="outage").count() == 2


@pytest.mark.django_db
@pytest.mark.usefixtures("_somewhere")
def test_its_end_is_told_to_who_was_asked_and_the_next_one_asks_again():
    dependency(on_outage=TRIP)
    for begins in (NOW, NOW + 10 * MINUTE):
        for seconds, state in ((0, "open"), (30, "open"), (60, "closed")):
            at = begins + seconds * SECOND
            fail(at, state)
            watch_outages(at)

    keys = list(TripRequest.objects.order_by("pk").values_list("key", flat=True))
    assert [key.endswith(":over") for key in keys] == [False, True, False, True]
    assert TripRequest.objects.order_by("pk")[1].is_over
    assert len(list_outbox_messages("outage.over")) == 2


@pytest.mark.django_db
def test_a_fallback_forces_every_breaker_open_for_the_time_of_the_policy():
    dependency(on_outage=FALLBACK)
    fail(NOW)
    watch_outages(NOW)
    acts_at = NOW + 30 * SECOND
    fail(acts_at)

    watch_outages(acts_at)

    override = Override.objects.get()
    assert (override.mode, override.set_by_name) == ("forced_open", "outage-policy")
    assert override.expires_at == acts_at + 30 * MINUTE


@pytest.mark.django_db
def test_an_operators_override_stands_and_the_policy_says_so():
    oracle = dependency(on_outage=FALLBACK)
    fail(NOW)
    watch_outages(NOW)
    forced(oracle, NOW, "metrics_only")
    fail(NOW + 30 * SECOND)

    watch_outages(NOW + 30 * SECOND)

    assert Override.objects.get().mode == "metrics_only"
    assert "It is already metrics only" in Alarm.objects.get(rule="outage").evidence["why"]


@pytest.mark.django_db
def test_while_its_own_override_blinds_everybody_it_goes_on_and_acts_no_more():
    dependency(on_outage=FALLBACK)
    fail(NOW)
    watch_outages(NOW)
    fail(NOW + 30 * SECOND)
    watch_outages(NOW + 30 * SECOND)
    for seconds in (40, 400, 1200):
        for number in range(2):
            at = NOW + seconds * SECOND
            reports(f"core/a{number}", "open", at=at, mode="forced_open")
        assert watch_outages(at) == 0

    assert Override.objects.count() == 1
    assert Alarm.objects.get(rule="outage").closed_at is None


@pytest.mark.django_db
def test_an_outage_of_a_dependency_without_a_policy_does_nothing():
    dependency()
    fail(NOW)

    assert watch_outages(NOW) == 0
    assert not Alarm.objects.filter(subject=ORACLE).exists()


@pytest.mark.django_db
@pytest.mark.usefixtures("_somewhere")
def test_a_policy_that_is_taken_away_says_so_and_not_that_it_is_over():
    about = dependency(on_outage=TRIP)
    for seconds in (0, 30):
        fail(NOW + seconds * SECOND)
        watch_outages(NOW + seconds * SECOND)
    about.on_outage = {}
    about.save()

    watch_outages(NOW + 32 * SECOND)

    (message,) = list_outbox_messages("outage.over")
    notice = renderer.render(message.event, message.payload)
    assert notice.title == "Outage of core → oracle is no longer watched"
    assert notice.lines[0][1].startswith("Its outage policy was removed")
    assert TripRequest.objects.order_by("pk").last().is_over


@pytest.mark.django_db
@pytest.mark.usefixtures("_somewhere")
def test_what_is_told_names_half_open_breakers_apart():
    dependency(on_outage=TRIP)
    fail(NOW)
    watch_outages(NOW)
    fail(NOW + 30 * SECOND)
    reports("core/a0", "half_open", at=NOW + 30 * SECOND)

    watch_outages(NOW + 30 * SECOND)

    (message,) = list_outbox_messages("outage.acted")
    assert "is open in 1 and half-open in 1 of 2 instances" in message.payload["said"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", [TRIP, FALLBACK])
def test_a_policy_that_is_taken_away_meanwhile_is_not_acted_upon(policy):
    about = dependency(on_outage=policy)
    fail(NOW)
    watch_outages(NOW)
    fail(NOW + 30 * SECOND)
    at_it, looked = threading.Event(), []

    def other():
        at_it.wait(10)
        looked.append(watch_outages(NOW + 30 * SECOND))
        connection.close()

    thread = threading.Thread(target=other)
    thread.start()
    with transaction.atomic():
        publication.lock()
        at_it.set()
        waits_for_the_registry()
        about.on_outage = {}
        about.save()
    thread.join(10)

    assert looked == [1]
    assert not TripRequest.objects.exists()
    assert not Override.objects.exists()
    assert Alarm.objects.get(rule="outage").closed_at == NOW + 30 * SECOND


@pytest.mark.django_db
def test_one_that_cannot_be_dealt_with_stands_in_nobodys_way():
    dependency("a->broken", on_outage={"action": "trip", "open_share": "many"})
    dependency(on_outage=TRIP)
    reports("a/1", "open", of="a->broken")
    fail(NOW)

    assert watch_outages(NOW) == 1

    assert Alarm.objects.get(rule="outage").subject == ORACLE


@pytest.mark.django_db
def test_policies_of_dependencies_that_are_closed_cost_nothing(django_assert_max_num_queries):
    rows = [
        Dependency(
            caller="core", callee=f"callee-{n}", on_outage=TRIP, registered_at=NOW, changed_at=NOW
        )
        for n in range(1200)
    ]
    Dependency.objects.bulk_create(rows)
    dependency("zebra->last", on_outage=TRIP)
    reports("zebra/1", "open", of="zebra->last")

    with django_assert_max_num_queries(12):
        assert watch_outages(NOW) == 1


def waits_for_the_registry():
    """Wait until another session waits for a lock of ours."""
    for _ in range(500):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", [TRIP, FALLBACK])
def test_several_that_look_at_once_act_once(policy):
    dependency(on_outage=policy)
    fail(NOW)
    at_once(*[lambda: watch_outages(NOW)] * 4)
    fail(NOW + 30 * SECOND)

    at_once(*[lambda: watch_outages(NOW + 30 * SECOND)] * 4)

    assert Alarm.objects.filter(rule="outage").count() == 1
    assert TripRequest.objects.count() + Override.objects.count() == 1
