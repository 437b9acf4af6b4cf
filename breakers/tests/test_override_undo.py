"""Undo of one's own override within 30 seconds."""

from datetime import timedelta

import pytest

from breakers.models import Override
from breakers.services import override_undo, overrides
from breakers.tests.fleet import list_outbox_messages, reachable
from breakers.tests.registered import OPERATOR, REASON, VIEWER, dependency
from controlplane.core.actors import Actor
from controlplane.core.audit.models import AuditEntry
from controlplane.core.errors import Conflict, Forbidden, NotFound
from controlplane.core.roles import ALL_SCOPES, Role

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
OTHER = Actor(type="user", name="omar", role=Role.OPERATOR, scopes=ALL_SCOPES)


def force(now, mode="forced_open", expires_in="1h", callee="oracle", actor=OPERATOR):
    return overrides.set_override(
        caller="core", callee=callee, mode=mode, reason=REASON, expires_in=expires_in,
        actor=actor, now=now,
    )  # fmt: skip


def undo(now, actor=OPERATOR, **more):
    return override_undo.undo_override(caller="core", callee="oracle", actor=actor, now=now, **more)


def live():
    return Override.objects.filter(ended_at__isnull=True).first()


def test_override_is_undone_and_published(now, settings):
    reachable(settings)
    row = dependency(now)
    forced = force(now)

    assert undo(now + 29 * SECOND) is None

    row.refresh_from_db()
    forced.refresh_from_db()
    entry = AuditEntry.objects.order_by("-id").first()
    assert (live(), forced.ended_why, row.version) == (None, "undone", forced.version + 1)
    assert (entry.action, entry.target) == ("override.undone", "dependency:core->oracle")
    assert [one.payload["why"] for one in list_outbox_messages("override.ended")] == ["undone"]


def test_replaced_override_applies_again_as_it_was(now):
    row = dependency(now)
    before = force(now, mode="metrics_only", actor=OTHER)
    force(now + 60 * SECOND)

    restored = undo(now + 70 * SECOND)

    row.refresh_from_db()
    found = live()
    assert (found, restored) == (before, before)
    assert (found.mode, found.set_by, found.set_at) == ("metrics_only", "user:omar", now)
    assert (found.expires_at, found.version) == (before.expires_at, row.version)


def test_replaced_override_that_has_expired_is_not_restored(now):
    dependency(now)
    force(now, mode="metrics_only", expires_in="20s")
    force(now + 10 * SECOND)

    assert undo(now + 25 * SECOND) is None
    assert live() is None


@pytest.mark.parametrize(
    ("mode", "after", "actor", "problem"),
    [
        ("forced_open", 31, OPERATOR, "More than 30 seconds"),
        ("forced_open", 5, OTHER, "Only the person who set"),
        ("reset", 5, OPERATOR, "A reset can't be undone"),
    ],
)
def test_undo_is_refused(now, mode, after, actor, problem):
    dependency(now)
    forced = force(now, mode=mode)

    with pytest.raises(Conflict, match=problem):
        undo(now + after * SECOND, actor)

    assert live() == forced


def test_changed_dependency_refuses_undo(now):
    dependency(now)
    force(now)
    dependency(now + SECOND, owner="another team")

    with pytest.raises(Conflict, match="has changed since"):
        undo(now + 2 * SECOND)


def test_key_undoes_only_the_newest_change(now):
    dependency(now)
    dependency(now, "core->synapse")
    force(now)
    force(now + 5 * SECOND, callee="synapse")

    with pytest.raises(Conflict, match="core->synapse just now"):
        undo(now + 6 * SECOND, if_newest=True)

    undo(now + 7 * SECOND)


def test_undo_needs_permission_and_an_override(now):
    dependency(now)

    with pytest.raises(NotFound):
        undo(now)
    force(now)
    with pytest.raises(Forbidden):
        undo(now, VIEWER)


@pytest.mark.parametrize(
    ("mode", "label", "after", "offered"),
    [
        ("forced_open", "user:olga", 5, True),
        ("forced_open", "user:olga", 30, False),
        ("forced_open", "user:omar", 5, False),
        ("reset", "user:olga", 5, False),
    ],
)
def test_undo_is_offered_to_its_author_for_half_a_minute(now, mode, label, after, offered):
    dependency(now)
    forced = force(now, mode=mode)

    until = override_undo.find_undo_until(forced, label, now + after * SECOND)

    assert until == (now + 30 * SECOND if offered else None)
