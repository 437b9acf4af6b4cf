"""Configuration of the data plane, read from the process environment."""

from dataclasses import dataclass
from pathlib import Path

from controlplane import environment

from .memory.listeners import MAX_LISTENERS
from .storage.order_journal import order_key
from .storage.snapshot_file import signing_key


@dataclass(frozen=True)
class Config:
    """Addresses, intervals, limits and the snapshot folder of one data plane.

    `poll_seconds` is the interval between polls of the database. The default is below one second,
    so that a change is served within a second even if no message from Redis triggers a poll. The
    database counts as unreachable if a poll takes longer than `deadline_seconds`. Files in `folder`
    are signed with `signing_key`; signatures by `older_keys` are accepted too. At most `most_held`
    polls and streams are held at once. Browsers may send requests from pages of `cors_origins`.
    `plane` names this data plane in emergency orders, and `data_planes` are the base URLs of all.
    Orders are signed with the first of `order_keys`; signatures by the others are accepted too.
    Addresses in `X-Forwarded-For` are believed from `trusted_proxies`.
    The emergency page shows `environment_name`, times of `time_zone`, and a link to the console at
    `public_url`.
    """

    database_url: str
    assume_role: str | None
    redis_url: str
    folder: Path | None = None
    signing_key: bytes = b""
    older_keys: tuple[bytes, ...] = ()
    most_held: int = MAX_LISTENERS
    cors_origins: frozenset[bytes] = frozenset()
    plane: str = ""
    data_planes: tuple[str, ...] = ()
    order_keys: tuple[bytes, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    environment_name: str = ""
    public_url: str = ""
    time_zone: str = "UTC"
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
        plane=variables.plane_name,
        data_planes=variables.data_planes,
        order_keys=tuple(map(order_key, (variables.secret_key, *variables.secret_key_fallbacks))),
        trusted_proxies=variables.trusted_proxies,
        environment_name=variables.name,
        public_url=variables.public_url,
        time_zone=variables.time_zone,
    )
