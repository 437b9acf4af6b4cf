"""An HTTP client of the console's API for commands; it raises :class:`exits.CommandExit`."""

import json
import time
import urllib.request
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from switchgear.cli import exits
from switchgear.console.address import Address
from switchgear.console.errors import RequestFailed
from switchgear.console.transport import Connection, Response
from switchgear.settings import Settings

API = "/api/v1"
REQUEST_SECONDS = 15.0
"""Timeout of one request. The console itself gives up after 10 s."""
PAGE_SIZE = 200
MAX_PAGES = 50
MAX_BYTES = 64 * 2**20
ENVIRONMENT_HEADER = "switchgear-environment"
MAX_ENVIRONMENT_LENGTH = 40

Document = dict[str, Any]
Query = Mapping[str, object]


class ApiClient:
    """A client of the console's API; error responses raise :class:`exits.CommandExit`."""

    def __init__(self, url: str, token: str, retry_seconds: float) -> None:
        try:
            Settings(url=url, token=token, instance="cli")
        except ValueError as error:
            code = exits.NO_RIGHTS if str(error).startswith("token") else exits.USAGE
            raise exits.make_exit(code, "settings", f"{error}.") from None
        self.token = token
        """The token, for the handshake of the live socket."""
        self._retry_seconds = retry_seconds
        self._connection = Connection(Address.parse(url), token, agent="switchgear-cli")
        self._skew = 0.0
        self._environment = ""
        self.has_changed = False
        """True once the console accepted a change."""

    @property
    def host(self) -> str:
        """The console's host and base path, for messages."""
        return self._connection.address.authority + self._connection.address.base

    @property
    def title(self) -> str:
        """The console's environment, if known, and its host, for titles."""
        return f"{self._environment} · {self.host}" if self._environment else self.host

    @property
    def socket_scheme(self) -> str:
        return "wss" if self._connection.address.scheme == "https" else "ws"

    @property
    def now(self) -> datetime:
        """The current time by the console's clock."""
        return datetime.fromtimestamp(time.time() + self._skew, UTC)

    def close(self) -> None:
        self._connection.close()

    def get(
        self,
        path: str,
        query: Query | None = None,
        seconds: float = REQUEST_SECONDS,
        kind: type = dict,
    ) -> Any:
        """Return the JSON at `path`: an object, or an array if `kind` is `list`."""
        return self._request("GET", path, kind, query, seconds=seconds)

    def send(
        self,
        method: str,
        path: str,
        body: Query,
        query: Query | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Document:
        """Send a change; an idempotency key makes the retry after a lost response safe."""
        values = {name: value for name, value in body.items() if value is not None}
        document: Document = self._request(method, path, dict, query, values, seconds)
        self.has_changed = True
        return document

    def unexpected_answer(self) -> exits.CommandExit:
        """Return the exit with the message that the server does not respond as a console does."""
        detail = f"{self.host} doesn't respond like a Switchgear console."
        detail += " Is SWITCHGEAR_URL right?"
        if self.has_changed:
            detail += (
                " The change was sent and the server responded, so check its state before you"
                " repeat it."
            )
        return exits.make_exit(exits.UNREACHABLE, "no-console", detail)

    def get_pages(
        self, path: str, query: Query | None = None, most: int = MAX_PAGES * PAGE_SIZE
    ) -> Document:
        """Return one document with the items of all pages of a list.

        Its field `more` is True if there are over `most` items.
        """
        parameters: dict[str, object] = {**(query or {}), "limit": min(PAGE_SIZE, most)}
        results: list[Any] = []
        following: object = None
        for _ in range(MAX_PAGES):
            page, before = self.get(path, parameters), following
            if not isinstance(page.get("results"), list):
                raise self.unexpected_answer()
            results += page["results"]
            following = page.get("next")
            if not following or following == before or len(results) >= most:
                break
            parameters = dict(parse_qsl(urlsplit(str(following)).query))
        more = bool(following) or len(results) > most
        return {**page, "next": following, "results": results[:most], "more": more}

    def _request(
        self,
        method: str,
        path: str,
        kind: type,
        query: Query | None = None,
        body: Query | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Any:
        """Return the JSON of the response, which must be of type `kind`."""
        values = {name: value for name, value in (query or {}).items() if value is not None}
        target = f"{API}{path}?{urlencode(values)}" if values else f"{API}{path}"
        headers = {"Accept": "application/json"}
        content = None
        if body is not None:
            content = json.dumps(body, ensure_ascii=False).encode()
            key = uuid.uuid4().hex
            headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            response = self._send_with_retry(method, target, headers, content, seconds)
        except RequestFailed as failed:
            raise self._connection_exit(failed, sent=content is not None) from None
        self._read_headers(response)
        return self._parse_response(response, kind, sent=content is not None)

    def _send_with_retry(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        content: bytes | None,
        seconds: float,
    ) -> Response:
        """Send the request; if no response comes, retry it once, except for a slow GET."""
        for last in (False, True):
            started = time.monotonic()
            try:
                return self._connection.request(
                    method, target, headers, content, seconds, MAX_BYTES
                )
            except RequestFailed as failed:
                slow = time.monotonic() - started > seconds / 2
                if last or failed.status is not None or (content is None and slow):
                    raise
                time.sleep(self._retry_seconds)
        raise AssertionError

    def _parse_response(self, response: Response, kind: type, *, sent: bool) -> Any:
        is_good = 200 <= response.status < 300
        self.has_changed = self.has_changed or (sent and is_good)
        is_json = "json" in response.headers.get("content-type", "")
        try:
            document = json.loads(response.body) if is_json and response.body else None
        except (ValueError, RecursionError):
            raise self.unexpected_answer() from None
        if is_good:
            if not isinstance(document, kind):
                raise self.unexpected_answer()
            return document
        if isinstance(document, dict) and "detail" in document:
            retry_after = response.headers.get("retry-after", "")
            raise exits.make_problem_exit(document, response.status, retry_after)
        raise self._status_exit(response)

    def _read_headers(self, response: Response) -> None:
        # A proxy's response lacks this header.
        if named := response.headers.get(ENVIRONMENT_HEADER, ""):
            self._environment = unquote(named)[:MAX_ENVIRONMENT_LENGTH]
        try:
            server_time = parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return
        skew = server_time.timestamp() - time.time()
        self._skew = skew if abs(skew) > 2 else 0.0  # `Date` is in whole seconds.

    def _connection_exit(self, failed: RequestFailed, *, sent: bool) -> exits.CommandExit:
        address = self._connection.address
        proxy = _find_proxy(address)
        way = f" via the proxy {proxy} (HTTP_PROXY, HTTPS_PROXY, NO_PROXY)" if proxy else ""
        detail = f"Can't reach the console at {self.host}{way}: {failed.why}."
        if sent and not isinstance(failed.__cause__, ConnectionRefusedError):
            detail += " The change may have been made: check before you repeat it."
        return exits.make_exit(exits.UNREACHABLE, "unreachable", detail)

    def _status_exit(self, response: Response) -> exits.CommandExit:
        if 300 <= response.status < 400:
            there = response.headers.get("location", "elsewhere").partition("?")[0]
            detail = (
                f"{self.host} redirects to {there}. Set SWITCHGEAR_URL to the console's own"
                " address."
            )
            return exits.make_exit(exits.UNREACHABLE, "redirected", detail)
        detail = f"{self.host} returned {response.status}, not a Switchgear response."
        if response.status < 500:
            detail += " Is SWITCHGEAR_URL right?"
        return exits.make_exit(exits.UNREACHABLE, "no-console", detail, status=response.status)


def url_path(*parts: object) -> str:
    """Return a URL path of the quoted `parts`, such as `/dlq/streams/axiom%3Adlq%3Aevents`."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def switch_path(name: str) -> str:
    """Return the path of a switch: `/switches/segment/finance` for `segment:finance`."""
    return f"/switches{url_path(*name.split(':', 1))}"


def _find_proxy(address: Address) -> str:
    found = urllib.request.getproxies().get(address.scheme, "")
    if not found or urllib.request.proxy_bypass(f"{address.host}:{address.port}"):
        return ""
    return found.rpartition("://")[2].rpartition("@")[2].partition("/")[0]
