"""Configuration of the data plane, read from the process environment."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controlplane import environment
from controlplane.core.signatures import PublicKey, SigningKey
from controlplane.core.signing_keys import KeyRing, SigningKeyFile
from controlplane.environment.published_file import PublishedFileSettings
from controlplane.environment.relay import read_relay_environment, read_token

from .memory.listeners import MAX_LISTENERS
from .storage.order_journal import order_key
from .storage.snapshot_file import signing_key

RELAY_KEY = "relay_key"
"""Name of the file with a relay's own secret, which signs the files in its data directory."""


@dataclass(frozen=True, kw_only=True)
class ServingConfig:
    """Limits, names and the snapshot folder of one data plane or relay.

    Files in `folder` are signed with `signing_key`; signatures by `older_keys` are accepted too. At
    most `most_held` polls and streams are held at once. Browsers may send requests from pages of
    `cors_origins`. `plane` names this data plane in emergency orders, which are signed with the
    first of `order_keys`; signatures by the others are accepted too. Addresses in `X-Forwarded-For`
    are believed from `trusted_proxies`. The emergency page shows `environment_name`, times of
    `time_zone`, and a link to the console at `public_url`. The signed snapshot is written to the
    place of `published_file`.
    """

    folder: Path | None = None
    signing_key: bytes = b""
    older_keys: tuple[bytes, ...] = ()
    most_held: int = MAX_LISTENERS
    cors_origins: frozenset[bytes] = frozenset()
    plane: str = ""
    order_keys: tuple[bytes, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    environment_name: str = ""
    public_url: str = ""
    time_zone: str = "UTC"
    published_file: PublishedFileSettings = field(default_factory=PublishedFileSettings)


@dataclass(frozen=True)
class Config(ServingConfig):
    """Configuration of a data plane that follows PostgreSQL and Redis.

    `poll_seconds` is the interval between polls of the database. The default is below one second,
    so that a change is served within a second even if no message from Redis triggers a poll. The
    database counts as unreachable if a poll takes longer than `deadline_seconds`. `data_planes` are
    the base URLs of all data planes. Snapshots are signed with `signing_keys`, else with the
    keys in `signing_key_file`; without both, they are not signed.
    """

    database_url: str
    assume_role: str | None
    redis_url: str
    data_planes: tuple[str, ...] = ()
    signing_keys: KeyRing | None = None
    signing_key_file: SigningKeyFile | None = None
    poll_seconds: float = 0.8
    deadline_seconds: float = 2.5
    usage_seconds: float = 30.0


@dataclass(frozen=True, kw_only=True)
class RelayConfig(ServingConfig):
    """Configuration of a relay, which follows the first of `upstreams` (base URLs) that answers.

    Bundles are accepted if one of `public_keys`, which are by id, has signed them; without any, the
    keys of the first upstream that answers are used from then on. `order_signing_key` signs the
    emergency orders that the relay accepts. `relays` are the base URLs of relays with the same
    token, which exchange orders with this one.
    """

    upstreams: tuple[str, ...]
    token: str = ""
    token_file: Path | None = None
    public_keys: Mapping[str, PublicKey]
    order_signing_key: SigningKey = field(default_factory=SigningKey.generate)
    relays: tuple[str, ...] = ()

    @property
    def secrets(self) -> Path | None:
        """The folder of the relay's secret and of its upstream's public keys."""
        return None if self.folder is None else self.folder.parent / "secrets"

    def read_token(self) -> str:
        """Return the token for the upstream; raise :class:`WrongVariable` if it can't be read.

        A file is read again each time, because its content may be replaced.
        """
        return self.token if self.token_file is None else read_token(self.token_file)


def derive_signing_key(secret: str) -> SigningKey:
    """Return the key that signs a relay's emergency orders, derived from its secret."""
    return SigningKey(hmac.digest(secret.encode(), b"switchgear/relay-order/1", "sha256"))


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
        signing_keys=variables.signing_keys,
        signing_key_file=variables.signing_key_file,
        order_keys=tuple(map(order_key, (variables.secret_key, *variables.secret_key_fallbacks))),
        trusted_proxies=variables.trusted_proxies,
        environment_name=variables.name,
        public_url=variables.public_url,
        time_zone=variables.time_zone,
        published_file=variables.published_file,
    )


def relay_from_environment() -> RelayConfig:
    """Return a relay's configuration; raise :class:`WrongVariable` if a variable is wrong.

    Its files are signed with a random secret of its own, which is created if there is none.
    """
    variables = read_relay_environment()
    secret = environment.load_or_create_key(variables.data_dir / "secrets", RELAY_KEY)
    return RelayConfig(
        upstreams=variables.upstreams,
        token=variables.token,
        token_file=variables.token_file,
        public_keys=variables.public_keys,
        folder=variables.data_dir / "snapshot",
        signing_key=signing_key(secret),
        most_held=variables.most_held,
        cors_origins=frozenset(origin.encode() for origin in variables.cors_origins),
        plane=variables.plane_name,
        order_keys=(order_key(secret),),
        order_signing_key=derive_signing_key(secret),
        relays=variables.relays,
        trusted_proxies=variables.trusted_proxies,
        environment_name=variables.name,
        public_url=variables.public_url,
        time_zone=variables.time_zone,
        published_file=variables.published_file,
    )
