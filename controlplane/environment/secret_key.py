"""The generated SECRET_KEY."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from controlplane.core.environment_variables import WrongVariable


def load_or_create_key(folder: Path) -> str:
    """Return the generated SECRET_KEY, created once in a private file.

    Several processes may start at once: each writes a complete file, and one of them links it in
    place.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        problem = f"{folder} can't be made ({error.strerror})"
        raise WrongVariable("SWITCHGEAR_DATA_DIR", problem) from error
    path = folder / "secret_key"
    if not path.exists():
        candidate = folder / f".secret_key.{secrets.token_hex(8)}"
        descriptor = os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):
            os.link(candidate, path)
        candidate.unlink()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise WrongVariable("SECRET_KEY", f"{path} can be read by others; chmod 600 it")
    return path.read_text()
