"""Breakers in attention, the weekly report and the preview of a switch."""

from datetime import timedelta

import pytest

from breakers import attention
from breakers import report_sections as report
from breakers.map import preview_fields as dependents
from breakers.models import Dependency, Probe
from breakers.services import overrides
from controlplane.core.actors import system_actor
from controlplane.core.instances import rates
from controlplane.core.models import Instance
from controlplane.core.page_registry import ATTENTION_SOURCES, PREVIEW_FIELDS, REPORT_SECTIONS

from .fleet import HOUR, MINUTE, NOW, SECOND, dependency, reports, service, transition

pytestmark = pytest.mark.django_db
START = NOW - timedelta(days=5)
END = START + timedelta(days=7)


def force(mode="forced_closed", expires_in="6h", at=NOW, callee="oracle"):
    return overrides.set_override(
        caller="core",
        callee=callee,
        mode=mode,
        reason="probes of the provider are wrong, INC-77",
        expires_in=expires_in,
        actor=system_actor("test"),
        now=at,
    )


def hears(instance, version, at=NOW):
    Instance.objects.filter(pk=instance).update(config_version=version, reported_at=at)


def test_open_breakers_wait_by_how_critical_they_are():
    dependency("core->oracle", criticality="high")
    dependency("core->synapse", criticality="critical")
    dependency("core->vision", criticality="medium")
    for callee in ("oracle", "synapse", "vision"):
        reports("core/a1", "open", of=f"core->{callee}", since=NOW - MINUTE)
        reports("core/a2", of=f"core->{callee}")

    items = attention.list_open_breakers(NOW)

    assert [(one.severity, one.path) for one in items] == [
        ("critical", "/breakers/core/synapse/"),
        ("warning", "/breakers/core/oracle/"),
    ]
    assert items[0].detail == "Open in 1 of 2 instances. Criticality: critical."
    assert items[0].since == NOW - MINUTE


@pytest.mark.parametrize(
    ("modes", "expected"),
    [(["normal"], "the only reporting instance"), (["normal", "disabled"], "1 of 2 instances")],
)
def test_open_breaker_is_counted_among_forced_ones_too(modes, expected):
    dependency()
    for number, mode in enumerate(modes):
        reports(f"core/a{number}", "open", mode=mode)

    (item,) = attention.list_open_breakers(NOW)

    assert item.detail == f"Open in {expected}. Criticality: critical."


def test_an_override_that_everybody_applies_is_information_for_an_hour():
    dependency()
    reports("core/a1")
    version = force().version
    hears("core/a1", version, NOW + HOUR)

    (items,) = attention.list_overrides(NOW + HOUR)
    assert (items.severity, items.title) == ("info", "core → oracle is forced closed")
    assert items.detail == "Set by system:test: probes of the provider are wrong, INC-77"

    hears("core/a1", version, NOW + HOUR + SECOND)
    (items,) = attention.list_overrides(NOW + HOUR + SECOND)
    assert (items.kind, items.severity) == ("override", "warning")
    assert items.detail.startswith("Set 1 h ago")


def test_an_override_that_ends_within_ten_minutes_is_told():
    dependency()
    reports("core/a1")
    override = force(expires_in="30m")
    hears("core/a1", override.version, NOW + 20 * MINUTE)

    (before,) = attention.list_overrides(NOW + 20 * MINUTE - SECOND)
    (items,) = attention.list_overrides(NOW + 20 * MINUTE)

    assert "It ends soon." not in before.detail
    assert items.detail.startswith("It ends soon.")
    assert (items.severity, items.due_at) == ("info", override.expires_at)


@pytest.mark.parametrize(
    ("mode", "severities"), [("forced_open", ["warning"]), ("disabled", ["info"]), ("reset", [])]
)
def test_override_is_listed_from_its_beginning_by_what_it_does(mode, severities):
    dependency()
    force(mode)

    assert [one.severity for one in attention.list_overrides(NOW + SECOND)] == severities


