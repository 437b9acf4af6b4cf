"""The process environment, read once and checked: every variable the product knows, by name.

A wrong value raises :class:`WrongVariable`, whose text is one line that names the variable.
While `make run` is up, the embedded services are found through `run/services.json` of the data
directory, so `manage.py …` needs no variables of its own.
"""

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo

import psycopg
from psycopg.conninfo import conninfo_to_dict

ROOT = Path(__file__).resolve().parent.parent
RUNTIME_ROLE = "switchgear_runtime"
REDIS_SCHEMES = {"redis", "rediss", "unix"}
# A Prometheus nearly always stands in a network of one's own; only admins say which one is asked.
OWN_NETWORKS = "127.0.0.0/8, ::1/128, 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7"
ROLES = ("viewer", "operator", "approver", "admin")
SERVER_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}")
HIDDEN_KEYS = (
    "*password*,*passwd*,*pwd*,*passphrase*,pass,*secret*,*token*,*api_key*,*apikey*,*api-key*,"
    "*authorization*,*cookie*,*credential*,*private_key*,*privatekey*,*private-key*,*session*,"
    "*ssn*,*card_number*,*cardnumber*,*cvv*,*cvc*,*iban*,pin"
)


class WrongVariable(Exception):
    """An environment variable has a value the product can't start with."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")


@dataclass(frozen=True)
class Database:
    """Where PostgreSQL is: `url` for the running application, `owner_url` for migrations.

    `assume_role` is set when one login serves both, and the application steps down to it.
    """

    url: str
    owner_url: str
    assume_role: str | None


@dataclass(frozen=True)
class Slack:
    """The Slack transport: a bot token with a channel, or an incoming webhook, or neither."""

    bot_token: str
    channel: str
    webhook_url: str
    signing_secret: str
    api_url: str


@dataclass(frozen=True)
class Email:
    """The mail server; `host` is empty if there is none. `sender` is who messages come from."""

    host: str
    port: int
    user: str
    password: str
    security: str  # "", "starttls" or "tls"
    sender: str


@dataclass(frozen=True)
class DeadLetters:
    """Where streams of dead letters are: Redis URLs by name, pairs of patterns (dead letters,
    origin), how long and how many are kept, and which keys of payloads are secret (globs)."""

    servers: Mapping[str, str]
    patterns: tuple[tuple[str, str], ...]
    kept_days: int
    most_kept: int
    hidden_keys: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """How people come in: how long they stay, and when they have to show again who they are."""

    session_minutes: int
    idle_minutes: int
    confirm_minutes: int
    second_factor_roles: tuple[str, ...]


@dataclass(frozen=True)
class Oidc:
    """The OpenID provider that people may sign in by; `issuer` is empty if there is none.

    `roles` pairs a value of the claim `claim` with a role; whoever matches none may not come in.
    """

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    name: str
    claim: str
    roles: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Environment:
    """Everything the environment says, checked."""

    variables: Mapping[str, str]
    data_dir: Path
    name: str
    database: Database
    database_pool: int
    redis_url: str
    dead_letters: DeadLetters
    most_held: int
    slack: Slack
    email: Email
    entry: Entry
    oidc: Oidc
    trusted_proxies: tuple[str, ...]
    kept_days: Mapping[str, int]
    webhook_allow: tuple[str, ...]
    probe_allow: tuple[str, ...]
    prometheus_allow: tuple[str, ...]
    allowed_hosts: list[str]
    https_only: bool
    public_url: str
    time_zone: str
    port: int

    @property
    def secret_key(self) -> str:
        return self.variables.get("SECRET_KEY") or _kept_secret(self.data_dir / "secrets")


def read(variables: Mapping[str, str] = os.environ) -> Environment:
    """Read and check the environment; raises :class:`WrongVariable`."""
    data_dir = Path(variables.get("SWITCHGEAR_DATA_DIR") or ROOT / "var").absolute()
    services = _embedded_services(data_dir)
    redis_url = _url(
        variables.get("REDIS_URL") or services.get("redis_url") or "redis://127.0.0.1:6379/0",
        "REDIS_URL",
        REDIS_SCHEMES,
    )
    return Environment(
        variables=variables,
        data_dir=data_dir,
        name=_name(variables),
        database=_database(variables, services),
        database_pool=_number(variables, "DATABASE_POOL", default=0, low=0, high=1000),
        redis_url=redis_url,
        dead_letters=_dead_letters(variables, redis_url),
        most_held=_number(variables, "MAX_HELD", default=8000, low=0, high=1_000_000),
        slack=_slack(variables),
        email=_email(variables),
        entry=_entry(variables),
        oidc=_oidc(variables),
        trusted_proxies=_networks(variables, "TRUSTED_PROXIES"),
        kept_days=_kept_days(variables),
        webhook_allow=_networks(variables, "WEBHOOK_ALLOW"),
        probe_allow=_networks(variables, "PROBE_ALLOW"),
        prometheus_allow=_networks(variables, "PROMETHEUS_ALLOW", usual=OWN_NETWORKS),
        allowed_hosts=_hosts(variables),
        https_only=_flag(variables, "HTTPS_ONLY"),
        public_url=_public_url(variables),
        time_zone=_time_zone(variables),
        port=_number(variables, "PORT", default=8000, low=1, high=65535),
    )


def _embedded_services(data_dir: Path) -> dict[str, str]:
    try:
        content = (data_dir / "run" / "services.json").read_text()
    except OSError:
        return {}
    found: dict[str, str] = json.loads(content)
    return found


def _database(variables: Mapping[str, str], services: Mapping[str, str]) -> Database:
    given = variables.get("DATABASE_URL")
    source = variables if given else {k.upper(): v for k, v in services.items()}
    fallback = "postgresql://switchgear@127.0.0.1:5432/switchgear"
    url = _postgresql(source.get("DATABASE_URL") or fallback, "DATABASE_URL")
    owner = _postgresql(source.get("DATABASE_OWNER_URL") or url, "DATABASE_OWNER_URL")
    return Database(url=url, owner_url=owner, assume_role=RUNTIME_ROLE if owner == url else None)


def _postgresql(value: str, name: str) -> str:
    """Libpq's own reader judges: its URLs may name several hosts and have options of their own."""
    if not value.startswith(("postgres://", "postgresql://")):
        raise WrongVariable(name, "must be a URL starting with postgresql://")
    try:
        ports = str(conninfo_to_dict(value).get("port") or "5432").split(",")
    except psycopg.Error as error:
        # What libpq says may quote the password.
        raise WrongVariable(name, "is not a URL that PostgreSQL's library can read") from error
    if not all(port.isascii() and port.isdigit() and 0 < int(port) < 65536 for port in ports):
        raise WrongVariable(name, f"has no such port as {','.join(ports)}")
    return value


