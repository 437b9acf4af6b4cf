"""The environment variables of a relay, which has no database, no Redis and no secret key."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.core import environment_variables as env
from controlplane.core.signatures import InvalidKey, PublicKey, read_public_keys
from controlplane.environment import OWN_NETWORKS, read_data_dir
from controlplane.environment.published_file import PublishedFileSettings, read_published_file

UPSTREAM = "SWITCHGEAR_UPSTREAM"
TOKEN = "SWITCHGEAR_TOKEN"  # noqa: S105 - a variable's name
TOKEN_FILE = "SWITCHGEAR_TOKEN_FILE"  # noqa: S105 - a variable's name
PUBLIC_KEY = "SWITCHGEAR_PUBLIC_KEY"
RELAYS = "DATA_PLANES"
MAX_TOKEN_LENGTH = 1000


@dataclass(frozen=True)
class RelayEnvironment:
    """All validated settings of a relay; `public_keys` are by id."""

    upstreams: tuple[str, ...]
    token: str
    token_file: Path | None
    public_keys: Mapping[str, PublicKey]
    data_dir: Path
    name: str
    plane_name: str
    most_held: int
    cors_origins: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    relays: tuple[str, ...]
    public_url: str
    time_zone: str
    published_file: PublishedFileSettings


def read_relay_environment(variables: Mapping[str, str] = os.environ) -> RelayEnvironment:
    """Read and validate the environment of a relay; raise :class:`WrongVariable`."""
    upstreams = env.read_base_urls(variables, UPSTREAM)
    if not upstreams:
        raise env.WrongVariable(UPSTREAM, "must be the URL of a data plane or relay")
    token, file = variables.get(TOKEN, ""), variables.get(TOKEN_FILE)
    if bool(token) == bool(file):
        problem = "is set, too" if file else f"is not set, and neither is {TOKEN_FILE}"
        raise env.WrongVariable(TOKEN, f"{problem}; set one of them to a token for the upstream")
    token_file = Path(file).absolute() if file else None
    if token_file is None:
        _check_token(token, TOKEN)
    else:
        read_token(token_file)
    return RelayEnvironment(
        upstreams=upstreams,
        token=token,
        token_file=token_file,
        public_keys=_read_public_keys(variables),
        data_dir=read_data_dir(variables),
        name=env.read_environment_name(variables),
        plane_name=env.read_plane_name(variables),
        most_held=env.read_number(variables, "MAX_HELD", default=8000, low=0, high=1_000_000),
        cors_origins=env.read_origins(variables, "CORS_ORIGINS"),
        trusted_proxies=env.read_networks(variables, "TRUSTED_PROXIES"),
        relays=env.read_base_urls(variables, RELAYS),
        public_url=env.read_public_url(variables),
        time_zone=env.read_time_zone(variables),
        published_file=read_published_file(variables, OWN_NETWORKS),
    )


def read_token(file: Path) -> str:
    """Return the token in a file; raise :class:`WrongVariable` if there is none."""
    try:
        with file.open(encoding="utf-8") as opened:
            token = opened.read(MAX_TOKEN_LENGTH + 1).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise env.WrongVariable(TOKEN_FILE, f"{file} can't be read: {reason}") from error
    _check_token(token, TOKEN_FILE)
    return token


def _check_token(token: str, name: str) -> None:
    is_plain = token.isascii() and token.isprintable() and " " not in token
    if not (token.startswith("sg_") and is_plain and len(token) <= MAX_TOKEN_LENGTH):
        raise env.WrongVariable(name, "must be an API token, such as sg_…, with the scope relay")


def _read_public_keys(variables: Mapping[str, str]) -> Mapping[str, PublicKey]:
    try:
        return read_public_keys(variables.get(PUBLIC_KEY, ""))
    except InvalidKey as error:
        raise env.WrongVariable(PUBLIC_KEY, str(error)) from error
