"""Tests of overrides: duration, acknowledgements and end."""

from datetime import timedelta

import pytest

from breakers.models import Override, Registry
from breakers.services import overrides
from breakers.tests.fleet import list_outbox_messages, reachable
from breakers.tests.registered import (
    OPERATOR,
    REASON,
    VIEWER,
    dependency,
    discovered,
    instance,
)
from controlplane.core.audit.models import AuditEntry
from controlplane.core.canonical import timestamp
from controlplane.core.clock import db_now
from controlplane.core.errors import Forbidden, InvalidInput, NotFound
from controlplane.core.http.tests.callers import at_once

pytestmark = pytest.mark.django_db


def force(now, mode="forced_open", expires_in="1h", reason=REASON, actor=OPERATOR):
    return overrides.set_override(
        caller="core", callee="oracle", mode=mode, reason=reason, expires_in=expires_in,
        actor=actor, now=now,
    )  # fmt: skip


def acknowledgement_of(override, now):
    version = override.dependency.caller, override.version
    (acknowledgement,) = overrides.list_acknowledgements([version], now)
    return acknowledgement


def let_go(now, actor=OPERATOR, reason=""):
    return overrides.remove_override(
        caller="core", callee="oracle", reason=reason, actor=actor, now=now
    )


def actions():
    return list(
        AuditEntry.objects.filter(action__startswith="override.")
        .order_by("id")
        .values_list("action", flat=True)
    )


def test_override_is_numbered_with_its_dependency(now):
    row = dependency(now)

    forced = force(now)

    row.refresh_from_db()
    assert forced.version == row.version == Registry.objects.get().version == 2
    assert forced.expires_at == now + timedelta(hours=1)
    assert (forced.set_by_type, forced.set_by_name) == ("user", "olga")
    assert actions() == ["override.set"]


def test_reported_dependency_may_be_forced_unregistered(now):
    row = discovered(now)

    forced = force(now)

    row.refresh_from_db()
    assert row.version == forced.version == 1
    assert not row.document


def test_second_override_replaces_the_first(now):
    dependency(now)
    first = force(now)

    second = force(db_now(), mode="disabled")

    first.refresh_from_db()
    assert (first.ended_why, first.ended_by) == ("replaced", "user:olga")
    assert second.version == first.version + 1
    assert actions() == ["override.set", "override.replaced"]
    assert Override.objects.filter(ended_at__isnull=True).count() == 1


def test_removal_is_a_new_version(now):
    row = dependency(now)
    force(now)

    ended = let_go(db_now(), reason="oracle answers again")

    row.refresh_from_db()
    assert (ended.ended_why, row.version) == ("removed", 3)
    assert actions() == ["override.set", "override.removed"]


def test_removal_of_nothing_is_not_found(now):
    dependency(now)

    with pytest.raises(NotFound):
        let_go(now)


def test_unknown_dependency_can_not_be_forced(now):
    with pytest.raises(NotFound):
        force(now)


def test_it_ends_at_its_time_and_not_before(now):
    row = dependency(now)
    forced = force(now, expires_in="90s")

    early = overrides.expire_due_overrides(now + timedelta(seconds=89))
    late = overrides.expire_due_overrides(now + timedelta(seconds=90))
    again = overrides.expire_due_overrides(now + timedelta(seconds=91))

    assert (early, late, again) == (0, 1, 0)
    forced.refresh_from_db()
    row.refresh_from_db()
    assert (forced.ended_why, forced.ended_by) == ("expired", "system:overrides")
    assert row.version == 3
    assert actions() == ["override.set", "override.expired"]


def test_one_that_was_removed_does_not_expire(now):
    dependency(now)
    force(now, expires_in="90s")
    let_go(now)

    assert overrides.expire_due_overrides(now + timedelta(hours=1)) == 0


@pytest.mark.parametrize("mode", Override.Mode.values)
def test_every_mode_of_the_contract_may_be_forced(now, mode):
    dependency(now)

    assert force(now, mode=mode).mode == mode


def test_reset_needs_no_time(now):
    dependency(now)

    forced = force(now, mode="reset", expires_in=None)

    assert forced.expires_at - forced.set_at == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"mode": "open"}, "mode"),
        ({"reason": ""}, "reason"),
        ({"reason": "too short"}, "reason"),
        ({"reason": "test test test test"}, "reason"),
        ({"expires_in": None}, "expires_in"),
        ({"expires_in": "permanent"}, "expires_in"),
        ({"expires_in": "31d"}, "expires_in"),
        ({"expires_in": "0s"}, "expires_in"),
    ],
)
def test_what_is_wrong_is_named(now, arguments, field):
    dependency(now)

    with pytest.raises(InvalidInput) as caught:
        force(now, **arguments)

    assert list(caught.value.errors) == [field]
    assert not Override.objects.exists()


