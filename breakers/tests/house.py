"""Helpers that register dependencies and store reports like the data plane does."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from breakers import names
from breakers.models import BreakerState, Dependency, Minute, Override
from breakers.services import overrides, registry
from controlplane.core.actors import system_actor
from controlplane.core.instances.models import Instance

SHELL = system_actor("shell:root")
REASON = "Vendor confirms recovery, one bad pod flaps, INC-4411"


def dependency(name: str, now: datetime, **fields: Any) -> Dependency:
    """Register `core->oracle` with a policy."""
    parts = names.split_name(name)
    assert parts is not None
    caller, callee = parts
    return registry.put_dependency(
        caller=caller, callee=callee, fields=fields, actor=SHELL, now=now
    )


def discovered(name: str, now: datetime) -> Dependency:
    """Create a dependency that is known only from a report."""
    parts = names.split_name(name)
    assert parts is not None
    caller, callee = parts
    return Dependency.objects.create(
        caller=caller, callee=callee, registered_at=now, changed_at=now
    )


def reports(
    dependency: Dependency,
    now: datetime,
    state: str = "closed",
    *,
    instance: str = "a1",
    config_version: int | None = None,
    boot: UUID | None = None,
    **more: Any,
) -> Instance:
    """Store a report of an instance of the caller about its breaker."""
    known = Instance.objects.filter(pk=f"{dependency.caller}/{instance}").first()
    said, _ = Instance.objects.update_or_create(
        id=f"{dependency.caller}/{instance}",
        defaults={
            "service": dependency.caller,
            "boot": boot or (known.boot if known else uuid4()),
            "reported_at": now,
            "heard_at": now,
            "config_version": config_version,
        },
    )
    values = {"failure_rate": 0.0, "calls": 20, "since": now, "changed_at": now, **more}
    BreakerState.objects.update_or_create(
        dependency=dependency,
        instance=said.pk,
        defaults={"boot": said.boot, "state": state, **values},
    )
    return said


def forced(
    dependency: Dependency, now: datetime, mode: str = "forced_open", *, expires_in: str = "1h"
) -> Override:
    """Override the breaker of a dependency."""
    return overrides.set_override(
        caller=dependency.caller,
        callee=dependency.callee,
        mode=mode,
        reason=REASON,
        expires_in=expires_in,
        actor=SHELL,
        now=now,
    )


def minute(dependency: Dependency, now: datetime, ago: int, **counters: Any) -> Minute:
    """Create the counters of some minutes ago."""
    at = now.replace(second=0, microsecond=0) - timedelta(minutes=ago)
    return Minute.objects.create(dependency=dependency, minute=at, **counters)
