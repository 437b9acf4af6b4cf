"""The blast radius: callers of a switch and overlapping switches."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controlplane.core.clock import db_now
from controlplane.core.instances.queries import Caller
from controlplane.tests.rows import multiply
from switches.blast import MAX_NAMED_CALLERS, MAX_NAMED_OVERLAPS, blast_radius, group_by_service
from switches.models import Episode, Switch
from switches.tests.browsers import engaged
from switches.tests.bulk_engagements import engage_alike
from switches.tests.instances import report_checks, report_version

AT = datetime(2026, 11, 21, 3, tzinfo=UTC)
FINANCE = "segment:finance"


def names(parts):
    return [part.id for part in parts]


def test_services_are_summed_up_the_busiest_first():
    def caller(name, rate, seconds_ago):
        heard_at = AT - timedelta(seconds=seconds_ago)
        return Caller(name, name.partition("/")[0], FINANCE, rate, 0.0, heard_at, has_stopped=False)

    core, billing = group_by_service(
        [caller("billing/b1", 4, 1), caller("core/a1", 3, 9), caller("core/a2", 2.5, 5)]
    )

    assert (core.id, core.instances, core.calls_per_second) == ("core", 2, 5.5)
    assert core.last_seen == AT - timedelta(seconds=5)
    assert (billing.id, billing.instances) == ("billing", 1)


@pytest.mark.django_db
class TestCallers:
    def test_key_nobody_knows_hits_nobody(self):
        found = blast_radius("segment:never-heard-of", db_now())

        assert (found.instances, found.services, found.overlapping) == ((), (), ())
        assert (found.instances_total, found.calls_per_second, found.last_seen) == (0, 0, None)

    def test_only_who_checks_this_switch_is_hit(self):
        now = db_now()
        report_checks("core/a1", FINANCE, at=now, per_second=10)
        report_checks("core/a2", "feature:other", at=now, per_second=99)
        report_version("core/poller", 0, now)

        found = blast_radius(FINANCE, now)

        assert names(found.instances) == ["core/a1"]
        assert found.calls_per_second == pytest.approx(10, rel=0.05)
        assert found.last_seen == now

    def test_rates_are_calls_and_how_many_of_them_were_blocked(self):
        now = db_now()
        report_checks("core/a1", FINANCE, at=now, per_second=10, blocked=120)

        (caller,) = blast_radius(FINANCE, now).instances

        assert caller.calls_per_second == pytest.approx(10, rel=0.05)
        assert caller.blocked_per_second == pytest.approx(2, rel=0.05)

    def test_caller_of_two_hours_ago_is_forgotten(self):
        now = db_now()
        report_checks("core/a1", FINANCE, at=now - timedelta(hours=2), per_second=10)

        assert blast_radius(FINANCE, now).instances_total == 0

    def test_global_switch_hits_whoever_checks_any(self):
        now = db_now()
        report_checks("core/a1", FINANCE, at=now, per_second=2)
        report_checks("billing/b1", "feature:other", at=now, per_second=1)
        report_version("core/poller", 0, now)

        found = blast_radius("global:all", now)

        assert names(found.instances) == ["core/a1", "billing/b1"]

    def test_token_is_a_caller_and_neither_a_service_nor_an_instance_of_one(self):
        now = db_now()
        report_checks("core/a1", FINANCE, at=now, per_second=2)
        for name in ("token:ci", "token:cron", "token:shop/web"):
            report_checks(name, FINANCE, at=now, per_second=1)

        found = blast_radius(FINANCE, now)

        assert [(one.id, one.instances) for one in found.services] == [("core", 1)]
        assert (found.processes, found.tokens, found.instances_total) == (1, 3, 4)
        assert set(names(found.instances)) == {
            "core/a1",
            "token:ci",
            "token:cron",
            "token:shop/web",
        }
        assert found.calls_per_second == pytest.approx(5, rel=0.05)

    def test_more_callers_than_could_be_named_are_all_summed_up(self):
        now = db_now()
        multiply(
            report_checks("core/a0", FINANCE, at=now, per_second=1), 10_019, id="'core/a' || i"
        )

        found = blast_radius(FINANCE, now)

        assert (found.instances_total, found.services[0].instances) == (10_020, 10_020)
        assert found.calls_per_second == pytest.approx(10_020, rel=0.05)

    def test_busiest_are_named_and_all_are_counted(self):
        now = db_now()
        total = MAX_NAMED_CALLERS + 5
        for number in range(total):
            report_checks(f"core/a{number}", FINANCE, at=now, per_second=1 + number)

        found = blast_radius(FINANCE, now)

        assert found.instances_total == total
        assert len(found.instances) == MAX_NAMED_CALLERS
        assert "core/a0" not in names(found.instances)
        assert found.services[0].instances == total
        assert found.calls_per_second == pytest.approx(sum(range(1, total + 1)), rel=0.05)


@pytest.mark.django_db
class TestOverlapping:
    def test_engaged_global_switch_overlaps_with_every_other(self):
        engaged("global:all")

        (stop,) = blast_radius("segment:never", db_now()).overlapping
        assert stop.switch_id == "global:all"

    def test_switch_checked_by_the_same_instance_overlaps(self):
        now = db_now()
        report_checks("core/a1", FINANCE, "feature:beta", at=now)
        report_checks("core/a2", "feature:elsewhere", at=now)
        engaged("feature:beta", reason="Ledger drifts since 01:00, INC-1")
        engaged("feature:elsewhere")
        engaged(FINANCE)
        Episode.objects.filter(switch="feature:beta").update(allow_percent="12.5")

        (beta,) = blast_radius(FINANCE, now).overlapping

        assert (beta.switch_id, beta.state, float(beta.allow_percent)) == (
            "feature:beta",
            "ramping",
            12.5,
        )
        assert beta.reason == "Ledger drifts since 01:00, INC-1"

    def test_two_checks_by_one_token_are_no_overlap(self):
        report_checks("token:ci", FINANCE, "feature:beta", at=db_now())
        engaged("feature:beta")

        assert blast_radius(FINANCE, db_now()).overlapping == ()

    def test_instance_that_no_longer_checks_this_switch_makes_no_overlap(self):
        now = db_now()
        instance = report_checks("core/a1", "feature:beta", at=now)
        old = report_checks("core/old", FINANCE, at=now - timedelta(hours=2)).checks
        instance.checks = {**instance.checks, **old}
        instance.save()
        engaged("feature:beta")

        assert blast_radius(FINANCE, now).overlapping == ()

    def test_released_switch_overlaps_with_nothing(self):
        now = db_now()
        report_checks("core/a1", FINANCE, "feature:beta", at=now)
        Switch.objects.create(id="feature:beta", scope="feature", key="beta", registered_at=now)

        assert blast_radius(FINANCE, now).overlapping == ()

    def test_check_of_two_hours_ago_is_no_overlap(self):
        now = db_now()
        instance = report_checks("core/a1", FINANCE, at=now)
        old = report_checks("core/old", "feature:beta", at=now - timedelta(hours=2)).checks
        instance.checks = {**instance.checks, **old}
        instance.save()
        engaged("feature:beta")

        assert blast_radius(FINANCE, now).overlapping == ()

    def test_global_switch_overlaps_with_all_that_are_not_released(self):
        engaged("feature:f000")
        others = [f"feature:f{number:03}" for number in range(1, MAX_NAMED_OVERLAPS + 2)]
        engage_alike(Episode.objects.get(), others)

        found = blast_radius("global:all", db_now()).overlapping

        assert len(found) == MAX_NAMED_OVERLAPS
        assert found[0].switch_id == "feature:f000"


@pytest.mark.django_db
def test_number_of_queries_does_not_grow_with_the_callers():
    now = db_now()
    engaged("feature:beta")

    def queries():
        with CaptureQueriesContext(connection) as caught:
            blast_radius(FINANCE, now)
        return len(caught)

    report_checks("core/a0", FINANCE, "feature:beta", at=now)
    few = queries()
    for number in range(30):
        report_checks(f"core/a{number}", FINANCE, "feature:beta", at=now)

    assert queries() == few == 3