def test_wide_characters_count_twice(now):
    dependency(now)

    assert force(now, reason="결제 이중청구").mode == "forced_open"


def test_viewer_may_neither_force_nor_let_go(now):
    dependency(now)
    force(now)

    with pytest.raises(Forbidden):
        force(now, actor=VIEWER)
    with pytest.raises(Forbidden):
        let_go(now, actor=VIEWER)


def test_instances_that_apply_its_version_acknowledge_it(now):
    dependency(now)
    forced = force(now)
    instance(now, "core/behind", config_version=forced.version - 1)
    instance(now, "core/exact", config_version=forced.version)
    instance(now, "core/mute", config_version=None)
    instance(now, "core/stale", config_version=forced.version - 1, ago=31)
    instance(now, "core/stopped", config_version=forced.version - 1, stopped=True)
    instance(now, "core/polls", config_version=forced.version, polls_again=True)
    instance(now, "oracle/other", config_version=0)

    acknowledgement = acknowledgement_of(forced, now)

    assert (acknowledgement.applied, acknowledgement.instances) == (1, 3)
    assert acknowledgement.stragglers == ("core/behind", "core/mute")
    assert not acknowledgement.by_all


def test_later_version_acknowledges_as_well(now):
    dependency(now)
    forced = force(now)
    dependency(db_now(), timeout_ms=1)
    instance(now, config_version=forced.version + 1)

    assert acknowledgement_of(forced, now).by_all


def test_version_that_was_never_given_acknowledges_nothing(now):
    dependency(now)
    forced = force(now)
    instance(now, "core/restored", config_version=forced.version + 1000)

    acknowledgement = acknowledgement_of(forced, now)

    assert (acknowledgement.applied, acknowledgement.stragglers) == (0, ("core/restored",))


def test_nobody_there_is_acknowledged_by_nobody(now):
    dependency(now)

    acknowledgement = acknowledgement_of(force(now), now)

    assert (acknowledgement.applied, acknowledgement.instances, acknowledgement.stragglers) == (
        0,
        0,
        (),
    )
    assert not acknowledgement.by_all


def test_many_are_looked_at_in_their_order(now):
    dependency(now)
    first = force(now)
    instance(now, "core/a", config_version=first.version)
    instance(now, "oracle/a", config_version=0)

    acknowledgements = overrides.list_acknowledgements(
        [("oracle", first.version), ("core", first.version), ("gone", 1)], now
    )

    assert [(one.applied, one.instances) for one in acknowledgements] == [(0, 1), (1, 1), (0, 0)]


@pytest.mark.parametrize(
    ("mode", "severity"),
    [("forced_open", "warning"), ("forced_closed", "warning"), ("metrics_only", "info")],
)
def test_setting_it_is_told_with_who_why_and_until_when(now, settings, mode, severity):
    reachable(settings)
    dependency(now)

    forced = force(now, mode=mode)

    (message,) = list_outbox_messages("override.set")
    assert (message.severity, message.subject) == (severity, "dependency:core->oracle")
    facts = message.payload
    assert (facts["dependency"], facts["mode"], facts["by"], facts["reason"]) == (
        "core->oracle",
        mode,
        "user:olga",
        REASON,
    )
    assert facts["expires_at"] == timestamp(forced.expires_at)


def test_each_end_is_told_once_with_why(now, settings):
    reachable(settings)
    dependency(now)
    force(now, expires_in="90s")
    overrides.expire_due_overrides(now + timedelta(seconds=90))
    force(now)
    let_go(now, reason="oracle answers again")

    expired, removed = list_outbox_messages("override.ended")

    assert (expired.payload["why"], expired.payload["ended_by"]) == ("expired", "system:overrides")
    assert (removed.payload["why"], removed.payload["justification"]) == (
        "removed",
        "oracle answers again",
    )


@pytest.mark.django_db(transaction=True)
def test_one_of_many_that_expire_it_at_once_does_so():
    now = db_now()
    dependency(now)
    force(now, expires_in="1s")
    late = now + timedelta(seconds=2)

    results = at_once(*[lambda: overrides.expire_due_overrides(late)] * 4)

    assert sorted(results) == [0, 0, 0, 1]
    assert actions() == ["override.set", "override.expired"]
    assert Registry.objects.get().version == 3
