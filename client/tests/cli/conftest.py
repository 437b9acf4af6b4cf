"""A real console over the tests' database, and one that says what it is told."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from django.conf import settings
from django.db import connection

from controlplane import asgi_server
from controlplane.core.http.tests.callers import person, token_text
from controlplane.dataplane.tests.processes import Server
from controlplane.tests.installation import free_port, wait_until
from tests.cli.shell import Scripted, Shell, scripted

OPERATOR = [
    "switches:read", "switches:write", "ramps:write", "breakers:read", "breakers:write",
    "dlq:read", "dlq:write", "slo:read", "slo:write", "report:write",
]  # fmt: skip


@contextlib.contextmanager
def running_console(folder: Path, django_db_blocker: Any, secret_key: str = "") -> Iterator[Server]:
    database = connection.settings_dict
    login = f"{quote(str(database['USER']))}:{quote(str(database['PASSWORD']))}"
    host = quote(str(database["HOST"]), safe="")
    address = f"postgresql://{login}@{host}:{database['PORT'] or 5432}/{database['NAME']}"
    environment = {
        **os.environ,
        "DATABASE_URL": address,
        "DATABASE_OWNER_URL": f"{address}?application_name=owner",
        "SECRET_KEY": secret_key or settings.SECRET_KEY,
        "ENVIRONMENT_NAME": "Seoul 시험",
        "SWITCHGEAR_DATA_DIR": str(folder),
    }
    port = free_port()
    arguments = asgi_server.server_arguments(
        "controlplane.asgi:application", host="127.0.0.1", port=port, workers=1
    )
    server = Server(arguments, environment, folder / "said.txt", port)
    with django_db_blocker.unblock():
        try:
            server.start(ready_within=90)
            yield server
        finally:
            if server.process is not None:
                server.kill()


@pytest.fixture(scope="session")
def web_process(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Server]:
    with running_console(tmp_path_factory.mktemp("console"), django_db_blocker) as server:
        yield server


@pytest.fixture
def own_shell(transactional_db: None, django_db_blocker: Any, tmp_path: Path) -> Iterator[Shell]:
    """A shell with a console of its own, whose data plane may keep emergency orders.

    Its secret is its own, too, so that the orders don't reach the console of other tests by Redis.
    """
    with running_console(tmp_path, django_db_blocker, secrets.token_hex(32)) as server:
        scopes = ["switches:read", "switches:emergency"]
        shell = Shell(server.url, token_text(person("operator", "kim"), scopes))
        wait_until(lambda: _is_known(shell), 20)
        yield shell


@pytest.fixture
def shell_of(web_process: Server, transactional_db: None) -> Callable[..., Shell]:
    """A shell whose token has these scopes, by default an operator's."""

    def shell_of(*scopes: str, role: str = "operator") -> Shell:
        owner = person(role, f"{role}-with-{len(scopes)}")
        shell = Shell(web_process.url, token_text(owner, list(scopes) or OPERATOR))
        wait_until(lambda: _is_known(shell), 20)
        return shell

    return shell_of


@pytest.fixture
def shell(shell_of: Callable[..., Shell]) -> Shell:
    return shell_of()


@pytest.fixture
def admin(shell_of: Callable[..., Shell]) -> Shell:
    """A shell of an admin, who may register dependencies."""
    return shell_of(role="admin")


@pytest.fixture
def api(admin: Shell) -> Iterator[httpx.Client]:
    """A client of the console's API, with the token of `admin`."""
    headers = {"Authorization": f"Bearer {admin.token}"}
    url = f"{admin.url}/api/v1"
    with httpx.Client(base_url=url, headers=headers, timeout=15, verify=False) as client:
        yield client


@pytest.fixture
def console() -> Iterator[Scripted]:
    with scripted() as scripted_console:
        yield scripted_console


@pytest.fixture
def asking(console: Scripted) -> Shell:
    """A shell before the console that says what it is told."""
    return Shell(console.url)


def _is_known(shell: Shell) -> bool:
    """Return True once the console accepts the new token.

    While tables are emptied for the next test the database seems unavailable.
    """
    headers = {"Authorization": f"Bearer {shell.token}"}
    paths = ("/api/v1/degradation", "/api/v1/snapshot")
    with httpx.Client(base_url=shell.url, headers=headers, timeout=15, verify=False) as client:
        responses = [client.get(path) for path in paths]
    is_accepted = all(response.status_code in (200, 403) for response in responses)
    return is_accepted and responses[0].json()["level"] == 0
