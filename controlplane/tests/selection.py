"""Options of the test run: `--fast` leaves out what needs a service, `--budget` bounds slow tests.

Only what a test needs decides, not a mark of its own: its fixtures, its marks and its module.
"""

import gc
import re
import sys
import time
from collections.abc import Generator
from functools import cache
from itertools import compress
from operator import not_
from pathlib import Path
from types import ModuleType
from typing import Any

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
SERVICE_MARKS = {"django_db", "faults", "e2e", "docs", "services", "slow"}
# A test module or a test helper that names one of these starts a process or talks to a server,
# be it one of its own.
SERVICE_MODULES = {
    *("subprocess", "multiprocessing", "psycopg", "redis", "socket", "socketserver"),
    *("http.server", "websockets", "breakers.dead_letters.redis_servers.servers"),
}
SERVICE_EVENTS = {
    *("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"),
    "socket.connect",
}
"""Python's audit events of new processes and connections."""
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
MAX_SERVICE_PORT = 1
"""`make test-fast` sets the ports of PostgreSQL and Redis to this one."""
UNBUDGETED_MARKS = {"faults", "e2e", "docs", "exhaustive", "slow"}
PRESSURE = Path("/proc/pressure/cpu")
UNMEASURED_FACTOR = 3
"""Factor on the budget where the kernel doesn't report the wait for a CPU."""


ALL_NEED_SERVICES = re.compile(
    r"^pytestmark = .*(django_db|faults|e2e|services|slow)"
    r"|^(import|from) (subprocess|multiprocessing|psycopg|redis|socket|socketserver|websockets)\b"
    r"|^(import|from) http\.server\b",
    re.MULTILINE,
)
"""Matches the text of modules whose tests all need a service: importing these takes time."""

_running: list[str] = []
_refused: list[str] = []


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
        help="fail a test without the mark slow, exhaustive, faults or e2e that takes longer",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("fast"):
        return
    needing = [needs_services(item) for item in items]
    config.hook.pytest_deselected(items=list(compress(items, needing)))
    items[:] = list(compress(items, map(not_, needing)))


def needs_services(item: pytest.Item) -> bool:
    """True if the test's fixtures, marks or module show that it needs more than this process."""
    if SERVICE_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    if any(item.get_closest_marker(mark) for mark in SERVICE_MARKS):
        return True
    return _reaches_out(getattr(item, "module", None))


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("fast"):
        sys.addaudithook(_refuse_services)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("fast") or not collection_path.match("test_*.py"):
        return None
    return bool(ALL_NEED_SERVICES.search(collection_path.read_text())) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Disable garbage collection during collection: objects created until then persist."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave collected tests out of later garbage collections, and collect less often.

    Collecting at Python's own threshold took a fifteenth of the time.
    """
    gc.enable()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _running.append(item.nodeid)
    try:
        return (yield)
    finally:
        _running.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, Any, Any]:
    """Fail a test that swallowed the refusal."""
    result = yield
    if _refused:
        reasons = "; ".join(_refused)
        _refused.clear()
        pytest.fail(f"needs a service, so it is no fast test: {reasons}", pytrace=False)
    return result


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


def _refuse_services(event: str, args: tuple[Any, ...]) -> None:
    """Refuse processes, and connections beyond this machine, while a fast test runs."""
    if event not in SERVICE_EVENTS or not _running:
        return
    place = args[1] if event == "socket.connect" else args[:1]
    if event == "socket.connect" and _is_own(place):
        return
    _refused.append(f"{event} {place}")
    raise RuntimeError(f"no service is there for a fast test: {event} {place}")


def _is_own(address: object) -> bool:
    """True for addresses where a test itself may listen: nothing else has a port that high."""
    is_internet = isinstance(address, tuple) and len(address) >= 2
    return is_internet and address[0] in LOOPBACK and address[1] > MAX_SERVICE_PORT


@cache
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