def test_a_short_override_is_not_told_as_ending_from_its_beginning():
    dependency()
    force(expires_in="5m")

    (items,) = attention.list_overrides(NOW + SECOND)

    assert items.detail.startswith("Set by")


def test_an_override_that_nobody_is_there_to_go_by_says_so():
    dependency()
    force()

    (items,) = attention.list_overrides(NOW + MINUTE)

    assert items.severity == "warning"
    assert items.detail.startswith("No instance of core is reporting, so none has confirmed it.")


def test_open_breakers_of_services_wait_and_forced_ones_do_not():
    dependency("core->oracle", criticality="low")
    dependency("core->synapse")
    service("oracle", kind="service")
    reports("core/a1", "open")
    reports("core/a1", "open", of="core->synapse", mode="forced_open")

    (items,) = attention.list_open_breakers(NOW)

    assert (items.severity, items.path) == ("warning", "/breakers/core/oracle/")


def test_whoever_does_not_go_by_an_override_is_named_after_a_minute():
    dependency()
    reports("core/a1")
    reports("core/a2")
    version = force().version
    hears("core/a1", version, NOW + MINUTE)
    hears("core/a2", version - 1, NOW + MINUTE)

    (before,) = attention.list_overrides(NOW + MINUTE - SECOND)
    (items,) = attention.list_overrides(NOW + MINUTE)

    assert (before.severity, before.detail[:6]) == ("info", "Set by")

    assert items.severity == "warning"
    assert items.detail.startswith("Applied by 1 of 2 instances; not yet by core/a2.")


def test_a_store_that_is_away_waits_and_a_grave_one_is_critical():
    for slug, level in (("redis", 2), ("weaver", 1)):
        service(slug, name=slug.title(), level=level, probe_url="tcp://redis:6379")
        Probe.objects.create(service_id=slug, is_away=True, since=NOW, error="connection failed")

    items = attention.list_away_probes(NOW)

    assert [(one.title, one.severity) for one in items] == [
        ("Redis does not respond", "critical"),
        ("Weaver does not respond", "warning"),
    ]


def test_every_source_is_asked_by_the_page():
    arguments = {source.function for source in ATTENTION_SOURCES.values()}

    assert arguments >= {
        attention.list_open_breakers,
        attention.list_overrides,
        attention.list_outages,
        attention.list_away_probes,
    }
    assert {report.breakers_section, report.overrides_section} <= set(REPORT_SECTIONS.functions())
    assert dependents.find_dependents in PREVIEW_FIELDS.functions()


def test_the_report_counts_trips_and_how_long_the_longest_was_open():
    about = dependency()
    path = ["closed>open", "open>half_open", "half_open>open", "open>half_open", "half_open>closed"]
    for n, step in enumerate(path, 1):
        transition(about, n, step, START + n * MINUTE)
    transition(about, 9, "closed>open", START + HOUR)
    transition(about, 10, "open>closed", START + HOUR + SECOND)
    transition(about, 1, "closed>open", START - SECOND, instance="core/a2")
    forced = "override forced_open"
    transition(about, 2, "closed>open", START + HOUR, instance="core/a2", cause=forced)

    section = report.breakers_section(START, END, NOW)

    assert (
        section.summary
        == "Breakers of 1 dependency opened 3 times; the longest, of core → oracle, stayed open for"
        " 4 min. 1 of 1 was not reporting, 1 of them critical."
    )
    (row,) = section.rows
    assert row.cells["dependency"] == "core → oracle"
    assert row.cells["trips"] == 3
    assert row.cells["instances"] == 1
    assert row.cells["longest_open_seconds"] == 240
    assert (section.tone, section.total) == ("warn", 1)


def test_one_that_never_told_of_closing_was_open_until_its_last_word():
    about = dependency()
    transition(about, 1, "closed>open", NOW - HOUR)
    reports("core/a1", "open", at=NOW - 10 * MINUTE)
    transition(about, 1, "closed>open", NOW - HOUR, instance="core/gone")

    (row,) = report.breakers_section(START, END, NOW).rows

    assert row.cells["longest_open_seconds"] == 50 * 60


