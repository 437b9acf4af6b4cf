"""Suggestions of the engage form: likely switches and prepared reasons."""

import pytest

from controlplane.core import reasons
from controlplane.core.clock import db_now
from switches import engage_suggestions, services
from switches.tests.browsers import browser_as, engaged, page, released
from switches.tests.instances import report_checks

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("reason", reasons.TEMPLATES)
def test_prepared_reason_is_good_enough_for_the_rule(reason):
    assert reasons.find_reason_problems(reason.format(at="02:10 UTC")) == []


def test_busiest_come_first_then_released_ones_stopped_lately():
    now = db_now()
    report_checks("core/a1", "feature:mail", at=now, per_second=3)
    report_checks("core/a2", "feature:mail", at=now, per_second=3)
    report_checks("core/b1", "feature:nl2sql", at=now, per_second=27)
    engaged("feature:mail")
    released("feature:mail")
    engaged("segment:finance")
    released("segment:finance")
    engaged("segment:still")
    engaged("global:all")
    released("global:all")

    found = [(one.switch.pk, one.why) for one in engage_suggestions.list_likely_switches(now)]

    assert found == [
        ("feature:nl2sql", "27/s by core, 0 s ago"),
        ("feature:mail", "6.0/s by core, 0 s ago; stopped before"),
        ("segment:finance", "stopped before"),
    ]


def test_what_was_undone_is_not_likely():
    kim = engaged("segment:nl2sql")
    services.undo(scope="segment", key="nl2sql", actor=kim.as_actor(), now=db_now())

    assert engage_suggestions.list_likely_switches(db_now()) == []


def test_earlier_reason_is_offered_again_once():
    engaged("segment:finance", reason="Again: ledger drifts, INC-9")

    assert (
        engage_suggestions.prepare_reasons("segment:finance", db_now())[0]
        == "Again: ledger drifts, INC-9"
    )
    assert len(engage_suggestions.prepare_reasons("segment:other", db_now())) == len(
        reasons.TEMPLATES
    )


def test_global_and_engaged_switches_are_never_one_tap_away():
    engaged("segment:finance")
    operator = browser_as("operator")

    assert "suggested-reasons__list" in page(
        operator.get("/switches/engage/?scope=feature&key=mail")
    )
    assert "suggested-reasons__list" not in page(
        operator.get("/switches/engage/?scope=global&key=all")
    )
    assert "suggested-reasons__list" not in page(
        operator.get("/switches/engage/?scope=segment&key=finance")
    )
