"""Degradation levels by open breakers and silent services."""

import pytest

from breakers import degradation_causes
from breakers.models import Probe, Service
from breakers.states.unhealthy import UnhealthyDependency
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.degradation import services
from controlplane.core.degradation.models import Degradation
from controlplane.core.http.tests.callers import at_once
from controlplane.core.outbox import renderer

from .fleet import (
    MINUTE,
    NOW,
    ORACLE,
    SECOND,
    dependency,
    doing,
    list_outbox_messages,
    reachable,
    reports,
    service,
)

pytestmark = pytest.mark.django_db


def level():
    return services.load_degradation(redis_reachable=True).level


def test_an_open_breaker_of_a_critical_dependency_degrades_by_what_its_callee_is():
    dependency()
    service("oracle", level=1, loses=["NL2SQL"], keeps=["Cases", "Docs"])
    reports("core/a1", "open")

    assert degradation_causes.report_causes(NOW)

    degradation = services.load_degradation(redis_reachable=True)
    assert (degradation.level, degradation.name, degradation.since) == (1, "degraded", NOW)
    (cause,) = degradation.causes
    assert cause.what == ORACLE
    assert (cause.fails, cause.works) == (("NL2SQL",), ("Cases", "Docs"))
    assert cause.since == timestamp(NOW)


@pytest.mark.parametrize(
    "fields",
    [{"criticality": "medium"}, {"criticality": "low"}, {"removed_at": NOW}],
)
def test_what_nobody_depends_on_badly_degrades_nothing(fields):
    dependency(**fields)
    reports("core/a1", "open")

    assert not degradation_causes.report_causes(NOW)
    assert level() == 0


def test_a_service_that_nobody_registered_is_level_one():
    dependency(criticality="high")
    reports("core/a1", "open")

    degradation_causes.report_causes(NOW)

    assert level() == 1


def test_a_store_that_does_not_answer_degrades_by_its_level():
    service("redis", name="Redis", level=2, probe_url="tcp://redis:6379", loses=["Events at once"])
    Probe.objects.create(service_id="redis", is_away=True, failures=3, since=NOW)

    degradation_causes.report_causes(NOW)

    assert level() == 2
    assert services.load_document()["causes"] == ["Redis does not respond to its probe."]


def test_a_few_open_instances_are_the_lowest_level_and_half_of_them_the_callees():
    dependency()
    service("oracle", level=3)
    reports("core/a1", "open")
    reports("core/a2")
    reports("core/a3")

    degradation_causes.report_causes(NOW)
    few = level()
    reports("core/a4", "open")
    degradation_causes.report_causes(NOW + SECOND)

    assert (few, level()) == (1, 3)


def test_a_few_open_instances_of_what_does_not_answer_are_as_grave_as_its_loss():
    dependency()
    service("oracle", level=3, probe_url="tcp://oracle:80")
    Probe.objects.create(service_id="oracle", is_away=True, failures=3, since=NOW)
    reports("core/a1", "open")
    for number in range(2, 6):
        reports(f"core/a{number}")

    degradation_causes.report_causes(NOW)

    assert {one.what: one.level for one in services.load_causes()} == {
        ORACLE: 3,
        "service:oracle": 3,
    }


@pytest.mark.parametrize(("kind", "expected"), [("service", 1), ("external", 0), ("store", 0)])
def test_a_service_of_ours_counts_whatever_its_criticality(kind, expected):
    dependency(criticality="medium")
    service("oracle", kind=kind)
    reports("core/a1", "open")

    degradation_causes.report_causes(NOW)

    assert level() == expected


@pytest.mark.parametrize(("minutes", "expected"), [(0.5, 1), (2, 0)])
def test_a_cause_ends_at_once_if_its_caller_stopped_over_a_minute_ago(minutes, expected):
    dependency()
    reports("core/a1", "open")
    degradation_causes.report_causes(NOW)
    reports("core/a1", "open", at=NOW + SECOND, stopped=True)

    degradation_causes.report_causes(NOW + SECOND + minutes * MINUTE)

    assert level() == expected


@pytest.mark.parametrize("mode", ["forced_open", "metrics_only", "disabled", "reset"])
def test_what_is_forced_is_no_cause(mode):
    dependency()
    reports("core/a1", "open", mode=mode)

    assert not degradation_causes.report_causes(NOW)


