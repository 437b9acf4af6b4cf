"""The console's HTTP API as a command uses it: one question after the other, errors in words."""

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from switchgear.cli import exits
from switchgear.following.transport import Address, Connection, Failed, Response
from switchgear.settings import Settings

API = "/api/v1"
SECONDS = 15.0
"""Of one question. The console itself gives up after 10."""
RETRY_SECONDS = 0.5
PAGE = 200
MOST_PAGES = 50
MOST_BYTES = 64 * 2**20

Document = dict[str, Any]
Query = Mapping[str, object]


@dataclass(frozen=True)
class Answer:
    status: int
    document: Any


class Console:
    """Raises :class:`exits.Ended` for whatever is not a good answer."""

    def __init__(self, url: str, token: str) -> None:
        try:
            Settings(url=url, token=token, instance="cli")
        except ValueError as error:
            code = exits.NO_RIGHTS if str(error).startswith("token") else exits.USAGE
            raise exits.ended(code, "settings", f"{error}.") from None
        self._token = token
        self._connection = Connection(Address.of(url), token, agent="switchgear-cli")
        self._skew = 0.0

    @property
    def host(self) -> str:
        """What it is called in a headline."""
        return self._connection.address.authority + self._connection.address.base

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

    def get(self, path: str, query: Query | None = None) -> Any:
        return self._ask("GET", path, query, None).document

    def send(self, method: str, path: str, body: Query, query: Query | None = None) -> Answer:
        """A change. It has a key of its own, so that asking again after a lost answer is safe."""
        return self._ask(method, path, query, {k: v for k, v in body.items() if v is not None})

    def pages(
        self, path: str, query: Query | None = None, most: int = MOST_PAGES * PAGE
    ) -> Document:
        """Lists that come in pages, as one; `more` says whether there is more than `most`."""
        asked: dict[str, object] = {**(query or {}), "limit": min(PAGE, most)}
        results: list[Any] = []
        while True:
            page = self.get(path, asked)
            if not isinstance(page, dict) or not isinstance(page.get("results"), list):
                raise self._strange()
            results += page["results"]
            following = page.get("next")
            if not following or len(results) >= most:
                more = bool(following) or len(results) > most
                return {**page, "next": following, "results": results[:most], "more": more}
            asked = dict(parse_qsl(urlsplit(str(following)).query))

    def _ask(self, method: str, path: str, query: Query | None, body: Document | None) -> Answer:
        target = f"{API}{path}{_query(query)}"
        headers = {"Accept": "application/json"}
        content = None
        if body is not None:
            content = json.dumps(body, ensure_ascii=False).encode()
            key = uuid.uuid4().hex
            headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            response = self._exchange(method, target, headers, content)
        except Failed as failed:
            raise self._lost(failed, sent=body is not None) from None
        self._hear(response)
        return self._read(response)

    def _exchange(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes | None
    ) -> Response:
        """Once more if no answer came, where that can't take long or may have been done."""
        for last in (False, True):
            asked = time.monotonic()
            try:
                return self._connection.request(
                    method, target, headers, content, SECONDS, MOST_BYTES
                )
            except Failed as failed:
                slow = time.monotonic() - asked > SECONDS / 2
                if last or failed.status is not None or (content is None and slow):
                    raise
                time.sleep(RETRY_SECONDS)
        raise AssertionError

    def _read(self, response: Response) -> Answer:
        is_json = "json" in response.headers.get("content-type", "")
        try:
            document = json.loads(response.body) if is_json and response.body else None
        except ValueError:
            raise self._strange() from None
        if 200 <= response.status < 300:
            if response.body and not is_json:
                raise self._strange()
            return Answer(response.status, document)
        if isinstance(document, dict) and "detail" in document:
            raise exits.refused(document, response.status)
        raise self._no_console(response)

    def _hear(self, response: Response) -> None:
        try:
            said = parsedate_to_datetime(response.headers.get("date", ""))
        except ValueError:
            return
        skew = said.timestamp() - time.time()
        self._skew = skew if abs(skew) > 2 else 0.0  # `Date` is in whole seconds.

    def _lost(self, failed: Failed, *, sent: bool) -> exits.Ended:
        detail = f"The console at {self.host} can't be used: {failed.why}."
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

    def _strange(self) -> exits.Ended:
        said = f"{self.host} does not answer as a Switchgear console does. Is SWITCHGEAR_URL right?"
        return exits.ended(exits.UNREACHABLE, "no-console", said)


def place(*parts: object) -> str:
    """A path of these parts, whatever letters they have: `/dlq/streams/axiom%3Adlq%3Aevents`."""
    return "".join(f"/{quote(str(part), safe='')}" for part in parts)


def _query(query: Query | None) -> str:
    given = {name: value for name, value in (query or {}).items() if value is not None}
    return f"?{urlencode(given)}" if given else ""
