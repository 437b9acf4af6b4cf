"""Connection URLs of PostgreSQL from the environment."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.core.environment_variables import WrongVariable

RUNTIME_ROLE = "switchgear_runtime"
DEFAULT_URL = "postgresql://switchgear@127.0.0.1:5432/switchgear"


@dataclass(frozen=True)
class Database:
    """PostgreSQL's connection URLs, for the application and for the owner of the tables.

    `assume_role` is the role that the application takes if its login is the owner's; else None.
    """

    url: str
    owner_url: str
    assume_role: str | None


def read_embedded_services(data_dir: Path) -> dict[str, str]:
    services: dict[str, str] = {}
    with contextlib.suppress(OSError):
        services = json.loads((data_dir / "run" / "services.json").read_text())
    return services


def read_database(variables: Mapping[str, str], services: Mapping[str, str]) -> Database:
    explicit = variables.get("DATABASE_URL")
    source = variables if explicit else {k.upper(): v for k, v in services.items()}
    url = _check_url(source.get("DATABASE_URL") or DEFAULT_URL, "DATABASE_URL")
    owner = _check_url(source.get("DATABASE_OWNER_URL") or url, "DATABASE_OWNER_URL")
    return Database(url=url, owner_url=owner, assume_role=RUNTIME_ROLE if owner == url else None)


def _check_url(value: str, name: str) -> str:
    if value == DEFAULT_URL:
        return value
    # libpq validates the URL, which may name several hosts and have options. Imported here, because
    # the supervisor has no address to check and starts in half the time without psycopg.
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    if not value.startswith(("postgres://", "postgresql://")):
        raise WrongVariable(name, "must be a URL starting with postgresql://")
    try:
        ports = str(conninfo_to_dict(value).get("port") or "5432").split(",")
    except psycopg.Error as error:
        # libpq's message may quote the password.
        raise WrongVariable(name, "is not a URL that PostgreSQL's library can read") from error
    if not all(port.isascii() and port.isdigit() and 0 < int(port) < 65536 for port in ports):
        raise WrongVariable(name, f"has an invalid port: {','.join(ports)}")
    return value
