"""Dependencies that only reports know: removed ones come back, made-up ones are forgotten."""

from datetime import timedelta
from uuid import uuid4

import pytest

from breakers.models import BreakerState, Dependency, Registry
from breakers.services import discovery, overrides, registry
from breakers.services.discovery import MAX_AT_ONCE
from controlplane.core.audit import services as audit
from controlplane.core.audit.models import AuditEntry

from .registered import ADMIN, OPERATOR, REASON, breaker, dependency, discovered, instance

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def removed(now, ago=2 * MINUTE):
    """Removed so long before `now`, with an owner and a criticality of its own."""
    row = dependency(now - ago, owner="Core", criticality="critical")
    registry.remove_dependency(caller=row.caller, callee=row.callee, actor=ADMIN, now=now - ago)
    return row


def test_removed_dependency_that_is_still_reported_is_a_discovered_one_again(now):
    one = removed(now)
    breaker(one, instance(now))

    assert discovery.rediscover_dependencies(now) == 1

    found = registry.find_dependency("core", "oracle")
    assert not found.document
    assert (found.removed_at, found.owner, found.criticality) == (None, "", "medium")
    assert found.version == Registry.objects.get().version == 3
    row = AuditEntry.objects.order_by("-id").first()
    assert (row.action, row.target, row.actor_type, row.actor_name) == (
        "dependency.rediscovered",
        "dependency:core->oracle",
        "system",
        "reports",
    )
    assert audit.verify().intact


def test_it_can_be_forced_again(now):
    breaker(removed(now), instance(now))
    discovery.rediscover_dependencies(now)

    forced = overrides.set_override(
        caller="core", callee="oracle", mode="forced_open", reason=REASON, expires_in="1h",
        actor=OPERATOR, now=now,
    )  # fmt: skip

    assert forced.version == 4


def test_second_look_finds_nothing(now):
    breaker(removed(now), instance(now))
    discovery.rediscover_dependencies(now)

    assert discovery.rediscover_dependencies(now) == 0
    assert Registry.objects.get().version == 3


def test_report_within_a_minute_of_the_removal_may_not_have_heard_of_it(now):
    breaker(removed(now, ago=timedelta(seconds=59)), instance(now))

    assert discovery.rediscover_dependencies(now) == 0


def test_instance_that_is_silent_brings_nothing_back(now):
    breaker(removed(now, ago=5 * MINUTE), instance(now, ago=60))

    assert discovery.rediscover_dependencies(now) == 0


def test_word_of_a_former_boot_brings_nothing_back(now):
    breaker(removed(now), instance(now), boot=uuid4())

    assert discovery.rediscover_dependencies(now) == 0


def test_made_up_name_is_forgotten(now):
    discovered(now - DAY)

    assert discovery.purge_discovered(now) == 1
    assert not Dependency.objects.exists()


def test_name_of_a_silent_instance_is_forgotten_with_what_it_said(now):
    breaker(discovered(now - 2 * DAY), instance(now, ago=DAY.total_seconds() + 1))

    assert discovery.purge_discovered(now) == 1
    assert not BreakerState.objects.exists()


@pytest.mark.parametrize("ago", [1, 3600])
def test_name_that_was_reported_within_a_day_stays(now, ago):
    breaker(discovered(now - 2 * DAY), instance(now, ago=ago))

    assert discovery.purge_discovered(now) == 0


def test_name_that_is_new_stays(now):
    discovered(now - timedelta(minutes=59))

    assert discovery.purge_discovered(now) == 0


def test_registered_removed_and_forced_ones_stay(now):
    long_ago = now - 3 * DAY
    dependency(long_ago, "core->vision")
    removed(now, ago=3 * DAY)
    discovered(long_ago, "core->weaver")
    overrides.set_override(
        caller="core", callee="weaver", mode="forced_open", reason=REASON, expires_in="1h",
        actor=OPERATOR, now=long_ago,
    )  # fmt: skip

    assert discovery.purge_discovered(now) == 0
    assert Dependency.objects.count() == 3


def test_more_than_one_batch_is_forgotten_in_one_go(now):
    Dependency.objects.bulk_create(
        Dependency(caller=f"c{n}", callee="x", registered_at=now - DAY, changed_at=now)
        for n in range(MAX_AT_ONCE + 1)
    )

    assert discovery.purge_discovered(now) == MAX_AT_ONCE + 1
