"""The user PostgreSQL runs as, and a data directory that user can reach.

PostgreSQL refuses to run as root. Started by root it runs as `postgres` if the machine has that
user, since it owns only databases, else as `nobody`, which every machine has; an existing cluster
keeps its owner. No user is created and no directory of another owner is opened up: if this user
can't reach the data directory, its files go to a private one under `/var/lib/switchgear`.
"""

import contextlib
import os
import pwd
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from controlplane.supervisor.failure import CannotRun

from .file_lock import Lock, remove_abandoned

STATE = Path("/var/lib/switchgear")
_CANDIDATES = ("postgres", "nobody")
_POINTER = "postgres-home"
_TEMPORARY = "exec-"


@dataclass(frozen=True)
class ServiceUser:
    """A user of the machine without rights."""

    name: str
    uid: int
    gid: int


def service_user(cluster: Path) -> ServiceUser | None:
    """Return the user for `cluster`; None means the current one."""
    if os.geteuid() != 0:
        return None
    if (marker := cluster / "PG_VERSION").exists():
        owner = marker.stat()
        return ServiceUser(str(owner.st_uid), owner.st_uid, owner.st_gid)
    for name in _CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return ServiceUser(name, entry.pw_uid, entry.pw_gid)
    raise CannotRun("PostgreSQL can't run as root and there is neither `postgres` nor `nobody`")


def reaches(user: ServiceUser | None, path: Path) -> bool:
    """Return True if the kernel lets `user` enter a directory, or execute a file."""
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
    """The folder that holds the cluster: the data directory unless its user can't go there.

    Any other one is locked (a copied checkout remembers its original's), and a `temporary` one
    is removed at the end.
    """
    home = _remembered(data)
    if home is None and reaches(service_user(data / "postgres"), data):
        yield data
        return
    remove_abandoned(STATE, _TEMPORARY)
    if home is None:
        home = _new_private_home(_TEMPORARY if temporary else "")
        (data / _POINTER).write_text(f"{home}\n")
    lock = Lock(home / "lock")
    try:
        yield home
    finally:
        if temporary:
            shutil.rmtree(home, ignore_errors=True)
        lock.release()


def _new_private_home(prefix: str) -> Path:
    """Create a directory with an unguessable name that can be traversed but not listed."""
    home = STATE / f"{prefix}{secrets.token_hex(12)}"
    try:
        for folder in (STATE, home):
            if not folder.is_dir():
                folder.mkdir(mode=0o711)
                folder.chmod(0o711)
    except OSError as error:
        raise CannotRun(f"PostgreSQL needs a directory its own user reaches: {error}") from error
    return home


def _remembered(data: Path) -> Path | None:
    try:
        home = Path((data / _POINTER).read_text().strip())
    except FileNotFoundError:
        return None
    return home if home.parent == STATE and home.is_dir() else None
