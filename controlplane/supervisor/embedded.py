"""The services under the application: those the environment names, and ours for the rest."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from controlplane.supervisor import layout, postgres, redis
from controlplane.supervisor.child import Child
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.tree import Tree

VARIABLES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")
_START_SECONDS = 60  # crash recovery of a busy cluster takes its time
_STOP_SECONDS = 3


@dataclass
class Services:
    """Where PostgreSQL and Redis are, and which of them are our children."""

    addresses: dict[str, str] = field(default_factory=dict)
    children: list[Child] = field(default_factory=list)

    def stop(self, tree: Tree) -> None:
        tree.stop(self.children, _STOP_SECONDS)


def start(
    tree: Tree,
    services: Services,
    place: Layout,
    home: Path,
    given: Mapping[str, str],
    *,
    durable: bool,
) -> None:
    """Start what `given` (the values of `VARIABLES`) doesn't name, the cluster under `home`.

    `services` is filled as they come up, so that whoever made it can stop a half-made start.
    Raises `CannotRun`.
    """
    waiting: list[tuple[Child, Callable[[Child], bool]]] = []
    addresses = services.addresses
    if given.get("DATABASE_URL"):
        named = ("DATABASE_URL", "DATABASE_OWNER_URL")
        addresses.update({name: given[name] for name in named if given.get(name)})
    else:
        if home != place.data:
            tree.terminal.say(f"PostgreSQL's own user can't enter {place.data}: it lies in {home}")
        server = postgres.prepare(place, home, durable=durable)
        waiting.append((tree.supervise(server.spec()), server.is_ready))
        services.children.append(waiting[-1][0])
        addresses.update(DATABASE_URL=server.url, DATABASE_OWNER_URL=server.owner_url)
    if given.get("REDIS_URL"):
        addresses["REDIS_URL"] = given["REDIS_URL"]
    else:
        broker = redis.prepare(place, durable=durable)
        waiting.append((tree.supervise(broker.spec()), broker.is_ready))
        services.children.append(waiting[-1][0])
        addresses["REDIS_URL"] = broker.url
    for child, is_ready in waiting:
        if not tree.wait_until(partial(is_ready, child), _START_SECONDS, ask=0.02):
            raise CannotRun(
                f"{child.spec.name} did not get ready within {_START_SECONDS} s. Its last lines:"
                f"{child.last_words()}"
            )


def publish(place: Layout, services: Services) -> Path:
    """Tell `manage.py` in other shells where the embedded services are."""
    ours = {child.spec.name for child in services.children}
    content: dict[str, str | int | None] = {
        "database_url": services.addresses["DATABASE_URL"] if "postgres" in ours else None,
        "database_owner_url": (
            services.addresses["DATABASE_OWNER_URL"] if "postgres" in ours else None
        ),
        "redis_url": services.addresses["REDIS_URL"] if "redis" in ours else None,
        "supervisor_pid": os.getpid(),
    }
    path = place.run / "services.json"
    layout.write_private(path, json.dumps(content, indent=2) + "\n")
    return path
