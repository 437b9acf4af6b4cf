"""Factories for tests of breakers: dependencies, instances that report, actors."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from breakers.models import BreakerState, Dependency
from breakers.services import registry
from controlplane.core.actors import Actor
from controlplane.core.models import Instance
from controlplane.core.roles import ALL_SCOPES, Role

ADMIN = Actor(type="user", name="ada", role=Role.ADMIN, scopes=ALL_SCOPES)
OPERATOR = Actor(type="user", name="olga", role=Role.OPERATOR, scopes=ALL_SCOPES)
VIEWER = Actor(type="user", name="vera", role=Role.VIEWER, scopes=frozenset({"breakers:read"}))
BREAKER = {"failure_threshold": 5, "window_seconds": 60, "open_seconds": 30, "half_open_calls": 1}
REASON = "oracle answers 502 since the 02:10 deploy"


def dependency(
    now: datetime, name: str = "core->oracle", *, actor: Actor = ADMIN, **fields: Any
) -> Dependency:
    """Create a registered dependency, with a breaker and timeout unless `fields` say otherwise."""
    caller, _, callee = name.partition("->")
    said = {"timeout_ms": 60_000, "criticality": "high", "breaker": BREAKER, **fields}
    return registry.put_dependency(caller=caller, callee=callee, fields=said, actor=actor, now=now)


def discovered(now: datetime, name: str = "core->oracle") -> Dependency:
    """Create a dependency that is known only by its reported breaker."""
    caller, _, callee = name.partition("->")
    return Dependency.objects.create(
        caller=caller, callee=callee, registered_at=now, changed_at=now
    )


def instance(
    now: datetime,
    name: str = "core/a1",
    *,
    config_version: int | None = None,
    ago: float = 1,
    stopped: bool = False,
    polls_again: bool = False,
) -> Instance:
    """Create an instance that reported `ago` seconds before `now`.

    `polls_again` is for one whose next process has polled, but not reported.
    """
    return Instance.objects.create(
        id=name,
        service=name.partition("/")[0],
        boot=uuid4(),
        reported_at=now - timedelta(seconds=ago),
        heard_at=now if polls_again else now - timedelta(seconds=ago),
        stopped_at=now - timedelta(seconds=ago) if stopped or polls_again else None,
        config_version=config_version,
    )


def breaker(
    of: Dependency, inside: Instance, state: str = "closed", boot: UUID | None = None
) -> BreakerState:
    """Create the reported state of an instance's breaker."""
    return BreakerState.objects.create(
        dependency=of,
        instance=inside.pk,
        boot=boot or inside.boot,
        state=state,
        changed_at=inside.reported_at,
    )
