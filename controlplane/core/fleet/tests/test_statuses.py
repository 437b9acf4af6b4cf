"""States of data planes and relays, by the age, the version and the time of their reports."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from controlplane.core.fleet.explanations import explain
from controlplane.core.fleet.statuses import (
    CURRENT,
    EMPTY,
    LAGGING,
    SILENT,
    STARTING,
    ProcessReport,
    PublishedHead,
    assess_fleet,
)

NOW = datetime(2026, 11, 21, 2, 11, tzinfo=UTC)
SECOND = timedelta(seconds=1)
EPOCH, OTHER = UUID(int=7), UUID(int=8)
HEAD = PublishedHead(EPOCH, 120, NOW - 60 * SECOND)
PLANE = ProcessReport(
    name="dp-1",
    upstream="",
    is_relay=False,
    release="0.1.0",
    epoch=EPOCH,
    version=120,
    age_seconds=0.4,
    held=30,
    instances=12,
    started_at=NOW - 3600 * SECOND,
    heard_at=NOW - SECOND,
)
RELAY = replace(PLANE, name="eu-1", upstream="dp-1", is_relay=True)
NEW = NOW - 30 * SECOND


def states(*reports, head=HEAD):
    return {member.name: member.state for member in assess_fleet(reports, head, NOW)}


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, CURRENT),
        ({"age_seconds": 10.0}, CURRENT),
        ({"age_seconds": 10.1}, LAGGING),
        ({"version": 119}, LAGGING),
        ({"epoch": OTHER}, LAGGING),
        ({"epoch": None, "version": None, "age_seconds": None}, EMPTY),
        ({"heard_at": NOW - 30 * SECOND}, CURRENT),
        ({"heard_at": NOW - 31 * SECOND}, SILENT),
        ({"heard_at": NOW - 31 * SECOND, "age_seconds": 11.0}, SILENT),
        ({"age_seconds": 11.0, "started_at": NEW}, STARTING),
        ({"age_seconds": 11.0, "started_at": NEW - SECOND}, LAGGING),
        ({"epoch": None, "version": None, "age_seconds": None, "started_at": NEW}, STARTING),
        ({"started_at": NEW}, CURRENT),
    ],
)
def test_state_follows_from_the_last_report(changes, state):
    assert states(replace(PLANE, **changes)) == {"dp-1": state}


@pytest.mark.parametrize(("ago", "state"), [(10, CURRENT), (12, LAGGING)])
def test_a_version_may_be_missing_for_ten_seconds_after_it_was_published(ago, state):
    head = replace(HEAD, published_at=NOW - ago * SECOND)

    assert states(replace(PLANE, version=119), head=head) == {"dp-1": state}


def test_processes_of_one_name_are_one_member_with_the_worst_of_their_figures():
    other = replace(PLANE, version=118, age_seconds=3.5, release="0.2.0", instances=1, held=2)

    (member,) = assess_fleet([PLANE, other], HEAD, NOW)

    assert (member.state, member.version, member.age_seconds) == (LAGGING, 118, 3.5)
    assert (member.processes, member.held, member.instances) == (2, 32, 13)
    assert member.releases == ("0.1.0", "0.2.0")


def test_a_version_of_another_epoch_is_the_lowest():
    (member,) = assess_fleet([PLANE, replace(PLANE, epoch=OTHER, version=900)], HEAD, NOW)

    assert (member.epoch, member.version) == (OTHER, 900)


def test_a_replaced_process_doesnt_count():
    replaced = replace(PLANE, heard_at=NOW - 40 * SECOND, age_seconds=90.0, held=500)

    (member,) = assess_fleet([replaced, replace(PLANE, started_at=NEW)], HEAD, NOW)

    assert (member.state, member.processes, member.held) == (CURRENT, 1, 30)


def test_a_silent_member_has_the_figures_of_its_last_report():
    first = replace(PLANE, heard_at=NOW - 90 * SECOND, held=1)
    last = replace(PLANE, heard_at=NOW - 40 * SECOND, version=99)

    (member,) = assess_fleet([first, last], HEAD, NOW)

    assert (member.state, member.version, member.held, member.processes) == (SILENT, 99, 30, 1)
    assert member.measure_lag(NOW) == 40.4 * SECOND


def test_urgent_members_come_first_and_data_planes_before_relays():
    late = replace(RELAY, name="z", age_seconds=60.0)
    silent = replace(RELAY, name="y", heard_at=NOW - 60 * SECOND)

    found = assess_fleet([replace(RELAY, name="a"), PLANE, late, silent], HEAD, NOW)

    assert [member.name for member in found] == ["y", "z", "dp-1", "a"]


def test_a_silent_relay_of_a_silent_upstream_names_it():
    away = {"heard_at": NOW - 60 * SECOND}

    found = assess_fleet([replace(PLANE, **away), replace(RELAY, **away)], HEAD, NOW)

    assert {member.name: member.follows_silent for member in found} == {"dp-1": "", "eu-1": "dp-1"}
    assert "start there" in explain(found[1], HEAD, NOW).to_do


def test_a_relay_that_is_heard_blames_nobody():
    found = assess_fleet([replace(PLANE, heard_at=NOW - 60 * SECOND), RELAY], HEAD, NOW)

    assert [member.follows_silent for member in found] == ["", ""]


@pytest.mark.parametrize(
    ("report", "fact", "meaning", "to_do"),
    [
        (PLANE, "is up to date", "", ""),
        (replace(PLANE, age_seconds=75.0), "lags", "is 1 min 15 s old", "PostgreSQL"),
        (replace(RELAY, version=118), "lags", "version 118; the console published 120", "dp-1"),
        (replace(RELAY, epoch=OTHER), "lags", "another epoch", "dp-1"),
        (replace(RELAY, version=None), "has no snapshot", "keep the snapshot", "its public key"),
        (replace(PLANE, version=None), "has no snapshot", "keep the snapshot", "PostgreSQL"),
        (
            replace(RELAY, heard_at=NOW - 120 * SECOND),
            "is silent",
            "2 min ago. If it still runs",
            "reaches dp-1. Until then, use its page /emergency/ to stop traffic there",
        ),
        (replace(PLANE, version=None, started_at=NEW), "is starting", "30 s", ""),
    ],
)
def test_explanation_says_what_is_known_and_what_to_do(report, fact, meaning, to_do):
    (member,) = assess_fleet([report], HEAD, NOW)

    explanation = explain(member, HEAD, NOW)

    assert explanation.fact == fact
    assert meaning in explanation.meaning
    assert to_do in explanation.to_do
