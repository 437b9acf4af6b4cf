"""Versions that a relay serves and the database may have lost.

Before a relay leaves an epoch, it asks its upstream whether the database has the version that it
serves. A relay passes the question on; a data plane asks its database, and reports a lost version
there. The version travels with its signature, so a relay can't invent one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson

from controlplane.core.errors import DomainError, InvalidInput, Unavailable
from controlplane.core.signatures import InvalidSignature, SigningKey, verify
from controlplane.core.timeouts import wait_at_most
from controlplane.dataplane.config import Config
from controlplane.dataplane.postgres import lost_versions_sql
from controlplane.dataplane.serving import responses
from controlplane.dataplane.serving.call import Call
from controlplane.dataplane.serving.responses import NO_STORE, Response
from controlplane.dataplane.state import State
from controlplane.dataplane.storage.saved_snapshot import SNAPSHOT

DATABASE_SECONDS = 5.0
MAX_QUESTIONS = 4
"""Most questions at once: all relays ask at the same moment, and each takes a connection."""


class VersionFate(NamedTuple):
    """The database's answer about a version.

    The database has lost it if `is_lost`, and then it is reported. From the version `restored_in`
    on, all that it engaged is engaged again; None if it was not lost.
    """

    is_lost: bool
    restored_in: int | None = None


class SignedSnapshot(NamedTuple):
    """The text of a published snapshot, its signature, and the relay that serves it."""

    body: bytes
    signature: str
    plane: str

    def serialize(self) -> bytes:
        return orjson.dumps({**self._asdict(), "body": self.body.decode()})


AskVersion = Callable[[SignedSnapshot], Awaitable[VersionFate]]
"""Returns the fate of a version; raises :class:`DomainError` without an answer."""


class LostVersionEndpoint:
    """Handler of `POST /api/v1/relay/lost-version`; `ask` is set by the feed."""

    def __init__(self) -> None:
        self.ask: AskVersion = _raise_starting

    async def relay_lost_version(self, state: State, call: Call) -> Response:
        """Tell a relay whether the database has lost the version that the relay serves."""
        fate = await self.ask(_read_request(responses.parse_object(call.body)))
        return responses.answer_json(200, fate._asdict(), NO_STORE)


class DatabaseVersionCheck:
    """Asks the database of a data plane, and reports the version there if it is lost."""

    def __init__(self, config: Config, state: State) -> None:
        self._config = config
        self._state = state
        self._permits = asyncio.Semaphore(MAX_QUESTIONS)

    async def __call__(self, served: SignedSnapshot) -> VersionFate:
        try:
            async with asyncio.timeout(DATABASE_SECONDS):
                await self._permits.acquire()
        except TimeoutError as error:
            raise Unavailable("Too many relays ask now. Try again in a moment.") from error
        try:
            return await self._ask(served)
        finally:
            self._permits.release()

    async def _ask(self, served: SignedSnapshot) -> VersionFate:
        keys = {key.public.id: key.public for key in self._signing_keys()}
        try:
            verify(served.signature, served.body, keys)
            snapshot = SNAPSHOT.parse(orjson.loads(served.body))
        except (InvalidSignature, KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise InvalidInput(
                {"body": [f"Is no snapshot signed by this console: {error}"]}
            ) from error
        entries = orjson.dumps(orjson.loads(served.body)["switches"])
        asking = lost_versions_sql.ask_version(
            self._config, snapshot.publication, entries, served.plane
        )
        try:
            return VersionFate(*await wait_at_most(DATABASE_SECONDS, asking))
        except Exception as error:
            raise Unavailable(f"The database could not be asked: {error}") from error

    def _signing_keys(self) -> tuple[SigningKey, ...]:
        return tuple(self._state.signing_keys)


def parse_fate(document: Any) -> VersionFate:
    """Return the answer of an upstream; raise ValueError if it is none."""
    is_lost, restored_in = document.get("is_lost"), document.get("restored_in")
    if not isinstance(is_lost, bool) or not (restored_in is None or isinstance(restored_in, int)):
        raise ValueError("its answer about a lost version has another schema")
    return VersionFate(is_lost, restored_in)


def _read_request(content: Mapping[str, Any]) -> SignedSnapshot:
    values = [content.get(name) for name in ("body", "signature", "plane")]
    if not all(isinstance(value, str) for value in values):
        raise DomainError("A signed snapshot has the texts body, signature and plane.")
    body, signature, plane = map(str, values)
    return SignedSnapshot(body.encode(), signature, plane[:100])


async def _raise_starting(_served: SignedSnapshot) -> VersionFate:
    raise Unavailable("This process is starting. Try again in a moment.")
