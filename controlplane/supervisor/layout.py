"""The data directory: its folders, their permissions, and the secrets in it."""

import contextlib
import os
import secrets
from pathlib import Path

from controlplane.supervisor.failure import CannotRun


class Layout:
    """The folders of a data directory; `run` has the lock and the addresses of the present run."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.run, self.secrets = data / "run", data / "secrets"
        self.log, self.redis = data / "log", data / "redis"

    def secret(self, name: str) -> str | None:
        """Return the stored password with this name, or None."""
        with contextlib.suppress(FileNotFoundError):
            return (self.secrets / name).read_text() or None
        return None

    def keep_secret(self, name: str, value: str) -> None:
        if self.secret(name) != value:
            write_private(self.secrets / name, value)

    def secret_or_new(self, name: str) -> str:
        password = self.secret(name) or new_password()
        self.keep_secret(name, password)
        return password


def create_layout(data: Path) -> Layout:
    """Create the folders; raise `CannotRun` if that fails or another user owns one."""
    layout = Layout(data)
    try:
        if not data.exists():
            data.mkdir(parents=True)
            # If started by root, PostgreSQL's own user must reach its folder below.
            data.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for folder in (layout.run, layout.secrets, layout.log, layout.redis):
            folder.mkdir(mode=0o700, exist_ok=True)
            needed = os.R_OK | os.X_OK | (0 if is_read_only(folder) else os.W_OK)
            if not os.access(folder, needed):
                raise PermissionError(f"{folder} belongs to {_find_owner(folder)}")
    except OSError as error:
        raise CannotRun(f"SWITCHGEAR_DATA_DIR: {data} can't be used: {error}", 2) from error
    return layout


def is_read_only(folder: Path) -> bool:
    """Return True if the file system of `folder` is mounted read-only."""
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def write_private(path: Path, content: str) -> None:
    """Replace `path` atomically by a file readable only by its owner."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def new_password() -> str:
    """Return a random password without characters that are special in URLs, SQL or Redis files."""
    return secrets.token_urlsafe(32)


def _find_owner(path: Path) -> str:
    try:
        return path.owner()
    except KeyError:
        return f"user {path.stat().st_uid}"