def test_silence_ends_no_cause_until_it_has_lasted_five_minutes():
    dependency()
    reports("core/a1", "open")
    degradation_causes.report_causes(NOW)

    for seconds in (31, 120, 300):
        degradation_causes.report_causes(NOW + seconds * SECOND)
        assert level() == 1

    degradation_causes.report_causes(NOW + 301 * SECOND)
    degradation_causes.report_causes(NOW + 361 * SECOND)
    assert level() == 0


def test_silence_begins_no_cause():
    dependency()
    reports("core/a1", "open", at=NOW - 31 * SECOND)

    assert not degradation_causes.report_causes(NOW)


def test_a_fresh_instance_that_says_closed_ends_it_after_a_minute():
    dependency()
    reports("core/a1", "open")
    degradation_causes.report_causes(NOW)
    for seconds in (40, 100):
        reports("core/a2", at=NOW + seconds * SECOND)
        degradation_causes.report_causes(NOW + seconds * SECOND)

    assert level() == 0


def test_a_breaker_that_flaps_is_told_of_once(settings):
    reachable(settings)
    dependency()

    for seconds in range(0, 150, 2):
        at = NOW + seconds * SECOND
        reports("core/a1", "open" if seconds % 4 else "closed", at=at)
        degradation_causes.report_causes(at)

    assert len(list_outbox_messages("degradation.changed")) == 1


def test_a_breaker_that_tries_again_stays_a_cause_and_begins_none():
    dependency()
    dependency("core->vision")
    reports("core/a1", "open")
    reports("core/a1", "half_open", of="core->vision")
    degradation_causes.report_causes(NOW)

    reports("core/a1", "half_open")

    assert not degradation_causes.report_causes(NOW + SECOND)
    assert [one.what for one in services.load_causes()] == [ORACLE]


def test_the_same_causes_change_nothing():
    dependency()
    reports("core/a1", "open")
    degradation_causes.report_causes(NOW)
    before = Degradation.objects.values().get()

    assert not degradation_causes.report_causes(NOW + 20 * SECOND)
    assert Degradation.objects.values().get() == before


def test_a_change_of_the_level_is_told_once_and_audited(settings):
    reachable(settings)
    dependency()
    service("oracle", loses=["NL2SQL"], keeps=["Cases"])
    reports("core/a1", "open")
    degradation_causes.report_causes(NOW)
    reports("core/a2", "open")
    degradation_causes.report_causes(NOW + SECOND)

    (message,) = list_outbox_messages("degradation.changed")
    notice = renderer.render(message.event, message.payload)
    assert notice.title == "Degradation: level 1, DEGRADED"
    assert ("Not working", "NL2SQL") in notice.lines
    assert message.severity == "warning"
    (row,) = AuditEntry.objects.filter(action="degradation.changed")
    assert row.target == "degradation"


def test_causes_beyond_fifty_are_summed_up():
    found = [
        UnhealthyDependency(n, "core", f"callee-{n:03}", "high", "", instances=1, open=1)
        for n in range(60)
    ]
    registered = {"callee-059": Service(slug="callee-059", name="Last", level=3)}

    stand = degradation_causes.find_causes(found, [], registered, [])

    assert len(stand) == 50
    assert stand[0].what == "core->callee-059"
    assert stand[-1].what == "more"
    assert len(degradation_causes.find_causes(found[:50], [], registered, [])) == 50
    assert (
        degradation_causes.find_causes(found[:50], [], registered, [])[-1].what
        == "core->callee-049"
    )


@pytest.mark.django_db(transaction=True)
def test_who_comes_while_another_looks_reports_nothing_that_is_old():
    dependency()
    reports("core/a1", "open")
    with doing(lambda: degradation_causes.try_lock()):
        meanwhile = degradation_causes.report_causes(NOW)

    assert not meanwhile
    assert degradation_causes.report_causes(NOW)


@pytest.mark.django_db(transaction=True)
def test_two_that_look_at_once_change_it_once(settings):
    reachable(settings)
    dependency()
    reports("core/a1", "open")

    changed = at_once(*[lambda: degradation_causes.report_causes(NOW)] * 4)

    assert sorted(changed) == [False, False, False, True]
    assert Degradation.objects.get().revision == 1
    assert len(list_outbox_messages("degradation.changed")) == 1
