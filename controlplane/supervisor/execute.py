"""`exec`: a command with PostgreSQL and Redis of its own, which are gone when it ends."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from controlplane.notify.transports import environment as transports
from controlplane.supervisor import embedded, identity, layout
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.embedded import Services
from controlplane.supervisor.failure import StopRequested
from controlplane.supervisor.output import Terminal
from controlplane.supervisor.tree import Tree

from .file_lock import Lock, remove_abandoned

_PREFIX = "switchgear-exec-"
_STOP_SECONDS = 5
# Tests run with the product's defaults: they must not use the services that the shell is configured
# for.
_NOT_FOR_TESTS = {
    *("DATABASE_OWNER_URL", "DATABASE_POOL", "PORT", "ALLOWED_HOSTS", "ENVIRONMENT_NAME"),
    *("SECRET_KEY", "SECRET_KEY_FALLBACKS", "SWITCHGEAR_ADMIN_PASSWORD"),
    *("HTTPS_ONLY", "TIME_ZONE", "PUBLIC_URL", "PROBE_ALLOW", "PROMETHEUS_ALLOW"),
    *transports.variable_names(),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL"),
    # Without this, every process that a test starts would compile all modules again.
    "PYTHONDONTWRITEBYTECODE",
}


def execute(terminal: Terminal, command: Sequence[str]) -> int:
    """Return the exit code of `command`; raises `CannotRun` if it or a service can't be started."""
    with contextlib.ExitStack() as kept:
        place = layout.prepare(kept.enter_context(_temporary()) / "data")
        services = Services()
        tree = kept.enter_context(Tree(terminal))
        given = {name: os.environ.get(f"TEST_{name}", "") for name in embedded.VARIABLES}
        home = place.data
        if not given["DATABASE_URL"]:
            home = kept.enter_context(identity.cluster_home(place.data, temporary=True))
        kept.callback(services.stop, tree)
        try:
            embedded.start(tree, services, place, home, given, durable=False)
            child = tree.launch(_spec(command, place.data, services))
            return _wait(tree, child)
        except StopRequested:
            return 128 + (tree.stop_signal or 0)


def _spec(command: Sequence[str], data: Path, services: Services) -> ChildSpec:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_FOR_TESTS}
    return ChildSpec(
        name=command[0],
        command=tuple(command),
        environment={**kept, **services.addresses, "SWITCHGEAR_DATA_DIR": str(data)},
        directory=Path.cwd(),
        attached=True,
    )


def _wait(tree: Tree, child: Child) -> int:
    try:
        tree.wait_until(lambda: not child.is_alive, None)
    except StopRequested:
        if tree.stop_signal is not None and not _terminal_told_it():
            child.send(tree.stop_signal)
        tree.stop([child], _STOP_SECONDS, tell=False)
        raise
    code = child.exit_code or 0
    return 128 - code if code < 0 else code


def _terminal_told_it() -> bool:
    """Return True if the command received Ctrl-C too, as the terminal's foreground group."""
    return sys.stdin is not None and sys.stdin.isatty() and os.tcgetpgrp(0) == os.getpgrp()


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    """Create a locked directory for this run, and remove those of killed runs."""
    remove_abandoned(Path(tempfile.gettempdir()), _PREFIX)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if os.geteuid() == 0:
        folder.chmod(0o711)  # for PostgreSQL's own user to pass through
    lock = Lock(folder / "lock")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
