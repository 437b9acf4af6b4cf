"""The sections of switches, checked against the actions of the week."""

import random
from datetime import timedelta

import pytest

from controlplane.core.approvals.models import Approval
from controlplane.core.http.tests.callers import person
from switches import attention as waiting
from switches import services
from switches.emergency.tests import orders
from switches.models import EmergencyOrder, Episode, Switch, Trip, TripPolicy
from switches.report.compose import compose
from switches.report.report_sections import weekly_activity
from switches.report.tests.house import (
    DUE,
    MONDAY,
    NEXT_MONDAY,
    WEEK,
    began,
    cells,
    engage,
    kim,
    make_moment,
    release,
    section,
)
from switches.rules.tests.factories import break_glass_naming, create_rule

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def compose_week(now=DUE):
    return compose(WEEK, now)


def extend(switch, moment):
    scope, _, key = switch.partition(":")
    services.extend(
        scope=scope,
        key=key,
        expires_in="7d",
        reason="INC-4411 vendor fix 2.1 slips",
        actor=kim().as_actor(),
        now=moment,
    )


def test_an_empty_house_is_calm_and_says_nothing_untrue():
    content = compose_week()

    sections = [s for s in content["sections"] if s["slug"] != "attention"]
    tones = {s["slug"]: s["tone"] for s in sections}
    assert tones.pop("deliveries") == "warn"  # Nobody would be notified.
    assert set(tones.values()) == {"good"}
    assert all(s["total"] == 0 and not s["rows"] and not s["unread"] for s in sections)


def test_week_before_the_records_says_so():
    began(NEXT_MONDAY)

    found = section(compose_week(), "records")

    assert (found["tone"], found["headline"]) == ("unknown", "Not recorded")
    assert found["summary"] == (
        "The audit trail begins at 2026-11-23 00:00 UTC. Nothing is known of this week."
    )


def test_week_in_which_the_records_begin_says_so():
    began(make_moment(2, 14))

    found = section(compose_week(), "records")

    assert (found["tone"], found["headline"]) == ("unknown", "Recorded only in part")
    assert found["summary"] == (
        "The audit trail begins at 2026-11-18 14:00 UTC. Nothing is known of the time before."
    )


def test_week_that_is_recorded_from_its_first_moment_has_no_section_on_records():
    began(MONDAY)

    assert "records" not in [one["slug"] for one in compose_week()["sections"]]


def test_vague_reasons_and_forgotten_switches_come_first():
    assert [s["slug"] for s in compose_week()["sections"]][:2] == ["vague_reasons", "forgotten"]


def test_the_weakest_reason_is_named_first_with_what_it_lacks():
    engage("segment:a", make_moment(1), reason="card payments charged twice")
    engage("segment:b", make_moment(1), reason="payments failing")
    engage("segment:c", make_moment(1))
    Episode.objects.filter(switch="segment:b").update(reason="urgent issue, stop now")

    content = compose_week()

    assert section(content, "vague_reasons")["total"] == 2
    assert [row["switch"] for row in cells(content, "vague_reasons")] == ["segment:b", "segment:a"]
    assert cells(content, "vague_reasons")[0]["what_is_missing"].startswith("says neither")
    assert section(content, "vague_reasons")["rows"][0]["path"] == "/switches/segment/b/"


def test_each_way_of_being_forgotten_is_found_and_named():
    engage("segment:old", make_moment(-8), expires_in="30d")
    engage("segment:late", make_moment(5), expires_in="1h")
    engage("segment:known", make_moment(5), expires_in="1h")
    engage("segment:often", make_moment(3))
    engage("segment:kept", make_moment(0))
    engage("segment:fine", make_moment(5), expires_in="7d")
    services.expire_due(make_moment(6))
    services.acknowledge(scope="segment", key="known", actor=kim().as_actor(), now=make_moment(6))
    for day in (3, 4, 5):
        extend("segment:often", make_moment(day, 1))
    Episode.objects.filter(switch="segment:kept").update(
        permanent=True, expires_at=None, reconfirm_due_at=make_moment(6), overdue_at=None
    )

    found = {row["switch"]: row["why"] for row in cells(compose_week(), "forgotten")}

    assert found == {
        "segment:old": "left alone for 15 d 9 h",
        "segment:late": "overdue and not acknowledged",
        "segment:kept": "permanent and not re-confirmed in time",
    }


def test_extends_of_an_earlier_episode_don_t_count():
    engage("feature:often", make_moment(-3), expires_in="1h")
    for day in (-3, -2, -1):
        extend("feature:often", make_moment(day, 1))
    release("feature:often", make_moment(0))
    engage("feature:often", make_moment(1), expires_in="7d")

    assert cells(compose_week(), "forgotten") == []


def test_what_shows_two_signs_of_being_forgotten_stands_before_what_shows_one():
    engage("segment:older", make_moment(-20), expires_in="30d")
    engage("segment:worse", make_moment(-10), expires_in="1h")
    services.expire_due(make_moment(-9))

    assert [row["switch"] for row in cells(compose_week(), "forgotten")] == [
        "segment:worse",
        "segment:older",
    ]


