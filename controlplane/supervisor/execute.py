"""`exec`: run a command with temporary PostgreSQL and Redis servers."""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from controlplane.notify.transports import environment as transports
from controlplane.supervisor import identity, layout, service_processes
from controlplane.supervisor.child import Child, ChildSpec
from controlplane.supervisor.failure import StopRequested
from controlplane.supervisor.output import Terminal
from controlplane.supervisor.service_processes import Services
from controlplane.supervisor.tree import Tree

from .file_lock import Lock, remove_abandoned

_PREFIX = "switchgear-exec-"
_STOP_SECONDS = 5
# Tests run with the product's defaults and must not use services configured in the shell.
_NOT_FOR_TESTS = {
    *("DATABASE_OWNER_URL", "DATABASE_POOL", "PORT", "ALLOWED_HOSTS", "ENVIRONMENT_NAME"),
    *("SECRET_KEY", "SECRET_KEY_FALLBACKS", "SWITCHGEAR_ADMIN_PASSWORD"),
    *("SNAPSHOT_SIGNING_KEY", "SNAPSHOT_SIGNING_KEY_FALLBACKS"),
    *("HTTPS_ONLY", "TIME_ZONE", "PUBLIC_URL", "PROBE_ALLOW", "PROMETHEUS_ALLOW"),
    *("SNAPSHOT_PUBLISH_TO", "SNAPSHOT_PUBLISH_TOKEN", "SNAPSHOT_PUBLISH_ALLOW"),
    *transports.variable_names(),
    *("MAKEFLAGS", "MFLAGS", "MAKELEVEL"),
    # Otherwise, every process started by a test would compile all modules again.
    "PYTHONDONTWRITEBYTECODE",
}


def execute(terminal: Terminal, command: Sequence[str]) -> int:
    """Run `command` with temporary servers; return its exit code, or raise `CannotRun`."""
    with contextlib.ExitStack() as stack:
        place = layout.create_layout(stack.enter_context(_temporary_folder()) / "data")
        services = Services()
        tree = stack.enter_context(Tree(terminal))
        given = {name: os.environ.get(f"TEST_{name}", "") for name in service_processes.VARIABLES}
        home = place.data
        if not given["DATABASE_URL"]:
            home = stack.enter_context(identity.cluster_home(place.data, temporary=True))
        stack.callback(services.stop, tree)
        try:
            service_processes.start_services(tree, services, place, home, given, durable=False)
            kept = {name: text for name, text in os.environ.items() if name not in _NOT_FOR_TESTS}
            spec = ChildSpec(
                name=command[0],
                command=tuple(command),
                environment={**kept, **services.addresses, "SWITCHGEAR_DATA_DIR": str(place.data)},
                directory=Path.cwd(),
                attached=True,
            )
            return _wait(tree, tree.launch(spec))
        except StopRequested:
            return 128 + (tree.stop_signal or 0)


def _wait(tree: Tree, child: Child) -> int:
    try:
        tree.wait_until(lambda: not child.is_alive, None)
    except StopRequested:
        # Ctrl-C also reaches the command, if it shares the foreground group of the terminal.
        is_interactive = sys.stdin is not None and sys.stdin.isatty()
        if tree.stop_signal is not None and not (
            is_interactive and os.tcgetpgrp(0) == os.getpgrp()
        ):
            child.send(tree.stop_signal)
        tree.stop([child], _STOP_SECONDS, tell=False)
        raise
    code = child.exit_code or 0
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    """Context manager: a new, locked directory for this run; first removes those of killed runs."""
    remove_abandoned(Path(tempfile.gettempdir()), _PREFIX)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    if os.geteuid() == 0:
        folder.chmod(0o711)  # PostgreSQL's own user must reach its folder below.
    lock = Lock(folder / "lock")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
