"""Options of the test run: `--fast` leaves out what needs a service, `--budget` bounds slow tests.

Only what a test needs decides, not a mark of its own: its fixtures, its marks and its module.
"""

import gc
import re
import sys
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

# Fixtures that need PostgreSQL, Redis or a process, whatever else asks for them.
SERVICE_FIXTURES = {
    "db",
    "django_db_setup",
    "transactional_db",
    "live_server",
    "chromium",
    "stream",
}
SERVICE_MARKS = {"django_db", "faults", "e2e", "slow"}
# A test module or a test helper that names one of these starts a process or talks to a server,
# be it one of its own.
SERVICE_MODULES = {
    *("subprocess", "multiprocessing", "psycopg", "redis", "socket", "socketserver"),
    *("http.server", "websockets", "breakers.dead_letters.places.servers"),
}
UNBUDGETED_MARKS = {"faults", "e2e", "slow"}
PRESSURE = Path("/proc/pressure/cpu")
UNMEASURED_FACTOR = 3
"""Times the budget where the kernel does not tell how long tasks waited for a CPU."""


# Importing a module takes time, and all tests of these need a database.
ALL_NEED_DATABASE = re.compile(r"^pytestmark = .*django_db", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help="only tests that need no database, no Redis and no process",
    )
    parser.addoption(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="fail a test without the mark slow, faults or e2e that takes longer",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("fast"):
        return
    kept = [item for item in items if not needs_services(item)]
    config.hook.pytest_deselected(items=[item for item in items if needs_services(item)])
    items[:] = kept


def needs_services(item: pytest.Item) -> bool:
    """True if the test's fixtures, marks or module show that it needs more than this process."""
    if SERVICE_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    if any(item.get_closest_marker(mark) for mark in SERVICE_MARKS):
        return True
    return _reaches_out(getattr(item, "module", None))


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("fast"):
        hypothesis.settings.load_profile("fast")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("fast") or not collection_path.name.startswith("test_"):
        return None
    return bool(ALL_NEED_DATABASE.search(collection_path.read_text())) or None


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of every later garbage collection, and collect
    less often: it took a fifteenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    budget = item.config.getoption("budget")
    if budget is None or any(item.get_closest_marker(mark) for mark in UNBUDGETED_MARKS):
        return (yield)
    if not PRESSURE.exists():
        budget *= UNMEASURED_FACTOR
    began, stalled = time.perf_counter(), _stalled_seconds()
    result = yield
    seconds = time.perf_counter() - began - (_stalled_seconds() - stalled)
    if seconds > budget:
        pytest.fail(
            f"took {seconds:.1f} s beyond waiting for a CPU, more than {budget:g} s: wait for an"
            " event, shorten an interval, or mark it slow",
            pytrace=False,
        )
    return result


def _reaches_out(module: ModuleType | None) -> bool:
    """True if `module`, or a test helper that it takes a name from, names a service module."""
    if module is None:
        return False
    helpers = {getattr(found, "__module__", None) or "" for found in vars(module).values()}
    helpers |= {name for name in map(_name, vars(module).values()) if name}
    tests = {module.__name__, *(name for name in helpers if "tests" in name.split("."))}
    return any(_names_service(name) for name in tests)


@cache
def _names_service(module_name: str) -> bool:
    names = vars(sys.modules[module_name]).values() if module_name in sys.modules else ()
    sources = {_name(found) or str(getattr(found, "__module__", "")) for found in names}
    return any(
        source == service or source.startswith(f"{service}.")
        for source in sources
        for service in SERVICE_MODULES
    )


def _name(found: object) -> str:
    return found.__name__ if isinstance(found, ModuleType) else ""


def _stalled_seconds() -> float:
    """Seconds since boot in which a task of the machine waited for a CPU; 0 if unknown.

    A busy machine is no fault of the test: only what it took beyond that counts.
    """
    try:
        some = PRESSURE.read_text().splitlines()[0]
    except OSError:
        return 0.0
    return int(some.rpartition("total=")[2]) / 1e6
