"""What every test stands on: a real PostgreSQL, owned by the tests and left as migrations made it.

Tests create, migrate and empty their database, so they connect as its owner.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import hypothesis
import pytest
from django.apps import apps
from django.conf import settings
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model
from django.db.models.signals import post_migrate
from django.test import override_settings
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DeadlockDetected
from pytest_django import DjangoDbBlocker

from controlplane.core.attention import services as attention
from controlplane.core.clock import db_now
from controlplane.core.entry import throttle
from controlplane.core.targets import defaults as targets
from slo.thresholds import builtin as thresholds
from switches.trips import defaults as trips

pytest_plugins = ["controlplane.tests.browser"]
# How long it takes to make an example up, or to try it, says something of the machine alone.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")
PLAIN_STATIC_FILES = {
    **settings.STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
FRESH = """
ALTER TABLE core_auditentry ENABLE TRIGGER core_audit_append_only;
INSERT INTO core_credentials (id, revision) VALUES (1, 1) ON CONFLICT DO NOTHING;
INSERT INTO switches_publication (id, epoch, version, published_at)
VALUES (1, gen_random_uuid(), 0, clock_timestamp()) ON CONFLICT DO NOTHING;
INSERT INTO core_degradation (id, revision, level, causes, since)
VALUES (1, 0, 0, '[]', clock_timestamp()) ON CONFLICT DO NOTHING;
INSERT INTO breakers_registry (id, version, changed_at)
VALUES (1, 0, clock_timestamp()) ON CONFLICT DO NOTHING;
"""
BUSY = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
  AND state <> 'idle'
"""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:No directory at:UserWarning")


@pytest.fixture(scope="session", autouse=True)
def _settings_for_tests() -> Iterator[None]:
    """`collectstatic` has not run here, so there are no hashed names to look up.

    Passwords are hashed fast: their strength is Django's business, and tested there.
    """
    fast = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with override_settings(STORAGES=PLAIN_STATIC_FILES, PASSWORD_HASHERS=fast):
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    owner = conninfo_to_dict(settings.ENV.database.owner_url)
    connection.settings_dict["USER"] = str(owner.get("user", ""))
    connection.settings_dict["PASSWORD"] = str(owner.get("password", ""))
    options = connection.settings_dict["OPTIONS"]
    options["options"] = options["options"].partition("-c role=")[0]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Whenever a transactional test has emptied the tables, begin again as migrations did.

    Emptying ends with the signal that migrating ends with.
    """
    post_migrate.connect(_begin_again, sender=apps.get_app_config("switches"))
    empty = _emptied_in_the_end(connection.ops.execute_sql_flush)
    setattr(connection.ops, "execute_sql_flush", empty)  # noqa: B010 - the checker forbids it else


@pytest.fixture(autouse=True)
def _nothing_counted_before() -> None:
    """Figures and counts in memory, which a test must not inherit."""
    attention.forget()
    throttle.attempts.clear()


@pytest.fixture(autouse=True)
def _trail_may_be_emptied(request: pytest.FixtureRequest) -> Iterator[None]:
    """PostgreSQL refuses to TRUNCATE the audit trail, which is how such a test is cleaned up."""
    if not _is_transactional(request):
        yield
        return
    request.getfixturevalue("transactional_db")  # Set up before, so it empties after this.
    yield
    with connection.cursor() as cursor:
        _wait_for_others(cursor)
        cursor.execute("ALTER TABLE core_auditentry DISABLE TRIGGER core_audit_append_only")


@pytest.fixture
def believed_empty(db: None) -> Callable[[type[Model]], None]:
    """Delete the rows of a model, and let PostgreSQL plan from then on as if there never were any:
    it looks into a subquery anew for each row of such a table."""

    def believe(model: type[Model]) -> None:
        model._default_manager.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {model._meta.db_table}")

    return believe


def _wait_for_others(cursor: CursorWrapper) -> None:
    """A question that was given up goes on in its thread, and emptying tables under it may end in a
    deadlock."""
    for _ in range(100):
        cursor.execute(BUSY)
        if cursor.fetchone() == (0,):
            return
        time.sleep(0.05)


def _emptied_in_the_end(empty: Callable[[Iterable[str]], None]) -> Callable[[Iterable[str]], None]:
    """Whoever begins to ask just then may be in the way of all the locks that emptying takes."""

    def emptied(given: Iterable[str]) -> None:
        statements = list(given)
        for _ in range(4):
            try:
                return empty(statements)
            except OperationalError as error:
                if not isinstance(error.__cause__, DeadlockDetected):
                    raise
        return empty(statements)

    return emptied


def _is_transactional(request: pytest.FixtureRequest) -> bool:
    marker = request.node.get_closest_marker("django_db")
    if marker is not None and marker.kwargs.get("transaction"):
        return True
    return bool({"transactional_db", "live_server"} & set(request.fixturenames))


def _begin_again(**_kwargs: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(FRESH)
    targets.install(apps, db_now())
    trips.install(apps, db_now())
    thresholds.install(apps, db_now())
