"""PostgreSQL and Redis of a run: embedded servers, unless the environment names external ones."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from controlplane.supervisor import cluster, layout, postgres, redis
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.failure import CannotRun
from controlplane.supervisor.layout import Layout
from controlplane.supervisor.tree import Tree

VARIABLES = ("DATABASE_URL", "DATABASE_OWNER_URL", "REDIS_URL")
_START_SECONDS = 60  # Long enough for crash recovery of a busy cluster.
_REDIS_SECONDS = 10  # Long enough to load a large file.
_STOP_SECONDS = 3


@dataclass
class Services:
    """The addresses of PostgreSQL and Redis, and the child processes of embedded ones."""

    addresses: dict[str, str] = field(default_factory=dict)
    children: list[Child] = field(default_factory=list)

    def stop(self, tree: Tree) -> None:
        tree.stop(self.children, _STOP_SECONDS)


def start_services(
    tree: Tree,
    services: Services,
    place: Layout,
    home: Path,
    given: Mapping[str, str],
    *,
    durable: bool,
    addressed: Callable[[], None] = lambda: None,
) -> None:
    """Start PostgreSQL and Redis, unless `given` has their addresses, and wait for them.

    Addresses and child processes are added to `services`. `home` is the parent folder of
    PostgreSQL's cluster. `addressed` is called once all addresses are known, before the start.
    Raises `CannotRun`.
    """
    specs: list[tuple[ChildSpec, Callable[[Child], bool]]] = []
    addresses = services.addresses
    if given.get("DATABASE_URL"):
        names = ("DATABASE_URL", "DATABASE_OWNER_URL")
        addresses.update({name: given[name] for name in names if given.get(name)})
    else:
        if home != place.data:
            tree.terminal.say(
                f"PostgreSQL's user has no access to {place.data}, so its data is in {home}"
            )
        server = postgres.prepare_server(place, home, durable=durable)
        specs.append((server.spec(), server.is_ready))
        addresses["DATABASE_URL"] = server.url(cluster.APPLICATION)
        addresses["DATABASE_OWNER_URL"] = server.url(cluster.OWNER)
    if given.get("REDIS_URL"):
        addresses["REDIS_URL"] = given["REDIS_URL"]
    else:
        is_first_start = not any(place.redis.iterdir())
        broker = redis.prepare_server(place, durable=durable)
        if broker.program is None:
            if not durable:
                raise CannotRun(redis.MISSING)
            tree.terminal.say(f"{redis.MISSING}. Until then, services receive changes by polling.")
        elif durable and is_first_start and redis.is_old(broker.program):
            tree.terminal.say(redis.OLD)
        specs.append((broker.spec(), broker.is_ready))
        addresses["REDIS_URL"] = broker.url
    addressed()
    waiting = []
    for spec, is_ready in specs:
        waiting.append((tree.supervise(spec), is_ready))
        services.children.append(waiting[-1][0])
    for child, is_ready in waiting:
        _wait_for(tree, child, partial(is_ready, child), durable=durable)


def _wait_for(tree: Tree, child: Child, is_ready: Callable[[], bool], *, durable: bool) -> None:
    """Wait until a service is ready; raise `CannotRun` after a timeout.

    A `durable` run continues without Redis, and keeps waiting for PostgreSQL while it can serve a
    stored snapshot.
    """
    can_continue = child.spec.optional and durable
    seconds = _REDIS_SECONDS if can_continue else _START_SECONDS
    while not tree.wait_until(is_ready, seconds, ask=0.02):
        message = f"{child.spec.name} was not ready within {seconds} s."
        if not can_continue and tree.may_give_up():
            raise CannotRun(f"{message} Its last lines:{child.format_tail()}")
        tree.terminal.say(f"{message} Continuing, and retrying it.")
        if can_continue:
            return


def publish_addresses(tree: Tree, place: Layout, services: Services) -> None:
    """Write the embedded services' addresses to a file for `manage.py` in other shells."""
    embedded = {child.spec.name for child in services.children}
    content: dict[str, str | int | None] = {"supervisor_pid": os.getpid()}
    for name in VARIABLES:
        is_embedded = ("redis" if name == "REDIS_URL" else "postgres") in embedded
        content[name.lower()] = services.addresses[name] if is_embedded else None
    try:
        layout.write_private(place.run / "services.json", json.dumps(content, indent=2) + "\n")
    except OSError as error:
        tree.terminal.say(f"`manage.py` in other shells can't find the services: {error}")
