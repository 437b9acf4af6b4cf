"""The process environment, read once and validated: all variables of the product, by name.

A wrong value raises :class:`WrongVariable`, whose text is one line that names the variable. While
`make run` is up, the embedded services are found through `run/services.json` of the data directory,
so `manage.py …` needs no variables of its own.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.core.environment_variables import (
    REDIS_SCHEMES,
    WrongVariable,
    checked_url,
    environment_name,
    flag,
    host_names,
    networks,
    number,
    public_url,
    time_zone,
)
from controlplane.environment.databases import RUNTIME_ROLE, Database, database, embedded_services
from controlplane.environment.secret_key import kept_secret
from controlplane.notify.transports import environment as transports

from .dead_letters import DeadLetters, dead_letters
from .sign_in import Entry, Oidc, entry, oidc

__all__ = [
    "ROOT",
    "RUNTIME_ROLE",
    "DeadLetters",
    "Environment",
    "Oidc",
    "WrongVariable",
    "read",
]

ROOT = Path(__file__).resolve().parent.parent.parent
# Prometheus is usually in a private network, and only admins choose its address.
OWN_NETWORKS = "127.0.0.0/8, ::1/128, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7"


@dataclass(frozen=True)
class Environment:
    """All validated settings from the environment."""

    variables: Mapping[str, str]
    data_dir: Path
    static_dir: Path
    name: str
    database: Database
    database_pool: int
    redis_url: str
    dead_letters: DeadLetters
    most_held: int
    transport_settings: Mapping[str, Any]
    entry: Entry
    oidc: Oidc
    trusted_proxies: tuple[str, ...]
    kept_days: Mapping[str, int]
    probe_allow: tuple[str, ...]
    prometheus_allow: tuple[str, ...]
    allowed_hosts: list[str]
    https_only: bool
    public_url: str
    time_zone: str
    port: int
    health_port: int

    @property
    def secret_key(self) -> str:
        return self.variables.get("SECRET_KEY") or kept_secret(self.data_dir / "secrets")

    @property
    def secret_key_fallbacks(self) -> tuple[str, ...]:
        """Earlier keys, which still decrypt and verify."""
        return tuple(self.variables.get("SECRET_KEY_FALLBACKS", "").split())


def read(variables: Mapping[str, str] = os.environ) -> Environment:
    """Read and check the environment; raises :class:`WrongVariable`."""
    data_dir = Path(variables.get("SWITCHGEAR_DATA_DIR") or ROOT / "var").absolute()
    services = embedded_services(data_dir)
    redis_url = checked_url(
        variables.get("REDIS_URL") or services.get("redis_url") or "redis://127.0.0.1:6379/0",
        "REDIS_URL",
        REDIS_SCHEMES,
    )
    return Environment(
        variables=variables,
        data_dir=data_dir,
        static_dir=Path(variables.get("SWITCHGEAR_STATIC_DIR") or data_dir / "static").absolute(),
        name=environment_name(variables),
        database=database(variables, services),
        database_pool=number(variables, "DATABASE_POOL", default=0, low=0, high=1000),
        redis_url=redis_url,
        dead_letters=dead_letters(variables, redis_url),
        most_held=number(variables, "MAX_HELD", default=8000, low=0, high=1_000_000),
        transport_settings=transports.read(variables),
        entry=entry(variables),
        oidc=oidc(variables),
        trusted_proxies=networks(variables, "TRUSTED_PROXIES"),
        kept_days=_kept_days(variables),
        probe_allow=networks(variables, "PROBE_ALLOW"),
        prometheus_allow=networks(variables, "PROMETHEUS_ALLOW", usual=OWN_NETWORKS),
        allowed_hosts=host_names(variables),
        https_only=flag(variables, "HTTPS_ONLY"),
        public_url=public_url(variables),
        time_zone=time_zone(variables),
        port=number(variables, "PORT", default=8000, low=1, high=65535),
        health_port=number(variables, "HEALTH_PORT", default=0, low=0, high=65535),
    )


def _kept_days(variables: Mapping[str, str]) -> dict[str, int]:
    """`KEPT_DAYS`: `name=days`, several with spaces between, as `manage.py retention` has them."""
    found = {}
    for text in variables.get("KEPT_DAYS", "").split():
        name, is_pair, days = text.partition("=")
        if not is_pair:
            raise WrongVariable("KEPT_DAYS", "must be name=days, several with spaces between")
        if name in found:
            raise WrongVariable("KEPT_DAYS", f"names {name} twice")
        try:
            found[name] = number({name: days}, name, default=0, low=1, high=36_500)
        except WrongVariable as error:
            raise WrongVariable("KEPT_DAYS", str(error)) from error
    return found
