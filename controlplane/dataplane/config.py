"""What the data plane needs to know of its surroundings."""

from dataclasses import dataclass

from controlplane import environment


@dataclass(frozen=True)
class Config:
    """Where the database and Redis are, and how often to look.

    A poll starts every `poll_seconds`: a little under one second, so that with its round trip a
    change is seen within a second even when every wake-up is lost. The database counts as gone
    when it has not answered one within `deadline_seconds`.
    """

    database_url: str
    assume_role: str | None
    redis_url: str
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
    )
