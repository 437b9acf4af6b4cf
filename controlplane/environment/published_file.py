"""Settings of the published file: the signed snapshot in a directory, or at a URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from controlplane.core import environment_variables as env

TARGET = "SNAPSHOT_PUBLISH_TO"
TOKEN = "SNAPSHOT_PUBLISH_TOKEN"  # noqa: S105 - a variable's name
ALLOW = "SNAPSHOT_PUBLISH_ALLOW"
MAX_URL_LENGTH = 500


@dataclass(frozen=True)
class PublishedFileSettings:
    """The place to which data planes write the signed snapshot: a `folder`, or a `url` by PUT.

    Without either, it is not written. The URL may be in `networks` (CIDR) besides public addresses.
    """

    folder: Path | None = None
    url: str = ""
    token: str = field(default="", repr=False)
    networks: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        return self.folder is not None or bool(self.url)


def read_published_file(variables: Mapping[str, str], usual_networks: str) -> PublishedFileSettings:
    """Read the `SNAPSHOT_PUBLISH_` variables; raise :class:`WrongVariable`."""
    location, token = variables.get(TARGET, "").strip(), variables.get(TOKEN, "")
    networks = env.read_networks(variables, ALLOW, usual=usual_networks)
    is_url = "://" in location
    if token and not is_url:
        raise env.WrongVariable(TOKEN, f"is set, but {TARGET} is not a URL")
    if not (token.isascii() and (token.isprintable() or not token) and " " not in token):
        raise env.WrongVariable(TOKEN, "must be printable characters without spaces")
    if is_url:
        parts = urlsplit(env.check_url(location, TARGET, {"http", "https"}))
        if parts.fragment or "@" in parts.netloc or len(location) > MAX_URL_LENGTH:
            raise env.WrongVariable(TARGET, "must be a short URL without user name and fragment")
        return PublishedFileSettings(url=location, token=token, networks=networks)
    if location and not Path(location).is_absolute():
        raise env.WrongVariable(TARGET, "must be the absolute path of a directory, or a URL")
    return PublishedFileSettings(folder=Path(location) if location else None, networks=networks)
