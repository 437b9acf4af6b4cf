"""What the data plane needs to know of its surroundings."""

from dataclasses import dataclass
from pathlib import Path

from controlplane import environment

from .memory.listeners import MAX_LISTENERS
from .storage.snapshot_file import signing_key


@dataclass(frozen=True)
class Config:
    """Where the database and Redis are, and how often to look.

    A poll starts every `poll_seconds`: a little under one second, so that with its round trip a
    change is seen within a second even when every wake-up is lost. The database counts as gone
    when it has not answered one within `deadline_seconds`. What a restart has to know is kept in
    `folder`, signed by a key that lies elsewhere; what an older one signed is taken too. At most
    `most_held` polls and streams are held.
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
    """The process environment's; raises :class:`controlplane.environment.WrongVariable`."""
    found = environment.read()
    return Config(
        database_url=found.database.url,
        assume_role=found.database.assume_role,
        redis_url=found.redis_url,
        folder=found.data_dir / "snapshot",
        signing_key=signing_key(found.secret_key),
        older_keys=tuple(signing_key(secret) for secret in found.secret_key_fallbacks),
        most_held=found.most_held,
    )
