"""What a client is told: by its arguments, or by the environment it runs in."""

import logging
import os
import re
import socket
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from switchgear.deciding.snapshot import switch_id

LONGEST_NAME = 120

log = logging.getLogger("switchgear")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where the console is, and who asks.

    `url` is the console's base URL, None for a client that has no console. `service` and `instance`
    are what its screens call this process. `state_dir` is where the last good snapshot is kept,
    None for nowhere. `forced` are the ids of switches engaged here whatever the console says.
    Without `stream` and `reports` the console is only polled. Raises :class:`ValueError`, naming
    what is wrong.
    """

    url: str | None
    token: str = field(default="", repr=False)
    service: str = "unnamed"
    instance: str = ""
    state_dir: Path | None = None
    forced: frozenset[str] = frozenset()
    stream: bool = True
    reports: bool = True
    own_name: bool = True
    """Whether `instance` was made up here, by :func:`own_instance`."""

    def __post_init__(self) -> None:
        if self.url is not None:
            _check_url(self.url)
            _check_token(self.token)
        for name in ("service", "instance"):
            if not is_name(getattr(self, name)):
                raise ValueError(
                    f"{name} must be 1 to {LONGEST_NAME} printable characters without spaces or"
                    f" slashes, not {getattr(self, name)!r:.200}"
                )

    @property
    def name(self) -> str:
        """What it calls itself to the console: `service/instance`."""
        return f"{self.service}/{self.instance}"

    @property
    def is_plain(self) -> bool:
        """Whether the token goes over a network unencrypted."""
        parts = urlsplit(self.url or "")
        return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")

    def for_child(self) -> "Settings":
        """Those of a process that was forked from this one: it is an instance of its own."""
        given = f"{self.instance[: LONGEST_NAME - 12]}-{os.getpid()}"
        return replace(self, instance=own_instance() if self.own_name else given)


def is_name(text: object) -> bool:
    """Whether the console takes this as the name of a service, or of an instance."""
    return (
        isinstance(text, str)
        and 0 < len(text) <= LONGEST_NAME
        and text.isprintable()
        and not re.search(r"[\s/\ufffd]", text)
        and not text.startswith("token:")
    )


def own_instance() -> str:
    """The host's name (in Kubernetes the pod's) and the process id."""
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()) or "host"
    return f"{host[: LONGEST_NAME - 12]}-{os.getpid()}"


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


def read_forced(words: str | Iterable[str]) -> frozenset[str]:
    """Switch ids from `segment:finance,feature:chat`; `global` alone means `global:all`.

    Semicolons and spaces part them, too, and quotes are left aside. What is no switch id is logged
    as an error and left out: somebody in a hurry wrote it, and the rest of what they wrote has to
    hold.
    """
    if isinstance(words, str):
        words = re.split(r"[,;\s]+", words)
    forced = set()
    for word in words:
        name = word.strip(" \t\r\n\"'") if isinstance(word, str) else word
        if name == "":
            continue
        try:
            forced.add(switch_id(name))
        except (TypeError, ValueError):
            log.error(
                "switchgear: %r is not forced: it is no switch id such as segment:finance", name
            )
    return frozenset(forced)


def from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """The arguments of a client that the environment gives. See the README for the variables."""
    found: dict[str, object] = {
        "url": environment.get("SWITCHGEAR_URL") or None,
        "token": environment.get("SWITCHGEAR_TOKEN", ""),
    }
    for argument in ("service", "instance", "state_dir"):
        if value := environment.get(f"SWITCHGEAR_{argument.upper()}"):
            found[argument] = value
    return found


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        sane = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        plain = not (parts.query or parts.fragment or parts.username or parts.password)
        printable = url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        sane = plain = printable = False
    if not (sane and plain and printable):
        raise ValueError(
            "url must be the console's address, such as https://switchgear.example, without"
            " credentials, query or fragment"
        )


def _check_token(token: str) -> None:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("token must be a token of the console: sg_<prefix>_<secret>")