def test_it_tells_of_the_end_of_the_week_and_what_came_since():
    engage("global:all", make_moment(6), expires_in="7d")
    engage("feature:gone", make_moment(1))
    engage("feature:since", make_moment(5), expires_in="7d")
    engage("segment:late", make_moment(2), expires_in="1h")
    release("feature:gone", make_moment(2))
    services.expire_due(make_moment(3))
    release("feature:since", NEXT_MONDAY + HOUR)
    engage("segment:next", NEXT_MONDAY + HOUR)

    content = compose_week()

    assert [(row["switch"], row["now"]) for row in cells(content, "active")] == [
        ("global:all", "engaged"),
        ("segment:late", "overdue"),
        ("feature:since", "released since"),
    ]
    assert section(content, "active")["summary"] == "3 switches: 1 global, 1 segment, 1 feature."
    assert [row["switch"] for row in cells(content, "overdue")] == ["segment:late"]


def test_while_the_week_runs_it_tells_of_this_moment():
    engage("segment:a", make_moment(1))

    content = compose_week(make_moment(2))

    assert section(content, "active")["title"] == "Engaged now"
    assert section(content, "active")["total"] == 1


def test_permanent_ones_are_listed_and_bad_only_if_not_confirmed():
    engage("segment:kept", make_moment(1))
    Episode.objects.update(
        permanent=True, expires_at=None, reconfirm_due_at=DUE + HOUR, reconfirmed_by="user:kim"
    )

    calm, late = compose_week(), compose_week(DUE + 2 * HOUR)

    assert section(calm, "permanent")["tone"] == "warn"
    assert section(late, "permanent")["tone"] == "bad"
    assert cells(calm, "permanent")[0]["confirmed_by"] == "user:kim"