def test_the_longest_and_the_gravest_count_beyond_the_rows_that_are_shown():
    quiet = Dependency.objects.bulk_create(
        Dependency(
            caller="core",
            callee=f"callee-{place:02}",
            criticality="low",
            registered_at=NOW,
            changed_at=NOW,
        )
        for place in range(50)
    )
    for about in quiet:
        for n in (1, 2):
            transition(about, n, "closed>open", START + n * SECOND)
            transition(about, n + 2, "open>closed", START + (n + 2) * SECOND)
    rare = dependency("zebra->last")
    transition(rare, 1, "closed>open", START)
    transition(rare, 2, "open>closed", START + HOUR)

    section = report.breakers_section(START, END, NOW)

    assert (len(section.rows), section.total, section.tone) == (50, 51, "warn")
    assert (
        section.summary
        == "Breakers of 51 dependencies opened 101 times; the longest, of zebra → last, stayed open"
        " for 1 h. 51 of 51 were not reporting, 1 of them critical."
    )


def test_a_week_in_which_nobody_reports_a_critical_one_is_not_called_fine():
    dependency("core->synapse", criticality="critical")
    dependency("core->oracle")
    reports()

    section = report.breakers_section(START, END, NOW)

    assert section.tone == "unknown"
    assert section.summary == ("No breaker opened. 1 of 2 was not reporting, 1 of them critical.")


def test_a_quiet_week_says_so():
    assert report.breakers_section(START, END, NOW).summary == "No breaker opened."
    assert report.overrides_section(START, END, NOW).summary == "No overrides."


def test_the_report_lists_overrides_by_how_long_they_stood():
    dependency()
    dependency("core->vision")
    force(at=START - HOUR, expires_in="30d")
    force("disabled", at=START + HOUR, expires_in="2h", callee="vision")
    overrides.expire_due_overrides(START + 3 * HOUR)

    section = report.overrides_section(START, END, NOW)

    columns = ("dependency", "mode", "ended")
    shown = [tuple(row.cells[name] for name in columns) for row in section.rows]
    assert shown == [
        ("core → oracle", "Forced closed", "in force"),
        ("core → vision", "Disabled", "expired"),
    ]
    assert section.rows[1].cells["stood_seconds"] == 2 * 3600
    assert section.summary == (
        "2 overrides in force this week, 1 still in force; 1 for more than a day."
    )
    assert section.tone == "warn"


def test_the_preview_names_who_calls_the_services_that_check_a_switch():
    dependency("core->oracle")
    dependency("canvas->core", criticality="high")
    dependency("batch->core", criticality="critical")
    dependency("gone->core", removed_at=NOW)
    entry = rates.add_calls(None, 10, 0, NOW - MINUTE)
    Instance.objects.create(pk="core/a1", service="core", checks={"segment:finance": entry})
    Instance.objects.create(pk="token:x", service="x", checks={"segment:finance": entry})

    fields = dependents.find_dependents("segment:finance", NOW)

    assert fields == {
        "dependents": [
            {
                "service": "core",
                "callers_total": 2,
                "callers": [
                    {
                        "service": "batch",
                        "dependency": "batch->core",
                        "criticality": "critical",
                        "was_reported": False,
                    },
                    {
                        "service": "canvas",
                        "dependency": "canvas->core",
                        "criticality": "high",
                        "was_reported": False,
                    },
                ],
            }
        ]
    }
    assert dependents.find_dependents("segment:nobody", NOW) == {"dependents": []}


def test_items_name_what_a_team_may_own_and_the_authority_of_their_action():
    dependency("core->oracle", criticality="critical")
    reports("core/a1", "open", of="core->oracle", since=NOW - MINUTE)
    dependency("core->vision")
    force("forced_open", callee="vision")

    (opened,) = attention.list_open_breakers(NOW)
    (forced,) = attention.list_overrides(NOW)

    assert opened.resource == "dependency:core->oracle"
    assert forced.resource == "dependency:core->vision"
    assert [one.authority for one in forced.actions] == ["override"]
