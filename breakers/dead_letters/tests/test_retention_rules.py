"""Retention of depths, gaps and groups."""

from datetime import timedelta

import pytest

from breakers.dead_letters import retention_rules
from breakers.dead_letters.models import (
    DepthMinute,
    Gap,
    GroupDay,
    Letter,
    LetterGroup,
    LetterStream,
)
from breakers.tests.fleet import NOW

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def stream():
    return LetterStream.objects.create(server="default", name="axiom:dlq:events", found_at=NOW)


def group(stream, fingerprint, at):
    return LetterGroup.objects.create(
        stream=stream, fingerprint=fingerprint, first_at=at, last_at=at
    )


def test_old_minutes_and_gaps_are_deleted_and_the_rest_stays(stream):
    for days in (2, 4):
        at = NOW - days * DAY
        DepthMinute.objects.create(stream=stream, minute=at, sampled_at=at, depth=1, most=1)
    for days in (89, 91):
        Gap.objects.create(stream=stream, first="1", last="2", count=1, noticed_at=NOW - days * DAY)

    assert retention_rules.purge(NOW, at_once=1, most=10) == 2

    assert DepthMinute.objects.get().minute == NOW - 2 * DAY
    assert Gap.objects.get().noticed_at == NOW - 89 * DAY


def test_a_group_is_forgotten_once_nothing_of_it_lies_there_and_long_after(stream):
    old = NOW - 91 * DAY
    lying, empty, lately = (group(stream, name, old) for name in ("a", "b", "c"))
    Letter.objects.create(stream=stream, position="1", group=lying, failed_at=old)
    GroupDay.objects.create(group=empty, day=old.date(), arrived=3)
    GroupDay.objects.create(group=lately, day=NOW.date(), arrived=3)

    retention_rules.purge(NOW, at_once=10, most=10)

    assert set(LetterGroup.objects.all()) == {lying, lately}
