"""Drills in the weekly report, in *Needs attention* and in metrics."""

from datetime import timedelta

from controlplane.core.page_registry import ATTENTION_SOURCES, REPORT_SECTIONS
from switches import metrics
from switches.drills import attention, report_sections
from switches.drills.tests.drill_helpers import CANARY, begin, mark, report_present, run_drill
from switches.models import Switch


def register(*ids, now):
    for switch_id in ids:
        scope, _, key = switch_id.partition(":")
        Switch.objects.create(id=switch_id, scope=scope, key=key, registered_at=now)


def report(now):
    return report_sections.not_rehearsed_section(now - timedelta(days=7), now, now)


def passed(now, switch="segment:finance"):
    report_present(CANARY, now=now)
    return run_drill(begin(switch, now=now), CANARY, now=now)


def failed(now, switch="segment:finance"):
    report_present("core/other", now=now)
    return run_drill(begin(switch, now=now), now=now)


def test_report_names_who_was_never_proven_first_and_who_long_ago(now):
    mark(CANARY, now=now)
    register("global:all", "feature:never", now=now)
    passed(now, "segment:late")
    later = now + timedelta(days=91)
    passed(later, "segment:lately")

    section = report(later)

    assert [row.cells["switch"] for row in section.rows] == ["feature:never", "segment:late"]
    assert (section.total, section.tone) == (2, "warn")
    assert "1 never passed one" in section.summary


def test_report_is_good_when_all_are_proven(now):
    mark(CANARY, now=now)
    passed(now)

    assert (report(now).total, report(now).tone, report(now).rows) == (0, "good", ())


def test_all_never_rehearsed_are_one_item(now):
    assert attention.list_never_rehearsed(now) == []

    register("global:all", "feature:a", "feature:b", now=now)

    (item,) = attention.list_never_rehearsed(now)
    assert (item.severity, item.title) == ("info", "2 switches never passed a drill")


def test_failed_drill_waits_until_a_later_one_passes(now):
    mark(CANARY, now=now)
    assert failed(now).passed is False

    (item,) = attention.list_failed_drills(now)
    assert (item.severity, item.title) == ("warning", "Drill of segment:finance failed")

    later = now + timedelta(hours=1)
    passed(later)
    assert attention.list_failed_drills(later) == []


def test_of_several_failures_the_newest_waits(now):
    mark(CANARY, now=now)
    failed(now)
    newest = failed(now + timedelta(hours=1))

    (item,) = attention.list_failed_drills(now)

    assert item.path == f"/drills/#drill-{newest.pk}"


def test_dry_one_settles_nothing(now):
    mark(CANARY, now=now)
    failed(now)
    later = now + timedelta(hours=1)
    report_present(CANARY, now=later)
    run_drill(begin(mode="dry", now=later), CANARY, now=later)

    assert len(attention.list_failed_drills(later)) == 1


def test_all_of_them_are_registered():
    assert report_sections.not_rehearsed_section in REPORT_SECTIONS.functions()
    assert {attention.list_failed_drills, attention.list_never_rehearsed} <= {
        source.function for source in ATTENTION_SOURCES.values()
    }


def test_metric_tells_when_each_was_proven(now):
    mark(CANARY, now=now)
    register("feature:never", now=now)
    passed(now)

    (family,) = metrics.collect_last_proven(now)

    (sample,) = family.samples
    assert sample.labels == {"scope": "segment", "key": "finance"}
    assert abs(sample.value - now.timestamp()) < 60
