"""Proof of effect: who counts, who applies the change, who lags behind and by how much."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.core.clock import db_now
from controlplane.core.instances.queries import Heard
from switches.effect import (
    NOT_MEASURED,
    STRAGGLERS_NAMED,
    Standings,
    effect_of,
    fallen_silent,
    measurable,
)
from switches.models import Publication, Switch
from switches.tests.screens import engaged
from switches.tests.there import acknowledged, says
from switches.views.effect import MOST_CELLS, cells

EPOCH = UUID("8b4ccf29-2b0e-4b5c-9c69-1d5f2f3a7a11")
OTHER = UUID("11111111-2b0e-4b5c-9c69-1d5f2f3a7a11")
AT = datetime(2026, 11, 21, 3, tzinfo=UTC)
HEAD = Publication(epoch=EPOCH, version=17, published_at=AT)


def heard(name, version, epoch=EPOCH):
    return Heard(name, "core", None if version is None else epoch, version, AT)


def measured(version, *instances):
    return Standings(HEAD, instances).effect(Switch(id="segment:a", version=version), NOT_MEASURED)


def named(effect):
    return [one.id for one in effect.stragglers]


class TestWhoApplies:
    def test_with_nobody_there_nobody_does_and_not_everybody(self):
        effect = measured(17)

        assert (effect.applied, effect.instances, named(effect)) == (0, 0, [])
        assert not effect.by_everybody

    @pytest.mark.parametrize(
        ("version", "epoch", "says"),
        [
            (16, EPOCH, "applies version 16"),
            (0, EPOCH, "applies version 0"),
            (None, EPOCH, "has not said what it applies"),
            (17, OTHER, "applies version 17 of another epoch"),
            (400, OTHER, "applies version 400 of another epoch"),
            (18, EPOCH, "claims version 18, which was never published"),
        ],
    )
    def test_straggler_is_named_with_what_it_says(self, version, epoch, says):
        effect = measured(17, heard("core/a1", 17), heard("core/a2", version, epoch))

        assert (effect.applied, effect.instances, effect.stragglers_total) == (1, 2, 1)
        assert [(one.id, one.says) for one in effect.stragglers] == [("core/a2", says)]
        assert not effect.by_everybody

    @pytest.mark.parametrize("version", [15, 16, 17])
    def test_later_version_covers_an_earlier_change(self, version):
        assert measured(15, heard("core/a1", version)).by_everybody

    def test_those_furthest_behind_are_named_first_and_at_most_twenty(self):
        lagging = [heard(f"core/{number:02}", 16 - number % 3) for number in range(30)]

        effect = measured(17, heard("core/zz", None), *lagging)

        assert effect.stragglers_total == 31
        assert named(effect)[:3] == ["core/zz", "core/02", "core/05"]
        assert len(effect.stragglers) == STRAGGLERS_NAMED

    @given(
        st.integers(1, 17),
        st.lists(
            st.tuples(st.none() | st.integers(0, 20), st.sampled_from([EPOCH, OTHER])), max_size=60
        ),
    )
    def test_counts_agree_with_asking_each_instance(self, version, instances):
        there = [heard(f"i/{n}", said, epoch) for n, (said, epoch) in enumerate(instances)]

        effect = measured(version, *there)

        applying = {
            one.id
            for one in there
            if one.version is not None and one.epoch == EPOCH and version <= one.version <= 17
        }
        assert effect.applied == len(applying)
        assert effect.instances == len(there)
        assert not applying & set(named(effect))
        assert len(effect.stragglers) == min(STRAGGLERS_NAMED, len(there) - len(applying))
        assert effect.by_everybody == (bool(there) and len(applying) == len(there))


class TestWhatIsMeasured:
    def switches(self, count):
        return [Switch(id=f"segment:{n}", version=n, committed_at=AT) for n in range(1, count + 1)]

    @pytest.mark.parametrize(
        ("instances", "measured"), [(0, 200), (150, 200), (1000, 30), (10_000, 3), (100_000, 1)]
    )
    def test_newest_changes_are_where_there_are_too_many(self, instances, measured):
        changes = measurable(self.switches(200), instances)

        assert [change.version for change in changes] == list(range(200, 200 - measured, -1))

    def test_change_whose_commit_was_not_noted_is_not(self):
        assert measurable([Switch(id="segment:old", version=1)], 4) == []


class TestBar:
    @given(st.integers(0, 10_000), st.integers(0, 10_000))
    def test_is_full_only_for_all_and_empty_only_for_none(self, one, other):
        applied, instances = sorted((one, other))

        bar = cells(applied, instances)

        assert len(bar) == min(instances, MOST_CELLS)
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
        says("core/a1", 0, db_now())

        assert effect_of(Switch(id="segment:x", scope="segment", key="x"), db_now()) is None

    def test_instance_counts_for_thirty_seconds(self, finance):
        now = db_now()
        says("core/lately", finance.version, now - timedelta(seconds=29))
        says("core/stale", finance.version, now - timedelta(seconds=31))

        effect = effect_of(finance, now)

        assert (effect.applied, effect.instances) == (1, 1)

    def test_new_epoch_makes_everybody_a_straggler_until_they_say_so(self, finance):
        now = db_now()
        says("core/a1", finance.version, now)
        assert effect_of(finance, now).by_everybody

        Publication.objects.update(epoch=uuid4())

        assert named(effect_of(finance, now)) == ["core/a1"]

    def test_delays_are_counted_from_the_commit(self, finance):
        now = db_now()
        for name, after_ms in (("core/a1", 20), ("core/a2", 41), ("core/a3", 900)):
            says(name, finance.version, now)
            acknowledged(name, finance, after_ms)

        effect = effect_of(finance, now)

        assert (effect.p50_ms, effect.p99_ms, effect.measured) == (41, 900, 3)

    def test_commit_follows_the_request(self, finance):
        effect = effect_of(finance, db_now())

        assert effect.requested_at <= effect.committed_at

    def test_change_from_before_times_were_kept_is_still_counted(self, finance):
        Switch.objects.update(requested_at=None, committed_at=None)
        says("core/a1", finance.version, db_now())

        effect = effect_of(Switch.objects.get(), db_now())

        assert (effect.applied, effect.p99_ms, effect.committed_at) == (1, None, None)

    def test_next_change_starts_over(self, finance):
        now = db_now()
        says("core/a1", finance.version, now)
        engaged("segment:other")

        other = effect_of(Switch.objects.get(pk="segment:other"), now)

        assert (other.applied, other.instances) == (0, 1)
        assert effect_of(finance, now).by_everybody


@pytest.mark.django_db
class TestFallenSilent:
    @pytest.mark.parametrize(
        ("seconds", "version", "is_told"),
        [
            (29, 0, False),  # still counted as there
            (31, 0, True),
            (31, None, True),
            (31, 1, False),  # had said that it applies it
            (31, 2, True),  # a version nobody published
            (299, 0, True),
            (301, 0, False),  # gone
        ],
    )
    def test_tells_of_who_left_without_saying_so(self, seconds, version, is_told):
        engaged("segment:finance")
        now = db_now()
        says("core/a1", version, now - timedelta(seconds=seconds))

        told, total = fallen_silent(Switch.objects.get(), now)

        assert [one.id for one in told] == ["core/a1"] * is_told
        assert total == int(is_told)
