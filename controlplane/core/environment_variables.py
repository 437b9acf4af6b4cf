"""Readers of single environment variables, which raise `WrongVariable` for invalid values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from socket import gethostname
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

REDIS_SCHEMES = {"redis", "rediss", "unix"}
ROLES = ("viewer", "operator", "approver", "admin")
MAX_DIGITS = 18
MAX_PLANE_NAME_LENGTH = 120
DEFAULT_PORTS = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class Sibling:
    """The console of another environment, which this one shows but can't change."""

    name: str
    url: str
    token: str = field(repr=False)


class WrongVariable(Exception):
    """Raised for an environment variable with an invalid value; the server can't start."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")


def read_roles(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    roles = tuple(variables.get(name, "").replace(",", " ").split())
    for role in roles:
        check_role(role, name)
    return roles


def check_role(role: str, name: str) -> None:
    if role not in ROLES:
        raise WrongVariable(name, f"{role!r} is not a role; the roles are {', '.join(ROLES)}")


def read_networks(variables: Mapping[str, str], name: str, usual: str = "") -> tuple[str, ...]:
    """Return the networks (CIDR) that a variable allows in addition to public addresses."""
    networks = [text.strip() for text in variables.get(name, usual).split(",") if text.strip()]
    for network in networks:
        try:
            ip_network(network)
        except ValueError as error:
            raise WrongVariable(name, f"{network!r} is not a network") from error
    return tuple(networks)


def check_url(value: str, name: str, schemes: set[str]) -> str:
    try:
        parts = urlsplit(value)
        port_is_sane = parts.port is None or parts.port > 0
    except ValueError as error:
        raise WrongVariable(name, f"is not a URL ({error})") from error
    local = parts.scheme == "unix" and parts.path
    if parts.scheme not in schemes or not port_is_sane or not (parts.netloc or local):
        raise WrongVariable(name, f"must be a URL starting with {' or '.join(sorted(schemes))}://")
    return value


def read_environment_name(variables: Mapping[str, str]) -> str:
    name = (variables.get("ENVIRONMENT_NAME") or "development").strip()
    if not (0 < len(name) <= 40 and name.isprintable()):
        raise WrongVariable("ENVIRONMENT_NAME", "must be 1 to 40 printable characters on one line")
    return name


def read_host_names(variables: Mapping[str, str]) -> list[str]:
    given = variables.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
    hosts = [host.strip() for host in given.split(",") if host.strip()]
    if not hosts or any("/" in host or " " in host for host in hosts):
        raise WrongVariable("ALLOWED_HOSTS", "must be host names separated by commas")
    return hosts


def read_public_url(variables: Mapping[str, str]) -> str:
    """Return the console's base URL for links in messages, or "" if it isn't set."""
    given = variables.get("PUBLIC_URL", "").rstrip("/")
    return check_url(given, "PUBLIC_URL", {"http", "https"}) if given else ""


def read_origins(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return origins as browsers send them: without a path, and without the scheme's own port."""
    return tuple(
        _parse_origin(text.strip(), name)
        for text in variables.get(name, "").split(",")
        if text.strip()
    )


def _parse_origin(text: str, name: str) -> str:
    parts = urlsplit(check_url(text.lower().rstrip("/"), name, {"http", "https"}))
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc or "*" in parts.netloc:
        raise WrongVariable(name, f"{text!r} is not an origin such as https://shop.example.org")
    return origin_of(text)


def origin_of(url: str) -> str:
    """Return the origin of an HTTP URL, as browsers send it."""
    parts = urlsplit(url.lower())
    return f"{parts.scheme}://{parts.netloc.removesuffix(DEFAULT_PORTS[parts.scheme])}"


def read_base_urls(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return URLs of servers, separated by spaces or commas, without a slash at the end."""
    urls = []
    for text in variables.get(name, "").replace(",", " ").split():
        parts = urlsplit(check_url(text, name, {"http", "https"}))
        if parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc:
            raise WrongVariable(name, f"{text!r} must have no user name, path or query")
        urls.append(f"{parts.scheme}://{parts.netloc}")
    return tuple(urls)


def read_siblings(variables: Mapping[str, str], own_name: str) -> tuple[Sibling, ...]:
    """Return the consoles of `SIBLINGS`, entries `name=url`, with their `SIBLING_TOKENS`."""
    urls = read_pairs(variables, "SIBLINGS")
    tokens = read_pairs(variables, "SIBLING_TOKENS")
    for name, url in urls.items():
        if name.casefold() == own_name.casefold():
            raise WrongVariable("SIBLINGS", f"names {name}, which is ENVIRONMENT_NAME here")
        if not read_base_urls({"SIBLINGS": url}, "SIBLINGS"):
            raise WrongVariable("SIBLINGS", f"has no URL for {name}")
        if name not in tokens:
            raise WrongVariable("SIBLING_TOKENS", f"has no token for {name}")
    for name, token in tokens.items():
        if name not in urls:
            raise WrongVariable("SIBLING_TOKENS", f"names {name}, which is not in SIBLINGS")
        if not (token.startswith("sg_") and token.isascii() and token.isprintable()):
            raise WrongVariable("SIBLING_TOKENS", f"must have an API token (sg_…) for {name}")
    return tuple(Sibling(name, url.rstrip("/"), tokens[name]) for name, url in urls.items())


def read_pairs(variables: Mapping[str, str], variable: str) -> dict[str, str]:
    """Return entries `name=value`, separated by spaces; values stay out of error messages."""
    found: dict[str, str] = {}
    for text in variables.get(variable, "").split():
        name, is_pair, value = text.partition("=")
        if not (is_pair and name and value):
            raise WrongVariable(variable, "must be entries name=value, separated by spaces")
        if name in found:
            raise WrongVariable(variable, f"names {name} twice")
        found[name] = value
    return found


def read_plane_name(variables: Mapping[str, str]) -> str:
    """Return the name of this machine's data plane, by default its host name."""
    name = variables.get("PLANE_NAME") or gethostname()
    if not (len(name) <= MAX_PLANE_NAME_LENGTH and name.isprintable() and " " not in name):
        limit = MAX_PLANE_NAME_LENGTH
        raise WrongVariable("PLANE_NAME", f"must be 1 to {limit} characters without spaces")
    return name


def read_flag(variables: Mapping[str, str], name: str) -> bool:
    value = variables.get(name, "false").lower()
    if value not in {"true", "false", "1", "0", ""}:
        raise WrongVariable(name, "must be true or false")
    return value in {"true", "1"}


def read_time_zone(variables: Mapping[str, str]) -> str:
    name = variables.get("TIME_ZONE") or "UTC"
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise WrongVariable("TIME_ZONE", f"there is no time zone {name!r}") from error
    return name


def read_number(
    variables: Mapping[str, str], name: str, *, default: int, low: int, high: int
) -> int:
    value = variables.get(name) or str(default)
    is_number = value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS
    if not (is_number and low <= int(value) <= high):
        raise WrongVariable(name, f"must be a whole number from {low} to {high}")
    return int(value)
