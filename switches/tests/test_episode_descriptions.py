"""Texts about an open episode: its next change, by state and expiry policy."""

from datetime import UTC, datetime, timedelta

import pytest

from switches.episodes.descriptions import END_WORDS, EXPIRY_EFFECTS, describe_next
from switches.models import Episode, OnExpiry

NOW = datetime(2026, 11, 24, 3, 10, tzinfo=UTC)
DAY = timedelta(days=1)


def next_change(*, is_reengaging=False, **fields):
    episode = Episode(**{"on_expiry": "hold", "expires_at": NOW + DAY, **fields})
    return describe_next(episode, NOW, is_reengaging=is_reengaging)


@pytest.mark.parametrize(
    ("on_expiry", "title", "detail"),
    [
        ("hold", "Hold", "stays engaged, overdue; people are notified"),
        ("ramp", "Ramp", "traffic returns in steps"),
        ("release", "Release", "all traffic returns at once"),
    ],
)
def test_engaged_switch_follows_its_expiry_policy(on_expiry, title, detail):
    change = next_change(on_expiry=on_expiry)

    assert (change.label, change.title, change.detail) == ("When it expires", title, detail)


def test_overdue_switch_stays_engaged_even_if_it_would_ramp():
    change = next_change(on_expiry="ramp", overdue_at=NOW - DAY)

    assert (change.title, change.detail) == (
        "Stays engaged",
        "until someone extends or releases it",
    )


def test_ramping_switch_is_released_after_the_last_step():
    assert next_change(allow_percent=5).title == "Released"


def test_failed_ramp_is_engaged_again_whatever_the_share():
    change = next_change(allow_percent=5, is_reengaging=True)

    assert (change.title, change.detail) == ("Engaged again", "retried until it succeeds")


def test_permanent_switch_is_re_confirmed_by_a_date():
    change = next_change(
        permanent=True,
        expires_at=None,
        reconfirm_due_at=NOW + DAY,
        reconfirmed_at=NOW - DAY,
        reconfirmed_by="user:kim",
    )

    assert (change.title, change.detail, change.at) == ("Due", "by", NOW + DAY)
    assert change.note == "last by user:kim"
    assert not change.is_late


@pytest.mark.parametrize(("due_at", "is_late"), [(NOW, True), (NOW + DAY, False), (None, False)])
def test_re_confirmation_is_late_from_its_date_on(due_at, is_late):
    change = next_change(permanent=True, expires_at=None, reconfirm_due_at=due_at)

    assert change.is_late is is_late


def test_each_policy_and_each_end_has_a_text():
    assert set(EXPIRY_EFFECTS) == set(OnExpiry.values)
    assert set(END_WORDS) == set(Episode.End.values)
