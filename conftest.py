"""Fixtures of every test: a real PostgreSQL, owned by the tests and left as migrations made it.

Tests create, migrate and empty their database, so they connect as its owner.
"""

from collections.abc import Callable, Iterator
from uuid import uuid4

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Model
from django.test import TransactionTestCase, override_settings
from django.test.client import ClientHandler
from django.test.signals import setting_changed
from psycopg.conninfo import conninfo_to_dict
from pytest_django import DjangoDbBlocker

from controlplane import logs
from controlplane.accounts.authentication import throttle
from controlplane.core import metrics
from controlplane.core.attention import services as attention
from controlplane.core.first_steps import services as first_steps
from controlplane.core.instances import checked_keys
from controlplane.tests.database import InitialState, arranged_once, make_template

pytest_plugins = ["controlplane.tests.browser", "controlplane.tests.selection"]
# How long it takes to make an example up, or to try it, says something of the machine alone.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# `--hypothesis-profile` selects another: CI takes "usual".
for name, examples in (("fast", 20), ("default", 25), ("usual", 100), ("thorough", 1000)):
    hypothesis.settings.register_profile(
        name, hypothesis.settings.get_profile("any machine"), max_examples=examples
    )
hypothesis.settings.load_profile("default")
PLAIN_STATIC_FILES = {
    **settings.STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}


_restored: list[Callable[[], None]] = []
"""Restore again what the last transactional test changed, before the next test."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("filterwarnings", "ignore:No directory at:UserWarning")
    if config.getoption("fast"):
        hypothesis.settings.load_profile("fast")
    # Compiling them takes ten milliseconds, and almost no test of a page changes a setting.
    setting_changed.connect(lambda **_: attention.clear_compiled(), weak=False)


@pytest.fixture(scope="session", autouse=True)
def _settings_for_tests() -> Iterator[None]:
    """`collectstatic` has not run here, so there are no hashed names to look up.

    Passwords are hashed fast: their strength is Django's business, and tested there. Test processes
    share Redis, so each has a secret of its own: emergency orders of others are refused.
    """
    fast = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    secret = f"{settings.SECRET_KEY}-{uuid4().hex}"
    with override_settings(STORAGES=PLAIN_STATIC_FILES, PASSWORD_HASHERS=fast, SECRET_KEY=secret):
        yield


@pytest.fixture(scope="session", autouse=True)
def _logging_configured_once() -> Iterator[None]:
    """Keep the logging as Django configured it.

    A data plane that starts in a test would let later tests log to that test's captured output.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "configure_logging", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _middleware_loaded_once(_settings_for_tests: None) -> Iterator[None]:
    """Let test clients share one chain of middleware, as requests to a process do.

    A test that overrides a setting has a chain of its own: some middleware reads settings once.
    """
    load, loaded = ClientHandler.load_middleware, ClientHandler()
    common = vars(settings)["_wrapped"]

    def share(handler: ClientHandler, is_async: bool = False) -> None:
        if is_async or vars(settings)["_wrapped"] is not common:
            load(handler, is_async)
            return
        if not vars(loaded).get("_middleware_chain"):
            load(loaded)
        vars(handler).update(
            {name: value for name, value in vars(loaded).items() if "_middleware" in name}
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientHandler, "load_middleware", share)
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    owner = conninfo_to_dict(settings.ENV.database.owner_url)
    connection.settings_dict["USER"] = str(owner.get("user", ""))
    connection.settings_dict["PASSWORD"] = str(owner.get("password", ""))
    options = connection.settings_dict["OPTIONS"]
    options["options"] = options["options"].partition("-c role=")[0]


@pytest.fixture(scope="session")
def django_db_setup(
    _template_database: None, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Restore changed tables after transactional tests, instead of Django's flush."""
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        initial = InitialState()

        def restore(_case: TransactionTestCase) -> None:
            initial.restore()
            _restored.append(restore_late_writes)

        def restore_late_writes() -> None:
            with django_db_blocker.unblock():
                initial.restore_late_writes()

        patch.setattr(TransactionTestCase, "_fixture_teardown", restore)
        # A new connection plans each of its first queries with cold caches.
        patch.setattr(TransactionTestCase, "_should_reload_connections", lambda _case: False)
        yield
        metrics.scrape_connection.close()  # It would keep the database from being dropped.


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Restore once more before the next test, should a thread of the last one have written late.

    Not in a fixture: those of a class or module, and the transaction of the test, come before it.
    """
    while _restored:
        _restored.pop()()


@pytest.fixture(scope="session")
def _template_database(
    django_db_modify_db_settings: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with django_db_blocker.unblock():
        template = make_template(tmp_path_factory.getbasetemp().parent / "template.lock")
    connection.settings_dict["TEST"]["TEMPLATE"] = template


@pytest.fixture(autouse=True)
def _nothing_counted_before() -> None:
    """Reset caches and counters in memory, which a test must not inherit."""
    attention.clear_count()
    checked_keys.ranking_cache.clear()
    first_steps.progress_cache.clear()
    throttle.attempts.clear()


@pytest.fixture
def believed_empty(db: None) -> Callable[[type[Model]], None]:
    """Delete the rows of a model, and let PostgreSQL plan as if the table had always been empty.

    Its plan then runs a subquery for each row.
    """

    def believe(model: type[Model]) -> None:
        model._default_manager.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {model._meta.db_table}")

    return believe


@pytest.fixture(scope="class")
def class_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """See `arranged_once`."""
    with arranged_once(django_db_blocker):
        yield


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """See `arranged_once`."""
    with arranged_once(django_db_blocker):
        yield
