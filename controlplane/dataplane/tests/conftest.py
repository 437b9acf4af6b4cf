"""A plane that follows the test database and Redis, over connections that tests can disturb."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, urlsplit, urlunsplit

import pytest
from django.conf import settings
from django.db import connection

from controlplane.dataplane.config import Config
from controlplane.dataplane.plane import Plane
from controlplane.dataplane.state import State
from controlplane.dataplane.tests.lines import Background, Line, background, wait_until
from controlplane.dataplane.tests.served import EPOCH
from switches.models import Publication

POLL_SECONDS = 0.1
"""The default, 0.8 s, leaves room for a round trip within a second: tests need not wait for it."""


@dataclass
class Following:
    """A running plane on a background loop, and its two proxied connections."""

    loop: Background
    database: Line
    redis: Line
    config: Config
    plane: Plane

    @property
    def state(self) -> State:
        return self.plane.state

    def start(self) -> None:
        self.loop.run(self.plane.start(self.config))

    def stop(self) -> None:
        self.loop.run(self.plane.stop())


@pytest.fixture
def idle(transactional_db: None) -> Iterator[Following]:
    """A plane that has not been started."""
    database = connection.settings_dict
    with background() as loop:
        database_line = Line(loop, str(database["HOST"]), int(database["PORT"] or 5432))
        redis_url = urlsplit(settings.REDIS_URL)
        redis_line = Line(loop, redis_url.hostname or "127.0.0.1", redis_url.port or 6379)
        login = f"{quote(str(database['USER']))}:{quote(str(database['PASSWORD']))}"
        config = Config(
            database_url=(
                f"postgresql://{login}@127.0.0.1:{database_line.port}/{database['NAME']}"
            ),
            assume_role=None,
            redis_url=through(redis_line, settings.REDIS_URL),
            poll_seconds=POLL_SECONDS,
            deadline_seconds=0.8,
            usage_seconds=0.2,
        )
        following = Following(loop, database_line, redis_line, config, Plane())
        yield following
        following.stop()
        database_line.cut()
        wait_until(lambda: not _has_sessions(database_line.far_ports), 5)


@pytest.fixture
def published(transactional_db: None) -> None:
    """Publish version 99 of the epoch that :mod:`served` serves."""
    Publication.objects.update(epoch=EPOCH, version=99)


@pytest.fixture
def following(idle: Following) -> Following:
    idle.start()
    return idle


def _has_sessions(client_ports: list[int]) -> bool:
    """Return True while PostgreSQL still processes statements of such a connection."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE client_port = ANY(%s))",
            [client_ports],
        )
        return bool(cursor.fetchone()[0])


def through(line: Line, url: str) -> str:
    parts = urlsplit(url)
    login, at, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{login}{at}127.0.0.1:{line.port}"))
