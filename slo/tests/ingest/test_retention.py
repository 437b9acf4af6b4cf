"""Deletion of old sources, edges and SLOs; a source that comes back is counted once."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from slo import retention_rules
from slo.counters import compaction, retention
from slo.evaluation import evaluator, statuses
from slo.ingest import deferred_updates
from slo.models import (
    Alert,
    CounterHour,
    CounterMinute,
    Exclusion,
    Series,
    Sli,
    Slo,
    SloStatus,
    StoredSample,
)
from slo.models.counters import IMPORTED

from .sample_helpers import MINUTE, NOW, SentSample, load_counters, objective, record

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def record_one(
    sli: Sli, days_ago: float, total: float, *, source: str = "a", boot: str = "1"
) -> None:
    samples = [SentSample(sli.pk, source, boot, NOW - days_ago * DAY, total, total)]
    record(samples, now=NOW, at_once=True, is_noted=True)


def purge_all() -> None:
    retention.purge_samples(NOW, at_once=10, most=1000)
    retention.purge_old(NOW, at_once=10, most=1000)


def test_boot_that_comes_back_after_weeks_does_not_count_all_it_ever_did(sli: Sli) -> None:
    for boot in ("1", "2"):
        record_one(sli, 20, 1000, boot=boot)
    before = load_counters(sli, MINUTE, MINUTE)[0][1]
    purge_all()

    for boot in ("1", "2"):
        record_one(sli, 0, 1005, boot=boot)

    assert load_counters(sli, MINUTE, MINUTE)[0][1] - before == 10


def test_source_that_is_silent_for_long_is_forgotten_as_a_whole(sli: Sli) -> None:
    record_one(sli, 36, 1000, source="dead")
    record_one(sli, 34, 1000, source="away")
    purge_all()

    assert [one.source for one in Series.objects.all()] == ["away"]
    record_one(sli, 0, 1007, source="dead")
    assert load_counters(sli, MINUTE, MINUTE)[0][1] == 0


def test_of_very_many_boots_the_newest_are_kept(sli: Sli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MAX_BOOTS_KEPT", 3)
    for ago in range(6, 0, -1):
        record_one(sli, ago, 5, boot=str(ago))
    record_one(sli, 6, 5, source="b")
    purge_all()

    assert sorted((one.source, one.boot) for one in Series.objects.all()) == [
        ("a", "1"),
        ("a", "2"),
        ("a", "3"),
        ("b", "1"),
    ]


def test_sample_of_the_future_does_not_make_history_old(sli: Sli) -> None:
    for minutes in range(5000, 4990, -1):
        record_one(sli, minutes / 1440, 5)
    record_one(sli, -365, 6)
    compaction.compact_minutes(NOW, most=1000)
    hours = CounterHour.objects.filter(hour__gte=0)
    known = set(hours.values_list("hour", flat=True))

    purge_all()

    assert set(hours.values_list("hour", flat=True)) == known != set()


def test_samples_are_looked_for_by_series_and_those_of_files_not_at_all(sli: Sli) -> None:
    record_one(sli, 30, 1, source=IMPORTED, boot="")
    for source in "abc":
        for ago in (4, 3, 2, 0):
            record_one(sli, ago, 1, source=source)
    series = list(Series.objects.exclude(source=IMPORTED).values_list("pk", flat=True))

    with CaptureQueriesContext(connection) as queries:
        assert retention.purge_samples(NOW, at_once=2, most=100) == 6

    deleting = [one["sql"] for one in queries if one["sql"].lstrip().startswith("DELETE")]
    series_ids = [set(map(int, re.findall(r"\d+", sql.split("ANY(")[1]))) for sql in deleting]
    assert set(series) <= set.union(*series_ids)
    imported = Series.objects.get(source=IMPORTED)
    assert not any(imported.pk in ids for ids in series_ids)
    assert StoredSample.objects.filter(series=imported).exists()


def test_slo_that_was_removed_long_ago_is_forgotten_with_all_of_it(sli: Sli) -> None:
    other = objective("other")
    for one in (sli, other):
        record_one(one, 5, 1)
        record_one(one, 4, 9)
        record_one(one, 0, 10)
        slo = one.slo
        assert slo is not None
        Exclusion.objects.create(slo=slo, starts_at=NOW, ends_at=NOW + DAY, created_at=NOW)
        SloStatus.objects.create(slo=slo, minute=MINUTE, state="ok", since=NOW)
        fields = {"severity": "critical", "label": "page", "summary": "It burns.", "kind": "burn"}
        Alert.objects.create(
            slo=slo, rule="1h", subject=slo.name, opened_at=NOW, firing_at=NOW, **fields
        )
    compaction.compact_minutes(NOW, most=1000)
    Slo.objects.filter(pk=sli.slo_id).update(removed_at=NOW)
    expected = [(one, one.objects.count() // 2) for one in (Sli, Slo, Series, Exclusion, Alert)]
    assert (
        retention.purge_removed(NOW + 36 * DAY, most=1000) == 0
    )  # It stays with its alerts, for postmortems.
    Alert.objects.filter(slo=sli.slo_id).delete()
    assert retention.purge_removed(NOW + 35 * DAY, most=1000) == 0

    retention.purge_removed(NOW + 36 * DAY, most=1000)

    assert [(one, one.objects.count()) for one, _ in expected] == expected
    assert set(CounterMinute.objects.values_list("sli", flat=True)) == {other.pk}
    assert set(CounterHour.objects.values_list("sli", flat=True)) == {other.pk}
    assert set(StoredSample.objects.values_list("series__sli", flat=True)) == {other.pk}
    assert list(SloStatus.objects.values_list("pk", flat=True)) == [other.slo_id]


def test_edges_that_nobody_sends_are_forgotten(sli: Sli) -> None:
    edges = {"metric": "m", "service": "s", "created_at": NOW - 36 * DAY}
    silent, never, lives = (Sli.objects.create(edge_ms=edge, **edges) for edge in (1, 2, 3))
    record_one(silent, 36, 5)
    record_one(lives, 36, 5)
    record_one(lives, 1, 6)

    retention.purge_removed(NOW, most=1000)

    assert set(Sli.objects.all()) == {sli, lives}
    assert never not in Sli.objects.all()
    assert set(Series.objects.values_list("sli", flat=True)) == {lives.pk}


def test_slos_that_were_removed_cost_nothing_when_others_are_judged(sli: Sli) -> None:
    slo = sli.slo
    assert slo is not None
    SloStatus.objects.create(slo=slo, minute=MINUTE, state="ok", since=NOW)
    assert statuses.load_states() == {slo.pk: "ok"}
    Slo.objects.filter(pk=slo.pk).update(removed_at=NOW)

    assert statuses.load_states() == {}
    assert evaluator._load_slis([]) == {}


def test_what_is_left_to_a_tick_for_an_slo_that_is_gone_goes_with_it(
    sli: Sli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_updates, "MAX_ROWS", 10)
    late = SentSample(sli.pk, "a", "", NOW, 5, 5, NOW - 10 * DAY)
    record([late], now=NOW, is_noted=True)
    Slo.objects.filter(pk=sli.slo_id).update(removed_at=NOW)

    retention.purge_removed(NOW + 36 * DAY, most=1000)

    assert not Slo.objects.exists()


def test_alerts_of_slos_that_were_over_more_than_a_year_ago_are_forgotten(sli: Sli) -> None:
    fields = {"severity": "critical", "label": "page", "summary": "It burns.", "kind": "burn"}
    for days in (401, 399):
        Alert.objects.create(
            slo=sli.slo,
            rule="1h",
            subject=str(days),
            opened_at=NOW - 402 * DAY,
            firing_at=NOW - days * DAY,
            resolved_at=NOW - days * DAY,
            **fields,
        )

    retention_rules.purge_rows(NOW, at_once=10, most=100)

    assert [alert.subject for alert in Alert.objects.all()] == ["399"]
