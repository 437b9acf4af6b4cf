"""Configuration of the data plane, read from the process environment."""

from dataclasses import dataclass
from pathlib import Path

from controlplane import environment

from .memory.listeners import MAX_LISTENERS
from .storage.snapshot_file import signing_key


@dataclass(frozen=True)
class Config:
    """Addresses, intervals, limits and the snapshot folder of one data plane.

    `poll_seconds` is the interval between polls of the database. The default is below one second,
    so that a change is served within a second even if no message from Redis triggers a poll. The
    database counts as unreachable if a poll takes longer than `deadline_seconds`. Files in `folder`
    are signed with `signing_key`; signatures by `older_keys` are accepted too. At most `most_held`
    polls and streams are held at once. Browsers may send requests from pages of `cors_origins`.
    """

    database_url: str
    assume_role: str | None
    redis_url: str
    folder: Path | None = None
    signing_key: bytes = b""
    older_keys: tuple[bytes, ...] = ()
    most_held: int = MAX_LISTENERS
    cors_origins: frozenset[bytes] = frozenset()
    poll_seconds: float = 0.8
    deadline_seconds: float = 2.5
    usage_seconds: float = 30.0


def from_environment() -> Config:
    """Return the configuration in the environment; raise :class:`WrongVariable` if one is wrong."""
    variables = environment.read_environment()
    return Config(
        database_url=variables.database.url,
        assume_role=variables.database.assume_role,
        redis_url=variables.redis_url,
        folder=variables.data_dir / "snapshot",
        signing_key=signing_key(variables.secret_key),
        older_keys=tuple(signing_key(secret) for secret in variables.secret_key_fallbacks),
        most_held=variables.most_held,
        cors_origins=frozenset(origin.encode() for origin in variables.cors_origins),
    )
