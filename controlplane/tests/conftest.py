"""A web process over the tests' own database, by lines that tests can disturb."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import pytest
from django.conf import settings
from django.db import connection

from controlplane.core.http.tests.callers import person, token_text
from controlplane.dataplane.tests.lines import Line, background
from controlplane.dataplane.tests.processes import ROOT, web
from controlplane.tests.console_sockets import Console
from controlplane.tests.database import locked
from controlplane.tests.installation import free_port


@pytest.fixture(scope="session")
def console(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: Any
) -> Iterator[Console]:
    folder, port = tmp_path_factory.mktemp("live"), free_port()
    with background() as loop, django_db_blocker.unblock():
        found, url = connection.settings_dict, urlsplit(settings.REDIS_URL)
        database = Line(loop, str(found["HOST"]), int(found["PORT"] or 5432))
        redis = Line(loop, url.hostname or "127.0.0.1", url.port or 6379)
        login, at, _ = url.netloc.rpartition("@")
        address = _database_url(database)
        environment = {
            **os.environ,
            "DATABASE_URL": address,
            "DATABASE_OWNER_URL": f"{address}?application_name=owner",
            "REDIS_URL": urlunsplit(url._replace(netloc=f"{login}{at}127.0.0.1:{redis.port}")),
            "SECRET_KEY": settings.SECRET_KEY,
            "SWITCHGEAR_DATA_DIR": str(folder),
            "SWITCHGEAR_DOCS_DIR": str(folder / "docs"),
            "SWITCHGEAR_STATIC_DIR": str(_static(tmp_path_factory.getbasetemp())),
        }
        with web(environment, port, folder / "said.txt") as server:
            yield Console(server, database, redis)


def _static(folder_of_worker: Path) -> Path:
    """Return the folder of collected static files, which the first worker makes for all."""
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    shared = folder_of_worker.parent if is_worker else folder_of_worker
    folder = shared / "static"
    with locked(shared / "static.lock"):
        if not folder.exists():
            draft = shared / "static.draft"
            subprocess.run(
                [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"],
                cwd=ROOT,
                env={**os.environ, "SWITCHGEAR_STATIC_DIR": str(draft)},
                check=True,
                timeout=60,
            )
            draft.rename(folder)
    return folder


@pytest.fixture
def reader(transactional_db: None) -> str:
    """The token of a program that may read switches."""
    return token_text(person("admin", "token-owner"), ["switches:read"])


def _database_url(line: Line) -> str:
    found = connection.settings_dict
    login = f"{quote(str(found['USER']))}:{quote(str(found['PASSWORD']))}"
    return f"postgresql://{login}@127.0.0.1:{line.port}/{found['NAME']}"
