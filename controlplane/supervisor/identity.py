"""The system user that PostgreSQL runs as, and a data directory that this user can reach.

PostgreSQL refuses to run as root. If root starts it, it runs as the system's user `postgres` or
`nobody`; an existing cluster keeps its owner. If that user can't reach the data directory, the
cluster is placed in a private directory under `/var/lib/switchgear`.
"""

import contextlib
import os
import pwd
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.supervisor.failure import CannotRun

from .file_lock import Lock, remove_abandoned

STATE = Path("/var/lib/switchgear")
_CANDIDATES = ("postgres", "nobody")
_POINTER = "postgres-home"
_TEMPORARY = "exec-"


@dataclass(frozen=True)
class ServiceUser:
    """An unprivileged system user that PostgreSQL can run as."""

    name: str
    uid: int
    gid: int

    def popen_options(self) -> dict[str, Any]:
        """Return the arguments of `Popen` that run a process as this user, in no other groups."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def service_user(cluster: Path) -> ServiceUser | None:
    """Return the user that PostgreSQL must run as on this cluster; None for the current user."""
    if os.geteuid() != 0:
        return None
    if (marker := cluster / "PG_VERSION").exists():
        owner = marker.stat()
        return ServiceUser(str(owner.st_uid), owner.st_uid, owner.st_gid)
    for name in _CANDIDATES:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return ServiceUser(name, entry.pw_uid, entry.pw_gid)
    raise CannotRun(
        "PostgreSQL can't run as root, and the users `postgres` and `nobody` don't exist"
    )


def can_execute(user: ServiceUser | None, path: Path) -> bool:
    """Return True if `user` (None: the current one) may execute a file or enter a directory."""
    if user is None:
        return os.access(path, os.X_OK)
    child = os.fork()
    if child == 0:
        allowed = False
        try:
            os.setgroups([])
            os.setgid(user.gid)
            os.setuid(user.uid)
            allowed = os.access(path, os.X_OK)
        finally:
            os._exit(0 if allowed else 1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0


@contextlib.contextmanager
def cluster_home(data: Path, *, temporary: bool = False) -> Iterator[Path]:
    """Context manager: the folder that contains PostgreSQL's data directory.

    It is `data` if PostgreSQL's user can reach that, else a locked private folder.
    """
    pointer = data / _POINTER
    home = Path(pointer.read_text().strip()) if pointer.exists() else Path()
    has_home = home.parent == STATE and home.is_dir()
    if not has_home and can_execute(service_user(data / "postgres"), data):
        yield data
        return
    remove_abandoned(STATE, _TEMPORARY)
    if not has_home:
        home = _create_private_home(_TEMPORARY if temporary else "")
        pointer.write_text(f"{home}\n")
    lock = Lock(home / "lock")
    try:
        yield home
    finally:
        if temporary:
            shutil.rmtree(home, ignore_errors=True)
        lock.release()


def _create_private_home(prefix: str) -> Path:
    """Create a directory with an unguessable name that can be entered but not listed."""
    home = STATE / f"{prefix}{secrets.token_hex(12)}"
    try:
        for folder in (STATE, home):
            if not folder.is_dir():
                folder.mkdir(mode=0o711)
                folder.chmod(0o711)
    except OSError as error:
        raise CannotRun(
            f"PostgreSQL needs a directory that its own user can access: {error}"
        ) from error
    return home
