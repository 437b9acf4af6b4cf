"""Dependencies and instances that report their breakers at a chosen moment."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

from django.db import connection, transaction

from breakers import names
from breakers.models import BreakerState, Dependency, Minute, Service, Transition
from controlplane.core.models import Instance
from controlplane.core.outbox.models import OutboxMessage

NOW = datetime(2026, 11, 21, 2, 11, 30, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
ORACLE = "core->oracle"
_BOOTS = UUID("6f0a3c52-0d1b-4b7e-9c55-2f3a1d9e7b10")


def boot_of(instance: str) -> UUID:
    return uuid5(_BOOTS, instance)


def dependency(name: str = ORACLE, **fields: Any) -> Dependency:
    caller, callee = names.split_name(name)
    given = {"criticality": "critical", "version": 1, "registered_at": NOW, "changed_at": NOW}
    return Dependency.objects.create(caller=caller, callee=callee, **{**given, **fields})


def service(slug: str = "oracle", **fields: Any) -> Service:
    return Service.objects.create(**{"slug": slug, "name": slug, "changed_at": NOW, **fields})


def reports(
    instance: str = "core/a1",
    state: str = "closed",
    *,
    of: str = ORACLE,
    at: datetime = NOW,
    boot: UUID | None = None,
    stopped: bool = False,
    **fields: Any,
) -> BreakerState:
    """An instance says how its breaker stands; the dependency is there already."""
    boot = boot or boot_of(instance)
    heard = {"reported_at": at, "heard_at": at, "boot": boot}
    heard["stopped_at"] = at if stopped else None
    Instance.objects.update_or_create(
        pk=instance, defaults={"service": instance.partition("/")[0], **heard}
    )
    caller, callee = names.split_name(of)
    about = Dependency.objects.get(caller=caller, callee=callee)
    said = {"boot": boot, "state": state, "changed_at": at, "mode": "normal", **fields}
    row, _ = BreakerState.objects.update_or_create(
        dependency=about, instance=instance, defaults=said
    )
    return row


def minute(about: Dependency, at: datetime = NOW, **counts: Any) -> Minute:
    return Minute.objects.create(
        dependency=about, minute=at.replace(second=0, microsecond=0), **counts
    )


def transition(
    about: Dependency,
    n: int,
    path: str,
    at: datetime,
    instance: str = "core/a1",
    cause: str = "",
) -> Transition:
    """`path` is `closed>open`."""
    before, _, after = path.partition(">")
    return Transition.objects.create(
        dependency=about,
        boot=boot_of(instance),
        n=n,
        instance=instance,
        from_state=before,
        to_state=after,
        at=at,
        received_at=at,
        cause=cause,
    )


@contextmanager
def doing(turn: Callable[[], object]) -> Iterator[None]:
    """Let another transaction take the turn meanwhile, by `turn`."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            turn()
            held.set()
            done.wait(10)
        connection.close()

    other = threading.Thread(target=hold)
    other.start()
    held.wait(10)
    try:
        yield
    finally:
        done.set()
        other.join(10)


def reachable(settings: Any) -> None:
    """A destination that the routes lead to."""
    settings.SLACK = replace(settings.SLACK, webhook_url="http://127.0.0.1:9/x")


def list_outbox_messages(event: str) -> list[OutboxMessage]:
    return list(OutboxMessage.objects.filter(event=event).order_by("pk"))
