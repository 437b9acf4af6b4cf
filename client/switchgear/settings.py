"""What a client is told: by its arguments, or by the environment it runs in."""

import logging
import os
import re
import socket
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from switchgear.evaluation.snapshot import switch_id

MAX_NAME_LENGTH = 120

log = logging.getLogger("switchgear")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a client: the console and the identity of this process.

    `url` is the console's base URL, None for a client that has no console; an `offline` client does
    not contact it, and needs no token. `service` and `instance` are what its screens call this
    process. `state_dir` is where the last good snapshot is kept, None for nowhere. `forced` are the
    ids of switches engaged here whatever the console says. Without `stream` and `reports` the
    console is only polled. Raises :class:`ValueError` or :class:`TypeError`, naming what is wrong.
    """

    url: str | None
    token: str = field(default="", repr=False)
    service: str = "unnamed"
    instance: str = ""
    state_dir: Path | None = None
    forced: frozenset[str] = frozenset()
    stream: bool = True
    reports: bool = True
    offline: bool = False
    own_name: bool = True
    """Whether `instance` was made up here, by :func:`own_instance`."""

    def __post_init__(self) -> None:
        for name, text in (("url", self.url), ("token", self.token)):
            if not isinstance(text, str | None):
                raise TypeError(f"{name} must be a string, not {type(text).__name__:.100}")
        if self.url is not None:
            wrong = url_problem(self.url) or (None if self.offline else token_problem(self.token))
            if wrong is not None:
                raise ValueError(wrong)
        for name in ("service", "instance"):
            if not is_name(getattr(self, name)):
                raise ValueError(
                    f"{name} must be 1 to {MAX_NAME_LENGTH} printable characters without spaces or"
                    f" slashes, not {getattr(self, name)!r:.200}"
                )

    @property
    def name(self) -> str:
        """What it calls itself to the console: `service/instance`."""
        return f"{self.service}/{self.instance}"

    @property
    def has_console(self) -> bool:
        """True if there is a console to contact."""
        return self.url is not None and not self.offline

    @property
    def is_plain(self) -> bool:
        """Whether the token goes over a network unencrypted."""
        parts = urlsplit(self.url or "")
        return (
            self.has_console
            and parts.scheme == "http"
            and parts.hostname not in ("localhost", "127.0.0.1", "::1")
        )

    def for_child(self) -> "Settings":
        """Those of a process that was forked from this one: it is an instance of its own."""
        given = f"{self.instance[: MAX_NAME_LENGTH - 12]}-{os.getpid()}"
        return replace(self, instance=own_instance() if self.own_name else given)


def is_name(text: object) -> bool:
    """Whether the console takes this as the name of a service, or of an instance."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= MAX_NAME_LENGTH
        and text.isprintable()
        and not re.search(r"[\s/\ufffd]", text)
        and not text.startswith("token:")
    )


def as_name(text: str) -> str:
    """Return `text` with hyphens for invalid characters; empty if nothing else is left."""
    cleaned = "".join(each if each.isprintable() else "-" for each in text)
    cleaned = re.sub(r"[\s/\ufffd]+", "-", cleaned).strip("-")
    return re.sub(r"^token:", "token-", cleaned)[:MAX_NAME_LENGTH]


def own_instance() -> str:
    """The host's name (in Kubernetes the pod's) and the process id."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "host"
    return f"{host[: MAX_NAME_LENGTH - 12]}-{os.getpid()}"


def default_state_dir() -> Path | None:
    """`$XDG_STATE_HOME/switchgear` or `~/.local/state/switchgear`; where there is no home, a folder
    of this user's own among the temporary ones. None, and a warning, where nothing can be kept."""
    given = os.environ.get("XDG_STATE_HOME")
    if given and Path(given).is_absolute():
        return Path(given, "switchgear")
    try:
        home = Path.home()
    except RuntimeError:
        home = Path()
    if home.is_absolute() and home.is_dir() and os.access(home, os.W_OK):
        return home / ".local" / "state" / "switchgear"
    try:
        return Path(tempfile.gettempdir(), f"switchgear-{os.getuid()}")
    except OSError:
        log.warning(
            "switchgear: there is no folder to keep the last good snapshot in: until the console"
            " is heard nothing is engaged; give one as SWITCHGEAR_STATE_DIR"
        )
        return None


def read_forced(words: str | Iterable[str]) -> tuple[frozenset[str], list[str]]:
    """Return the switch ids in `segment:finance,feature:chat`, and a problem for each other word.

    `global` alone means `global:all`. Semicolons and spaces separate, too, and quotes are ignored:
    it may be written in a hurry, and its valid ids must apply.
    """
    if isinstance(words, str):
        words = re.split(r"[,;\s]+", words)
    forced, problems = set(), []
    for word in words:
        name = word.strip(" \t\r\n\"'") if isinstance(word, str) else word
        if name == "":
            continue
        try:
            forced.add(switch_id(name))
        except (TypeError, ValueError):
            problems.append(
                f"{name!r:.200} is not forced: it is not a switch id such as segment:finance"
            )
    return frozenset(forced), problems


def url_problem(url: str) -> str | None:
    """Return the reason why `url` is invalid, without quoting it; None if it is valid."""
    try:
        parts = urlsplit(url)
        sane = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        printable = url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        sane = plain = printable = False
    if sane and plain and printable:
        return None
    return (
        "url must be the console's address, such as https://switchgear.example, without"
        " credentials, query or fragment"
    )


def token_problem(token: str) -> str | None:
    """Return the reason why `token` is invalid, without quoting it; None if it is valid."""
    if token and token.isascii() and token.isprintable() and " " not in token:
        return None
    return "token must be a token of the console: sg_<prefix>_<secret>"