def _slack(variables: Mapping[str, str]) -> Slack:
    token, channel = variables.get("SLACK_BOT_TOKEN", ""), variables.get("SLACK_CHANNEL", "")
    webhook = variables.get("SLACK_WEBHOOK_URL", "")
    if token and not channel:
        raise WrongVariable(
            "SLACK_CHANNEL", "SLACK_BOT_TOKEN is set, so name the channel to post to"
        )
    if webhook:
        _url(webhook, "SLACK_WEBHOOK_URL", {"http", "https"})
    return Slack(
        bot_token=token,
        channel=channel,
        webhook_url=webhook,
        signing_secret=variables.get("SLACK_SIGNING_SECRET", ""),
        api_url=_url(
            variables.get("SLACK_API_URL") or "https://slack.com/api",
            "SLACK_API_URL",
            {"http", "https"},
        ),
    )


def _email(variables: Mapping[str, str]) -> Email:
    """`smtp://user:password@host:587?from=switchgear@example.org`; `smtps://` for TLS at once.

    Plain `smtp://` upgrades by STARTTLS unless the host is this machine or `?tls=off` says not to.
    """
    given = variables.get("EMAIL_URL", "")
    if not given:
        return Email("", 0, "", "", "", "")
    parts = urlsplit(_url(given, "EMAIL_URL", {"smtp", "smtps"}))
    host, options = parts.hostname or "", dict(parse_qsl(parts.query))
    if not host:
        raise WrongVariable("EMAIL_URL", "names no host")
    sender = options.get("from", f"switchgear@{host}")
    if not (sender.isprintable() and "@" in sender):
        raise WrongVariable("EMAIL_URL", "from= is not an e-mail address")
    plain = host in {"localhost", "127.0.0.1", "::1"} or options.get("tls") == "off"
    security = "tls" if parts.scheme == "smtps" else "" if plain else "starttls"
    usual = {"tls": 465, "starttls": 587, "": 25}[security]
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    return Email(host, parts.port or usual, user, password, security, sender)