def test_the_week_is_told_with_its_median_its_longest_and_who_did_it():
    for key, hours in (("a", 1), ("b", 3), ("c", 30)):
        engage(f"feature:{key}", make_moment(1))
        release(f"feature:{key}", make_moment(1, hours))
    engage("feature:d", make_moment(2), expires_in="7d")
    engage("feature:before", MONDAY - HOUR)
    release("feature:before", MONDAY - HOUR / 2)

    content = compose_week()

    assert section(content, "flow")["summary"] == (
        "4 episodes began and 3 ended; duration: median 3 h, longest 30 h."
    )
    assert [row["stood_seconds"] // 3600 for row in cells(content, "flow")] == [30, 3, 1]
    (who,) = cells(content, "who")
    assert who == {
        "actor": "user:kim",
        "engaged": 4,
        "ramped": 0,
        "released": 3,
        "extended": 0,
        "changes": 7,
    }


def test_trips_approvals_and_reviews_are_counted():
    policy = TripPolicy.objects.first()
    for n, outcome in enumerate(("tripped", "tripped", "person")):
        Trip.objects.create(
            switch="feature:x",
            source="slo",
            fingerprint=f"f{n}",
            reason="burn rate 14.4",
            policy=policy,
            outcome=outcome,
            why="",
            at=make_moment(n),
            last_at=make_moment(n),
            by="token:alerts",
            repeats=2,
        )
    for kind, state, requested_at in (
        ("release", "approved", 1),
        ("permanent", "expired", 2),
        ("purge", "pending", 3),
        ("break_glass_review", "pending", -20),
        ("break_glass_review", "approved", 2),
    ):
        Approval.objects.create(
            kind=kind,
            target=f"segment:{kind}{requested_at}",
            summary=f"{kind} wanted",
            reason="INC-4411",
            state=state,
            requested_by="user:kim",
            requested_at=make_moment(requested_at),
            decided_by="" if state == "pending" else "user:ayse",
            decided_at=None if state == "pending" else make_moment(requested_at, 1),
        )
    content = compose_week()

    assert section(content, "trips")["summary"] == (
        "3 automatic trips; 2 engaged a switch, 1 escalated to a person."
    )
    assert [(row["outcome"], row["trips"], row["repeated"]) for row in cells(content, "trips")] == [
        ("Tripped", 2, 4),
        ("Escalated", 1, 2),
    ]
    assert section(content, "approvals")["summary"] == "1 approved, 1 expired, 1 waiting."
    assert section(content, "break_glass")["summary"].startswith("1 review not signed")
    assert [row["review"] for row in cells(content, "break_glass")] == [
        "not signed",
        "approved by user:ayse",
    ]


def test_emergency_orders_are_listed_by_the_week_in_which_they_were_stored():
    orders.store("segment:a")
    orders.store_by(person("operator", "lee"), "segment:b", at=make_moment(-1))
    orders.reconcile()
    EmergencyOrder.objects.update(received_at=make_moment(1))
    earlier = orders.store("segment:c")
    EmergencyOrder.objects.filter(pk=earlier.pk).update(received_at=make_moment(-1))

    content = compose_week()

    assert section(content, "emergency_orders")["summary"] == (
        "2 emergency orders on data planes; 1 refused, withdrawn too late or not reconciled."
    )
    assert {(row["switch"], row["result"]) for row in cells(content, "emergency_orders")} == {
        ("segment:a", "engaged"),
        ("segment:b", "refused"),
    }


def test_emergency_orders_that_no_rule_refuses_override_no_rule():
    orders.store("segment:a")
    orders.reconcile()
    Approval.objects.update(requested_at=make_moment(1))

    content = compose_week()

    assert section(content, "break_glass")["total"] == 1
    assert section(content, "rules_overridden")["total"] == 0


def test_rules_are_overridden_to_engage_and_to_release():
    for name, switches in (("only one", "segment:*"), ("stays", "feature:on")):
        kind = "exclusive" if name == "only one" else "at_least_one"
        create_rule(kind, switches, name=name)
    engage("segment:a", make_moment(1))
    engage("feature:on", make_moment(1))
    engage("segment:b", make_moment(2), break_glass=break_glass_naming("only one"))
    engage("segment:c", make_moment(3), break_glass=break_glass_naming("only one"))
    services.release(
        scope="feature",
        key="on",
        justification="both paths are healthy",
        break_glass=break_glass_naming("stays"),
        actor=person("approver", "ayse").as_actor(),
        now=make_moment(4),
    )
    engage("segment:d", make_moment(-1), break_glass=break_glass_naming("only one"))

    content = compose_week()

    assert section(content, "rules_overridden")["summary"] == (
        "Safety rules were overridden 3 times: 2 to engage and 1 to release."
    )
    assert cells(content, "rules_overridden") == [
        {"rule": "only one", "times": 2, "last_by_switch": "segment:c"},
        {"rule": "stays", "times": 1, "last_by_switch": "feature:on"},
    ]


def test_what_was_extended_often_is_named_so_once_it_is_left_alone():
    engage("segment:often", make_moment(-20), expires_in="3d")
    for day in (-18, -17, -16):
        extend("segment:often", make_moment(day))

    assert (
        cells(compose_week(), "forgotten")[0]["why"] == "extended 3 times; left alone for 23 d 9 h"
    )


def test_page_of_what_waits_and_the_report_agree_on_what_is_left_alone():
    for number in range(12):
        engage(f"segment:s{number}", make_moment(-number), expires_in="30d")
    services.acknowledge(scope="segment", key="s9", actor=kim().as_actor(), now=make_moment(5))

    reported = {row["switch"] for row in cells(compose_week(), "forgotten")}

    listed = {item.path.split("/")[-2] for item in waiting.list_forgotten(DUE)}
    assert reported == {f"segment:{key}" for key in listed}
    assert "s9" not in listed


@pytest.mark.parametrize("day", range(7))
def test_days_to_come_have_no_hours_yet(day):
    engage("segment:a", make_moment(-1), expires_in="7d")

    charts = section(compose_week(make_moment(day, 12)), "flow")["charts"]

    hours = next(chart for chart in charts if chart["unit"] == "hours")["bars"]
    assert [value for _, value in hours] == [24.0] * day + [12.0] + [None] * (6 - day)


def test_the_hours_of_a_day_add_up_to_what_an_independent_count_says():
    chance = random.Random(47)
    spans = []
    for n in range(60):
        scope = chance.choice(["segment", "feature"])
        start = MONDAY + timedelta(minutes=chance.randrange(-3 * 1440, 10 * 1440))
        end = start + timedelta(minutes=chance.randrange(1, 5 * 1440))
        end = None if chance.random() < 0.2 else end
        spans.append((scope, start, end))
        switch = Switch.objects.create(
            id=f"{scope}:s{n}", scope=scope, key=f"s{n}", registered_at=start
        )
        Episode.objects.create(
            switch=switch,
            reason="INC-1",
            engaged_by_type="user",
            engaged_by_name="kim",
            engaged_by_identity="user:1",
            engaged_at=start,
            engaged_version=1,
            expires_at=start + timedelta(days=30),
            on_expiry="hold",
            salt="s",
            ended_at=end,
            ended_how="released" if end else "",
        )
    now = make_moment(9)

    charts = weekly_activity.flow_section(MONDAY, NEXT_MONDAY, now).charts

    for scope in ("segment", "feature"):
        (chart,) = [chart for chart in charts if chart.title.endswith(scope)]
        for day, (_, hours) in enumerate(chart.bars):
            minutes = sum(
                1
                for minute in range(1440)
                for of, start, end in spans
                if of == scope and start <= make_moment(day, 0, minute) < (end or now)
            )
            assert hours == pytest.approx(minutes / 60, abs=0.02)
    began = next(chart for chart in charts if chart.title == "Engaged per day")
    assert sum(count for _, count in began.bars) == sum(
        MONDAY <= start < NEXT_MONDAY for _, start, _ in spans
    )
