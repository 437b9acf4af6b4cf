"""The effect of a change: counted instances, acknowledgments, stragglers and delays."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.actors import system_actor
from controlplane.core.clock import db_now
from controlplane.core.instances.models import Instance
from controlplane.tests.rows import multiply
from switches import services, switch_list
from switches.effect import (
    MAX_NAMED_STRAGGLERS,
    find_silent_instances,
    measure_effect,
    select_measurable,
)
from switches.models import Episode, Publication, Switch
from switches.tests.browsers import engaged
from switches.tests.instances import report_acknowledgment, report_version
from switches.views.effect import MAX_CELLS, build_cells

OTHER = UUID("11111111-2b0e-4b5c-9c69-1d5f2f3a7a11")
AT = datetime(2026, 11, 21, 3, tzinfo=UTC)


def list_straggler_ids(effect):
    return [one.id for one in effect.stragglers]


class TestWhatIsMeasured:
    def switches(self, count):
        return [Switch(id=f"segment:{n}", version=n, committed_at=AT) for n in range(1, count + 1)]

    @pytest.mark.parametrize(
        ("instances", "measured"), [(0, 200), (150, 200), (1000, 30), (10_000, 3), (100_000, 1)]
    )
    def test_newest_changes_are_where_there_are_too_many(self, instances, measured):
        changes = select_measurable(self.switches(200), instances, 0)

        assert [change.version for change in changes] == list(range(200, 200 - measured, -1))

    def test_change_whose_commit_was_not_noted_is_not(self):
        assert select_measurable([Switch(id="segment:old", version=1)], 4, 0) == []

    def test_change_of_an_earlier_epoch_is_not(self):
        changes = select_measurable(self.switches(5), 4, began_version=4)

        assert [change.version for change in changes] == [5, 4]


class TestBar:
    @given(st.integers(0, 10_000), st.integers(0, 10_000))
    def test_is_full_only_for_all_and_empty_only_for_none(self, one, other):
        applied, instances = sorted((one, other))

        bar = build_cells(applied, instances)

        assert len(bar) == min(instances, MAX_CELLS)
        assert bar == sorted(bar, reverse=True)
        if instances:
            assert all(bar) == (applied == instances)
            assert any(bar) == (applied > 0)


@pytest.mark.django_db
class TestMeasured:
    @pytest.fixture
    def finance(self):
        engaged("segment:finance")
        return Switch.objects.get()

    def test_never_published_switch_has_no_effect(self):
        report_version("core/a1", 0, db_now())

        assert measure_effect(Switch(id="segment:x", scope="segment", key="x"), db_now()) is None

    def test_instance_counts_for_thirty_seconds(self, finance):
        now = db_now()
        report_version("core/lately", finance.version, now - timedelta(seconds=29))
        report_version("core/stale", finance.version, now - timedelta(seconds=31))

        effect = measure_effect(finance, now)

        assert (effect.applied, effect.instances) == (1, 1)

    @pytest.mark.parametrize("ago", [0, 40])
    def test_proof_is_complete_after_a_rolling_deploy(self, finance, ago):
        now = db_now()
        for name in ("core/a2", "core/a3", "core/new"):
            report_version(name, finance.version, now)
        report_version("core/a1", finance.version - 1, now - timedelta(seconds=ago), stopped=True)

        effect = measure_effect(finance, now)

        assert effect.heading == "Applied by all 3 reporting instances"
        assert (effect.whole, effect.silent_total, list_straggler_ids(effect)) == (True, 0, [])
        assert find_silent_instances(finance, now) == ()
        (listed,) = switch_list.read_resources([finance.pk]).values()
        assert (listed["effect"]["instances"], listed["effect"]["silent_total"]) == (3, 0)

    def test_instance_heard_from_after_it_stopped_counts(self, finance):
        now = db_now()
        report_version("core/a1", finance.version - 1, now, stopped=True)
        Instance.objects.update(stopped_at=now - timedelta(seconds=1))

        assert list_straggler_ids(measure_effect(finance, now)) == ["core/a1"]

    def test_new_epoch_makes_everybody_a_straggler_until_they_say_so(self, finance):
        now = db_now()
        report_version("core/a1", finance.version, now)
        assert measure_effect(finance, now).by_everybody

        Publication.objects.update(epoch=uuid4())

        assert list_straggler_ids(measure_effect(finance, now)) == ["core/a1"]

    def test_delays_are_counted_from_the_commit(self, finance):
        now = db_now()
        for name, after_ms in (("core/a1", 20), ("core/a2", 41), ("core/a3", 900)):
            report_version(name, finance.version, now)
            report_acknowledgment(name, finance, after_ms)

        effect = measure_effect(finance, now)

        assert (effect.p50_ms, effect.p99_ms, effect.measured) == (41, 900, 3)

    def test_commit_follows_the_request(self, finance):
        effect = measure_effect(finance, db_now())

        assert effect.requested_at <= effect.committed_at

    def test_change_from_before_times_were_kept_is_still_counted(self, finance):
        Switch.objects.update(requested_at=None, committed_at=None)
        report_version("core/a1", finance.version, db_now())

        effect = measure_effect(Switch.objects.get(), db_now())

        assert (effect.applied, effect.p99_ms, effect.committed_at) == (1, None, None)

    def test_next_change_starts_over(self, finance):
        now = db_now()
        report_version("core/a1", finance.version, now)
        engaged("segment:other")

        other = measure_effect(Switch.objects.get(pk="segment:other"), now)

        assert (other.applied, other.instances) == (0, 1)
        assert measure_effect(finance, now).by_everybody

    def test_newcomer_is_no_measure_of_the_delay(self, finance):
        now = db_now()
        report_version("core/a1", finance.version, now)
        report_version("core/new", finance.version, now, known_since=now)
        report_acknowledgment("core/a1", finance, 41)
        report_acknowledgment("core/new", finance, 12_731)

        effect = measure_effect(finance, now)

        assert (effect.p99_ms, effect.measured, effect.applied) == (41, 1, 2)

    def test_change_from_before_the_epoch_began_gets_no_delays_of_it(self, finance):
        now = db_now()
        services.begin_epoch(reason="backup restored, INC-7", actor=system_actor("shell"), now=now)
        report_version("core/a1", 2, now)
        report_acknowledgment("core/a1", finance, 41)

        effect = measure_effect(finance, now)

        assert (effect.applied, effect.measured, effect.p99_ms) == (1, 0, None)


@pytest.fixture(scope="class")
def third(class_db):
    """Create five switches, and return the one whose last change is version 3 of 5."""
    for number in range(5):
        engaged(f"segment:s{number}")
    return Switch.objects.get(version=3)


@pytest.mark.django_db
class TestWhoApplies:
    def test_with_nobody_there_nobody_does_and_not_everybody(self, third):
        effect = measure_effect(third, db_now())

        assert (effect.applied, effect.instances, list_straggler_ids(effect)) == (0, 0, [])
        assert not effect.by_everybody
        assert not effect.whole

    @pytest.mark.parametrize(
        ("version", "epoch", "words"),
        [
            (2, None, "applies version 2"),
            (0, None, "applies version 0"),
            (None, None, "has not reported a version"),
            (5, OTHER, "applies version 5 of another epoch"),
            (400, OTHER, "applies version 400 of another epoch"),
            (6, None, "reports version 6, which was never published"),
        ],
    )
    def test_straggler_is_named_with_what_it_says(self, third, version, epoch, words):
        now = db_now()
        report_version("core/a1", 3, now)
        report_version("core/a2", version, now, epoch=epoch)

        effect = measure_effect(third, now)

        assert (effect.applied, effect.instances, effect.stragglers_total) == (1, 2, 1)
        assert [(one.id, one.says) for one in effect.stragglers] == [("core/a2", words)]
        assert not effect.by_everybody

    @pytest.mark.parametrize("version", [3, 4, 5])
    def test_later_version_covers_an_earlier_change(self, third, version):
        report_version("core/a1", version, db_now())

        assert measure_effect(third, db_now()).whole

    def test_those_furthest_behind_are_named_first_and_at_most_twenty(self, third):
        now = db_now()
        for number in range(30):
            report_version(f"core/{number:02}", 2 - number % 3, now)
        report_version("core/zz", None, now)

        effect = measure_effect(third, now)

        assert effect.stragglers_total == 31
        assert list_straggler_ids(effect)[:3] == ["core/zz", "core/02", "core/05"]
        assert len(effect.stragglers) == MAX_NAMED_STRAGGLERS

    def test_each_of_many_switches_has_its_own_stragglers(self, third):
        now = db_now()
        for number in range(25):
            report_version(f"core/{number:02}", number % 5 + 1, now)

        found = switch_list.read_resources(Switch.objects.values_list("pk", flat=True))

        for switch in Switch.objects.all():
            alone, effect = measure_effect(switch, now), found[switch.pk]["effect"]
            assert effect["applied"] == alone.applied
            assert effect["stragglers"] == list_straggler_ids(alone)
            assert effect["stragglers_total"] == 5 * (switch.version - 1)
            assert len(effect["stragglers"]) == effect["stragglers_total"]

    def test_more_instances_than_could_be_named_are_all_counted(self, third):
        now, head = db_now(), Publication.objects.get()
        one = Instance.objects.create(
            id="core/0", service="core", heard_at=now, applied_epoch=head.epoch, applied_version=3
        )
        multiply(
            one,
            10_006,
            id="'core/' || i",
            applied_version="CASE WHEN i > 10000 THEN 2 ELSE 3 END",
        )

        effect = measure_effect(third, now)

        assert (effect.applied, effect.instances, len(effect.stragglers)) == (10_001, 10_007, 6)
        assert not effect.by_everybody


@pytest.mark.django_db
class TestPastExpiry:
    @pytest.mark.parametrize(
        ("on_expiry", "minutes", "percent", "is_past"),
        [
            ("release", 61, 0, True),
            ("release", 60, 0, False),  # within the tolerance for clock differences
            ("release", 59, 0, False),
            ("hold", 61, 0, False),
            ("ramp", 61, 0, False),
            ("release", 61, 25, False),
        ],
    )
    def test_is_when_instances_may_have_let_go_by_themselves(
        self, on_expiry, minutes, percent, is_past
    ):
        now = db_now()
        engaged("feature:beta", now=now, expires_in="1h", on_expiry=on_expiry)
        Episode.objects.update(allow_percent=percent)

        effect = measure_effect(Switch.objects.get(), now + timedelta(minutes=minutes))

        assert effect.past_expiry is is_past

    def test_released_switch_is_not(self):
        now = db_now()
        engaged("feature:beta", now=now, expires_in="1h", on_expiry="release")
        services.expire_due(now + timedelta(hours=2))

        assert not measure_effect(Switch.objects.get(), now + timedelta(hours=2)).past_expiry


@pytest.mark.django_db
class TestFallenSilent:
    @pytest.mark.parametrize(
        ("seconds", "version", "is_told"),
        [
            (29, 0, False),  # still counted as present
            (31, 0, True),
            (31, None, True),
            (31, 1, False),  # had acknowledged the version
            (31, 2, True),  # a version that was never published
            (299, 0, True),
            (301, 0, False),  # gone
        ],
    )
    def test_tells_of_who_left_without_saying_so(self, seconds, version, is_told):
        engaged("segment:finance")
        now = db_now()
        report_version("core/a1", version, now - timedelta(seconds=seconds))

        switch = Switch.objects.get()
        assert [one.id for one in find_silent_instances(switch, now)] == ["core/a1"] * is_told
        assert measure_effect(switch, now).silent_total == int(is_told)

    def test_takes_from_the_whole_though_everybody_heard_from_applies_it(self):
        engaged("segment:finance")
        now = db_now()
        report_version("core/a1", 1, now)
        assert measure_effect(Switch.objects.get(), now).whole
        report_version("core/a2", 0, now - timedelta(minutes=1))

        effect = measure_effect(Switch.objects.get(), now)

        assert effect.by_everybody
        assert not effect.whole