def _entry(variables: Mapping[str, str]) -> Entry:
    return Entry(
        session_minutes=60 * _number(variables, "SESSION_HOURS", default=12, low=1, high=720),
        idle_minutes=_number(variables, "SESSION_IDLE_MINUTES", default=120, low=5, high=43_200),
        confirm_minutes=_number(variables, "CONFIRM_MINUTES", default=30, low=1, high=1440),
        second_factor_roles=_roles(variables, "SECOND_FACTOR_ROLES"),
    )


def _roles(variables: Mapping[str, str], name: str) -> tuple[str, ...]:
    found = tuple(variables.get(name, "").replace(",", " ").split())
    for role in found:
        _known_role(role, name)
    return found


def _known_role(role: str, name: str) -> None:
    if role not in ROLES:
        raise WrongVariable(name, f"{role!r} is no role; the roles are {', '.join(ROLES)}")


def _oidc(variables: Mapping[str, str]) -> Oidc:
    """`OIDC_ROLES`: `group=role`, several with spaces between; the strongest match counts."""
    issuer = variables.get("OIDC_ISSUER", "").rstrip("/")
    client, secret = variables.get("OIDC_CLIENT_ID", ""), variables.get("OIDC_CLIENT_SECRET", "")
    if issuer:
        _url(issuer, "OIDC_ISSUER", {"https", "http"})
        for name, value in (("OIDC_CLIENT_ID", client), ("OIDC_CLIENT_SECRET", secret)):
            if not value:
                raise WrongVariable(name, "OIDC_ISSUER is set, so this has to be")
    pairs = []
    for text in variables.get("OIDC_ROLES", "").split():
        group, is_pair, role = text.rpartition("=")
        if not (is_pair and group):
            raise WrongVariable("OIDC_ROLES", "must be group=role, several with spaces between")
        _known_role(role, "OIDC_ROLES")
        pairs.append((group, role))
    return Oidc(
        issuer=issuer,
        client_id=client,
        client_secret=secret,
        name=variables.get("OIDC_NAME") or "single sign-on",
        claim=variables.get("OIDC_CLAIM") or "groups",
        roles=tuple(pairs),
    )


def _kept_days(variables: Mapping[str, str]) -> dict[str, int]:
    """`KEPT_DAYS`: `name=days`, several with spaces between, as `manage.py retention` has them."""
    found = {}
    for text in variables.get("KEPT_DAYS", "").split():
        name, is_pair, days = text.partition("=")
        if not (is_pair and days.isascii() and days.isdigit() and 1 <= int(days) <= 36_500):
            raise WrongVariable("KEPT_DAYS", "must be name=days, several with spaces between")
        found[name] = int(days)
    return found


def _dead_letters(variables: Mapping[str, str], redis_url: str) -> DeadLetters:
    """`DLQ_SERVERS`: `name=URL`, several with spaces between; `default` is `REDIS_URL` unless it is
    among them. `DLQ_PATTERNS`: `axiom:dlq:{stream}=axiom:{stream}`, several in the same way."""
    servers = {"default": redis_url}
    for text in variables.get("DLQ_SERVERS", "").split():
        name, is_named, url = text.partition("=")
        if not (is_named and SERVER_NAME.fullmatch(name)):
            raise WrongVariable("DLQ_SERVERS", "must be name=URL, several with spaces between")
        servers[name] = _url(url, "DLQ_SERVERS", REDIS_SCHEMES | {"redis+cluster"})
    patterns = variables.get("DLQ_PATTERNS") or "axiom:dlq:{stream}=axiom:{stream}"
    hidden = variables.get("DLQ_HIDDEN_KEYS") or HIDDEN_KEYS
    return DeadLetters(
        servers=servers,
        patterns=tuple(_pattern(text) for text in patterns.split()),
        kept_days=_number(variables, "DLQ_KEPT_DAYS", default=30, low=1, high=3650),
        most_kept=_number(variables, "DLQ_MOST_KEPT", default=5000, low=1, high=10_000_000),
        hidden_keys=tuple(key.strip().lower() for key in hidden.split(",") if key.strip()),
    )


