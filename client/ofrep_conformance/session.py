"""Requests to the server under test, with the standard library's HTTP client."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from .manifest import CREDENTIAL_HEADERS, KnownFlag, Manifest

FLAGS_PATH = "/ofrep/v1/evaluate/flags"
CONFIGURATION_PATH = "/ofrep/v1/configuration"
MAX_RESPONSE_BYTES = 16 * 1024 * 1024
JSON_TYPE = "application/json"


class NoResponse(Exception):
    """No complete HTTP response arrived in time."""


@dataclass(frozen=True)
class FlagResponse:
    """An HTTP response; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def parse_json(self) -> Any:
        """Return the parsed body; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def as_object(self) -> Mapping[str, Any]:
        """Return the body's JSON object; an empty one if it is something else."""
        document = self.parse_json()
        return document if isinstance(document, dict) else {}


class Session:
    """Requests with the manifest's headers, each on a connection of its own."""

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        address = urlsplit(manifest.url)
        self._host, self._port = address.hostname or "", address.port
        self._is_secure = address.scheme == "https"
        self._prefix = address.path.rstrip("/")

    def evaluate(self, key: str, context: Any = None, **options: Any) -> FlagResponse:
        """Evaluate one flag, with the manifest's context if none is given."""
        found = self.manifest.context if context is None else context
        return self.post(flag_path(key), {"context": found}, **options)

    def evaluate_all(self, context: Any = None, **headers: str) -> FlagResponse:
        """Evaluate all flags; `if_none_match` becomes that header."""
        found = self.manifest.context if context is None else context
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post(FLAGS_PATH, {"context": found}, headers=named)

    def post(self, path: str, document: Any, **options: Any) -> FlagResponse:
        return self.send("POST", path, json.dumps(document).encode(), **options)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        with_credentials: bool = True,
    ) -> FlagResponse:
        """Send a request; raise :class:`NoResponse` if no response arrives in time."""
        sent = self.make_headers(with_credentials=with_credentials)
        if body is not None:
            sent["Content-Type"] = JSON_TYPE
        with self.connect() as connection, _as_unreachable(f"{method} {path}"):
            connection.request(method, self._prefix + path, body, {**sent, **(headers or {})})
            received = connection.getresponse()
            content = _read_body(received, self.manifest.timeout)
        return FlagResponse(received.status, _lower_names(received), content)

    @contextmanager
    def open_stream(self, url: str) -> Iterator[tuple[FlagResponse, HTTPResponse]]:
        """Yield the head of a stream's response, and the response to read on.

        Only the server's own origin gets the manifest's headers, which may be credentials.
        """
        with _as_unreachable(f"GET {url}"):
            target = urlsplit(urljoin(self.manifest.url, url))
            is_secure = target.scheme == "https"
            origin = (is_secure, target.hostname, target.port)
            kind = HTTPSConnection if is_secure else HTTPConnection
            connection = kind(target.hostname or "", target.port, timeout=self.manifest.timeout)
        path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"
        is_own = origin == (self._is_secure, self._host, self._port)
        sent = self.make_headers() if is_own else {}
        try:
            with _as_unreachable(f"GET {target.path}"):
                connection.request("GET", path, headers={**sent, "Accept": "text/event-stream"})
                received = connection.getresponse()
            yield FlagResponse(received.status, _lower_names(received), b""), received
        finally:
            connection.close()

    @contextmanager
    def connect(self) -> Iterator[HTTPConnection]:
        kind = HTTPSConnection if self._is_secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=self.manifest.timeout)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def hold_unfinished_request(self, path: str) -> Iterator[None]:
        """Keep a request open whose body never arrives in full."""
        with self.connect() as connection, _as_unreachable(f"POST {path}"):
            connection.putrequest("POST", self._prefix + path)
            for name, value in self.make_headers().items():
                connection.putheader(name, value)
            connection.putheader("Content-Type", JSON_TYPE)
            connection.putheader("Content-Length", "100")
            connection.endheaders(b'{"context"')
            yield

    def make_headers(self, *, with_credentials: bool = True) -> dict[str, str]:
        return {
            name: value
            for name, value in self.manifest.headers.items()
            if with_credentials or name.lower() not in CREDENTIAL_HEADERS
        }

    def flags_of_type(self, *kinds: type) -> list[KnownFlag]:
        return [flag for flag in self.manifest.flags if type(flag.value) in kinds]


def flag_path(key: str, *, escape_all: bool = False) -> str:
    """Return the path of a flag; `escape_all` percent-encodes letters and digits, too."""
    escaped = (
        "".join(f"%{byte:02X}" for byte in key.encode()) if escape_all else quote(key, safe="")
    )
    return f"{FLAGS_PATH}/{escaped}"


@contextmanager
def _as_unreachable(request: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise NoResponse(f"{request}: no response in time") from error
    except (OSError, HTTPException, ValueError) as error:  # ValueError: of an invalid address
        raise NoResponse(f"{request}: {error or type(error).__name__}") from error


def _read_body(received: HTTPResponse, seconds: float) -> bytes:
    """Read a body, up to the limit; raise :class:`TimeoutError` if it takes longer than this."""
    deadline = time.monotonic() + seconds
    content = bytearray()
    while len(content) < MAX_RESPONSE_BYTES and (part := received.read1(65536)):
        content += part
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(content)


def _lower_names(received: HTTPResponse) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in received.getheaders():
        known = found.get(name.lower())
        found[name.lower()] = value if known is None else f"{known}, {value}"
    return found
