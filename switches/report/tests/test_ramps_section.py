"""The section about ramps, checked against the actions of the week."""

import re
from datetime import timedelta

import pytest

from controlplane.core.gates import external
from controlplane.core.jobs import engine
from controlplane.core.jobs.models import Job
from switches import services
from switches.models import Ramp
from switches.ramps import actions
from switches.ramps.tests.ramp_helpers import SMOKE
from switches.report.compose import compose
from switches.report.tests.house import DUE, GOOD, WEEK, cells, engage, kim, make_moment, section
from switches.report.tests.house import SHELL as HOUSE

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def ramp(switch, moment, *gates_of_first):
    engage(switch, moment, expires_in="7d")
    scope, _, key = switch.partition(":")
    plan = [{"percent": 25, "gates": list(gates_of_first)}, {"percent": 100}]
    actor = kim().as_actor()
    return services.release(
        scope=scope, key=key, justification=GOOD, plan=plan, actor=actor, now=moment
    ).ramp


def look(moment):
    engine.run_tick("ramps.turn", moment)


def get_row(content, switch):
    (row,) = [row for row in cells(content, "ramps") if row["switch"] == switch]
    return row


def test_quiet_week_says_so():
    assert section(compose(WEEK, DUE), "ramps")["summary"] == "No ramps."


def test_each_outcome_is_told_the_worst_first():
    ramp("feature:done", make_moment(1))
    look(make_moment(1, 0, 6))
    look(make_moment(1, 0, 12))
    ramp("feature:back", make_moment(2), SMOKE)
    look(make_moment(2, 0, 6))
    external.record_verdict(
        name="smoke", verdict="fail", evidence={}, actor=HOUSE, now=make_moment(2, 0, 26)
    )
    look(make_moment(2, 0, 26))
    stopped = ramp("feature:stopped", make_moment(3))
    actions.abort(ramp_id=stopped.pk, reason=GOOD, actor=kim().as_actor(), now=make_moment(3, 0, 1))
    ramp("feature:again", make_moment(4))
    engage("feature:again", make_moment(4, 0, 1))
    ramp("feature:held", make_moment(6), SMOKE)
    look(make_moment(6, 0, 6))
    broken = ramp("feature:broken", make_moment(6, 0, 7))
    Job.objects.filter(pk=broken.pk).update(
        state="failed",
        finished_at=make_moment(6, 0, 8),
        outcome="It could not be engaged again: no disk",
    )

    content = compose(WEEK, make_moment(6, 0, 16))

    ramps = section(content, "ramps")
    assert [
        (row["switch"].partition(":")[2], row["outcome"]) for row in cells(content, "ramps")
    ] == [
        ("broken", "failed"),
        ("back", "compensated"),
        ("stopped", "aborted"),
        ("again", "replaced"),
        ("held", "under way, step 1"),
        ("done", "completed"),
    ]
    assert ramps["tone"] == "bad"
    assert ramps["summary"].startswith("6 ramps began; 1 completed, 1 under way, 1 replaced, ")
    # It began just after the report was composed.
    assert re.search(r"The longest hold: (20 min|19 min 59 s)\.$", ramps["summary"])
    gate = "external gate smoke: system:shell reported fail"
    assert get_row(content, "feature:back")["gate"] == gate
    assert get_row(content, "feature:back")["held_seconds"] // 60 in (19, 20)
    assert get_row(content, "feature:held")["held_seconds"] // 60 in (9, 10)
    assert get_row(content, "feature:stopped")["why"].startswith("Aborted by user:kim: ")
    assert get_row(content, "feature:done")["held_seconds"] is None
    assert ramps["rows"][0]["path"] == f"/ramps/{broken.pk}/"


def test_what_ended_before_the_week_or_began_after_it_is_not_told():
    ramp("feature:before", make_moment(-2))
    look(make_moment(-2, 0, 6))
    look(make_moment(-2, 0, 12))
    ramp("feature:after", make_moment(7, 1))

    assert section(compose(WEEK, DUE), "ramps")["total"] == 0


def test_what_ended_after_the_week_was_under_way_at_its_end():
    ramp("feature:late", make_moment(6, 23, 58))
    look(make_moment(7, 0, 6))
    look(make_moment(7, 0, 12))
    assert Ramp.objects.get().job.state == "completed"

    row = get_row(compose(WEEK, DUE), "feature:late")

    assert row["outcome"].startswith("under way")
    assert row["ended_at"] is None


def test_completed_ramp_is_one_release():
    ramp("feature:done", make_moment(1))
    look(make_moment(1, 0, 6))
    look(make_moment(1, 0, 12))

    content = compose(WEEK, DUE)

    assert section(content, "flow")["summary"].startswith("1 episode began and 1 ended")
    (released,) = [
        c for c in section(content, "flow")["charts"] if c["title"] == "Released per day"
    ]
    assert sum(value for _, value in released["bars"]) == 1
    who = {row["actor"]: row for row in cells(content, "who")}
    assert (who["user:kim"]["engaged"], who["user:kim"]["ramped"]) == (1, 1)
    assert (who["system:ramps"]["ramped"], who["system:ramps"]["released"]) == (1, 1)
    assert who["user:kim"]["released"] == 0


def test_what_ramps_at_the_end_of_the_week_stands_there_with_its_share():
    ramp("feature:chat", make_moment(6))

    (row,) = cells(compose(WEEK, make_moment(6, 0, 1)), "active")

    assert row["now"] == "ramping, 25 % allowed"
