"""The process environment, read once and validated.

An invalid value raises :class:`WrongVariable` with a one-line text that names the variable. While
`make run` is up, the file `run/services.json` in the data directory has the addresses of the
embedded services, so that `manage.py …` needs no variables.
"""

import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.core import environment_variables as env
from controlplane.core.private_files import create_once
from controlplane.core.signing_keys import KeyRing, SigningKeyFile
from controlplane.environment.databases import Database, read_database, read_embedded_services
from controlplane.notify.transports import environment as transports

from .dead_letters import DeadLetters, read_dead_letters
from .published_file import PublishedFileSettings, read_published_file
from .sign_in import Oidc, SignInSettings, read_oidc, read_sign_in
from .signing_keys import read_signing_keys

ROOT = Path(__file__).resolve().parent.parent.parent
# Prometheus and object stores are usually in a private network, and only admins choose addresses.
OWN_NETWORKS = "127.0.0.0/8, ::1/128, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7"


@dataclass(frozen=True)
class Environment:
    """All validated settings from the process environment."""

    variables: Mapping[str, str]
    data_dir: Path
    static_dir: Path
    docs_dir: Path
    name: str
    siblings: tuple[env.Sibling, ...]
    database: Database
    database_pool: int
    redis_url: str
    dead_letters: DeadLetters
    signing_keys: KeyRing | None
    most_held: int
    plane_name: str
    data_planes: tuple[str, ...]
    transport_settings: Mapping[str, Any]
    entry: SignInSettings
    oidc: Oidc
    trusted_proxies: tuple[str, ...]
    kept_days: Mapping[str, int]
    probe_allow: tuple[str, ...]
    prometheus_allow: tuple[str, ...]
    published_file: PublishedFileSettings
    allowed_hosts: list[str]
    cors_origins: tuple[str, ...]
    https_only: bool
    public_url: str
    time_zone: str
    port: int
    health_port: int

    @property
    def signing_key_file(self) -> SigningKeyFile:
        """The keys that sign snapshots if `signing_keys` is None."""
        return SigningKeyFile(self.data_dir / "secrets")

    @property
    def secret_key(self) -> str:
        folder = self.data_dir / "secrets"
        return self.variables.get("SECRET_KEY") or load_or_create_key(folder, "secret_key")

    @property
    def secret_key_fallbacks(self) -> tuple[str, ...]:
        """Previous secret keys, accepted to decrypt and verify, but not used to encrypt or sign."""
        return tuple(self.variables.get("SECRET_KEY_FALLBACKS", "").split())


def read_environment(variables: Mapping[str, str] = os.environ) -> Environment:
    """Read and validate the environment; raise :class:`WrongVariable`."""
    data_dir = read_data_dir(variables)
    name = env.read_environment_name(variables)
    services = read_embedded_services(data_dir)
    redis_url = env.check_url(
        variables.get("REDIS_URL") or services.get("redis_url") or "redis://127.0.0.1:6379/0",
        "REDIS_URL",
        env.REDIS_SCHEMES,
    )
    return Environment(
        variables=variables,
        data_dir=data_dir,
        static_dir=Path(variables.get("SWITCHGEAR_STATIC_DIR") or data_dir / "static").absolute(),
        docs_dir=Path(variables.get("SWITCHGEAR_DOCS_DIR") or ROOT / "var" / "docs").absolute(),
        name=name,
        siblings=env.read_siblings(variables, name),
        database=read_database(variables, services),
        database_pool=env.read_number(variables, "DATABASE_POOL", default=0, low=0, high=1000),
        redis_url=redis_url,
        dead_letters=read_dead_letters(variables, redis_url),
        signing_keys=read_signing_keys(variables),
        most_held=env.read_number(variables, "MAX_HELD", default=8000, low=0, high=1_000_000),
        plane_name=env.read_plane_name(variables),
        data_planes=env.read_base_urls(variables, "DATA_PLANES"),
        transport_settings=transports.read(variables),
        entry=read_sign_in(variables),
        oidc=read_oidc(variables),
        trusted_proxies=env.read_networks(variables, "TRUSTED_PROXIES"),
        kept_days=_read_kept_days(variables),
        probe_allow=env.read_networks(variables, "PROBE_ALLOW"),
        prometheus_allow=env.read_networks(variables, "PROMETHEUS_ALLOW", usual=OWN_NETWORKS),
        published_file=read_published_file(variables, OWN_NETWORKS),
        allowed_hosts=env.read_host_names(variables),
        cors_origins=env.read_origins(variables, "CORS_ORIGINS"),
        https_only=env.read_flag(variables, "HTTPS_ONLY"),
        public_url=env.read_public_url(variables),
        time_zone=env.read_time_zone(variables),
        port=env.read_number(variables, "PORT", default=8000, low=1, high=65535),
        health_port=env.read_number(variables, "HEALTH_PORT", default=0, low=0, high=65535),
    )


def read_data_dir(variables: Mapping[str, str]) -> Path:
    return Path(variables.get("SWITCHGEAR_DATA_DIR") or ROOT / "var").absolute()


def load_or_create_key(folder: Path, name: str) -> str:
    """Return the secret in the file `name` of `folder`; generate and store one if there is none.

    Raise :class:`WrongVariable` if the folder can't be created or others can read the file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        problem = f"{folder} can't be created ({error.strerror})"
        raise env.WrongVariable("SWITCHGEAR_DATA_DIR", problem) from error
    path = folder / name
    create_once(path, secrets.token_urlsafe(64).encode())
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise env.WrongVariable(name.upper(), f"{path} can be read by other users; run chmod 600")
    return path.read_text()


def _read_kept_days(variables: Mapping[str, str]) -> dict[str, int]:
    """Return the retention periods in days, by name, from `KEPT_DAYS`: entries `name=days`."""
    days_by_rule = {}
    for text in variables.get("KEPT_DAYS", "").split():
        name, is_pair, days = text.partition("=")
        if not is_pair:
            raise env.WrongVariable("KEPT_DAYS", "must be name=days, separated by spaces")
        if name in days_by_rule:
            raise env.WrongVariable("KEPT_DAYS", f"names {name} twice")
        try:
            days_by_rule[name] = env.read_number({name: days}, name, default=0, low=1, high=36_500)
        except env.WrongVariable as error:
            raise env.WrongVariable("KEPT_DAYS", str(error)) from error
    return days_by_rule