def _pattern(text: str) -> tuple[str, str]:
    """How streams of dead letters are named, and where their letters came from."""
    dead, is_pair, origin = text.partition("=")
    place = "{stream}"
    if not is_pair or dead.count(place) != 1 or origin.count(place) != 1 or dead == origin:
        raise WrongVariable(
            "DLQ_PATTERNS",
            "must be like axiom:dlq:{stream}=axiom:{stream}, several with spaces between",
        )
    return dead, origin


def _networks(variables: Mapping[str, str], name: str, usual: str = "") -> tuple[str, ...]:
    """Networks (CIDR) that may be reached although they are not public: by webhooks, by probes, by
    questions to Prometheus servers."""
    networks = [text.strip() for text in variables.get(name, usual).split(",")]
    networks = [text for text in networks if text]
    for network in networks:
        try:
            ip_network(network)
        except ValueError as error:
            raise WrongVariable(name, f"{network!r} is not a network") from error
    return tuple(networks)


def _url(value: str, name: str, schemes: set[str]) -> str:
    try:
        parts = urlsplit(value)
        port_is_sane = parts.port is None or parts.port > 0
    except ValueError as error:
        raise WrongVariable(name, f"is not a URL ({error})") from error
    local = parts.scheme == "unix" and parts.path
    if parts.scheme not in schemes or not port_is_sane or not (parts.netloc or local):
        raise WrongVariable(name, f"must be a URL starting with {' or '.join(sorted(schemes))}://")
    return value


def _name(variables: Mapping[str, str]) -> str:
    name = (variables.get("ENVIRONMENT_NAME") or "development").strip()
    if not (0 < len(name) <= 40 and name.isprintable()):
        raise WrongVariable("ENVIRONMENT_NAME", "must be 1 to 40 printable characters on one line")
    return name


def _hosts(variables: Mapping[str, str]) -> list[str]:
    given = variables.get("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
    hosts = [host.strip() for host in given.split(",") if host.strip()]
    if not hosts or any("/" in host or " " in host for host in hosts):
        raise WrongVariable("ALLOWED_HOSTS", "must be host names separated by commas")
    return hosts


def _public_url(variables: Mapping[str, str]) -> str:
    """Where people reach the console, for links in messages; empty if nobody said."""
    given = variables.get("PUBLIC_URL", "").rstrip("/")
    return _url(given, "PUBLIC_URL", {"http", "https"}) if given else ""


def _flag(variables: Mapping[str, str], name: str) -> bool:
    value = variables.get(name, "false").lower()
    if value not in {"true", "false", "1", "0", ""}:
        raise WrongVariable(name, "must be true or false")
    return value in {"true", "1"}


def _time_zone(variables: Mapping[str, str]) -> str:
    name = variables.get("TIME_ZONE") or "UTC"
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError) as error:
        raise WrongVariable("TIME_ZONE", f"no time zone is named {name!r}") from error
    return name


def _number(variables: Mapping[str, str], name: str, *, default: int, low: int, high: int) -> int:
    value = variables.get(name) or str(default)
    if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
        raise WrongVariable(name, f"must be a whole number from {low} to {high}")
    return int(value)


def _kept_secret(folder: Path) -> str:
    """The generated SECRET_KEY: made once, readable by nobody else, kept apart from all else.

    Several processes may start at once: each writes a whole file of its own, one links it in.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        problem = f"{folder} can't be made ({error.strerror})"
        raise WrongVariable("SWITCHGEAR_DATA_DIR", problem) from error
    path = folder / "secret_key"
    if not path.exists():
        candidate = folder / f".secret_key.{secrets.token_hex(8)}"
        descriptor = os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):
            os.link(candidate, path)
        candidate.unlink()
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise WrongVariable("SECRET_KEY", f"{path} can be read by others; chmod 600 it")
    return path.read_text()
