"""Configuration of the data plane, read from the process environment."""

from dataclasses import dataclass
from pathlib import Path

from controlplane import environment

from .memory.listeners import MAX_LISTENERS
from .storage.snapshot_file import signing_key


@dataclass(frozen=True)
class Config:
    """Addresses, intervals, limits and the signed folder of one data plane.

    Polls start every `poll_seconds`. The default is a little under one second, so that a change,
    including the round trip, is seen within a second even if every wake-up is lost. The database
    counts as unreachable when a poll takes longer than `deadline_seconds`. Files in `folder` are
    signed with `signing_key`, which is stored elsewhere; signatures of `older_keys` are accepted
    too. At most `most_held` polls and streams are held.
    """

    database_url: str
    assume_role: str | None
    redis_url: str
    folder: Path | None = None
    signing_key: bytes = b""
    older_keys: tuple[bytes, ...] = ()
    most_held: int = MAX_LISTENERS
    poll_seconds: float = 0.8
    deadline_seconds: float = 2.5
    usage_seconds: float = 30.0


def from_environment() -> Config:
    """Return the configuration from the environment; raise :class:`WrongVariable` if invalid."""
    found = environment.read_environment()
    return Config(
        database_url=found.database.url,
        assume_role=found.database.assume_role,
        redis_url=found.redis_url,
        folder=found.data_dir / "snapshot",
        signing_key=signing_key(found.secret_key),
        older_keys=tuple(signing_key(secret) for secret in found.secret_key_fallbacks),
        most_held=found.most_held,
    )
