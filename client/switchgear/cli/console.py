"""The console's HTTP API as a command uses it: one question after the other, errors in words."""

import json
import time
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
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
SECONDS = 15.0
"""Of one question. The console itself gives up after 10."""
PAGE = 200
MAX_PAGES = 50
MAX_BYTES = 64 * 2**20
ENVIRONMENT = "switchgear-environment"
MAX_ENVIRONMENT_LENGTH = 40

Document = dict[str, Any]
Query = Mapping[str, object]


@dataclass(frozen=True)
class Answer:
    status: int
    document: Any


@dataclass(frozen=True)
class _Question:
    method: str
    path: str
    query: Query | None = None
    body: Query | None = None
    seconds: float = SECONDS

    def content(self) -> bytes | None:
        """Raises :class:`UnicodeEncodeError` for text that was not UTF-8 when it was typed."""
        return None if self.body is None else json.dumps(self.body, ensure_ascii=False).encode()


class Console:
    """Raises :class:`exits.Ended` for whatever is not a good answer."""

    def __init__(self, url: str, token: str, retry_seconds: float) -> None:
        try:
            Settings(url=url, token=token, instance="cli")
        except ValueError as error:
            code = exits.NO_RIGHTS if str(error).startswith("token") else exits.USAGE
            raise exits.ended(code, "settings", f"{error}.") from None
        self._token = token
        self._retry_seconds = retry_seconds
        self._connection = Connection(Address.parse(url), token, agent="switchgear-cli")
        self._skew = 0.0
        self._environment = ""
        self.has_changed = False
        """Whether the console said yes to a change."""

    @property
    def host(self) -> str:
        """What it is called in a complaint."""
        return self._connection.address.authority + self._connection.address.base

    @property
    def where(self) -> str:
        """What it is called in a headline: its environment, once it said so, and address."""
        return f"{self._environment} · {self.host}" if self._environment else self.host

    @property
    def socket_scheme(self) -> str:
        return "wss" if self._connection.address.scheme == "https" else "ws"

    @property
    def token(self) -> str:
        """For the live socket's handshake, and nothing else."""
        return self._token

    @property
    def now(self) -> datetime:
        """By the console's clock, which may differ from this machine's."""
        return datetime.fromtimestamp(time.time() + self._skew, UTC)

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str, query: Query | None = None, seconds: float = SECONDS) -> Any:
        """One resource."""
        return self._ask(_Question("GET", path, query, seconds=seconds), dict).document

    def items(self, path: str, query: Query | None = None) -> list[Any]:
        """A list that comes whole, without pages."""
        found: list[Any] = self._ask(_Question("GET", path, query), list).document
        return found

    def send(self, method: str, path: str, body: Query, query: Query | None = None) -> Answer:
        """A change. It has a key of its own, so that asking again after a lost answer is safe."""
        given = {name: value for name, value in body.items() if value is not None}
        answer = self._ask(_Question(method, path, query, given), dict)
        self.has_changed = True
        return answer

    def strange(self) -> exits.Ended:
        """An end because of an answer that is none of this API's."""
        said = f"{self.host} does not answer as a Switchgear console does. Is SWITCHGEAR_URL right?"
        if self.has_changed:
            said += " What was asked for was sent, and answered: look before you repeat it."
        return exits.ended(exits.UNREACHABLE, "no-console", said)

    def pages(
        self, path: str, query: Query | None = None, most: int = MAX_PAGES * PAGE
    ) -> Document:
        """Lists that come in pages, as one; `more` says whether there is more than `most`."""
        asked: dict[str, object] = {**(query or {}), "limit": min(PAGE, most)}
        results: list[Any] = []
        following: object = None
        for _ in range(MAX_PAGES):
            page, before = self.get(path, asked), following
            if not isinstance(page.get("results"), list):
                raise self.strange()
            results += page["results"]
            following = page.get("next")
            if not following or following == before or len(results) >= most:
                break
            asked = dict(parse_qsl(urlsplit(str(following)).query))
        more = bool(following) or len(results) > most
        return {**page, "next": following, "results": results[:most], "more": more}

    def _ask(self, question: "_Question", kind: type) -> Answer:
        """The answer, whose document is of this kind."""
        target = f"{API}{question.path}{_query(question.query)}"
        headers = {"Accept": "application/json"}
        content = question.content()
        if content is not None:
            key = uuid.uuid4().hex
            headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            response = self._exchange(question, target, headers, content)
        except RequestFailed as failed:
            raise self._lost(failed, sent=content is not None) from None
        self._hear(response)
        return self._read(response, kind, sent=content is not None)

    def _exchange(
        self, question: "_Question", target: str, headers: Mapping[str, str], content: bytes | None
    ) -> Response:
        """Once more if no answer came, where that can't take long or may have been done."""
        seconds = question.seconds
        for last in (False, True):
            asked = time.monotonic()
            try:
                return self._connection.request(
                    question.method, target, headers, content, seconds, MAX_BYTES
                )
            except RequestFailed as failed:
                slow = time.monotonic() - asked > seconds / 2
                if last or failed.status is not None or (content is None and slow):
                    raise
                time.sleep(self._retry_seconds)
        raise AssertionError

    def _read(self, response: Response, kind: type, *, sent: bool) -> Answer:
        is_good = 200 <= response.status < 300
        self.has_changed = self.has_changed or (sent and is_good)
        is_json = "json" in response.headers.get("content-type", "")
        try:
            document = json.loads(response.body) if is_json and response.body else None
        except (ValueError, RecursionError):
            raise self.strange() from None
        if is_good:
            if not isinstance(document, kind):
                raise self.strange()
            return Answer(response.status, document)
        if isinstance(document, dict) and "detail" in document:
            retry_after = response.headers.get("retry-after", "")
            raise exits.refused(document, response.status, retry_after)
        raise self._no_console(response)

    def _hear(self, response: Response) -> None:
        if named := response.headers.get(ENVIRONMENT, ""):  # Not all paths are the console's own.
            self._environment = unquote(named)[:MAX_ENVIRONMENT_LENGTH]
        try:
            said = parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return
        skew = said.timestamp() - time.time()
        self._skew = skew if abs(skew) > 2 else 0.0  # `Date` is in whole seconds.

    def _lost(self, failed: RequestFailed, *, sent: bool) -> exits.Ended:
        address = self._connection.address
        proxy = _proxy(address)
        way = f", by the proxy {proxy} (HTTP_PROXY, HTTPS_PROXY, NO_PROXY)," if proxy else ""
        detail = f"The console at {self.host}{way} can't be used: {failed.why}."
        if sent and not isinstance(failed.__cause__, ConnectionRefusedError):
            detail += " It is not known whether this was done: look before you repeat it."
        return exits.ended(exits.UNREACHABLE, "unreachable", detail)

    def _no_console(self, response: Response) -> exits.Ended:
        if 300 <= response.status < 400:
            there = response.headers.get("location", "elsewhere").partition("?")[0]
            said = f"{self.host} redirects to {there}: set SWITCHGEAR_URL to the console itself."
            return exits.ended(exits.UNREACHABLE, "redirected", said)
        said = f"{self.host} answers {response.status}, and not as a Switchgear console does."
        if response.status < 500:
            said += " Is SWITCHGEAR_URL right?"
        return exits.ended(exits.UNREACHABLE, "no-console", said, status=response.status)


def place(*parts: object) -> str:
    """A path of these parts, whatever letters they have: `/dlq/streams/axiom%3Adlq%3Aevents`."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def switch_path(name: str) -> str:
    """Of `segment:finance`: `/switches/segment/finance`."""
    return f"/switches{place(*name.split(':', 1))}"


def _proxy(address: Address) -> str:
    """The proxy on the way there, without what it is told of who asks."""
    found = urllib.request.getproxies().get(address.scheme, "")
    if not found or urllib.request.proxy_bypass(f"{address.host}:{address.port}"):
        return ""
    return found.rpartition("://")[2].rpartition("@")[2].partition("/")[0]


def _query(query: Query | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
